// Lanes: how values vary over the vec loop.
#include <algorithm>

#include "codegen/cpu/emitter.h"

namespace quern::cpu {

int64_t PowerIn(int64_t value) {
  constexpr int64_t kMost = int64_t{1} << 30;
  return value == 0 ? kMost : std::min(kMost, value & -value);
}

bool Val::Steps(int64_t step) const {
  for (size_t lane = 0; lane < offsets.size(); ++lane) {
    if (offsets[lane] != static_cast<int64_t>(lane) * step) return false;
  }
  return scalar != nullptr && !offsets.empty();
}

llvm::Type* Emitter::ScalarType(DType dtype) {
  switch (Row(dtype).kind) {
    case DTypeClass::kFloat: return dtype == DType::kF64 ? b_.getDoubleTy() : b_.getFloatTy();
    case DTypeClass::kSigned:
    case DTypeClass::kUnsigned: return b_.getIntNTy(8 * ScalarBytes(dtype));
    case DTypeClass::kBool: return b_.getInt1Ty();
    case DTypeClass::kComplex:
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
  if (value.uniform()) return splat;
  std::vector<llvm::Constant*> offsets;
  for (const int64_t offset : value.offsets) offsets.push_back(b_.getInt64(offset));
  return b_.CreateAdd(splat, llvm::ConstantVector::get(offsets));
}

Val Emitter::FromLanes(DType dtype, llvm::Value* value) const {
  if (value->getType()->isVectorTy()) return {dtype, nullptr, value};
  return Uniform(dtype, value);
}

Val Emitter::I64(int64_t value) { return Uniform(DType::kI64, b_.getInt64(value)); }

Val Emitter::LoopIndex(llvm::Value* index, const Val& low, const Val& high, int64_t step, int lanes) {
  Val value = Uniform(DType::kI64, index);
  if (lanes > 1) {
    for (int lane = 0; lane < lanes; ++lane) value.offsets.push_back(lane * step);
  }
  const Range first = RangeOf(low), last = RangeOf(high);
  if (!first) return value;
  value.multiple = std::min(MultipleOf(low), PowerIn(step * lanes));
  constexpr int64_t kMost = int64_t{1} << 60;  // no loop gets so far
  const int64_t end = last ? last->second - 1 : kMost;
  value.range = {first->first, std::max(first->first, end)};
  return value;
}

Val Emitter::UniformVal(const kir::ExprRef& expr, const char* what) {
  Val value = Emit(expr);
  if (value.uniform()) return value;
  Fail(absl::StrFormat("%s %s differs between the lanes of a vec loop", what, kir::Print(expr)));
  return Poison(expr->dtype);
}

llvm::Value* Emitter::UniformScalar(const kir::ExprRef& expr, const char* what) {
  return UniformVal(expr, what).scalar;
}

llvm::Constant* Emitter::FloatConstant(llvm::Type* type, double value) { return llvm::ConstantFP::get(type, value); }

}  // namespace quern::cpu
