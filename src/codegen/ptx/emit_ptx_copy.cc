// Copies, which all threads of the block share out, and the pipelines that fetch by them.
//
// A thread takes runs of neighbours: of 16 bytes where the rows are known to start and end at multiples of that, of eight elements
// of blocks, which share their scales, else single elements. Neighbouring threads take neighbouring runs.
//
// A pipeline of s stages has s buffers: before iteration n is used, the fetch of n + s - 1 starts, into the buffer that iteration
// n - 1 has left. One barrier an iteration then is both: what was fetched for n is there, and n - 1 is done with.
#include <algorithm>

#include "codegen/ptx/emitter.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace quern::ptx {
namespace {

// Runs of a thread that are written out rather than looped over.
constexpr int64_t kUnrolled = 8;

bool IsConstant(llvm::Value* value, int64_t& constant) {
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(value);
  if (known != nullptr) constant = known->getSExtValue();
  return known != nullptr;
}

// Whether something in `block` may write `buffer`, as far as names tell.
bool Writes(const kir::Block& block, const std::string& buffer) {
  return std::any_of(block.begin(), block.end(), [&](const kir::StmtRef& stmt) {
    if (const auto* loop = std::get_if<kir::Loop>(&stmt->node)) return Writes(loop->body, buffer);
    if (const auto* map = std::get_if<kir::Map>(&stmt->node)) return Writes(map->body, buffer);
    if (const auto* store = std::get_if<kir::Store>(&stmt->node)) return store->buffer == buffer;
    if (const auto* copy = std::get_if<kir::Copy>(&stmt->node)) return copy->dst.buffer == buffer;
    if (const auto* branch = std::get_if<kir::If>(&stmt->node)) {
      return Writes(branch->then_body, buffer) || Writes(branch->else_body, buffer);
    }
    const auto* pipeline = std::get_if<kir::Pipeline>(&stmt->node);
    return pipeline != nullptr && (Writes(pipeline->fetch, buffer) || Writes(pipeline->use, buffer));
  });
}

}  // namespace

void Emitter::BlockBarrier() {
  FenceForGroups();
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
    llvm::Value* start = dim.start == nullptr ? I64(0) : Value(dim.start);
    region.starts.push_back(start);
    if (dim.start != nullptr && dim.extent == nullptr) continue;
    llvm::Value* rest = b_.CreateNSWSub(region.buffer.dims[d], start);
    llvm::Value* asked = dim.extent == nullptr ? rest : Value(dim.extent);
    region.ranged.push_back(static_cast<int>(d));
    region.asked.push_back(asked);
    int64_t most = 0, room = 0;
    const bool known = IsConstant(asked, most) && IsConstant(rest, room);
    region.live.push_back(known ? I64(std::min(most, room)) : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, asked, rest));
    if (d + 1 < rank) continue;
    const int64_t first = dim.start == nullptr ? kMostMultiple : MultipleOf(dim.start);
    region.rows = true;
    region.apart = rank == 1 ? first : std::min(first, region.buffer.multiple);
    region.whole = std::min(first, region.buffer.multiple);
    if (dim.extent != nullptr) region.whole = std::min(region.whole, MultipleOf(dim.extent));
  }
  return region;
}

// Neighbours that a thread takes at once.
int64_t Emitter::RunOf(const Region& dst, const Region& src) {
  if (!dst.rows || !src.rows) return 1;
  // Decoding shares scales also where what it gives is stored one by one.
  if (IsBlock(src.buffer.dtype)) return std::min({dst.whole, src.apart, src.whole}) >= 8 ? 8 : 1;
  return std::min<int64_t>({dst.apart, dst.whole, src.apart, src.whole, 16 / ScalarBytes(dst.buffer.dtype)});
}

void Emitter::EmitCopy(const kir::Copy& copy, bool async) {
  const Region dst = Cut(copy.dst), src = Cut(copy.src);
  if (!status_.ok()) return;
  const int64_t run = RunOf(dst, src);
  const size_t rank = dst.ranged.size();
  // In runs: those of the block, and of a row.
  int64_t total = 1;
  bool constant = true;
  std::vector<llvm::Value*> sizes = dst.live;
  for (size_t r = 0; r < rank; ++r) {
    if (r + 1 == rank && run > 1) sizes[r] = b_.CreateUDiv(sizes[r], I64(run), "", true);
    int64_t size = 0;
    constant = constant && IsConstant(sizes[r], size) && size < (1 << 20) && total < (1 << 20);
    total *= constant ? size : 1;
  }
  llvm::Type* type = constant ? b_.getInt32Ty() : b_.getInt64Ty();
  auto one = [&](llvm::Value* number) {
    std::vector<llvm::Value*> at(rank);
    llvm::Value* live = b_.getTrue();
    llvm::Value* rest = number;
    for (size_t r = rank; r-- > 0;) {
      llvm::Value* size = b_.CreateTrunc(sizes[r], type);
      at[r] = b_.CreateZExt(r == 0 ? rest : b_.CreateURem(rest, size), b_.getInt64Ty());
      if (r > 0) rest = b_.CreateUDiv(rest, size);
      if (r + 1 == rank && run > 1) at[r] = b_.CreateNSWMul(at[r], I64(run));
      int64_t room = 0, given = 0;
      const bool always = IsConstant(dst.live[r], room) && IsConstant(src.live[r], given) && given >= room;
      if (!always) live = b_.CreateAnd(live, b_.CreateICmpSLT(at[r], src.live[r]));
    }
    CopyRun(dst, src, at, live, run, async);
  };
  llvm::Value* thread = b_.CreateTrunc(thread_, type);
  if (constant && total <= kUnrolled * threads_) {
    for (int64_t first = 0; first < total; first += threads_) {
      llvm::Value* number = b_.CreateAdd(thread, llvm::ConstantInt::get(type, static_cast<uint64_t>(first)), "", true, true);
      if (first + threads_ <= total) one(number);
      else Guarded(b_.CreateICmpULT(number, llvm::ConstantInt::get(type, static_cast<uint64_t>(total))), [&] { one(number); });
    }
    return;
  }
  llvm::Value* count = I64(1);
  for (llvm::Value* size : sizes) count = b_.CreateNSWMul(count, size);
  LoopOver(thread_, count, I64(threads_), [&](llvm::Value* number) { one(b_.CreateTrunc(number, type)); });
}

// One run from `at` on, or zeros where that is not live: a run is live as a whole.
void Emitter::CopyRun(const Region& dst, const Region& src, const std::vector<llvm::Value*>& at, llvm::Value* live, int64_t run,
                      bool async) {
  std::vector<llvm::Value*> from = src.starts, to = dst.starts;
  for (size_t r = 0; r < at.size(); ++r) {
    to[dst.ranged[r]] = b_.CreateNSWAdd(to[dst.ranged[r]], at[r]);
    from[src.ranged[r]] = b_.CreateNSWAdd(from[src.ranged[r]], at[r]);
  }
  llvm::Value* target = Address(dst.buffer, to);
  const bool same = src.buffer.dtype == dst.buffer.dtype;
  const int64_t element = ScalarBytes(dst.buffer.dtype), bytes = run * element;
  const bool spaces = dst.buffer.pointer->getType()->getPointerAddressSpace() == 3 && src.buffer.pointer->getType()->getPointerAddressSpace() == 1;
  if (async && same && spaces && bytes >= 4 && src.buffer.align >= bytes) {
    const llvm::Intrinsic::ID id = bytes == 16 ? llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                                   : bytes == 8 ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                                                : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s;
    const llvm::Intrinsic::ID all = bytes == 16 ? llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16
                                    : bytes == 8 ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8
                                                 : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4;
    llvm::Value* source = Address(src.buffer, from);
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(live);
    if (known != nullptr && known->isOne()) {
      b_.CreateIntrinsic(all, {}, {target, source});
    } else {
      // Bytes that are not read become zeros.
      b_.CreateIntrinsic(id, {}, {target, source, b_.CreateSelect(live, b_.getInt32(static_cast<uint32_t>(bytes)), b_.getInt32(0))});
    }
    fetched_ = true;
    return;
  }
  auto aligned = [&](const Buffer& buffer, int64_t size) { return llvm::Align(static_cast<uint64_t>(std::min<int64_t>({size, buffer.align, 16}))); };
  auto read = [&]() -> llvm::Value* {
    if (!same) return Converted(src.buffer, from, run, dst.buffer.dtype);
    llvm::Type* type = bytes < 4 ? b_.getIntNTy(8 * static_cast<unsigned>(bytes))
                       : bytes == 4 ? b_.getInt32Ty() : static_cast<llvm::Type*>(llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(bytes / 4)));
    return b_.CreateAlignedLoad(type, Address(src.buffer, from), aligned(src.buffer, bytes));
  };
  const llvm::Align rows(static_cast<uint64_t>(std::min<int64_t>({bytes, dst.buffer.align, dst.apart * element, 16})));
  auto write = [&](llvm::Value* value) { b_.CreateAlignedStore(value, target, rows); };
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(live);
  if (known != nullptr && known->isOne()) {
    write(read());
    return;
  }
  llvm::AllocaInst* slot = nullptr;
  llvm::Instruction* before = b_.CreateAlloca(b_.getInt8Ty());  // marks where the zero goes, once the type is known
  Guarded(live, [&] {
    llvm::Value* value = read();
    slot = Slot(value->getType());
    b_.CreateStore(value, slot);
  });
  llvm::IRBuilder<>(before).CreateStore(llvm::Constant::getNullValue(slot->getAllocatedType()), slot);
  before->eraseFromParent();
  write(b_.CreateLoad(slot->getAllocatedType(), slot));
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
    if (from.dtype == DType::kF64 || ScalarBytes(to) > 2) value = Convert(value, IsBlock(from.dtype) ? DType::kF32 : from.dtype, to);
  }
  const bool pairs = run > 1 && ScalarBytes(to) == 2;
  llvm::Type* type = pairs ? b_.getInt32Ty() : MemoryType(to);
  if (run == 1) return ToMemory(values[0], to);
  const unsigned count = static_cast<unsigned>(pairs ? run / 2 : run);
  if (pairs) {
    // Rounded two by two.
    const llvm::Intrinsic::ID id = to == DType::kF16 ? llvm::Intrinsic::nvvm_ff2f16x2_rn : llvm::Intrinsic::nvvm_ff2bf16x2_rn;
    for (unsigned i = 0; i < count; ++i) {
      values[i] = b_.CreateBitCast(b_.CreateIntrinsic(id, {}, {values[2 * i + 1], values[2 * i]}), type);
    }
  }
  if (count == 1) return values[0];
  llvm::Value* all = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, count));
  for (unsigned i = 0; i < count; ++i) all = b_.CreateInsertElement(all, values[i], static_cast<uint64_t>(i));
  return all;
}

void Emitter::CountStages(const kir::Block& block) {
  for (const kir::StmtRef& stmt : block) {
    if (const auto* loop = std::get_if<kir::Loop>(&stmt->node)) CountStages(loop->body);
    if (const auto* branch = std::get_if<kir::If>(&stmt->node)) CountStages(branch->then_body), CountStages(branch->else_body);
    const auto* pipeline = std::get_if<kir::Pipeline>(&stmt->node);
    if (pipeline == nullptr) continue;
    for (const kir::StmtRef& fetch : pipeline->fetch) {
      int& stages = stages_[std::get<kir::Copy>(fetch->node).dst.buffer];
      stages = std::max(stages, pipeline->stages);
    }
    CountStages(pipeline->use);
  }
}

void Emitter::Emit(const kir::Pipeline& pipeline) {
  const Names outer = names_;
  const int64_t multiple = Stride(pipeline.low, pipeline.step);
  llvm::Value* low = Value(pipeline.low);
  llvm::Value* high = Value(pipeline.high);
  // What is computed in `use` cannot be fetched ahead of it.
  std::vector<int> staged;
  bool ahead = pipeline.stages > 1;
  for (const kir::StmtRef& stmt : pipeline.fetch) {
    const auto& copy = std::get<kir::Copy>(stmt->node);
    staged.push_back(names_[copy.dst.buffer].buffer);
    ahead = ahead && !Writes(pipeline.use, copy.src.buffer);
    for (const kir::Param& param : kernel_.params) {
      if (param.inplace == copy.src.buffer) ahead = ahead && !Writes(pipeline.use, param.name);
    }
  }
  std::sort(staged.begin(), staged.end());
  staged.erase(std::unique(staged.begin(), staged.end()), staged.end());
  auto in_stage = [&](llvm::Value* stage, const auto& body) {
    std::vector<llvm::Value*> pointers;
    for (int buffer : staged) {
      llvm::Value*& pointer = buffers_[buffer].pointer;
      pointers.push_back(pointer);
      pointer = b_.CreateInBoundsGEP(b_.getInt8Ty(), pointer, b_.CreateNSWMul(b_.CreateZExt(stage, b_.getInt64Ty()), I64(buffers_[buffer].bytes)));
    }
    body();
    for (size_t i = 0; i < staged.size(); ++i) buffers_[staged[i]].pointer = pointers[i];
  };
  auto fetch = [&](llvm::Value* i) {
    names_[pipeline.index] = {.value = i, .multiple = multiple};
    for (const kir::StmtRef& stmt : pipeline.fetch) EmitCopy(std::get<kir::Copy>(stmt->node), true);
  };
  auto use = [&](llvm::Value* i) {
    names_[pipeline.index] = {.value = i, .multiple = multiple};
    Block(pipeline.use);
  };
  auto commit = [&] {
    if (fetched_) b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
  };
  auto wait = [&](int pending) {
    if (fetched_) b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {}, {b_.getInt32(static_cast<uint32_t>(pending))});
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
        return b_.CreateSelect(b_.CreateICmpEQ(now, b_.getInt32(static_cast<uint32_t>(from))), b_.getInt32(static_cast<uint32_t>(to)), next);
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

}  // namespace quern::ptx
