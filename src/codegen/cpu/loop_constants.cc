#include "codegen/cpu/loop_constants.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

namespace quern::cpu {
namespace {

constexpr unsigned kFewRegisters = 16;
constexpr size_t kInRegisters = 6;  // constants of a loop that leave its values room

// Ops that take an operand from memory as well as from a register, and are not made of others where it is a constant,
// as shifts and divisions of integers are.
bool TakesMemory(const llvm::Instruction& user, const llvm::Use& use) {
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&user))
    return call->getType()->isFPOrFPVectorTy() && call->isArgOperand(&use) &&
           !call->paramHasAttr(call->getArgOperandNo(&use), llvm::Attribute::ImmArg);
  switch (user.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv:
    case llvm::Instruction::FCmp:
    case llvm::Instruction::Select:
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::And:
    case llvm::Instruction::Or:
    case llvm::Instruction::Xor: return true;
    default: return false;
  }
}

// Zeros and ones are made without a constant.
bool MayLieInMemory(const llvm::Use& use) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(use.get());
  if (constant == nullptr || !constant->getType()->isVectorTy() || constant->getSplatValue() == nullptr) return false;
  if (constant->isNullValue() || constant->isAllOnesValue()) return false;
  const uint64_t bits = constant->getType()->getPrimitiveSizeInBits().getFixedValue();
  const unsigned element = constant->getType()->getScalarSizeInBits();
  return (bits == 128 || bits == 256) && (element == 32 || element == 64) &&
         TakesMemory(*llvm::cast<llvm::Instruction>(use.getUser()), use);
}

using Uses = llvm::MapVector<llvm::Constant*, llvm::SmallVector<llvm::Use*>>;

Uses ConstantsOf(const llvm::Loop& loop) {
  Uses uses;
  for (llvm::BasicBlock* block : loop.blocks()) {
    for (llvm::Instruction& instruction : *block) {
      for (llvm::Use& use : instruction.operands()) {
        if (MayLieInMemory(use)) uses[llvm::cast<llvm::Constant>(use.get())].push_back(&use);
      }
    }
  }
  return uses;
}

// A pointer to `all` that nothing is known of: loads of what is known to be constant would leave the loop.
llvm::Value* Table(llvm::Function& function, llvm::Constant* all) {
  auto* const table = new llvm::GlobalVariable(*function.getParent(), all->getType(), /*isConstant=*/true,
                                               llvm::GlobalValue::PrivateLinkage, all, "constants");
  table->setAlignment(llvm::Align(32));
  llvm::IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
  llvm::Type* const pointer = builder.getPtrTy();
  auto* const opaque = llvm::InlineAsm::get(llvm::FunctionType::get(pointer, {pointer}, false), "", "=r,0", false);
  return builder.CreateCall(opaque, {table});
}

}  // namespace

llvm::PreservedAnalyses LoopConstantsPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  const auto& costs = analyses.getResult<llvm::TargetIRAnalysis>(function);
  if (costs.getNumberOfRegisters(costs.getRegisterClassForType(/*Vector=*/true)) > kFewRegisters)
    return llvm::PreservedAnalyses::all();
  for (const llvm::Loop* loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
    if (!loop->isInnermost()) continue;
    const Uses uses = ConstantsOf(*loop);
    if (uses.size() <= kInRegisters) continue;
    llvm::SmallVector<llvm::Constant*> values;
    for (const auto& [constant, where] : uses) values.push_back(constant);
    llvm::Constant* const all = llvm::ConstantStruct::getAnon(values);
    llvm::Value* const table = Table(function, all);
    unsigned field = 0;
    for (const auto& [constant, where] : uses) {
      for (llvm::Use* use : where) {
        llvm::IRBuilder<> builder(llvm::cast<llvm::Instruction>(use->getUser()));
        use->set(builder.CreateLoad(constant->getType(), builder.CreateStructGEP(all->getType(), table, field)));
      }
      ++field;
    }
  }
  return llvm::PreservedAnalyses::none();
}

}  // namespace quern::cpu
