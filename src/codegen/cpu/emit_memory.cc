// Loads and stores. How an element's flat index varies over the lanes decides the access: unit step -> one vector
// access, none -> one scalar, another pattern within two vectors -> loads and a shuffle, backwards -> one access and
// lanes in the other order, anything else -> gather or scatter (counted for the lint).
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/divide.h"
#include "codegen/cpu/emitter.h"
#include "llvm/IR/Intrinsics.h"

namespace quern::cpu {
namespace {

bool IsZero(llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  return constant != nullptr && constant->isNullValue();
}

}  // namespace

template <typename Instruction>
Instruction* Emitter::Tag(Instruction* access, const Buffer& buffer) {
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, buffer.scope);
  access->setMetadata(llvm::LLVMContext::MD_noalias, buffer.noalias);
  return access;
}

llvm::Value* Emitter::FullMask() {
  if (mask_ != nullptr) return mask_;
  return llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b_.getInt1Ty(), lanes_));
}

std::vector<Val> Emitter::EmitIndex(const kir::Index& index) {
  std::vector<Val> values;
  for (const kir::ExprRef& expr : index) {
    const Val value = Emit(expr);
    if (value.dtype == DType::kI64) {
      values.push_back(value);
    } else if (value.uniform()) {
      values.push_back(Uniform(DType::kI64, Convert(value.scalar, value.dtype, DType::kI64)));
    } else {
      values.push_back(FromLanes(DType::kI64, Convert(Lanes(value), value.dtype, DType::kI64)));
    }
  }
  return values;
}

Val Emitter::FlatIndex(const Buffer& buffer, const std::vector<Val>& index) {
  if (index.size() != buffer.strides.size()) {
    Fail(absl::StrFormat("access of rank %d to %s", index.size(), kir::Print(buffer.type)));
    return I64(0);
  }
  if (buffer.type.layout == kir::Layout::kKn32 && index.size() == 2) {
    // [K][32]: row r, column j lies at 32 j + r.
    return FromFirst(AddI64(MulI64(index[1], I64(32)), index[0]));
  }
  if (buffer.type.layout != kir::Layout::kRow) {
    Fail(absl::StrFormat("an element of %s is reached by decode only", kir::Print(buffer.type)));
    return I64(0);
  }
  Val flat = I64(0);
  for (size_t d = 0; d < index.size(); ++d) {
    flat = AddI64(flat, MulI64(index[d], Uniform(DType::kI64, buffer.strides[d])));
  }
  return FromFirst(std::move(flat));
}

llvm::Align Emitter::ElementAlign(const Buffer& buffer, llvm::Value* flat, int64_t bytes) const {
  // A constant index keeps what the buffer's alignment says of it; otherwise the element's own size is all that is
  // known.
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(flat)) {
    return llvm::commonAlignment(llvm::Align(buffer.align), constant->getZExtValue() * bytes);
  }
  return llvm::Align(bytes);
}

llvm::Value* Emitter::LoadPattern(const Buffer& buffer, const Val& flat, llvm::Type* element) {
  const auto [least, most] = std::minmax_element(flat.offsets.begin(), flat.offsets.end());
  const int64_t low = *least, count = *most - low + 1;
  if (count > 2 * lanes_) return nullptr;
  // One vector, or two that overlap, from the first element to the last: nothing beside them is read.
  const int64_t width = std::min<int64_t>(lanes_, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count))));
  llvm::Type* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(width));
  const llvm::Align align(element->getPrimitiveSizeInBits() / 8);
  llvm::Value* first = b_.CreateInBoundsGEP(element, buffer.ptr, b_.CreateAdd(flat.scalar, b_.getInt64(low)));
  const auto load = [&](int64_t from) {
    llvm::Value* at = b_.CreateConstInBoundsGEP1_64(element, first, static_cast<uint64_t>(from));
    return Tag(b_.CreateAlignedLoad(type, at, align), buffer);
  };
  llvm::Value* front = load(0);
  llvm::Value* back = width == count ? front : load(count - width);
  std::vector<int> picks;
  for (const int64_t offset : flat.offsets) {
    const int64_t at = offset - low;
    picks.push_back(static_cast<int>(at < width ? at : width + at - (count - width)));
  }
  return b_.CreateShuffleVector(front, back, picks);
}

llvm::Value* Emitter::LoadEverySecond(const Buffer& buffer, const Val& flat, llvm::Type* element, llvm::Value* mask,
                                      llvm::Value* passed) {
  // Masked vectors, of which every second element is asked for and taken: two, or one where a register holds as many.
  const int count = 2 * lanes_ <= target_.lanes ? 1 : 2, width = 2 * lanes_ / count;
  llvm::Type* type = llvm::FixedVectorType::get(element, width);
  const llvm::Align align(element->getPrimitiveSizeInBits() / 8);
  llvm::Value *none = llvm::Constant::getNullValue(mask->getType()), *zero = llvm::Constant::getNullValue(type);
  llvm::Value* first = b_.CreateGEP(element, buffer.ptr, flat.scalar);
  llvm::Value* parts[2];
  for (int part = 0; part < count; ++part) {
    std::vector<int> lanes;
    for (int lane = 0; lane < width; ++lane) lanes.push_back(lane % 2 == 0 ? (part * width + lane) / 2 : lanes_);
    llvm::Value* at = b_.CreateGEP(element, first, b_.getInt64(part * width));
    parts[part] = Tag(b_.CreateMaskedLoad(type, at, align, b_.CreateShuffleVector(mask, none, lanes), zero), buffer);
  }
  std::vector<int> picks;
  for (int lane = 0; lane < lanes_; ++lane) picks.push_back(2 * lane);
  // What was not asked for is 0.
  llvm::Value* taken = b_.CreateShuffleVector(parts[0], parts[count - 1], picks);
  return IsZero(passed) ? taken : b_.CreateSelect(mask, taken, passed);
}

// Windows two elements apart take the even or the odd elements of a part of a row. So vectors begin at an even one and
// hold all of the row that is there: one load for windows beside each other.
llvm::Value* Emitter::LoadFromRow(const Buffer& buffer, const std::vector<Val>& index, llvm::Type* element,
                                  llvm::Value* mask, llvm::Value* passed) {
  const Val& last = index.back();
  const auto* extent = llvm::dyn_cast<llvm::ConstantInt>(buffer.dims.back());
  const Range range = last.varying() || last.uniform() ? std::nullopt : RangeOf(last);
  const bool known = mask == nullptr || llvm::isa<llvm::Constant>(mask);
  if (buffer.type.layout != kir::Layout::kRow || extent == nullptr || !range || !known) return nullptr;
  const auto [least, most] = LiveOffsets(last, mask);
  const int64_t low = FloorDiv(least, 2) * 2;
  const int width = std::min(2 * lanes_, target_.lanes), count = 2 * lanes_ / width;
  const auto there = [&](int64_t offset) {
    return range->first + offset >= 0 && range->second + offset < extent->getSExtValue();
  };
  if (most - low >= int64_t{count} * width || !there(least) || !there(most)) return nullptr;
  std::vector<Val> from = index;
  from.back() = AddI64(Uniform(DType::kI64, last.scalar), I64(low));
  const Val flat = FlatIndex(buffer, from);
  if (!flat.uniform()) return nullptr;
  llvm::Type* type = llvm::FixedVectorType::get(element, width);
  const llvm::Align align(element->getPrimitiveSizeInBits() / 8);
  llvm::Value* first = b_.CreateGEP(element, buffer.ptr, flat.scalar);
  std::vector<llvm::Value*> parts;
  int zero = -1;  // an element that is not there
  for (int part = 0; part < count; ++part) {
    std::vector<llvm::Constant*> asked;
    for (int at = part * width; at < (part + 1) * width; ++at) {
      asked.push_back(b_.getInt1(there(low + at)));
      if (!there(low + at)) zero = at;
    }
    llvm::Constant* inside = llvm::ConstantVector::get(asked);
    llvm::Value* at = b_.CreateGEP(element, first, b_.getInt64(part * width));
    if (inside->isAllOnesValue())
      parts.push_back(Tag(b_.CreateAlignedLoad(type, at, align), buffer));
    else if (target_.masks)
      parts.push_back(Tag(b_.CreateMaskedLoad(type, at, align, inside, llvm::Constant::getNullValue(type)), buffer));
    else
      return nullptr;
  }
  // Lanes outside take an element that is 0, where they are to be 0.
  const bool zeros = zero >= 0 && passed != nullptr && IsZero(passed);
  std::vector<int> picks;
  for (size_t lane = 0; lane < last.offsets.size(); ++lane)
    picks.push_back(MayBeLive(mask, lane) ? static_cast<int>(last.offsets[lane] - low) : zeros ? zero : 0);
  llvm::Value* taken = b_.CreateShuffleVector(parts.front(), parts.back(), picks);
  return zeros || mask == nullptr || passed == nullptr ? taken : b_.CreateSelect(mask, taken, passed);
}

Val Emitter::LoadElement(const Buffer& buffer, const std::vector<Val>& index) {
  const DType dtype = buffer.type.dtype;
  const Val flat = FlatIndex(buffer, index);
  llvm::Type* element = MemoryType(dtype);
  const int64_t bytes = ScalarBytes(dtype);
  if (flat.uniform()) {
    llvm::Value* at = b_.CreateInBoundsGEP(element, buffer.ptr, flat.scalar);
    llvm::LoadInst* load = Tag(b_.CreateAlignedLoad(element, at, ElementAlign(buffer, flat.scalar, bytes)), buffer);
    return Uniform(dtype, FromMemory(load, dtype));
  }
  llvm::Type* type = LanesOf(element);
  llvm::Value* loaded = flat.Steps(2) ? LoadFromRow(buffer, index, element, mask_, nullptr) : nullptr;
  if (flat.Steps(1)) {
    llvm::Value* at = b_.CreateInBoundsGEP(element, buffer.ptr, flat.scalar);
    const llvm::Align align = ElementAlign(buffer, flat.scalar, bytes);
    if (mask_ == nullptr) {
      loaded = Tag(b_.CreateAlignedLoad(type, at, align), buffer);
    } else {
      loaded = Tag(b_.CreateMaskedLoad(type, at, align, mask_, llvm::Constant::getNullValue(type)), buffer);
    }
  } else if (loaded == nullptr && !flat.varying() && mask_ == nullptr) {
    loaded = LoadPattern(buffer, flat, element);
  } else if (loaded == nullptr && flat.Steps(2)) {
    loaded = LoadEverySecond(buffer, flat, element, mask_, llvm::Constant::getNullValue(type));
  } else if (flat.Steps(-1)) {
    llvm::Value* at = b_.CreateGEP(element, buffer.ptr, b_.CreateSub(flat.scalar, b_.getInt64(lanes_ - 1)));
    llvm::Value* mask = b_.CreateVectorReverse(mask_);
    loaded = b_.CreateVectorReverse(
        Tag(b_.CreateMaskedLoad(type, at, llvm::Align(bytes), mask, llvm::Constant::getNullValue(type)), buffer));
  }
  if (loaded == nullptr) {
    ++stats_.gathers;
    llvm::Value* at = b_.CreateInBoundsGEP(element, buffer.ptr, Lanes(flat));
    loaded = Tag(b_.CreateMaskedGather(type, at, llvm::Align(bytes), FullMask(), llvm::Constant::getNullValue(type)),
                 buffer);
  }
  return FromLanes(dtype, FromMemory(loaded, dtype));
}

Val Emitter::LoadOr(const Buffer& buffer, const std::vector<Val>& index, const Val& otherwise) {
  const DType dtype = buffer.type.dtype;
  const Val flat = FlatIndex(buffer, index);
  llvm::Type* element = MemoryType(dtype);
  const int64_t bytes = ScalarBytes(dtype);
  // Inside when every index, as an unsigned number, is below its extent.
  bool uniform = true;
  for (const Val& at : index) uniform = uniform && at.uniform();
  // What all lanes share stays one condition: of its splat and constant lanes, where half of them are false, LLVM 19
  // makes AVX2 code that reads that half anyway.
  llvm::Value *inside = nullptr, *lanes_inside = nullptr;
  for (size_t d = 0; d < index.size(); ++d) {
    if (IsWithin(index[d], buffer.dims[d])) continue;
    const bool shared = index[d].uniform();
    llvm::Value* at = shared ? index[d].scalar : Lanes(index[d]);
    llvm::Value* limit = shared ? buffer.dims[d] : b_.CreateVectorSplat(lanes_, buffer.dims[d]);
    llvm::Value* below = b_.CreateICmpULT(at, limit);
    llvm::Value*& all = shared ? inside : lanes_inside;
    all = all == nullptr ? below : b_.CreateAnd(all, below);
  }
  // A masked load of no lanes takes hundreds of cycles where its address is on no page: the buffer's own stands in.
  llvm::Value* shared_inside = inside;
  if (lanes_inside != nullptr) {
    llvm::Value* none = llvm::Constant::getNullValue(lanes_inside->getType());
    inside = inside == nullptr ? lanes_inside : b_.CreateSelect(inside, lanes_inside, none);
  } else if (inside != nullptr && !uniform) {
    inside = b_.CreateVectorSplat(lanes_, inside);
  }
  if (inside == nullptr) return LoadElement(buffer, index);
  if (uniform) {
    // Outside, the address of a local copy of the other value stands in: no branch, nothing out of bounds is touched.
    if (!otherwise.uniform()) {
      const Val loaded = LoadOr(buffer, index, Uniform(dtype, llvm::Constant::getNullValue(ScalarType(dtype))));
      return FromLanes(dtype, b_.CreateSelect(inside, Lanes(loaded), Lanes(otherwise)));
    }
    llvm::AllocaInst* slot = EntryAlloca(element);
    b_.CreateStore(ToMemory(otherwise.scalar, dtype), slot);
    llvm::Value* at = b_.CreateSelect(inside, b_.CreateGEP(element, buffer.ptr, flat.scalar), slot);
    return Uniform(dtype, FromMemory(b_.CreateAlignedLoad(element, at, llvm::Align(bytes)), dtype));
  }
  llvm::Value* mask = mask_ == nullptr ? inside : b_.CreateAnd(inside, mask_);
  llvm::Type* type = LanesOf(element);
  llvm::Value* passed = ToMemory(Lanes(otherwise), dtype);
  llvm::Value* loaded;
  // Levels without masks have none for bytes and halves: such a load would be one of each element. The condition is the
  // same for a whole row.
  if (flat.Steps(1) && lanes_inside == nullptr && mask_ == nullptr && !target_.masks && bytes < 4) {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::BasicBlock* there = llvm::BasicBlock::Create(context_, "inside", function_);
    llvm::BasicBlock* done = llvm::BasicBlock::Create(context_, "done", function_);
    b_.CreateCondBr(shared_inside, there, done);
    b_.SetInsertPoint(there);
    llvm::Value* at = b_.CreateGEP(element, buffer.ptr, flat.scalar);
    llvm::Value* all = Tag(b_.CreateAlignedLoad(type, at, llvm::Align(bytes)), buffer);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
    llvm::PHINode* either = b_.CreatePHI(type, 2);
    either->addIncoming(passed, before);
    either->addIncoming(all, there);
    loaded = either;
  } else if (flat.Steps(1)) {
    llvm::Value* first =
        shared_inside == nullptr ? flat.scalar : b_.CreateSelect(shared_inside, flat.scalar, b_.getInt64(0));
    llvm::Value* at = b_.CreateGEP(element, buffer.ptr, first);
    loaded = Tag(b_.CreateMaskedLoad(type, at, llvm::Align(bytes), mask, passed), buffer);
  } else if (flat.Steps(2)) {
    loaded = shared_inside == nullptr ? LoadFromRow(buffer, index, element, mask, passed) : nullptr;
    if (loaded == nullptr) loaded = LoadEverySecond(buffer, flat, element, mask, passed);
  } else {
    ++stats_.gathers;
    llvm::Value* at = b_.CreateGEP(element, buffer.ptr, Lanes(flat));
    loaded = Tag(b_.CreateMaskedGather(type, at, llvm::Align(bytes), mask, passed), buffer);
  }
  return FromLanes(dtype, FromMemory(loaded, dtype));
}

void Emitter::StoreElement(const Buffer& buffer, const std::vector<Val>& index, const Val& value) {
  const DType dtype = buffer.type.dtype;
  const Val flat = FlatIndex(buffer, index);
  llvm::Type* element = MemoryType(dtype);
  const int64_t bytes = ScalarBytes(dtype);
  if (flat.uniform()) {
    if (lanes_ != 1) return Fail("a store inside a vec loop whose element does not depend on the lane");
    llvm::Value* at = b_.CreateInBoundsGEP(element, buffer.ptr, flat.scalar);
    Tag(b_.CreateAlignedStore(ToMemory(value.scalar, dtype), at, ElementAlign(buffer, flat.scalar, bytes)), buffer);
    return;
  }
  llvm::Value* stored = ToMemory(Lanes(value), dtype);
  if (flat.Steps(1)) {
    llvm::Value* at = b_.CreateInBoundsGEP(element, buffer.ptr, flat.scalar);
    const llvm::Align align = ElementAlign(buffer, flat.scalar, bytes);
    if (mask_ == nullptr) {
      Tag(b_.CreateAlignedStore(stored, at, align), buffer);
    } else {
      Tag(b_.CreateMaskedStore(stored, at, align, mask_), buffer);
    }
    return;
  }
  if (flat.Steps(-1)) {
    llvm::Value* at = b_.CreateGEP(element, buffer.ptr, b_.CreateSub(flat.scalar, b_.getInt64(lanes_ - 1)));
    stored = b_.CreateVectorReverse(stored);
    if (mask_ == nullptr)
      Tag(b_.CreateAlignedStore(stored, at, llvm::Align(bytes)), buffer);
    else
      Tag(b_.CreateMaskedStore(stored, at, llvm::Align(bytes), b_.CreateVectorReverse(mask_)), buffer);
    return;
  }
  ++stats_.scatters;
  llvm::Value* at = b_.CreateInBoundsGEP(element, buffer.ptr, Lanes(flat));
  Tag(b_.CreateMaskedScatter(stored, at, llvm::Align(bytes), FullMask()), buffer);
}

}  // namespace quern::cpu
