// Loops: plain, unrolled, widened; reductions with their stated tree.
//
// A widened loop is a main loop of full vectors, of bytes one of four times as many lanes before it, and a tail: one
// masked vector where the level has masks, else the remaining elements one by one. Trip counts that are constants drop
// what is not needed, and have narrower vectors for what is left: of 7 elements 8 lanes, without masks 4 lanes and one
// by one.
#include <bit>
#include <cmath>

#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "codegen/llvm/operators.h"

namespace quern::cpu {
namespace {

constexpr int kLeastLanes = 4;   // of a vector that is narrower than the level's
constexpr int kBytesOfLane = 4;  // a level's lanes are f32

}  // namespace

void Emitter::Loop(llvm::Value* low, llvm::Value* high, int64_t step, const std::function<void(llvm::Value*)>& body) {
  const auto* first = llvm::dyn_cast<llvm::ConstantInt>(low);
  const auto* last = llvm::dyn_cast<llvm::ConstantInt>(high);
  const bool constant = first != nullptr && last != nullptr;
  if (constant && first->getSExtValue() >= last->getSExtValue()) return;
  if (constant && first->getSExtValue() + step >= last->getSExtValue()) return body(low);  // one round
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(context_, "loop", function_);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(context_, "done", function_);
  if (constant) {
    b_.CreateBr(loop);
  } else {
    b_.CreateCondBr(b_.CreateICmpSLT(low, high), loop, done);
  }
  b_.SetInsertPoint(loop);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(low, before);
  body(index);
  llvm::Value* next = b_.CreateAdd(index, b_.getInt64(step), "", false, true);
  index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, high), loop, done);
  b_.SetInsertPoint(done);
}

void Emitter::VecLoop(llvm::Value* low, llvm::Value* high, int64_t step, const std::function<void(const Val&)>& body,
                      int times) {
  QUERN_CHECK(lanes_ == 1);
  const int lanes = target_.lanes;
  const Val from = Uniform(DType::kI64, low), to = Uniform(DType::kI64, high);
  const auto* first = llvm::dyn_cast<llvm::ConstantInt>(low);
  const auto* last = llvm::dyn_cast<llvm::ConstantInt>(high);
  const bool constant = first != nullptr && last != nullptr;
  if (constant && first->getSExtValue() >= last->getSExtValue()) return;
  auto widened = [&](llvm::Value* index, int width, llvm::Value* mask) {
    lanes_ = width;
    mask_ = mask;
    Val value = LoopIndex(index, from, to, step, width);
    // The lanes of a full vector are all below the end.
    if (mask == nullptr && value.range)
      value.range->second -= std::min(value.range->second - value.range->first, (width - 1) * step);
    body(value);
    lanes_ = 1;
    mask_ = nullptr;
  };
  auto live = [&](int width, llvm::Value* count) {
    lanes_ = width;
    llvm::Value* ids = LaneIds();
    lanes_ = 1;
    return b_.CreateICmpULT(ids, b_.CreateVectorSplat(width, count));
  };
  llvm::Value *trips = nullptr, *full = nullptr, *middle = nullptr;
  // The loop over what fills vectors of so many lanes.
  const auto whole = [&](int width) {
    llvm::Value* span = b_.CreateSub(high, low, "", false, true);
    trips = b_.CreateSDiv(b_.CreateAdd(span, b_.getInt64(step - 1)), b_.getInt64(step));
    full = b_.CreateAnd(trips, b_.getInt64(-int64_t{width}));
    middle = b_.CreateAdd(low, b_.CreateMul(full, b_.getInt64(step)));
    Loop(low, middle, step * width, [&](llvm::Value* index) { widened(index, width, nullptr); });
  };
  if (times > 1) {
    whole(times * lanes);
    low = constant ? middle : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, middle, low);
    // What is left by one vector, where it is more than the next loop takes at once.
    const int64_t left = !constant ? 0 : llvm::cast<llvm::ConstantInt>(b_.CreateSub(trips, full))->getSExtValue();
    if (target_.masks && left > lanes) {
      const int width = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(left)));
      return widened(low, width, left == width ? nullptr : live(width, b_.getInt64(left)));
    }
  }
  whole(lanes);
  // An empty range must not run the tail: -1 & -16 is below it. A constant stays one: masks and guards follow from it.
  llvm::Value* tail = constant ? middle : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, middle, low);
  int64_t rest = constant ? llvm::cast<llvm::ConstantInt>(b_.CreateSub(trips, full))->getSExtValue() : lanes - 1;
  if (rest == 0) return;
  // Narrower vectors where it is known that they suffice; running values go by whole ones.
  const int least = constant && running_.empty() ? std::min(lanes, kLeastLanes) : lanes;
  if (target_.masks) {
    int width = lanes;
    while (width / 2 >= std::max<int64_t>(least, rest)) width /= 2;
    // At most one round; the loop form gives the guard.
    return Loop(tail, high, step * lanes, [&](llvm::Value* index) {
      widened(index, width, constant && rest == width ? nullptr : live(width, b_.CreateSub(trips, full)));
    });
  }
  for (int width = lanes / 2; width >= least; width /= 2) {
    if (rest < width) continue;
    widened(tail, width, nullptr);
    tail = b_.CreateAdd(tail, b_.getInt64(width * step));
    rest -= width;
  }
  Loop(tail, high, step, [&](llvm::Value* index) { body(LoopIndex(index, from, to, step, 1)); });
}

void Emitter::Emit(const kir::Loop& loop) {
  const Val low = UniformVal(loop.low, "loop bound"), high = UniformVal(loop.high, "loop bound");
  auto run = [&](const Val& index) {
    const Saved saved = Enter();
    Binding binding;
    binding.value = index;
    Bind(loop.index, std::move(binding));
    EmitBlock(loop.body);
    Leave(saved);
  };
  switch (loop.kind) {
    case kir::LoopKind::kFor: break;
    case kir::LoopKind::kThread: return Fail("thread " + loop.index + ": a CPU has no blocks of threads");
    case kir::LoopKind::kUnroll: {
      const auto* first = llvm::dyn_cast<llvm::ConstantInt>(low.scalar);
      const auto* last = llvm::dyn_cast<llvm::ConstantInt>(high.scalar);
      if (first == nullptr || last == nullptr) return Fail("unroll needs constant bounds");
      for (int64_t i = first->getSExtValue(); i < last->getSExtValue(); i += loop.step) run(I64(i));
      return;
    }
    case kir::LoopKind::kVec: {
      if (lanes_ != 1) break;  // the outer vec loop has the lanes
      NameSet varying = {loop.index};
      std::map<std::string, Running> running = RunningOf(loop.body);
      for (const auto& [name, value] : running) varying.insert(name);
      if (Widens(loop.body, varying)) {
        StartRunning(std::move(running));
        VecLoop(
            low.scalar, high.scalar, loop.step,
            [&](const Val& index) {
              for (auto& [name, value] : running_) value.with = value.without = nullptr, value.passed = false;
              run(index);
            },
            running_.empty() && IsOfBytes(loop) ? kBytesOfLane : 1);
        return running_.clear();
      }
      ++stats_.scalarised;
      break;
    }
  }
  Loop(low.scalar, high.scalar, loop.step, [&](llvm::Value* index) { run(LoopIndex(index, low, high, loop.step, 1)); });
}

llvm::Value* Emitter::CombineLanes(kir::ReduceOp op, DType dtype, llvm::Value* vector) {
  // Upper half onto lower half until one lane is left; the last steps in a register's lanes, of which not all mean
  // something, since a choice between scalars is slow.
  constexpr int kLeast = 4;
  for (int width = target_.lanes / 2; width >= 1; width /= 2) {
    std::vector<int> low(std::max(width, kLeast), llvm::PoisonMaskElem), high = low;
    for (int lane = 0; lane < width; ++lane) {
      low[lane] = lane;
      high[lane] = lane + width;
    }
    vector = Combine(op, dtype, b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high), false);
  }
  return b_.CreateExtractElement(vector, uint64_t{0});
}

Val Emitter::EmitReduce(const kir::Expr& expr, const kir::Reduce& reduce) {
  const DType dtype = expr.dtype;
  llvm::Value* low = UniformScalar(reduce.low, "reduction bound");
  llvm::Value* high = UniformScalar(reduce.high, "reduction bound");
  const int accs = std::max(reduce.accs, 1);
  const auto* product = std::get_if<kir::Apply>(&reduce.body->node);
  const bool contract = product != nullptr && product->op == kir::Op::kMul && product->contract;
  const bool widen = lanes_ == 1 && reduce.vec && Widens(reduce);
  if (reduce.vec && lanes_ == 1 && !widen) ++stats_.scalarised;

  const int outer_lanes = lanes_;
  llvm::Value* outer_mask = mask_;
  const int lanes = widen ? target_.lanes : outer_lanes;
  auto with_lanes = [&](int count, llvm::Value* mask) {
    lanes_ = count;
    mask_ = mask;
  };
  with_lanes(lanes, outer_mask);
  llvm::Type* type = LanesOf(ScalarType(dtype));
  llvm::Value* identity = codegen::Identity(reduce.op, dtype, ScalarType(dtype));
  llvm::Value* start = lanes == 1 ? identity : b_.CreateVectorSplat(lanes, identity);
  with_lanes(outer_lanes, outer_mask);
  std::vector<llvm::AllocaInst*> slots;
  for (int a = 0; a < accs; ++a) {
    slots.push_back(EntryAlloca(type));
    b_.CreateStore(start, slots[a]);
  }
  auto term = [&](const Val& index) {
    const Saved saved = Enter();
    Binding binding;
    binding.value = index;
    Bind(reduce.index, std::move(binding));
    for (const auto& [name, let] : reduce.lets) BindLet(name, let);
    llvm::Value* value = Lanes(Emit(reduce.body));
    Leave(saved);
    return value;
  };
  auto accumulate = [&](llvm::AllocaInst* slot, llvm::Value* value) {
    llvm::Value* sum = b_.CreateLoad(slot->getAllocatedType(), slot);
    b_.CreateStore(Combine(reduce.op, dtype, sum, value, contract), slot);
  };

  // Groups of `accs` vectors (or elements), then single ones into the first accumulator, then the masked or scalar
  // rest.
  const int64_t width = widen ? lanes : 1;
  auto at = [&](llvm::Value* index, int64_t offset) {
    llvm::Value* here = b_.CreateAdd(index, b_.getInt64(offset), "", false, true);
    return LoopIndex(here, Uniform(DType::kI64, low), Uniform(DType::kI64, high), 1, widen ? lanes : 1);
  };
  auto round_down = [&](int64_t to) {
    llvm::Value* span = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(high, low), b_.getInt64(0));
    return b_.CreateAdd(low, b_.CreateSub(span, b_.CreateURem(span, b_.getInt64(to))));
  };
  llvm::Value* position = low;
  with_lanes(lanes, outer_mask);
  if (accs > 1) {
    llvm::Value* groups = round_down(width * accs);
    Loop(position, groups, width * accs, [&](llvm::Value* index) {
      for (int a = 0; a < accs; ++a) accumulate(slots[a], term(at(index, a * width)));
    });
    position = groups;
  }
  llvm::Value* vectors = round_down(width);
  Loop(position, vectors, width, [&](llvm::Value* index) { accumulate(slots[0], term(at(index, 0))); });
  with_lanes(outer_lanes, outer_mask);
  llvm::AllocaInst* scalar_slot = nullptr;
  const auto* rest = llvm::dyn_cast<llvm::ConstantInt>(b_.CreateSub(high, vectors));
  const bool has_tail = widen && !(rest != nullptr && rest->getSExtValue() <= 0);
  if (has_tail && target_.masks) {
    Loop(vectors, high, width, [&](llvm::Value* index) {
      lanes_ = lanes;
      llvm::Value* left = b_.CreateSub(high, index);
      llvm::Value* mask = b_.CreateICmpULT(LaneIds(), b_.CreateVectorSplat(lanes, left));
      with_lanes(lanes, mask);
      llvm::Value* value = b_.CreateSelect(mask, term(at(index, 0)), start);
      accumulate(slots[0], value);
      with_lanes(outer_lanes, outer_mask);
    });
  } else if (has_tail) {
    scalar_slot = EntryAlloca(ScalarType(dtype));
    b_.CreateStore(identity, scalar_slot);
    Loop(vectors, high, 1, [&](llvm::Value* index) { accumulate(scalar_slot, term(Uniform(DType::kI64, index))); });
  }

  std::vector<llvm::Value*> partial;
  for (llvm::AllocaInst* slot : slots) partial.push_back(b_.CreateLoad(type, slot));
  while (partial.size() > 1) {
    std::vector<llvm::Value*> next;
    for (size_t i = 0; i + 1 < partial.size(); i += 2) {
      next.push_back(Combine(reduce.op, dtype, partial[i], partial[i + 1], false));
    }
    if (partial.size() % 2 == 1) next.push_back(partial.back());
    partial = std::move(next);
  }
  llvm::Value* result = partial[0];
  if (widen) result = CombineLanes(reduce.op, dtype, result);
  if (scalar_slot != nullptr) {
    result = Combine(reduce.op, dtype, result, b_.CreateLoad(ScalarType(dtype), scalar_slot), false);
  }
  return FromLanes(dtype, result);
}

}  // namespace quern::cpu
