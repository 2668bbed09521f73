// Math functions: vector primitives of src/simd.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/MDBuilder.h"

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
  const int count = llvm::cast<llvm::FixedVectorType>(args[0]->getType())->getNumElements();
  if (count == lanes) return one(operands);
  const auto part = [&](int from, int width) {
    std::vector<int> picks(lanes, llvm::PoisonMaskElem);
    std::iota(picks.begin(), picks.begin() + width, from);
    std::vector<llvm::Value*> taken;
    for (llvm::Value* arg : args) taken.push_back(b_.CreateShuffleVector(arg, picks));
    return one(taken);
  };
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  if (count < lanes) return b_.CreateShuffleVector(part(0, count), all);
  // As many doubles as a register has floats fill two.
  llvm::Value* low = part(0, lanes);
  return b_.CreateShuffleVector(low, part(lanes, lanes), all);
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

// C's fmod. Where the quotient q is below 2^p, p one less than the bits of a mantissa, x - trunc(q) y is exact in one
// rounding; a q that was rounded up to a whole number gives the remainder minus y. Lanes of larger quotients, of
// infinities and of y = 0 take libm's, all at once: they are rare.
llvm::Value* Emitter::Fmod(std::span<llvm::Value* const> args) {
  llvm::Value *x = args[0], *y = args[1];
  llvm::Type* type = x->getType();
  if (!target_.fma || !type->isVectorTy()) return LibmPerLane("fmod", args);
  const auto unary = [&](llvm::Intrinsic::ID id, llvm::Value* value) { return b_.CreateUnaryIntrinsic(id, value); };
  const auto with_sign_of_x = [&](llvm::Value* value) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, value, x);
  };
  llvm::Value* quotient = unary(llvm::Intrinsic::trunc, b_.CreateFDiv(x, y));
  llvm::Value* rest = b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {b_.CreateFNeg(quotient), y, x});
  llvm::Value* zero = FloatConstant(type, 0);
  llvm::Value* beyond = b_.CreateFCmpOLT(b_.CreateFMul(rest, with_sign_of_x(FloatConstant(type, 1))), zero);
  llvm::Value* fast = with_sign_of_x(b_.CreateSelect(beyond, b_.CreateFAdd(rest, with_sign_of_x(y)), rest));
  const double limit = type->getScalarType()->isFloatTy() ? 0x1p23 : 0x1p52;
  llvm::Value* exact =
      b_.CreateAnd(b_.CreateFCmpOLT(unary(llvm::Intrinsic::fabs, quotient), FloatConstant(type, limit)),
                   b_.CreateFCmpOLT(unary(llvm::Intrinsic::fabs, y), llvm::ConstantFP::getInfinity(type)));
  if (mask_ != nullptr) exact = b_.CreateOr(exact, b_.CreateNot(mask_));
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* slow = llvm::BasicBlock::Create(context_, "fmod", function_);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(context_, "done", function_);
  b_.CreateCondBr(b_.CreateAndReduce(exact), done, slow, llvm::MDBuilder(context_).createLikelyBranchWeights());
  b_.SetInsertPoint(slow);
  llvm::Value* each = LibmPerLane("fmod", args);
  slow = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* result = b_.CreatePHI(type, 2);
  result->addIncoming(fast, before);
  result->addIncoming(each, slow);
  return result;
}

llvm::Value* Emitter::MathCall(kir::Op op, DType dtype, std::span<llvm::Value* const> args) {
  return Primitive(absl::StrCat("q_", kir::Row(op).name, dtype == DType::kF64 ? "_f64" : "_f32"), args);
}

}  // namespace quern::cpu
