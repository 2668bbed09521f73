// Math functions: vector primitives of src/simd for f32 and the halves, libm lane by lane for f64.
#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "llvm/IR/Intrinsics.h"

namespace quern::cpu {

llvm::Value* Emitter::PrimitiveF32(const std::string& name, std::span<llvm::Value* const> args) {
  // The primitive takes whole registers of f32; a scalar goes through all lanes, which costs the same.
  llvm::Type* vector = llvm::FixedVectorType::get(b_.getFloatTy(), target_.lanes);
  const bool scalar = !args[0]->getType()->isVectorTy();
  std::vector<llvm::Value*> operands;
  for (llvm::Value* arg : args) operands.push_back(scalar ? b_.CreateVectorSplat(target_.lanes, arg) : arg);
  const std::vector<llvm::Type*> types(args.size(), vector);
  llvm::FunctionCallee callee =
      module_.getOrInsertFunction(name + "_" + target_.name, llvm::FunctionType::get(vector, types, false));
  llvm::CallInst* call = b_.CreateCall(callee, operands);
  call->setDoesNotThrow();
  call->setDoesNotAccessMemory();
  return scalar ? b_.CreateExtractElement(call, uint64_t{0}) : call;
}

llvm::Value* Emitter::LibmPerLane(const std::string& name, std::span<llvm::Value* const> args) {
  llvm::Type* element = args[0]->getType()->getScalarType();
  const std::vector<llvm::Type*> types(args.size(), element);
  const std::string symbol = element->isFloatTy() ? name + "f" : name;
  QUERN_CHECK(IsLibcSymbol(symbol));
  llvm::FunctionCallee callee = module_.getOrInsertFunction(symbol, llvm::FunctionType::get(element, types, false));
  auto one = [&](std::span<llvm::Value* const> operands) {
    llvm::CallInst* call = b_.CreateCall(callee, llvm::ArrayRef(operands.data(), operands.size()));
    call->setDoesNotThrow();
    call->setDoesNotAccessMemory();
    return call;
  };
  if (!args[0]->getType()->isVectorTy()) return one(args);
  llvm::Value* result = llvm::PoisonValue::get(args[0]->getType());
  for (int lane = 0; lane < lanes_; ++lane) {
    std::vector<llvm::Value*> operands;
    for (llvm::Value* arg : args) operands.push_back(b_.CreateExtractElement(arg, lane));
    result = b_.CreateInsertElement(result, one(operands), lane);
  }
  return result;
}

llvm::Value* Emitter::MathCall(kir::Op op, DType dtype, std::span<llvm::Value* const> args) {
  const std::string name = kir::Row(op).name;
  if (dtype != DType::kF64) return PrimitiveF32("q_" + name + "_f32", args);
  if (op != kir::Op::kSigmoid) return LibmPerLane(name, args);
  llvm::Value* negated = b_.CreateFNeg(args[0]);
  llvm::Constant* one = FloatConstant(args[0]->getType(), 1);
  return b_.CreateFDiv(one, b_.CreateFAdd(one, LibmPerLane("exp", {{negated}})));
}

}  // namespace quern::cpu
