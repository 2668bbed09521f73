// Running values of widened loops (kir/running.h): x := x + e over the lanes of a vector.
//
// The terms of a vector are joined in a tree: each step joins the last of every lower half to all lanes of the upper
// one beside it. What ran up before joins each lane afterwards, so that vectors wait for one another for one operation
// alone. The order is one of the level and of the place in the loop. A vector of floats that this makes an infinity or
// NaN of is joined lane by lane, so that they begin where they would in order.
//
//   a, b, c, d  =>  a, ab, c, cd  =>  a, ab, abc, abcd
#include <algorithm>
#include <numeric>

#include "codegen/cpu/emitter.h"
#include "codegen/llvm/operators.h"
#include "kir/running.h"
#include "kir/walk.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/MDBuilder.h"

namespace quern::cpu {
namespace {

bool Mentions(const kir::ExprRef& expr, std::string_view name) {
  return kir::AnyExpr(expr, [&](const kir::ExprRef& node) { return kir::IsName(node, name); });
}

bool Reads(const kir::StmtRef& stmt, std::string_view name) {
  bool reads = false;
  kir::ForEachExpr({stmt}, [&](const kir::ExprRef& node) { reads = reads || kir::IsName(node, name); });
  return reads;
}

// Where the value before is first read, which asks for the new term there: what stands between is lets that the term
// does not wait for, each of the value alone or of others. Nullopt where it is not so.
std::optional<size_t> FirstRead(const kir::Block& body, size_t assigned, const kir::Assign& assign) {
  size_t first = 0;
  while (first < assigned && !Reads(body[first], assign.name)) ++first;
  for (size_t at = first; at < assigned; ++at) {
    const auto* let = std::get_if<kir::Let>(&body[at]->node);
    if (let == nullptr || Mentions(assign.value, let->name)) return std::nullopt;
    if (!kir::IsName(let->value, assign.name) && Mentions(let->value, assign.name)) return std::nullopt;
  }
  return first;
}

}  // namespace

std::map<std::string, Emitter::Running> Emitter::RunningOf(const kir::Block& body) {
  std::map<std::string, Running> running;
  for (size_t at = 0; at < body.size(); ++at) {
    const auto* assign = std::get_if<kir::Assign>(&body[at]->node);
    const Binding* binding = assign == nullptr ? nullptr : Lookup(assign->name);
    if (binding == nullptr || binding->kind != Binding::kVar) continue;
    const std::optional<kir::ReduceOp> op = kir::RunningOp(*assign);
    const std::optional<size_t> first = FirstRead(body, at, *assign);
    int writers = 0;
    kir::ForEach(body, [&](const kir::Stmt& stmt) {
      const auto* other = std::get_if<kir::Assign>(&stmt.node);
      writers += other != nullptr && other->name == assign->name ? 1 : 0;
    });
    if (op && first && writers == 1) running[assign->name] = {.assign = assign, .op = *op, .before = *first < at};
  }
  return running;
}

void Emitter::StartRunning(std::map<std::string, Running> running) {
  running_ = std::move(running);
  for (auto& [name, value] : running_) {
    llvm::AllocaInst* slot = Lookup(name)->slot;
    llvm::Value* start = b_.CreateVectorSplat(target_.lanes, b_.CreateLoad(slot->getAllocatedType(), slot));
    value.carry = EntryAlloca(start->getType());
    b_.CreateStore(start, value.carry);
  }
}

Val Emitter::EmitRunning(const std::string& name) {
  Running& running = running_.at(name);
  if (running.with == nullptr) RunOn(running, Lookup(name)->slot);
  return FromLanes(running.assign->value->dtype, running.passed ? running.with : running.without);
}

void Emitter::RunOn(Running& running, llvm::AllocaInst* slot) {
  const DType dtype = running.assign->value->dtype;
  const auto join = [&](llvm::Value* a, llvm::Value* b) { return Combine(running.op, dtype, a, b, false); };
  llvm::Value* identity = b_.CreateVectorSplat(lanes_, codegen::Identity(running.op, dtype, ScalarType(dtype)));
  llvm::Value* terms = Lanes(Emit(std::get<kir::Apply>(running.assign->value->node).args[1]));
  if (mask_ != nullptr) terms = b_.CreateSelect(mask_, terms, identity);
  llvm::Value* sums = terms;
  std::vector<int> picks(lanes_);
  for (int half = 1; half < lanes_; half *= 2) {
    for (int lane = 0; lane < lanes_; ++lane)
      picks[lane] = (lane & half) != 0 ? (lane | (2 * half - 1)) - half : lanes_;
    sums = join(b_.CreateShuffleVector(sums, identity, picks), sums);
  }
  llvm::Value* carry = b_.CreateLoad(identity->getType(), running.carry);
  llvm::Value* last = b_.CreateShuffleVector(sums, std::vector<int>(lanes_, lanes_ - 1));
  running.with = join(carry, sums);
  llvm::Value* next = join(carry, last);
  if (running.before) {
    std::iota(picks.begin() + 1, picks.end(), 0);
    picks[0] = lanes_;
    running.without = join(carry, b_.CreateShuffleVector(sums, identity, picks));
  }
  const bool rounds = running.op == kir::ReduceOp::kSum || running.op == kir::ReduceOp::kProd;
  if (IsFloat(dtype) && rounds) next = InOrderUnlessFinite(running, terms, sums, carry, next);
  b_.CreateStore(next, running.carry);
  b_.CreateStore(b_.CreateExtractElement(next, uint64_t{0}), slot);
}

llvm::Value* Emitter::InOrderUnlessFinite(Running& running, llvm::Value* terms, llvm::Value* sums, llvm::Value* carry,
                                          llvm::Value* next) {
  const DType dtype = running.assign->value->dtype;
  llvm::Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, sums);
  llvm::Value* finite = b_.CreateFCmpOLT(size, llvm::ConstantFP::getInfinity(sums->getType()));
  // An infinity times a product that became 0 on the way.
  if (running.op == kir::ReduceOp::kProd) finite = b_.CreateAnd(finite, b_.CreateFCmpORD(running.with, running.with));
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* slow = llvm::BasicBlock::Create(context_, "in_order", function_);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(context_, "done", function_);
  b_.CreateCondBr(b_.CreateAndReduce(finite), done, slow, llvm::MDBuilder(context_).createLikelyBranchWeights());
  b_.SetInsertPoint(slow);
  llvm::Value* sum = b_.CreateExtractElement(carry, uint64_t{0});
  llvm::Value *with = llvm::PoisonValue::get(sums->getType()), *without = with;
  for (int lane = 0; lane < lanes_; ++lane) {
    without = b_.CreateInsertElement(without, sum, lane);
    sum = Combine(running.op, dtype, sum, b_.CreateExtractElement(terms, lane), false);
    with = b_.CreateInsertElement(with, sum, lane);
  }
  llvm::Value* last = b_.CreateVectorSplat(lanes_, sum);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  const auto either = [&](llvm::Value* fast, llvm::Value* in_order) {
    llvm::PHINode* value = b_.CreatePHI(fast->getType(), 2);
    value->addIncoming(fast, before);
    value->addIncoming(in_order, slow);
    return value;
  };
  running.with = either(running.with, with);
  if (running.before) running.without = either(running.without, without);
  return either(next, last);
}

}  // namespace quern::cpu
