#include "aot/steps.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "codegen/cpu/module.h"
#include "quern/abi.h"

namespace quern::aot {
namespace {

class StepEmitter {
 public:
  StepEmitter(IrWriter& w, FillContext& context, llvm::Value* table, const lir::Plan& plan, Filler& filler)
      : w_(w), b_(w.b), c_(context), table_(table), plan_(plan), filler_(filler) {
    for (int b = 0; b < static_cast<int>(plan.buffers.size()); ++b) {
      if (plan.buffers[b].home == lir::Home::kLoop) bases_.emplace(b, static_cast<int64_t>(bases_.size()));
    }
    for (const lir::Body& body : plan.bodies) {
      for (const lir::Step& step : body.steps) {
        if (const auto* count = std::get_if<lir::Count>(&step)) unknown_.insert(count->symbol);
      }
    }
  }

  Status Emit() {
    QUERN_RETURN_IF_ERROR(Fill());
    return Emit(0);
  }

 private:
  Status Emit(int body) {
    const LoopSlots outside = open_;
    for (const lir::Step& step : plan_.bodies[body].steps) {
      QUERN_RETURN_IF_ERROR(std::visit([&](const auto& kind) { return EmitStep(kind); }, step));
    }
    // What was written in the body has offsets that are known there alone, and has its place once it is written again.
    open_ = outside;
    return absl::OkStatus();
  }

  // The dispatches that can be written now. Those of them that read what a loop has left have its place at once.
  Status Fill() {
    QUERN_ASSIGN(LoopSlots made, filler_.Fill(unknown_));
    for (auto& [buffer, slots] : made) {
      if (placed_.contains(buffer)) Place(slots, Load(w_.ptr, Kept(buffer)));
      std::vector<LoopSlot>& all = open_[buffer];
      all.insert(all.end(), slots.begin(), slots.end());
    }
    return absl::OkStatus();
  }

  Status EmitStep(const lir::Run& run) {
    ReturnUnlessOk(
        w_.Call("quern_model_run", w_.i32, {c_.self, b_.getInt64(run.first), b_.getInt64(run.end - run.first)}));
    return absl::OkStatus();
  }

  Status EmitStep(const lir::If& step) {
    QUERN_ASSIGN(llvm::Value * holds, Bool(step.predicate));
    llvm::BasicBlock *then = Block(), *otherwise = Block(), *after = Block();
    b_.CreateCondBr(holds, then, otherwise);
    for (const auto& [block, body] : {std::pair(then, step.then), std::pair(otherwise, step.otherwise)}) {
      b_.SetInsertPoint(block);
      QUERN_RETURN_IF_ERROR(Emit(body));
      b_.CreateBr(after);
    }
    b_.SetInsertPoint(after);
    return absl::OkStatus();
  }

  Status EmitStep(const lir::While& step) {
    QUERN_RETURN_IF_ERROR(Begin(step.carries));
    llvm::Value* trip = Counter();
    llvm::BasicBlock *head = Block(), *body = Block(), *after = Block();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    Poll();
    QUERN_RETURN_IF_ERROR(Emit(step.cond));
    QUERN_ASSIGN(llvm::Value * more, Bool(step.predicate));
    b_.CreateCondBr(more, body, after);
    b_.SetInsertPoint(body);
    if (step.max > 0)
      w_.ReturnIf(b_.CreateICmpEQ(Load(w_.i64, trip), b_.getInt64(step.max)), b_.getInt32(QUERN_ERROR_TRIPS));
    QUERN_RETURN_IF_ERROR(Emit(step.body));
    QUERN_RETURN_IF_ERROR(Exchange(step.carries, trip));
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
    return absl::OkStatus();
  }

  Status EmitStep(const lir::Count& step) {
    QUERN_ASSIGN(llvm::Value * at, Address(step.count));
    llvm::Value* count = Load(w_.i64, at);
    const auto is_none = b_.CreateOr(b_.CreateICmpSLT(count, b_.getInt64(step.range.low)),
                                     b_.CreateICmpSGT(count, b_.getInt64(step.range.high)));
    w_.ReturnIf(is_none, b_.getInt32(QUERN_ERROR_SYMBOL_RANGE));
    const size_t symbol = std::find(c_.names.begin(), c_.names.end(), step.symbol) - c_.names.begin();
    if (symbol == c_.names.size()) return absl::InternalError(absl::StrCat("no symbol is called ", step.symbol));
    c_.values[symbol] = count;
    b_.CreateAlignedStore(count, b_.CreateConstInBoundsGEP1_64(w_.i64, table_, symbol), llvm::Align(8));
    QUERN_RETURN_IF_ERROR(EmitRequirements(w_, c_, step.requirements));
    unknown_.erase(step.symbol);
    return Fill();
  }

  Status EmitStep(const lir::Scan& step) {
    QUERN_RETURN_IF_ERROR(Begin(step.carries));
    QUERN_ASSIGN(llvm::Value * length, cpu::EmitExtent(step.length, c_.names, c_.values, b_));
    llvm::Value* trip = Counter();
    llvm::BasicBlock *head = Block(), *body = Block(), *after = Block();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    b_.CreateCondBr(b_.CreateICmpSLT(Load(w_.i64, trip), length), body, after);
    b_.SetInsertPoint(body);
    Poll();
    llvm::Value* t = Load(w_.i64, trip);
    if (step.reverse) t = b_.CreateSub(b_.CreateSub(length, b_.getInt64(1)), t);
    for (const lir::Row& row : step.rows) {
      QUERN_ASSIGN(llvm::Value * whole, Address(row.whole));
      QUERN_ASSIGN(llvm::Value * stride, cpu::EmitExtent(row.stride, c_.names, c_.values, b_));
      Rebase(row.buffer, b_.CreateGEP(b_.getInt8Ty(), whole, b_.CreateMul(t, stride)));
    }
    QUERN_RETURN_IF_ERROR(Emit(step.body));
    QUERN_RETURN_IF_ERROR(Exchange(step.carries, trip));
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
    return absl::OkStatus();
  }

  Status Begin(const std::vector<lir::Carry>& carries) {
    for (const lir::Carry& carry : carries) {
      QUERN_ASSIGN(llvm::Value * initial, Address(carry.initial));
      QUERN_ASSIGN(llvm::Value * next, Base(carry.places[0]));
      Rebase(carry.current, initial);
      Rebase(carry.next, next);
    }
    return absl::OkStatus();
  }
  // After a trip, which is counted: what was next is current, and the next one goes where the current one was made.
  Status Exchange(const std::vector<lir::Carry>& carries, llvm::Value* trip) {
    llvm::Value* counted = b_.CreateAdd(Load(w_.i64, trip), b_.getInt64(1));
    b_.CreateAlignedStore(counted, trip, llvm::Align(8));
    llvm::Value* odd = b_.CreateTrunc(counted, b_.getInt1Ty());
    for (const lir::Carry& carry : carries) {
      QUERN_ASSIGN(llvm::Value * made, Base(carry.next));
      QUERN_ASSIGN(llvm::Value * first, Base(carry.places[0]));
      QUERN_ASSIGN(llvm::Value * second, Base(carry.places[1]));
      Rebase(carry.current, made);
      Rebase(carry.next, b_.CreateSelect(odd, second, first));
    }
    return absl::OkStatus();
  }

  void ReturnUnlessOk(llvm::Value* code) { w_.ReturnIf(b_.CreateICmpNE(code, b_.getInt32(QUERN_OK)), code); }
  void Poll() { ReturnUnlessOk(w_.Call("quern_model_poll", w_.i32, {c_.self})); }

  // A number that is 0 whenever control comes here.
  llvm::Value* Counter() {
    llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
    llvm::Value* counter = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(w_.i64);
    b_.CreateAlignedStore(b_.getInt64(0), counter, llvm::Align(8));
    return counter;
  }

  llvm::Value* Load(llvm::Type* type, llvm::Value* from) { return b_.CreateAlignedLoad(type, from, llvm::Align(8)); }
  llvm::BasicBlock* Block() { return llvm::BasicBlock::Create(b_.getContext(), "", b_.GetInsertBlock()->getParent()); }
  llvm::Value* At(int64_t offset) { return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), c_.self, offset); }
  // Where the base of a loop's buffer is kept.
  llvm::Value* Kept(int buffer) {
    return At(c_.workspace.loops + bases_.at(buffer) * static_cast<int64_t>(sizeof(void*)));
  }

  StatusOr<llvm::Value*> Base(int buffer) {
    if (plan_.buffers[buffer].home == lir::Home::kLoop) return Load(w_.ptr, Kept(buffer));
    return EmitBase(c_, plan_.buffers[buffer], b_);
  }
  StatusOr<llvm::Value*> Address(const lir::Argument& argument) {
    QUERN_ASSIGN(llvm::Value * base, Base(argument.buffer));
    QUERN_ASSIGN(llvm::Value * offset, cpu::EmitExtent(argument.offset, c_.names, c_.values, b_));
    return b_.CreateGEP(b_.getInt8Ty(), base, offset);
  }
  StatusOr<llvm::Value*> Bool(const lir::Argument& argument) {
    QUERN_ASSIGN(llvm::Value * address, Address(argument));
    return b_.CreateICmpNE(b_.CreateAlignedLoad(b_.getInt8Ty(), address, llvm::Align(1)), b_.getInt8(0));
  }
  void Rebase(int buffer, llvm::Value* base) {
    b_.CreateAlignedStore(base, Kept(buffer), llvm::Align(8));
    placed_.insert(buffer);
    const auto slots = open_.find(buffer);
    if (slots != open_.end()) Place(slots->second, base);
  }
  void Place(std::span<const LoopSlot> slots, llvm::Value* base) {
    for (const LoopSlot& slot : slots)
      b_.CreateAlignedStore(b_.CreateGEP(b_.getInt8Ty(), base, slot.offset), At(slot.at), llvm::Align(8));
  }

  IrWriter& w_;
  llvm::IRBuilder<>& b_;
  FillContext& c_;
  llvm::Value* const table_;  // of the symbols' values
  const lir::Plan& plan_;
  Filler& filler_;
  std::set<std::string> unknown_;  // symbols that steps are still to find
  LoopSlots open_;                 // of what is filled
  std::map<int, int64_t> bases_;   // by loop's buffer: its row among them
  std::set<int> placed_;           // loops' buffers that have a place
};

}  // namespace

Status EmitSteps(IrWriter& w, FillContext& context, llvm::Value* table, const lir::Plan& plan, Filler& filler) {
  return StepEmitter(w, context, table, plan, filler).Emit();
}

Status EmitRequirements(IrWriter& w, const FillContext& context, std::span<const lir::Requirement> requirements) {
  for (const lir::Requirement& requirement : requirements) {
    QUERN_ASSIGN(llvm::Value * value, cpu::EmitExtent(requirement.value, context.names, context.values, w.b));
    llvm::Value* zero = w.b.getInt64(0);
    w.ReturnIf(requirement.exact ? w.b.CreateICmpNE(value, zero) : w.b.CreateICmpSLT(value, zero),
               w.b.getInt32(QUERN_ERROR_SIZES));
  }
  return absl::OkStatus();
}

}  // namespace quern::aot
