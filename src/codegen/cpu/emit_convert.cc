// Conversions between dtypes, on scalars and vectors alike, in instructions that every level has: none becomes a call.
#include <cmath>
#include <limits>

#include "codegen/cpu/emitter.h"
#include "codegen/llvm/operators.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Intrinsics.h"

namespace quern::cpu {

using codegen::WithLanesOf;

namespace {

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// f16 as f32. LLVM 19 would compare, choose and convert the f16 itself, as the same result says, and then does that
// element by element, since no level here has such instructions: it does not look through the fence.
llvm::Value* ExtendHalf(llvm::IRBuilder<>& b, llvm::Value* half, llvm::Type* f32) {
  return b.CreateArithmeticFence(b.CreateFPExt(half, f32), f32);
}

// The f16 that was extended, or nullptr: what is only moved is not converted.
llvm::Value* ExtendedHalf(llvm::Value* value) {
  const auto* fence = llvm::dyn_cast<llvm::IntrinsicInst>(value);
  if (fence == nullptr || fence->getIntrinsicID() != llvm::Intrinsic::arithmetic_fence) return nullptr;
  const auto* extend = llvm::dyn_cast<llvm::FPExtInst>(fence->getArgOperand(0));
  return extend == nullptr ? nullptr : extend->getOperand(0);
}

}  // namespace

llvm::Value* Emitter::WidenHalf(llvm::Value* bits, DType half) {
  llvm::Type* i32 = WithLanesOf(b_.getInt32Ty(), bits);
  llvm::Type* f32 = WithLanesOf(b_.getFloatTy(), bits);
  if (half == DType::kBF16) return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(bits, i32), 16), f32);
  if (target_.f16c) return ExtendHalf(b_, b_.CreateBitCast(bits, WithLanesOf(b_.getHalfTy(), bits)), f32);
  // Integer arithmetic, since kernels run with denormals flushed: normal numbers are moved into place and rebiased,
  // subnormals are their mantissa times 2^-24, infinity and NaN get the full exponent.
  llvm::Value* wide = b_.CreateZExt(bits, i32);
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(wide, 0x8000), 16);
  llvm::Value* magnitude = b_.CreateAnd(wide, 0x7fff);
  llvm::Value* moved = b_.CreateShl(magnitude, 13);
  llvm::Value* small = b_.CreateFMul(b_.CreateSIToFP(magnitude, f32), FloatConstant(f32, 0x1p-24));
  llvm::Value* normal = b_.CreateAdd(moved, llvm::ConstantInt::get(i32, 0x38000000));
  llvm::Value* full = b_.CreateOr(moved, llvm::ConstantInt::get(i32, 0x7f800000));
  llvm::Value* out = b_.CreateSelect(b_.CreateICmpULT(magnitude, llvm::ConstantInt::get(i32, 0x400)),
                                     b_.CreateBitCast(small, i32), normal);
  out = b_.CreateSelect(b_.CreateICmpUGE(magnitude, llvm::ConstantInt::get(i32, 0x7c00)), full, out);
  return b_.CreateBitCast(b_.CreateOr(out, sign), f32);
}

llvm::Value* Emitter::NarrowHalf(llvm::Value* value, DType half) {
  llvm::Type* i32 = WithLanesOf(b_.getInt32Ty(), value);
  llvm::Type* i16 = WithLanesOf(b_.getInt16Ty(), value);
  llvm::Type* f32 = value->getType();
  auto constant = [&](uint32_t bits) { return llvm::ConstantInt::get(i32, bits); };
  if (half == DType::kF16 && target_.f16c) {
    if (llvm::Value* same = ExtendedHalf(value)) return b_.CreateBitCast(same, i16);
    return b_.CreateBitCast(b_.CreateFPTrunc(value, WithLanesOf(b_.getHalfTy(), value)), i16);
  }
  llvm::Value* bits = b_.CreateBitCast(value, i32);
  if (half == DType::kBF16) {
    llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), constant(1));
    llvm::Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, constant(0x7fff)));
    llvm::Value* quiet = b_.CreateOr(bits, constant(0x400000));
    llvm::Value* chosen = b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, rounded);
    return b_.CreateTrunc(b_.CreateLShr(chosen, 16), i16);
  }
  // The arithmetic of base/half.h, its branches as selects.
  llvm::Value* sign = b_.CreateAnd(b_.CreateLShr(bits, 16), constant(0x8000));
  llvm::Value* magnitude = b_.CreateAnd(bits, constant(0x7fffffff));
  llvm::Value* shifted = b_.CreateFAdd(b_.CreateBitCast(magnitude, f32), FloatConstant(f32, 0.5));
  llvm::Value* subnormal = b_.CreateSub(b_.CreateBitCast(shifted, i32), constant(0x3f000000));
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, 13), constant(1));
  llvm::Value* normal = b_.CreateAdd(b_.CreateSub(magnitude, constant(0x38000000)), b_.CreateAdd(odd, constant(0xfff)));
  normal = b_.CreateLShr(normal, 13);
  llvm::Value* nan = b_.CreateOr(b_.CreateAnd(b_.CreateLShr(magnitude, 13), constant(1023)), constant(0x7e00));
  llvm::Value* out = b_.CreateSelect(b_.CreateICmpULT(magnitude, constant(0x38800000)), subnormal, normal);
  out = b_.CreateSelect(b_.CreateICmpUGE(magnitude, constant(0x477ff000)), constant(0x7c00), out);
  out = b_.CreateSelect(b_.CreateICmpUGT(magnitude, constant(0x7f800000)), nan, out);
  return b_.CreateTrunc(b_.CreateOr(out, sign), i16);
}

llvm::Value* Emitter::RoundTo(llvm::Value* f32, DType half) { return WidenHalf(NarrowHalf(f32, half), half); }

llvm::Value* Emitter::FloatToInt(llvm::Value* value, DType to) {
  if (llvm::Value* bytes = RoundedToBytes(value, to)) return bytes;
  // Clamped into what the conversion instruction takes, then the ends and NaN put right. 8 and 16 bits go through i32,
  // whose conversion is a vector instruction at every level.
  llvm::Type* real = value->getType();
  const int bits = 8 * ScalarBytes(to);
  const bool is_unsigned = IsUnsigned(to);
  llvm::Type* out = WithLanesOf(b_.getIntNTy(bits), value);
  const double low = is_unsigned ? 0 : -std::ldexp(1.0, bits - 1);
  const double limit = std::ldexp(1.0, is_unsigned ? bits : bits - 1);  // first value that is too large
  const bool is_double = real->getScalarType()->isDoubleTy();
  const bool exact = bits <= (is_double ? 52 : 23);
  // The greatest value below the limit: of the type itself, or the integer one.
  const double high =
      exact ? limit - 1 : limit - std::ldexp(1.0, (is_unsigned ? bits : bits - 1) - (is_double ? 53 : 24));
  llvm::Value* at_least =
      b_.CreateSelect(b_.CreateFCmpOGT(value, FloatConstant(real, low)), value, FloatConstant(real, low));
  llvm::Value* clamped =
      b_.CreateSelect(b_.CreateFCmpOLT(at_least, FloatConstant(real, high)), at_least, FloatConstant(real, high));
  llvm::Value* result;
  if (bits < 32) {
    result = b_.CreateTrunc(b_.CreateFPToSI(clamped, WithLanesOf(b_.getInt32Ty(), value)), out);
  } else {
    result = is_unsigned ? b_.CreateFPToUI(clamped, out) : b_.CreateFPToSI(clamped, out);
  }
  if (!exact) {
    const llvm::APInt most = is_unsigned ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getSignedMaxValue(bits);
    result =
        b_.CreateSelect(b_.CreateFCmpOGE(value, FloatConstant(real, limit)), llvm::ConstantInt::get(out, most), result);
  }
  return b_.CreateSelect(b_.CreateFCmpUNO(value, value), llvm::Constant::getNullValue(out), result);
}

llvm::Value* Emitter::Convert(llvm::Value* value, DType from, DType to) {
  if (from == to) return value;
  llvm::Type* type = WithLanesOf(ScalarType(to), value);
  if (to == DType::kBool) {
    llvm::Constant* zero = llvm::Constant::getNullValue(value->getType());
    return IsFloat(from) ? b_.CreateFCmpUNE(value, zero) : b_.CreateICmpNE(value, zero);
  }
  if (!IsFloat(to)) return IsFloat(from) ? FloatToInt(value, to) : codegen::ConvertInteger(b_, value, from, type);
  if (IsHalf(to)) return RoundTo(codegen::FloatBeforeHalf(b_, value, from), to);
  if (IsFloat(from)) return b_.CreateFPCast(value, type);
  if (llvm::Value* number = to == DType::kF32 && from == DType::kI32 ? FloatOfBytes(value) : nullptr) return number;
  return codegen::FloatOfInteger(b_, value, from, type);
}

llvm::Value* Emitter::ToMemory(llvm::Value* value, DType dtype) {
  if (IsHalf(dtype)) return NarrowHalf(value, dtype);
  if (dtype == DType::kBool) return b_.CreateZExt(value, WithLanesOf(b_.getInt8Ty(), value));
  return value;
}

llvm::Value* Emitter::FromMemory(llvm::Value* value, DType dtype) {
  if (IsHalf(dtype)) return WidenHalf(value, dtype);
  if (dtype == DType::kBool) return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  return value;
}

llvm::Value* Emitter::BitCast(llvm::Value* value, DType from, DType to) {
  llvm::Value* memory = ToMemory(value, from);
  return FromMemory(b_.CreateBitCast(memory, WithLanesOf(MemoryType(to), memory)), to);
}

}  // namespace quern::cpu
