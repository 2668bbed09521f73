// What the threads of a block do with memory that they share: barriers, copies, pipelines, products of warps and
// groups.
//
// A pipeline of s stages has s buffers: before iteration n is used, the fetch of n + s - 1 starts, into the buffer that
// iteration n - 1 has left. One barrier an iteration then is both: what was fetched for n is there, and n - 1 is done
// with.
#include <algorithm>

#include "codegen/copy_runs.h"
#include "codegen/ptx/emitter.h"
#include "codegen/ptx/products.h"
#include "kir/walk.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace quern::ptx {
namespace {

// cp.async of so many bytes, and of as many of them as are asked for, the rest zeros.
struct AsyncCopy {
  int64_t bytes;
  llvm::Intrinsic::ID whole, partial;
};
constexpr AsyncCopy kAsyncCopies[] = {
    {4, llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4, llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s},
    {8, llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8, llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s},
    {16, llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s},
};

std::vector<const kir::Copy*> Fetched(const kir::Pipeline& pipeline) {
  std::vector<const kir::Copy*> copies;
  kir::ForEach(pipeline.fetch, [&](const kir::Stmt& stmt) {
    if (const auto* copy = std::get_if<kir::Copy>(&stmt.node)) copies.push_back(copy);
  });
  return copies;
}

}  // namespace

void Emitter::BlockBarrier() {
  if (!cores_.empty()) FenceForGroups(b_);
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

Emitter::Region Emitter::Cut(const kir::Slice& slice) {
  Region region;
  const auto found = names_.find(slice.buffer);
  if (found == names_.end() || found->second.buffer < 0) {
    Fail(slice.buffer + " is no buffer");
    return region;
  }
  region.buffer = buffers_[found->second.buffer];
  const size_t rank = region.buffer.dims.size();
  for (size_t d = 0; d < rank; ++d) {
    const kir::SliceDim dim = slice.dims.empty() ? kir::SliceDim{} : slice.dims[d];
    region.starts.push_back(dim.start == nullptr ? I64(0) : Value(dim.start));
    if (d + 1 == rank) region.apart = dim.start == nullptr ? kir::kMostMultiple : MultipleOf(dim.start);
    if (dim.start != nullptr && dim.extent == nullptr) continue;
    region.ranged.push_back(d);
    region.asked.push_back(dim.extent == nullptr ? b_.CreateNSWSub(region.buffer.dims[d], region.starts[d])
                                                 : Value(dim.extent));
  }
  if (rank > 1) region.apart = std::min(region.apart, region.buffer.multiple);
  return region;
}

// One run, or zeros where that is outside.
void Emitter::Emit(const kir::Copy& copy) {
  const Region dst = Cut(copy.dst), src = Cut(copy.src);
  if (!status_.ok()) return;
  const codegen::CopiedRun of = codegen::RunOf(copy);
  const int64_t run = of.length;
  llvm::Value* live = of.inside == nullptr ? nullptr : Value(of.inside);
  const std::vector<llvm::Value*>& from = src.starts;
  llvm::Value* target = Address(dst.buffer, dst.starts);
  const bool same = src.buffer.dtype == dst.buffer.dtype;
  const int64_t element = ScalarBytes(dst.buffer.dtype), bytes = run * element;
  const bool spaces = dst.buffer.pointer->getType()->getPointerAddressSpace() == 3 &&
                      src.buffer.pointer->getType()->getPointerAddressSpace() == 1;
  if (async_ && same && spaces && bytes >= 4 && src.buffer.align >= bytes) {
    const AsyncCopy& row = *std::find_if(std::begin(kAsyncCopies), std::end(kAsyncCopies),
                                         [&](const AsyncCopy& each) { return each.bytes == bytes; });
    std::vector<llvm::Value*> operands = {target, Address(src.buffer, from)};
    if (live != nullptr)
      operands.push_back(b_.CreateSelect(live, b_.getInt32(static_cast<uint32_t>(bytes)), b_.getInt32(0)));
    b_.CreateIntrinsic(live == nullptr ? row.whole : row.partial, {}, operands);
    fetched_ = true;
    return;
  }
  auto aligned = [&](const Buffer& buffer, int64_t size) {
    return llvm::Align(static_cast<uint64_t>(std::min<int64_t>({size, buffer.align, 16})));
  };
  auto read = [&]() -> llvm::Value* {
    if (!same) return Converted(src.buffer, from, run, dst.buffer.dtype);
    llvm::Type* type =
        bytes < 4 ? b_.getIntNTy(8 * static_cast<unsigned>(bytes))
        : bytes == 4
            ? b_.getInt32Ty()
            : static_cast<llvm::Type*>(llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(bytes / 4)));
    return b_.CreateAlignedLoad(type, Address(src.buffer, from), aligned(src.buffer, bytes));
  };
  const llvm::Align rows(static_cast<uint64_t>(std::min<int64_t>({bytes, dst.buffer.align, dst.apart * element, 16})));
  auto write = [&](llvm::Value* value) { b_.CreateAlignedStore(value, target, rows); };
  if (live == nullptr) return write(read());
  llvm::BasicBlock* const outside = b_.GetInsertBlock();
  llvm::BasicBlock* inside = nullptr;
  llvm::Value* value = nullptr;
  Guarded(live, [&] {
    value = read();
    inside = b_.GetInsertBlock();
  });
  llvm::PHINode* const chosen = b_.CreatePHI(value->getType(), 2);
  chosen->addIncoming(value, inside);
  chosen->addIncoming(llvm::Constant::getNullValue(value->getType()), outside);
  write(chosen);
}

// `run` neighbours as words of elements of dtype `to`.
llvm::Value* Emitter::Converted(const Buffer& from, const std::vector<llvm::Value*>& index, int64_t run, DType to) {
  std::vector<llvm::Value*> values;
  if (IsBlock(from.dtype)) {
    llvm::Value* first = run > 1 ? index.back() : b_.CreateAnd(index.back(), I64(-8));
    for (int64_t i = 0; i < run; ++i) {
      values.push_back(Decoded(from, index, first, run > 1 ? I64(i) : b_.CreateAnd(index.back(), I64(7))));
    }
  } else {
    const auto bytes = static_cast<uint64_t>(std::min<int64_t>({run * ScalarBytes(from.dtype), from.align, 16}));
    llvm::Type* type = MemoryType(from.dtype);
    if (run > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(run));
    llvm::Value* all = b_.CreateAlignedLoad(type, Address(from, index), llvm::Align(bytes));
    for (int64_t i = 0; i < run; ++i) {
      values.push_back(FromMemory(run > 1 ? b_.CreateExtractElement(all, static_cast<uint64_t>(i)) : all, from.dtype));
    }
  }
  // Values of 16 bits are rounded where they are put together.
  for (llvm::Value*& value : values) {
    if (from.dtype == DType::kF64 || ScalarBytes(to) > 2)
      value = Convert(value, IsBlock(from.dtype) ? DType::kF32 : from.dtype, to);
  }
  const bool pairs = run > 1 && ScalarBytes(to) == 2;
  llvm::Type* type = pairs ? b_.getInt32Ty() : MemoryType(to);
  if (run == 1) return ToMemory(values[0], to);
  const unsigned count = static_cast<unsigned>(pairs ? run / 2 : run);
  if (pairs) {
    // Rounded two by two.
    const llvm::Intrinsic::ID id =
        to == DType::kF16 ? llvm::Intrinsic::nvvm_ff2f16x2_rn : llvm::Intrinsic::nvvm_ff2bf16x2_rn;
    for (unsigned i = 0; i < count; ++i) {
      values[i] = b_.CreateBitCast(b_.CreateIntrinsic(id, {}, {values[2 * i + 1], values[2 * i]}), type);
    }
  }
  if (count == 1) return values[0];
  llvm::Value* all = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, count));
  for (unsigned i = 0; i < count; ++i) all = b_.CreateInsertElement(all, values[i], static_cast<uint64_t>(i));
  return all;
}

// Of allocs, before they are declared: in how many stages pipelines fetch into them, and whether groups multiply from
// them. Only copies and products know where elements of the latter lie, so no layout of theirs is seen from outside.
void Emitter::Survey() {
  kir::ForEach(kernel_.body, [this](const kir::Stmt& stmt) {
    if (const auto* pipeline = std::get_if<kir::Pipeline>(&stmt.node)) {
      for (const kir::Copy* copy : Fetched(*pipeline))
        stages_[copy->dst.buffer] = std::max(stages_[copy->dst.buffer], pipeline->stages);
    }
    const auto* loop = std::get_if<kir::Loop>(&stmt.node);
    if (loop == nullptr || loop->kind != kir::LoopKind::kThread || loop->level != kir::ThreadLevel::kGroup) return;
    kir::ForEach(loop->body, [this](const kir::Stmt& inside) {
      const auto* call = std::get_if<kir::TileCall>(&inside.node);
      if (call == nullptr) return;
      for (const kir::Slice& slice : call->operands) cores_.insert(slice.buffer);
    });
  });
}

void Emitter::Emit(const kir::Pipeline& pipeline) {
  const Names outer = names_;
  const int64_t multiple = Stride(pipeline.low, pipeline.step);
  llvm::Value* low = Value(pipeline.low);
  llvm::Value* high = Value(pipeline.high);
  // What is computed in `use` cannot be fetched ahead of it.
  std::set<int> staged;
  bool ahead = pipeline.stages > 1;
  for (const kir::Copy* copy : Fetched(pipeline)) {
    staged.insert(names_[copy->dst.buffer].buffer);
    ahead = ahead && !kir::Writes(pipeline.use, copy->src.buffer);
    for (const kir::Param& param : kernel_.params) {
      if (param.inplace == copy->src.buffer) ahead = ahead && !kir::Writes(pipeline.use, param.name);
    }
  }
  auto in_stage = [&](llvm::Value* stage, const auto& body) {
    std::map<int, llvm::Value*> pointers;
    for (int buffer : staged) {
      llvm::Value*& pointer = buffers_[buffer].pointer;
      pointers[buffer] = pointer;
      pointer = b_.CreateInBoundsGEP(
          b_.getInt8Ty(), pointer, b_.CreateNSWMul(b_.CreateZExt(stage, b_.getInt64Ty()), I64(buffers_[buffer].bytes)));
    }
    body();
    for (const auto& [buffer, pointer] : pointers) buffers_[buffer].pointer = pointer;
  };
  auto fetch = [&](llvm::Value* i) {
    names_[pipeline.index] = {.value = i, .multiple = multiple};
    async_ = true;
    Block(pipeline.fetch);
    async_ = false;
  };
  auto use = [&](llvm::Value* i) {
    names_[pipeline.index] = {.value = i, .multiple = multiple};
    Block(pipeline.use);
  };
  auto commit = [&] {
    if (fetched_) b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
  };
  auto wait = [&](int pending) {
    if (fetched_)
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {}, {b_.getInt32(static_cast<uint32_t>(pending))});
  };
  const bool fetched = std::exchange(fetched_, false);
  if (!ahead) {
    LoopOver(low, high, I64(pipeline.step), [&](llvm::Value* i) {
      fetch(i);
      commit();
      wait(0);
      BlockBarrier();
      use(i);
      BlockBarrier();
    });
  } else {
    const int64_t before = pipeline.stages - 1;
    LoopOver(I64(0), I64(before), I64(1), [&](llvm::Value* n) {
      llvm::Value* i = b_.CreateNSWAdd(low, b_.CreateNSWMul(n, I64(pipeline.step)));
      Guarded(b_.CreateICmpSLT(i, high), [&] { in_stage(n, [&] { fetch(i); }); });
      commit();
    });
    llvm::AllocaInst* stage = Slot(b_.getInt32Ty());  // of what is used; the one before it is fetched into
    b_.CreateStore(b_.getInt32(0), stage);
    LoopOver(low, high, I64(pipeline.step), [&](llvm::Value* i) {
      wait(static_cast<int>(before) - 1);
      BlockBarrier();
      llvm::Value* now = b_.CreateLoad(b_.getInt32Ty(), stage);
      auto around = [&](int64_t from, int64_t to, int64_t step) {
        llvm::Value* next = b_.CreateAdd(now, b_.getInt32(static_cast<uint32_t>(step)));
        return b_.CreateSelect(b_.CreateICmpEQ(now, b_.getInt32(static_cast<uint32_t>(from))),
                               b_.getInt32(static_cast<uint32_t>(to)), next);
      };
      llvm::Value* later = b_.CreateNSWAdd(i, I64(before * pipeline.step));
      Guarded(b_.CreateICmpSLT(later, high), [&] { in_stage(around(0, before, -1), [&] { fetch(later); }); });
      commit();
      in_stage(now, [&] { use(i); });
      b_.CreateStore(around(before, 0, 1), stage);
    });
    BlockBarrier();
  }
  fetched_ = fetched;
  names_ = outer;
}

void Emitter::Emit(const kir::TileCall& call) {
  Product product;
  product.f16 = call.op == "mma_f16";
  if ((!product.f16 && call.op != "mma_bf16") || together_ == 1) return Unimplemented("the tile op " + call.op);
  const TileValue& tile = tiles_[names_[call.tiles[0]].tile];
  product.sums = tile.slots;
  product.rows = tile.dims[0];
  product.columns = tile.dims[1];
  bool whole = true;
  auto operand = [&](const kir::Slice& slice, int64_t rows) -> SharedRows {
    const Region region = Cut(slice);
    if (!status_.ok()) return {};
    const auto* pitch = llvm::dyn_cast<llvm::ConstantInt>(region.buffer.dims.back());
    const auto constant = [](llvm::Value* value) {
      const auto* known = llvm::dyn_cast<llvm::ConstantInt>(value);
      return known == nullptr ? 0 : known->getSExtValue();
    };
    const size_t rank = region.buffer.dims.size();
    whole = whole && region.ranged == std::vector<size_t>{rank - 2, rank - 1} && constant(region.asked[0]) == rows &&
            pitch != nullptr && region.buffer.pointer->getType()->getPointerAddressSpace() == 3 &&
            region.buffer.core == (together_ > kir::kWarpThreads);
    if (!whole) return {};
    product.depth = constant(region.asked[1]);
    return {Address(region.buffer, region.starts), pitch->getSExtValue(), region.apart};
  };
  product.x = operand(call.operands[0], product.rows);
  product.w = operand(call.operands[1], product.columns);
  if (!status_.ok()) return;
  if (!whole || product.depth == 0 || product.depth % 16 != 0 || std::min(product.x.apart, product.w.apart) < 2) {
    return Unimplemented(call.op + " of slices that are not whole 16 x 16 parts of shared memory");
  }
  if (together_ == kir::kWarpThreads) return MultiplyByWarp(b_, b_.CreateAnd(thread_, 31), product);
  if (!groups_) return Unimplemented("a product of a group of warps, which the machine does not have");
  auto parts = [](const SharedRows& rows) { return rows.pitch % 8 == 0 && rows.apart >= 8; };
  if (product.rows != 64 || product.columns > 256 || !parts(product.x) || !parts(product.w)) {
    return Unimplemented("a product of a group that is not 64 rows by at most 256");
  }
  MultiplyByGroup(b_, product);
}

}  // namespace quern::ptx
