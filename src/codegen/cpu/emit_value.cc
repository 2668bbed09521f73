// Lanes: how values vary over the vec loop, and 64-bit index arithmetic that keeps the linear form.
#include "codegen/cpu/emitter.h"

namespace quern::cpu {

llvm::Type* Emitter::ScalarType(DType dtype) {
  switch (Row(dtype).kind) {
    case DTypeClass::kFloat: return dtype == DType::kF64 ? b_.getDoubleTy() : b_.getFloatTy();
    case DTypeClass::kSigned:
    case DTypeClass::kUnsigned: return b_.getIntNTy(8 * ScalarBytes(dtype));
    case DTypeClass::kBool: return b_.getInt1Ty();
    case DTypeClass::kBlock: break;
  }
  Fail("a block format has no scalar type");
  return b_.getFloatTy();
}

llvm::Type* Emitter::MemoryType(DType dtype) {
  if (dtype == DType::kF32) return b_.getFloatTy();
  if (dtype == DType::kF64) return b_.getDoubleTy();
  if (IsBlock(dtype)) {
    Fail("a block format has no element type");
    return b_.getInt8Ty();
  }
  return b_.getIntNTy(8 * ScalarBytes(dtype));
}

llvm::Type* Emitter::LanesOf(llvm::Type* type) const {
  return lanes_ == 1 ? type : llvm::FixedVectorType::get(type, lanes_);
}

llvm::Value* Emitter::LaneIds() {
  std::vector<llvm::Constant*> ids;
  for (int lane = 0; lane < lanes_; ++lane) ids.push_back(b_.getInt64(lane));
  return llvm::ConstantVector::get(ids);
}

llvm::Value* Emitter::Lanes(const Val& value) {
  if (lanes_ == 1) return value.scalar;
  if (value.varying()) return value.vector;
  llvm::Value* splat = b_.CreateVectorSplat(lanes_, value.scalar);
  if (value.step == 0) return splat;
  llvm::Value* steps = b_.CreateVectorSplat(lanes_, b_.getInt64(value.step));
  return b_.CreateAdd(splat, b_.CreateMul(LaneIds(), steps));
}

Val Emitter::FromLanes(DType dtype, llvm::Value* value) const {
  if (value->getType()->isVectorTy()) return {dtype, nullptr, value, 0};
  return Uniform(dtype, value);
}

Val Emitter::I64(int64_t value) { return Uniform(DType::kI64, b_.getInt64(value)); }

Val Emitter::AddI64(const Val& a, const Val& b) {
  if (a.varying() || b.varying()) return FromLanes(DType::kI64, b_.CreateAdd(Lanes(a), Lanes(b)));
  return {DType::kI64, b_.CreateAdd(a.scalar, b.scalar), nullptr, a.step + b.step};
}

Val Emitter::SubI64(const Val& a, const Val& b) {
  if (a.varying() || b.varying()) return FromLanes(DType::kI64, b_.CreateSub(Lanes(a), Lanes(b)));
  return {DType::kI64, b_.CreateSub(a.scalar, b.scalar), nullptr, a.step - b.step};
}

Val Emitter::MulI64(const Val& a, const Val& b) {
  if (a.uniform() && b.uniform()) return Uniform(DType::kI64, b_.CreateMul(a.scalar, b.scalar));
  // A linear value times a constant stays linear; times a run-time stride its lanes lie apart by an unknown step.
  for (const auto& [linear, factor] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(factor->uniform() ? factor->scalar : nullptr);
    if (constant != nullptr && !linear->varying()) {
      return {DType::kI64, b_.CreateMul(linear->scalar, factor->scalar), nullptr,
              linear->step * constant->getSExtValue()};
    }
  }
  return FromLanes(DType::kI64, b_.CreateMul(Lanes(a), Lanes(b)));
}

llvm::Value* Emitter::UniformScalar(const kir::ExprRef& expr, const char* what) {
  const Val value = Emit(expr);
  if (!value.uniform()) {
    Fail(absl::StrFormat("%s %s differs between the lanes of a vec loop", what, kir::Print(expr)));
    return llvm::PoisonValue::get(ScalarType(expr->dtype));
  }
  return value.scalar;
}

llvm::Constant* Emitter::FloatConstant(llvm::Type* type, double value) { return llvm::ConstantFP::get(type, value); }

}  // namespace quern::cpu
