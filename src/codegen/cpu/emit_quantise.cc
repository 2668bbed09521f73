// Floats that become bytes: sat(round(x / scale) + zero), as QuantizeLinear and products of bytes have it at the end.
// None of what follows changes a bit of the result; it takes ten instructions where twenty stand in KIR.
#include <algorithm>
#include <cmath>

#include "codegen/cpu/emitter.h"
#include "codegen/llvm/operators.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/PatternMatch.h"

namespace quern::cpu {

namespace {

namespace lm = llvm::PatternMatch;

// The number that all lanes of a constant have.
std::optional<float> NumberOf(llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant == nullptr || !constant->getType()->isVectorTy()) return std::nullopt;
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant->getSplatValue());
  if (number == nullptr || !number->getType()->isFloatTy()) return std::nullopt;
  return number->getValueAPF().convertToFloat();
}

// Whether products with the reciprocal, once corrected, are the quotients of all dividends that do not underflow: the
// proof leaves out the one significand just below a power of two.
bool HasReciprocal(float by) {
  constexpr int kMostExponent = 60;
  int exponent = 0;
  const float significand = std::frexp(std::fabs(by), &exponent);
  return std::isfinite(by) && by != 0 && std::abs(exponent) <= kMostExponent &&
         std::nextafter(significand, 1.0f) != 1.0f;
}

}  // namespace

// x / by where only the nearest whole number counts: the product with the reciprocal, corrected by what it leaves of x,
// is the quotient as a division rounds it (P. Markstein, Computation of elementary functions on the IBM RISC
// System/6000 processor, 1990), but for quotients that underflow, which are nearest to 0. x is finite.
llvm::Value* Emitter::CorrectedQuotient(llvm::Value* x, float by, llvm::Value* near) {
  llvm::Type* type = x->getType();
  const auto fma = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c});
  };
  return fma(fma(near, FloatConstant(type, -by), x), FloatConstant(type, 1 / by), near);
}

// Infinities leave nothing to correct by; nor does a product that overflows, one unit in the last place before the
// quotient would.
llvm::Value* Emitter::RoundedQuotient(llvm::Value* quotient) {
  llvm::Value *x = nullptr, *divisor = nullptr;
  if (!target_.fma || !lm::match(quotient, lm::m_FDiv(lm::m_Value(x), lm::m_Value(divisor)))) return nullptr;
  const std::optional<float> by = NumberOf(divisor);
  if (!by || !HasReciprocal(*by)) return nullptr;
  llvm::Type* type = x->getType();
  llvm::Value* near = b_.CreateFMul(x, FloatConstant(type, 1 / *by));
  llvm::Value* finite =
      b_.CreateFCmpOLT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, near), llvm::ConstantFP::getInfinity(type));
  llvm::Value* rounded = b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven,
                                                 b_.CreateSelect(finite, CorrectedQuotient(x, *by, near), near));
  quotients_.insert({rounded, {x, *by}});
  return rounded;
}

// Where `value` is a rounded number, NaN as 0 or as it is, and a whole number that is written out. The number is cut to
// what the sum may be before it is rounded, so that nothing saturates behind; of a quotient the dividend is. Whole
// numbers are the low bits of a sum with 1.5 2^23, less which it is the number for those that make floats of the bytes.
llvm::Value* Emitter::RoundedToBytes(llvm::Value* value, DType to) {
  if (ScalarBytes(to) != 1 || !value->getType()->isVectorTy() || !value->getType()->getScalarType()->isFloatTy())
    return nullptr;
  llvm::Value *sum = value, *rounded = nullptr, *number = nullptr;
  std::optional<float> zero = 0.0f;
  if (lm::match(value, lm::m_c_FAdd(lm::m_Value(sum), lm::m_Constant()))) {
    const auto* add = llvm::cast<llvm::Instruction>(value);
    zero = NumberOf(add->getOperand(add->getOperand(0) == sum ? 1 : 0));
  }
  llvm::CmpInst::Predicate predicate;
  llvm::Value* compared = nullptr;
  const bool chosen =
      lm::match(sum, lm::m_Select(lm::m_FCmp(predicate, lm::m_Value(compared), lm::m_Deferred(compared)),
                                  lm::m_AnyZeroFP(), lm::m_Value(rounded))) &&
      compared == rounded && (predicate == llvm::CmpInst::FCMP_UNE || predicate == llvm::CmpInst::FCMP_UNO);
  if (!chosen) rounded = sum;
  if (!lm::match(rounded, lm::m_Intrinsic<llvm::Intrinsic::roundeven>(lm::m_Value(number)))) return nullptr;
  const bool is_signed = !IsUnsigned(to);
  if (!zero || *zero != std::trunc(*zero) || std::fabs(*zero) > 255 || (!chosen && is_signed)) return nullptr;
  const float low = (is_signed ? -128.0f : 0.0f) - *zero, high = (is_signed ? 127.0f : 255.0f) - *zero;
  llvm::Type *real = value->getType(), *words = codegen::WithLanesOf(b_.getInt32Ty(), value);
  Builder::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  // A NaN becomes the lowest.
  const auto cut = [&](llvm::Value* x, float least, float most) {
    llvm::Constant *bottom = FloatConstant(real, least), *top = FloatConstant(real, most);
    x = b_.CreateSelect(b_.CreateFCmpOGT(x, bottom), x, bottom);
    return b_.CreateSelect(b_.CreateFCmpOLT(x, top), x, top);
  };
  const auto quotient = quotients_.find(rounded);
  llvm::Value *tested = number, *inside = nullptr;
  if (quotient != quotients_.end() && quotient->second.by > 0) {
    const float by = quotient->second.by;
    tested = quotient->second.x;
    llvm::Value* x = cut(tested, low * by, high * by);
    inside = CorrectedQuotient(x, by, b_.CreateFMul(x, FloatConstant(real, 1 / by)));
  } else {
    inside = cut(number, low, high);
  }
  constexpr float kMagic = 0x1.8p23f;
  constexpr int64_t kMagicBits = 0x4b400000;
  const auto whole = static_cast<int64_t>(*zero);
  const int64_t none = std::clamp<int64_t>(whole, is_signed ? -128 : 0, is_signed ? 127 : 255);  // of a NaN
  const auto word = [&](int64_t n) { return llvm::ConstantInt::get(words, static_cast<uint64_t>(n), true); };
  llvm::Value* moved = b_.CreateFAdd(inside, FloatConstant(real, kMagic));
  llvm::Value* byte = b_.CreateAdd(b_.CreateBitCast(moved, words), word(whole - kMagicBits));
  llvm::Value* back = b_.CreateFSub(moved, FloatConstant(real, kMagic));
  if (chosen) {
    llvm::Value* no_number = b_.CreateFCmpUNO(tested, tested);
    byte = b_.CreateSelect(no_number, word(none), byte);
    back = b_.CreateSelect(no_number, FloatConstant(real, static_cast<double>(none - whole)), back);
  }
  llvm::Value* bytes = b_.CreateTrunc(byte, codegen::WithLanesOf(b_.getInt8Ty(), value), "", /*IsNUW=*/!is_signed,
                                      /*IsNSW=*/is_signed);
  bytes_.insert({bytes, {back, whole}});
  return bytes;
}

llvm::Value* Emitter::FloatOfBytes(llvm::Value* integer) {
  llvm::Value *extended = integer, *bytes = nullptr;
  llvm::Constant* less = nullptr;
  int64_t zero = 0;
  if (lm::match(integer, lm::m_Sub(lm::m_Value(extended), lm::m_Constant(less)))) {
    const auto* number =
        less->getType()->isVectorTy() ? llvm::dyn_cast_or_null<llvm::ConstantInt>(less->getSplatValue()) : nullptr;
    if (number == nullptr) return nullptr;
    zero = number->getSExtValue();
  }
  if (!lm::match(extended, lm::m_ZExtOrSExt(lm::m_Value(bytes)))) return nullptr;
  const auto found = bytes_.find(bytes);
  return found == bytes_.end() || found->second.zero != zero ? nullptr : found->second.number;
}

}  // namespace quern::cpu
