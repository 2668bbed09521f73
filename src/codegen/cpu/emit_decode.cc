// Elements of block formats as f32: for meanings, for kernels that read a few elements of a quantised buffer and for
// formats without tiles. Byte by byte, lane by lane; the tiles are the fast way.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "codegen/cpu/emitter.h"
#include "codegen/llvm/block_reader.h"
#include "llvm/IR/Intrinsics.h"

namespace quern::cpu {
namespace {

// A little-endian scalar at a byte of a buffer, as held in registers.
using ReadScalar = std::function<llvm::Value*(llvm::Value* offset, DType dtype)>;
// The same, or what lies there as a vector of `type`.
using ReadBytes = std::function<llvm::Value*(llvm::Value* offset, DType dtype, llvm::Type* type)>;
// f16s, as bits, as f32.
using Widen = std::function<llvm::Value*(llvm::Value* bits)>;

// Byte offsets and integers are i64, or lanes of it.
class BlockReader : public codegen::BlockReader {
 public:
  BlockReader(llvm::IRBuilder<>& b, DType format, llvm::Type* integer, ReadScalar read, Widen widen)
      : codegen::BlockReader(b, format, integer), dtype_(format), read_(std::move(read)), widen_(std::move(widen)) {}

  // Element j of a row of blocks that starts at byte `row`.
  llvm::Value* Blocks(llvm::Value* row, llvm::Value* j) {
    block_ = Add(row, Mul(Div(j, format_.elements), format_.bytes));
    return Decoded(b_.CreateURem(j, C(format_.elements)));
  }

  llvm::Value* Planar(int64_t k, llvm::Value* row, llvm::Value* j) {
    const kir::PlanarRow layout = kir::PlanarRowOf(dtype_, k);
    llvm::Value* quant = b_.CreateSExt(read_(Add(row, j), DType::kI8), integer_);
    llvm::Value* scale = Add(row, Add(Mul(Div(j, format_.elements), 4), C(layout.scales)));
    return ValueOf({.code = Add(quant, C(format_.zero)), .d = read_(scale, DType::kF32)});
  }

  // Row r of the 16 of a panel that starts at byte 0.
  llvm::Value* Panel16(int64_t k, llvm::Value* r, llvm::Value* j) {
    const kir::Panel16 layout = kir::Panel16Of(dtype_, k);
    llvm::Value* code = Add(Mul(Div(j, 4), 64), Add(Mul(r, 4), b_.CreateURem(j, C(4))));
    llvm::Value* scale = Add(Mul(Add(Mul(Div(j, format_.group), 16), r), 4), C(layout.scales));
    llvm::Value* super = Add(Mul(Add(Mul(Div(j, format_.elements), 16), r), 4), C(layout.supers));
    Fields fields{.code = b_.CreateZExt(read_(code, DType::kU8), integer_), .d = read_(scale, DType::kF32)};
    if (kir::HasMinimums(dtype_)) {
      llvm::Value* group = Div(j, format_.group);
      llvm::Value* pair = Add(Mul(Add(Mul(Div(group, 2), 16), r), 2), b_.CreateURem(group, C(2)));
      llvm::Value* minimum = read_(Add(Mul(pair, 2), C(layout.mins)), DType::kI16);
      fields.minimum = Natural(b_.CreateSExt(minimum, integer_), 0);
      fields.dmin = read_(super, DType::kF32);
    }
    if (kir::HasAdded(dtype_)) fields.added = read_(super, DType::kF32);
    return ValueOf(fields);
  }

 protected:
  llvm::Value* Load(const kir::BlockStep& load) override {
    llvm::Value* scalar = read_(Add(block_, made_[load.args[0]]), load.dtype);
    if (IsFloat(load.dtype)) return scalar;
    return load.dtype == DType::kI8 ? b_.CreateSExt(scalar, integer_) : b_.CreateZExt(scalar, integer_);
  }
  llvm::Value* Half(llvm::Value* bits) override { return widen_(bits); }

 private:
  llvm::Value* Add(llvm::Value* a, llvm::Value* c) { return b_.CreateAdd(a, c); }
  llvm::Value* Mul(llvm::Value* a, int64_t c) { return b_.CreateMul(a, C(c)); }
  llvm::Value* Div(llvm::Value* a, int64_t c) { return b_.CreateUDiv(a, C(c)); }

  const DType dtype_;
  const ReadScalar read_;
  const Widen widen_;
  llvm::Value* block_ = nullptr;  // byte where the block starts
};

// As many neighbours as there are lanes, of which the first is a multiple of that: what lies side by side in the block
// is read side by side, and what they share once. Integers are lanes of i32.
class RunReader : public codegen::BlockReader {
 public:
  RunReader(llvm::IRBuilder<>& b, DType format, int lanes, ReadBytes read, Widen widen)
      : codegen::BlockReader(b, format, llvm::FixedVectorType::get(b.getInt32Ty(), static_cast<unsigned>(lanes))),
        lanes_(lanes),
        read_(std::move(read)),
        widen_(std::move(widen)) {}

  // Elements j, j + 1, ... of a row of blocks that starts at byte `row`.
  llvm::Value* Blocks(llvm::Value* row, llvm::Value* j) {
    llvm::Value* block = b_.CreateUDiv(j, b_.getInt64(format_.elements));
    block_ = b_.CreateAdd(row, b_.CreateMul(block, b_.getInt64(format_.bytes)));
    first_ = b_.CreateURem(j, b_.getInt64(format_.elements));
    firsts_.assign(fields_.steps.size(), nullptr);
    std::vector<int> lane_numbers(lanes_);
    std::iota(lane_numbers.begin(), lane_numbers.end(), 0);
    return Decoded(Over(first_, lane_numbers));
  }

 protected:
  llvm::Value* Step(int number) override {
    const kir::BlockStep& step = fields_.steps[number];
    alike_ = step.alike;
    if (step.values.empty()) {
      if (step.alike < lanes_ || !IsInteger(step)) return BlockReader::Step(number);
      llvm::Value* first = First(number);
      const bool compared = first->getType()->isIntegerTy(1);
      return b_.CreateVectorSplat(lanes_, compared ? first : b_.CreateTrunc(first, b_.getInt32Ty()));
    }
    const std::vector<int>& over = step.OverRun(lanes_);
    if (over.empty()) return BlockReader::Step(number);
    llvm::Value* first = First(number);
    if (!first->getType()->isIntegerTy(1)) return Over(first, over);
    const bool same = std::count(over.begin(), over.end(), 0) == lanes_;  // a comparison
    return same ? b_.CreateVectorSplat(lanes_, first) : BlockReader::Step(number);
  }

  llvm::Value* Load(const kir::BlockStep& load) override {
    const kir::BlockStep& address = fields_.steps[load.args[0]];
    const std::vector<int>& over = address.OverRun(lanes_);
    llvm::Value* read = nullptr;
    if (over.empty() || *std::min_element(over.begin(), over.end()) < 0) {  // byte by byte
      read = ByOnes(made_[load.args[0]], address.alike, b_.getInt8Ty(),
                    [&](llvm::Value* at) { return Scalar(at, DType::kU8); });
    } else if (*std::max_element(over.begin(), over.end()) == 0) {
      return b_.CreateVectorSplat(lanes_, Scalar(First(load.args[0]), load.dtype));
    } else {
      const unsigned count = *std::max_element(over.begin(), over.end()) + 1;
      llvm::Type* bytes = llvm::FixedVectorType::get(b_.getInt8Ty(), count);
      read = b_.CreateShuffleVector(read_(b_.CreateAdd(block_, First(load.args[0])), DType::kU8, bytes), over);
    }
    return load.dtype == DType::kI8 ? b_.CreateSExt(read, integer_) : b_.CreateZExt(read, integer_);
  }

  // d is that of a block: all lanes have the first one's.
  llvm::Value* Half(llvm::Value* bits) override {
    return b_.CreateVectorSplat(lanes_, widen_(b_.CreateExtractElement(bits, uint64_t{0})));
  }

  llvm::Value* Word(llvm::Value* index) override {
    auto read = [&](llvm::Value* at) { return ScalarWord(at); };
    return b_.CreateZExt(ByOnes(index, alike_, b_.getInt16Ty(), read), integer_);
  }

 private:
  static bool IsInteger(const kir::BlockStep& step) {
    using Kind = kir::BlockStep::Kind;
    if (step.kind == Kind::kLoad) return !IsFloat(step.dtype);
    return step.kind == Kind::kGrid || step.kind == Kind::kApply;
  }

  llvm::Value* Scalar(llvm::Value* at, DType dtype) { return read_(b_.CreateAdd(block_, at), dtype, nullptr); }
  llvm::Value* ScalarWord(llvm::Value* index) { return b_.CreateLoad(b_.getInt16Ty(), WordAddress(index, 0)); }

  // What `read` reads at the place of each lane, of which `alike` neighbours have one.
  template <typename Read>
  llvm::Value* ByOnes(llvm::Value* places, int alike, llvm::Type* element, const Read& read) {
    const int count = std::max(1, lanes_ / alike);
    llvm::Value* ones = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, static_cast<unsigned>(count)));
    std::vector<int> from;
    for (int one = 0; one < count; ++one) {
      llvm::Value* at = b_.CreateZExt(b_.CreateExtractElement(places, one * lanes_ / count), b_.getInt64Ty());
      ones = b_.CreateInsertElement(ones, read(at), one);
    }
    if (count == lanes_) return ones;
    for (int lane = 0; lane < lanes_; ++lane) from.push_back(lane * count / lanes_);
    return b_.CreateShuffleVector(ones, from);
  }

  // What a step that is the same for all lanes, or follows from i alone, is for the first lane, as i64.
  llvm::Value* First(int number) {
    const kir::BlockStep& step = fields_.steps[number];
    if (step.kind == kir::BlockStep::Kind::kIndex) return first_;
    if (step.kind == kir::BlockStep::Kind::kConst) return b_.getInt64(static_cast<uint64_t>(step.constant));
    if (firsts_[number] == nullptr) {
      std::vector<llvm::Value*> args;
      for (const int arg : step.args) {
        if (arg >= 0) args.push_back(First(arg));
      }
      if (step.kind == kir::BlockStep::Kind::kGrid) {
        firsts_[number] = b_.CreateZExt(ScalarWord(args[0]), b_.getInt64Ty());
      } else if (step.kind == kir::BlockStep::Kind::kLoad) {
        llvm::Value* byte = Scalar(args[0], step.dtype);
        firsts_[number] =
            step.dtype == DType::kI8 ? b_.CreateSExt(byte, b_.getInt64Ty()) : b_.CreateZExt(byte, b_.getInt64Ty());
      } else {
        firsts_[number] = Apply(step.op, args);
      }
    }
    return firsts_[number];
  }

  // `first` and so much above it, in each lane.
  llvm::Value* Over(llvm::Value* first, const std::vector<int>& above) {
    std::vector<llvm::Constant*> lanes;
    for (const int lane : above) lanes.push_back(b_.getInt32(static_cast<uint32_t>(lane)));
    llvm::Value* splat = b_.CreateVectorSplat(lanes_, b_.CreateTrunc(first, b_.getInt32Ty()));
    return b_.CreateAdd(splat, llvm::ConstantVector::get(lanes));
  }

  const int lanes_;
  const ReadBytes read_;
  const Widen widen_;
  llvm::Value* block_ = nullptr;      // byte where the block starts
  llvm::Value* first_ = nullptr;      // number in it of the first element
  int alike_ = 1;                     // neighbours that have one value of the step that is being made
  std::vector<llvm::Value*> firsts_;  // by step
};

}  // namespace

Val Emitter::EmitDecode(const kir::Decode& decode) {
  Buffer* found = FindBuffer(decode.buffer);
  if (found == nullptr) return Poison(DType::kF32);
  const Buffer buffer = *found;
  std::vector<Val> index = EmitIndex(decode.index);
  const kir::BufferType& type = buffer.type;
  if (index.size() != type.dims.size() || index.empty()) {
    Fail("rank of a decode");
    return Poison(DType::kF32);
  }
  if (!IsBlock(type.dtype)) {
    const Val value = LoadElement(buffer, index);
    if (value.uniform()) return Uniform(DType::kF32, Convert(value.scalar, value.dtype, DType::kF32));
    return FromLanes(DType::kF32, Convert(Lanes(value), value.dtype, DType::kF32));
  }
  bool uniform = true;
  for (const Val& at : index) uniform = uniform && at.uniform();
  auto form = [&](const Val& value) { return uniform ? value.scalar : Lanes(value); };
  auto splat = [&](llvm::Value* scalar) { return uniform ? scalar : b_.CreateVectorSplat(lanes_, scalar); };
  if (type.layout == kir::Layout::kPanel16 && !HasPlainPanels(target_, type.dtype)) {
    Fail(absl::StrCat("a panel of ", Row(type.dtype).name, " at level ", target_.name, " is read by its tile alone"));
    return Poison(DType::kF32);
  }
  const Val column = FromFirst(index.back());
  const Widen widen = [&](llvm::Value* bits) { return WidenHalf(bits, DType::kF16); };
  if (type.layout == kir::Layout::kBlocks && column.Steps(1) && column.multiple % lanes_ == 0 && mask_ == nullptr &&
      lanes_ <= 16 && lanes_ >= 4) {
    bool same_row = true;
    for (size_t d = 0; d + 1 < index.size(); ++d) same_row = same_row && index[d].uniform();
    if (same_row) {
      llvm::Value* row = b_.getInt64(0);
      for (size_t d = 0; d + 1 < index.size(); ++d) {
        row = b_.CreateAdd(row, b_.CreateMul(index[d].scalar, buffer.strides[d]));
      }
      RunReader reader(
          b_, type.dtype, lanes_,
          [&](llvm::Value* offset, DType dtype, llvm::Type* bytes) {
            llvm::Value* at = b_.CreateGEP(b_.getInt8Ty(), buffer.ptr, offset);
            if (bytes != nullptr) return static_cast<llvm::Value*>(b_.CreateAlignedLoad(bytes, at, llvm::Align(1)));
            return FromMemory(b_.CreateAlignedLoad(MemoryType(dtype), at, llvm::Align(1)), dtype);
          },
          widen);
      return FromLanes(DType::kF32, reader.Blocks(row, column.scalar));
    }
  }
  BlockReader reader(
      b_, type.dtype, uniform ? static_cast<llvm::Type*>(b_.getInt64Ty()) : LanesOf(b_.getInt64Ty()),
      [&](llvm::Value* offset, DType dtype) -> llvm::Value* {
        llvm::Type* element = MemoryType(dtype);
        llvm::Value* at = b_.CreateGEP(b_.getInt8Ty(), buffer.ptr, offset);
        llvm::Value* loaded;
        if (uniform) {
          loaded = b_.CreateAlignedLoad(element, at, llvm::Align(1));
        } else {
          llvm::Type* lanes = LanesOf(element);
          loaded = b_.CreateMaskedGather(lanes, at, llvm::Align(1), FullMask(), llvm::Constant::getNullValue(lanes));
        }
        return FromMemory(loaded, dtype);
      },
      widen);
  if (!uniform) ++stats_.gathers;
  llvm::Value* row = splat(b_.getInt64(0));
  const bool panel = type.layout == kir::Layout::kPanel16;
  if (!panel) {
    for (size_t d = 0; d + 1 < index.size(); ++d) {
      row = b_.CreateAdd(row, b_.CreateMul(form(index[d]), splat(buffer.strides[d])));
    }
  }
  const int64_t k = type.dims.back().constant();
  llvm::Value* j = form(index.back());
  llvm::Value* value = nullptr;
  if (type.layout == kir::Layout::kBlocks) {
    value = reader.Blocks(row, j);
  } else if (type.layout == kir::Layout::kPlanar) {
    value = reader.Planar(k, row, j);
  } else {
    value = reader.Panel16(k, form(index[0]), j);
  }
  return FromLanes(DType::kF32, value);
}

}  // namespace quern::cpu
