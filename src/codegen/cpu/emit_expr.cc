// Expressions: operators with the exact meaning of kir/operators.cc at the edges (NaN, zero divisors, wide shifts).
#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "llvm/IR/Intrinsics.h"

namespace quern::cpu {

using kir::Op;

Val Emitter::Emit(const kir::ExprRef& expr) {
  if (const auto* constant = std::get_if<kir::Const>(&expr->node)) {
    llvm::Type* type = ScalarType(expr->dtype);
    if (!IsFloat(expr->dtype)) return Uniform(expr->dtype, llvm::ConstantInt::get(type, constant->integer, true));
    // The literal's nearest value of its dtype; f16 and bf16 are rounded by the constant folder.
    llvm::Value* f64 = FloatConstant(b_.getDoubleTy(), constant->real);
    return Uniform(expr->dtype, Convert(f64, DType::kF64, expr->dtype));
  }
  if (const auto* name = std::get_if<kir::NameRef>(&expr->node)) return EmitName(*expr, *name);
  if (const auto* load = std::get_if<kir::Load>(&expr->node)) {
    Buffer* found = FindBuffer(load->buffer);
    if (found == nullptr) return Poison(expr->dtype);
    const Buffer buffer = *found;
    const std::vector<Val> index = EmitIndex(load->index);
    return load->otherwise == nullptr ? LoadElement(buffer, index) : LoadOr(buffer, index, Emit(load->otherwise));
  }
  if (const auto* apply = std::get_if<kir::Apply>(&expr->node)) return EmitApply(*expr, *apply);
  if (const auto* cast = std::get_if<kir::Cast>(&expr->node)) {
    const Val value = Emit(cast->value);
    const bool index = expr->dtype == DType::kI64 && value.dtype == DType::kI64;
    if (index) return value;  // keeps the linear form
    if (value.uniform()) return Uniform(expr->dtype, Convert(value.scalar, value.dtype, expr->dtype));
    return FromLanes(expr->dtype, Convert(Lanes(value), value.dtype, expr->dtype));
  }
  if (const auto* bits = std::get_if<kir::Bits>(&expr->node)) {
    const Val value = Emit(bits->value);
    if (value.uniform()) return Uniform(expr->dtype, BitCast(value.scalar, value.dtype, expr->dtype));
    return FromLanes(expr->dtype, BitCast(Lanes(value), value.dtype, expr->dtype));
  }
  if (const auto* reduce = std::get_if<kir::Reduce>(&expr->node)) return EmitReduce(*expr, *reduce);
  return EmitDecode(std::get<kir::Decode>(expr->node));
}

Val Emitter::EmitName(const kir::Expr& expr, const kir::NameRef& name) {
  const Binding* binding = Lookup(name.name);
  if (binding == nullptr) {
    Fail(absl::StrFormat("no value named %s", name.name));
    return Poison(expr.dtype);
  }
  switch (binding->kind) {
    case Binding::kValue: return binding->value;
    case Binding::kVar: {
      llvm::Value* loaded = b_.CreateLoad(binding->slot->getAllocatedType(), binding->slot);
      return FromLanes(binding->value.dtype, loaded);
    }
    case Binding::kTileElement: {
      const std::vector<Val> index = binding->index;
      Buffer* buffer = FindBuffer(name.name);
      return buffer == nullptr ? Poison(expr.dtype) : LoadElement(*buffer, index);
    }
  }
  QUERN_CHECK(false);
}

Val Emitter::EmitApply(const kir::Expr& expr, const kir::Apply& apply) {
  std::vector<Val> args;
  for (const kir::ExprRef& arg : apply.args) args.push_back(Emit(arg));
  const DType dtype = args.back().dtype;
  if (dtype == DType::kI64) {
    if (apply.op == Op::kAdd) return AddI64(args[0], args[1]);
    if (apply.op == Op::kSub) return SubI64(args[0], args[1]);
    if (apply.op == Op::kMul) return MulI64(args[0], args[1]);
  }
  bool uniform = true;
  for (const Val& arg : args) uniform = uniform && arg.uniform();
  std::vector<llvm::Value*> values;
  for (const Val& arg : args) values.push_back(uniform ? arg.scalar : Lanes(arg));

  Builder::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags;
  flags.setAllowContract(apply.contract);
  b_.setFastMathFlags(flags);
  llvm::Value* value;
  if (apply.op == Op::kSelect) {
    value = b_.CreateSelect(values[0], values[1], values[2]);
  } else if (apply.op == Op::kEq || apply.op == Op::kNe || apply.op == Op::kLt || apply.op == Op::kLe) {
    value = EmitCompare(apply.op, dtype, values[0], values[1]);
  } else if (IsFloat(dtype)) {
    value = EmitFloatOp(apply.op, dtype, values);
  } else {
    value = EmitIntegerOp(apply.op, dtype, values);
  }
  return FromLanes(expr.dtype, value);
}

llvm::Value* Emitter::EmitCompare(Op op, DType dtype, llvm::Value* a, llvm::Value* b) {
  const bool is_unsigned = IsUnsigned(dtype) || dtype == DType::kBool;
  if (IsFloat(dtype)) {
    switch (op) {
      case Op::kEq: return b_.CreateFCmpOEQ(a, b);
      case Op::kNe: return b_.CreateFCmpUNE(a, b);
      case Op::kLt: return b_.CreateFCmpOLT(a, b);
      default: return b_.CreateFCmpOLE(a, b);
    }
  }
  switch (op) {
    case Op::kEq: return b_.CreateICmpEQ(a, b);
    case Op::kNe: return b_.CreateICmpNE(a, b);
    case Op::kLt: return is_unsigned ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b);
    default: return is_unsigned ? b_.CreateICmpULE(a, b) : b_.CreateICmpSLE(a, b);
  }
}

llvm::Value* Emitter::MinMax(bool max, DType dtype, llvm::Value* a, llvm::Value* b) {
  if (!IsFloat(dtype)) {
    const bool is_unsigned = IsUnsigned(dtype) || dtype == DType::kBool;
    const llvm::Intrinsic::ID id = max ? (is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax)
                                       : (is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin);
    return b_.CreateBinaryIntrinsic(id, a, b);
  }
  // minps(a, b) is b when either is NaN. With a constant as its first operand that already passes the NaN on; else a NaN
  // in a is put back.
  if (llvm::isa<llvm::Constant>(b)) std::swap(a, b);
  llvm::Value* chosen = b_.CreateSelect(max ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b), a, b);
  if (llvm::isa<llvm::Constant>(a)) {
    auto* constant = llvm::cast<llvm::Constant>(a);
    auto* splat = constant->getType()->isVectorTy() ? constant->getSplatValue() : constant;
    if (const auto* real = llvm::dyn_cast_or_null<llvm::ConstantFP>(splat); real != nullptr && !real->isNaN()) return chosen;
  }
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, chosen);
}

llvm::Value* Emitter::EmitFloatOp(Op op, DType dtype, std::span<llvm::Value* const> args) {
  llvm::Value* a = args[0];
  llvm::Value* b = args.size() > 1 ? args[1] : nullptr;
  llvm::Value* value = nullptr;
  switch (op) {
    case Op::kNeg: value = b_.CreateFNeg(a); break;
    case Op::kAbs: value = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a); break;
    case Op::kFloor: value = b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a); break;
    case Op::kCeil: value = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a); break;
    case Op::kTrunc: value = b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, a); break;
    case Op::kRound: value = b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, a); break;
    case Op::kSqrt: value = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a); break;
    case Op::kRsqrt:
      value = b_.CreateFDiv(FloatConstant(a->getType(), 1), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a));
      break;
    case Op::kAdd: value = b_.CreateFAdd(a, b); break;
    case Op::kSub: value = b_.CreateFSub(a, b); break;
    case Op::kMul: value = b_.CreateFMul(a, b); break;
    case Op::kDiv: value = b_.CreateFDiv(a, b); break;
    case Op::kMin: value = MinMax(false, dtype, a, b); break;
    case Op::kMax: value = MinMax(true, dtype, a, b); break;
    case Op::kFma: value = b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, args[2]}); break;
    case Op::kMod: {
      llvm::Value* remainder = LibmPerLane("fmod", args);
      llvm::Constant* zero = FloatConstant(a->getType(), 0);
      llvm::Value* other_sign = b_.CreateXor(b_.CreateFCmpOLT(remainder, zero), b_.CreateFCmpOLT(b, zero));
      llvm::Value* adjust = b_.CreateAnd(other_sign, b_.CreateFCmpUNE(remainder, zero));
      value = b_.CreateSelect(adjust, b_.CreateFAdd(remainder, b), remainder);
      break;
    }
    case Op::kExp: case Op::kExp2: case Op::kLog: case Op::kLog2: case Op::kSin: case Op::kCos: case Op::kTan:
    case Op::kAtan: case Op::kTanh: case Op::kErf: case Op::kSigmoid: case Op::kPow: case Op::kAtan2:
      value = MathCall(op, dtype, args);
      break;
    case Op::kNot: case Op::kAnd: case Op::kOr: case Op::kXor: case Op::kShl: case Op::kShr:
    case Op::kEq: case Op::kNe: case Op::kLt: case Op::kLe: case Op::kSelect:
      QUERN_CHECK(false && "not an operator on floats");
  }
  return value;  // 16-bit floats are computed in f32 and rounded where they are stored or cast
}

llvm::Value* Emitter::EmitDivMod(bool mod, DType dtype, llvm::Value* a, llvm::Value* b) {
  const bool is_unsigned = IsUnsigned(dtype) || dtype == DType::kBool;
  llvm::Type* type = a->getType();
  llvm::Constant* zero = llvm::ConstantInt::get(type, 0);
  llvm::Constant* one = llvm::ConstantInt::get(type, 1);
  llvm::Value* by_zero = b_.CreateICmpEQ(b, zero);
  llvm::Value* safe = b;
  llvm::Value* by_minus_one = nullptr;
  // Neither zero nor INT_MIN / -1 may reach the machine's division; constants fold these guards away.
  if (!is_unsigned) {
    by_minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
    safe = b_.CreateSelect(by_minus_one, one, safe);
  }
  safe = b_.CreateSelect(by_zero, one, safe);
  llvm::Value* value;
  if (!mod) {
    value = is_unsigned ? b_.CreateUDiv(a, safe) : b_.CreateSDiv(a, safe);
    if (!is_unsigned) value = b_.CreateSelect(by_minus_one, b_.CreateNeg(a), value);
  } else if (is_unsigned) {
    value = b_.CreateURem(a, safe);
  } else {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(safe);
    if (constant != nullptr && constant->getValue().isPowerOf2()) {
      value = b_.CreateAnd(a, b_.CreateSub(safe, one));  // floored by nature
    } else {
      llvm::Value* remainder = b_.CreateSRem(a, safe);
      llvm::Value* other_sign = b_.CreateICmpSLT(b_.CreateXor(remainder, safe), zero);
      llvm::Value* adjust = b_.CreateAnd(other_sign, b_.CreateICmpNE(remainder, zero));
      value = b_.CreateSelect(adjust, b_.CreateAdd(remainder, safe), remainder);
      value = b_.CreateSelect(by_minus_one, zero, value);
    }
  }
  return b_.CreateSelect(by_zero, zero, value);
}

llvm::Value* Emitter::EmitShift(bool left, DType dtype, llvm::Value* a, llvm::Value* b) {
  llvm::Type* type = a->getType();
  const unsigned width = type->getScalarSizeInBits();
  llvm::Value* in_range = b_.CreateICmpULT(b, llvm::ConstantInt::get(type, width));
  llvm::Constant* zero = llvm::ConstantInt::get(type, 0);
  llvm::Constant* most = llvm::ConstantInt::get(type, width - 1);
  if (!left && !IsUnsigned(dtype)) return b_.CreateAShr(a, b_.CreateSelect(in_range, b, most));
  llvm::Value* count = b_.CreateSelect(in_range, b, zero);
  llvm::Value* shifted = left ? b_.CreateShl(a, count) : b_.CreateLShr(a, count);
  return b_.CreateSelect(in_range, shifted, zero);
}

llvm::Value* Emitter::EmitIntegerOp(Op op, DType dtype, std::span<llvm::Value* const> args) {
  llvm::Value* a = args[0];
  llvm::Value* b = args.size() > 1 ? args[1] : nullptr;
  switch (op) {
    case Op::kNeg: return b_.CreateNeg(a);
    case Op::kAbs:
      if (Row(dtype).kind != DTypeClass::kSigned) return a;
      return b_.CreateIntrinsic(llvm::Intrinsic::abs, {a->getType()}, {a, b_.getFalse()});
    case Op::kNot: return b_.CreateNot(a);
    case Op::kAdd: return b_.CreateAdd(a, b);
    case Op::kSub: return b_.CreateSub(a, b);
    case Op::kMul: return b_.CreateMul(a, b);
    case Op::kDiv: return EmitDivMod(false, dtype, a, b);
    case Op::kMod: return EmitDivMod(true, dtype, a, b);
    case Op::kMin: return MinMax(false, dtype, a, b);
    case Op::kMax: return MinMax(true, dtype, a, b);
    case Op::kAnd: return b_.CreateAnd(a, b);
    case Op::kOr: return b_.CreateOr(a, b);
    case Op::kXor: return b_.CreateXor(a, b);
    case Op::kShl: return EmitShift(true, dtype, a, b);
    case Op::kShr: return EmitShift(false, dtype, a, b);
    case Op::kFloor: case Op::kCeil: case Op::kTrunc: case Op::kRound:
    case Op::kExp: case Op::kExp2: case Op::kLog: case Op::kLog2: case Op::kSin: case Op::kCos: case Op::kTan:
    case Op::kAtan: case Op::kTanh: case Op::kErf: case Op::kSqrt: case Op::kRsqrt: case Op::kSigmoid:
    case Op::kPow: case Op::kAtan2: case Op::kEq: case Op::kNe: case Op::kLt: case Op::kLe: case Op::kSelect: case Op::kFma:
      break;
  }
  Fail(absl::StrFormat("operator %s on %s", kir::Row(op).name, Row(dtype).name));
  return a;
}

llvm::Value* Emitter::Combine(kir::ReduceOp op, DType dtype, llvm::Value* a, llvm::Value* b, bool contract) {
  Builder::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags;
  flags.setAllowContract(contract);
  b_.setFastMathFlags(flags);
  const bool real = IsFloat(dtype);
  switch (op) {
    case kir::ReduceOp::kSum: return real ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case kir::ReduceOp::kProd: return real ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case kir::ReduceOp::kMax: return MinMax(true, dtype, a, b);
    case kir::ReduceOp::kMin: return MinMax(false, dtype, a, b);
  }
  QUERN_CHECK(false);
}

}  // namespace quern::cpu
