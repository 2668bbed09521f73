#include "codegen/llvm/operators.h"

#include <utility>

#include "llvm/IR/Intrinsics.h"

namespace quern::codegen {
namespace {

using kir::Op;
using llvm::Value;
using Builder = llvm::IRBuilder<>;

bool IsSigned(DType dtype) { return Row(dtype).kind == DTypeClass::kSigned; }

// Of floats: x's NaN is chosen since it compares as false, y's becomes one. By a NaN of its own, since two choices of y
// would be joined to one, for which processors have no instruction. A constant needs no care, so it comes second.
Value* MinMax(Builder& b, bool max, Value* x, Value* y) {
  if (llvm::isa<llvm::Constant>(x)) std::swap(x, y);
  Value* chosen = b.CreateSelect(max ? b.CreateFCmpOGT(y, x) : b.CreateFCmpOLT(y, x), y, x);
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(y)) {
    const auto* element = constant->getType()->isVectorTy() ? constant->getSplatValue() : constant;
    const auto* real = llvm::dyn_cast_or_null<llvm::ConstantFP>(element);
    if (real != nullptr && !real->isNaN()) return chosen;
  }
  return b.CreateSelect(b.CreateFCmpUNO(y, y), llvm::ConstantFP::getNaN(y->getType()), chosen);
}

// Whether vectors of such are divided as floats of twice their bits: processors divide integers one by one. A quotient
// that is not whole is at least 1 / y off the next whole number, more than such a float rounds by.
bool DividesAsFloats(DType dtype, const Value* x, const Value* y) {
  return x->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(y) && ScalarBytes(dtype) <= 4;
}

// x / y towards zero; y is not 0, nor -1 where x is the lowest number.
Value* Quotient(Builder& b, DType dtype, Value* x, Value* y) {
  const bool is_signed = IsSigned(dtype);
  if (!DividesAsFloats(dtype, x, y)) return is_signed ? b.CreateSDiv(x, y) : b.CreateUDiv(x, y);
  llvm::Type* type = WithLanesOf(ScalarBytes(dtype) == 4 ? b.getDoubleTy() : b.getFloatTy(), x);
  Value* quotient = b.CreateFDiv(FloatOfInteger(b, x, dtype, type), FloatOfInteger(b, y, dtype, type));
  return is_signed ? b.CreateFPToSI(quotient, x->getType()) : b.CreateFPToUI(quotient, x->getType());
}

// What is left of it.
Value* Remainder(Builder& b, DType dtype, Value* x, Value* y) {
  if (DividesAsFloats(dtype, x, y)) return b.CreateSub(x, b.CreateMul(Quotient(b, dtype, x, y), y));
  return IsSigned(dtype) ? b.CreateSRem(x, y) : b.CreateURem(x, y);
}

Value* DivMod(Builder& b, bool mod, DType dtype, Value* x, Value* y) {
  llvm::Type* type = x->getType();
  llvm::Constant* zero = llvm::ConstantInt::get(type, 0);
  llvm::Constant* one = llvm::ConstantInt::get(type, 1);
  Value* by_zero = b.CreateICmpEQ(y, zero);
  if (!IsSigned(dtype)) {
    Value* safe = b.CreateSelect(by_zero, one, y);
    return b.CreateSelect(by_zero, zero, mod ? Remainder(b, dtype, x, safe) : Quotient(b, dtype, x, safe));
  }
  // Neither zero nor -1, by which the lowest number has no quotient, may reach the machine's division; constants fold
  // the guards away.
  Value* by_minus_one = b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type));
  Value* safe = b.CreateSelect(b.CreateOr(by_zero, by_minus_one), one, y);
  if (!mod)
    return b.CreateSelect(by_zero, zero, b.CreateSelect(by_minus_one, b.CreateNeg(x), Quotient(b, dtype, x, safe)));
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(safe);
  if (constant != nullptr && constant->getValue().isStrictlyPositive() && constant->getValue().isPowerOf2()) {
    return b.CreateSelect(by_zero, zero, b.CreateAnd(x, b.CreateSub(safe, one)));  // floored by nature
  }
  Value* remainder = Remainder(b, dtype, x, safe);
  Value* other_sign = b.CreateICmpSLT(b.CreateXor(remainder, safe), zero);
  Value* adjust = b.CreateAnd(other_sign, b.CreateICmpNE(remainder, zero));
  return b.CreateSelect(by_zero, zero, b.CreateSelect(adjust, b.CreateAdd(remainder, safe), remainder));
}

// Counts outside the width give 0, or the sign of a signed value shifted right.
Value* Shift(Builder& b, bool left, DType dtype, Value* x, Value* count) {
  llvm::Type* type = x->getType();
  const unsigned width = type->getScalarSizeInBits();
  Value* in_range = b.CreateICmpULT(count, llvm::ConstantInt::get(type, width));
  llvm::Constant* zero = llvm::ConstantInt::get(type, 0);
  if (!left && IsSigned(dtype))
    return b.CreateAShr(x, b.CreateSelect(in_range, count, llvm::ConstantInt::get(type, width - 1)));
  Value* safe = b.CreateSelect(in_range, count, zero);
  return b.CreateSelect(in_range, left ? b.CreateShl(x, safe) : b.CreateLShr(x, safe), zero);
}

}  // namespace

llvm::Type* WithLanesOf(llvm::Type* element, const Value* like) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector == nullptr ? element : llvm::FixedVectorType::get(element, vector->getNumElements());
}

Value* Compare(Builder& b, Op op, DType dtype, Value* x, Value* y) {
  if (op == Op::kEq) return IsFloat(dtype) ? b.CreateFCmpOEQ(x, y) : b.CreateICmpEQ(x, y);
  if (op == Op::kNe) return IsFloat(dtype) ? b.CreateFCmpUNE(x, y) : b.CreateICmpNE(x, y);
  const bool less = op == Op::kLt;
  if (IsFloat(dtype)) return less ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOLE(x, y);
  if (IsSigned(dtype)) return less ? b.CreateICmpSLT(x, y) : b.CreateICmpSLE(x, y);
  return less ? b.CreateICmpULT(x, y) : b.CreateICmpULE(x, y);
}

Value* IntegerOperator(Builder& b, Op op, DType dtype, std::span<Value* const> args) {
  Value* x = args[0];
  Value* y = args.size() > 1 ? args[1] : nullptr;
  const bool is_signed = IsSigned(dtype);
  switch (op) {
    case Op::kNeg: return b.CreateNeg(x);
    case Op::kAbs: return is_signed ? b.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {x, b.getFalse()}) : x;
    case Op::kNot: return b.CreateNot(x);
    case Op::kAdd: return b.CreateAdd(x, y);
    case Op::kSub: return b.CreateSub(x, y);
    case Op::kMul: return b.CreateMul(x, y);
    case Op::kDiv: return DivMod(b, false, dtype, x, y);
    case Op::kMod: return DivMod(b, true, dtype, x, y);
    case Op::kMin: return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x, y);
    case Op::kMax: return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x, y);
    case Op::kAnd: return b.CreateAnd(x, y);
    case Op::kOr: return b.CreateOr(x, y);
    case Op::kXor: return b.CreateXor(x, y);
    case Op::kShl: return Shift(b, true, dtype, x, y);
    case Op::kShr: return Shift(b, false, dtype, x, y);
    default: return nullptr;
  }
}

Value* FloatOperator(Builder& b, Op op, std::span<Value* const> args) {
  Value* x = args[0];
  Value* y = args.size() > 1 ? args[1] : nullptr;
  auto unary = [&](llvm::Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, x); };
  switch (op) {
    case Op::kNeg: return b.CreateFNeg(x);
    case Op::kAbs: return unary(llvm::Intrinsic::fabs);
    case Op::kFloor: return unary(llvm::Intrinsic::floor);
    case Op::kCeil: return unary(llvm::Intrinsic::ceil);
    case Op::kTrunc: return unary(llvm::Intrinsic::trunc);
    case Op::kRound: return unary(llvm::Intrinsic::roundeven);
    case Op::kSqrt: return unary(llvm::Intrinsic::sqrt);
    case Op::kRsqrt: return b.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1), unary(llvm::Intrinsic::sqrt));
    case Op::kAdd: return b.CreateFAdd(x, y);
    case Op::kSub: return b.CreateFSub(x, y);
    case Op::kMul: return b.CreateFMul(x, y);
    case Op::kDiv: return b.CreateFDiv(x, y);
    case Op::kMin: return MinMax(b, false, x, y);
    case Op::kMax: return MinMax(b, true, x, y);
    default: return nullptr;
  }
}

llvm::Constant* Identity(kir::ReduceOp op, DType dtype, llvm::Type* type) {
  if (IsFloat(dtype)) return llvm::ConstantFP::get(type, kir::Identity(op));
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(kir::IntegerIdentity(op, dtype)), true);
}

Value* Combine(Builder& b, kir::ReduceOp op, DType dtype, Value* x, Value* y) {
  const Op step = kir::CombineOp(op);
  return IsFloat(dtype) ? FloatOperator(b, step, {{x, y}}) : IntegerOperator(b, step, dtype, {{x, y}});
}

Value* ConvertInteger(Builder& b, Value* value, DType from, llvm::Type* type) {
  return b.CreateIntCast(value, type, IsSigned(from));
}

Value* FloatOfInteger(Builder& b, Value* value, DType from, llvm::Type* type) {
  return IsSigned(from) ? b.CreateSIToFP(value, type) : b.CreateUIToFP(value, type);
}

Value* FloatBeforeHalf(Builder& b, Value* value, DType from) {
  if (from == DType::kF32 || (IsFloat(from) && ScalarBytes(from) == 2)) return value;
  llvm::Type* f32 = WithLanesOf(b.getFloatTy(), value);
  llvm::Type* f64 = WithLanesOf(b.getDoubleTy(), value);
  if (!IsFloat(from)) {
    if (ScalarBytes(from) < 4) return FloatOfInteger(b, value, from, f32);
    if (ScalarBytes(from) == 8) {
      // Of 64 bits f64 keeps 53: the low ones become one that says whether any was set, which is all that rounding
      // asks.
      auto constant = [&](uint64_t number) { return llvm::ConstantInt::get(value->getType(), number); };
      const uint64_t middle = IsSigned(from) ? uint64_t{1} << 52 : 0;
      Value* wide = b.CreateICmpUGT(b.CreateAdd(value, constant(middle)), constant(uint64_t{1} << 53));
      Value* lost = b.CreateICmpNE(b.CreateAnd(value, constant(0x7ff)), constant(0));
      Value* kept = b.CreateOr(b.CreateAnd(value, constant(~uint64_t{0x7ff})),
                               b.CreateShl(b.CreateZExt(lost, value->getType()), constant(11)));
      value = b.CreateSelect(wide, kept, value);
    }
    value = FloatOfInteger(b, value, from, f64);
  }
  // Toward zero, then the last bit set if anything was lost.
  Value* nearest = b.CreateFPTrunc(value, f32);
  Value* back = b.CreateFPExt(nearest, f64);
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), value);
  auto magnitude = [&](Value* x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  Value* over = b.CreateZExt(b.CreateFCmpOGT(magnitude(back), magnitude(value)), i32);
  Value* lost = b.CreateZExt(b.CreateFCmpONE(back, value), i32);
  return b.CreateBitCast(b.CreateOr(b.CreateSub(b.CreateBitCast(nearest, i32), over), lost), f32);
}

}  // namespace quern::codegen
