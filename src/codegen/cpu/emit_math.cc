// Math functions: vector primitives of src/simd; for f64, those that have none, libm lane by lane.
#include <numeric>

#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "llvm/IR/Intrinsics.h"
#include "simd/library.h"

namespace quern::cpu {

llvm::Value* Emitter::Primitive(const std::string& name, std::span<llvm::Value* const> args) {
  // The primitive takes whole registers; a scalar goes through all lanes, which costs the same.
  llvm::Type* element = args[0]->getType()->getScalarType();
  const int lanes = element->isDoubleTy() ? target_.lanes / 2 : target_.lanes;
  llvm::Type* vector = llvm::FixedVectorType::get(element, lanes);
  const std::vector<llvm::Type*> types(args.size(), vector);
  llvm::FunctionCallee callee =
      module_.getOrInsertFunction(name + "_" + target_.name, llvm::FunctionType::get(vector, types, false));
  auto one = [&](std::span<llvm::Value* const> operands) {
    llvm::CallInst* call = b_.CreateCall(callee, llvm::ArrayRef(operands.data(), operands.size()));
    call->setDoesNotThrow();
    call->setDoesNotAccessMemory();
    return call;
  };
  std::vector<llvm::Value*> operands(args.begin(), args.end());
  if (!args[0]->getType()->isVectorTy()) {
    for (llvm::Value*& operand : operands) operand = b_.CreateVectorSplat(lanes, operand);
    return b_.CreateExtractElement(one(operands), uint64_t{0});
  }
  if (lanes == target_.lanes) return one(operands);
  // As many doubles as a register has floats fill two.
  std::vector<int> lower(lanes), upper(lanes), all(target_.lanes);
  std::iota(lower.begin(), lower.end(), 0);
  std::iota(upper.begin(), upper.end(), lanes);
  std::iota(all.begin(), all.end(), 0);
  auto half = [&](const std::vector<int>& mask) {
    std::vector<llvm::Value*> part;
    for (llvm::Value* arg : args) part.push_back(b_.CreateShuffleVector(arg, mask));
    return one(part);
  };
  llvm::Value* low = half(lower);
  return b_.CreateShuffleVector(low, half(upper), all);
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
  if (dtype != DType::kF64) return Primitive("q_" + name + "_f32", args);
  const std::string wide = "q_" + name + "_f64";
  return simd::Exists(wide + "_" + target_.name) ? Primitive(wide, args) : LibmPerLane(name, args);
}

}  // namespace quern::cpu
