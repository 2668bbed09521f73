// i64s: bounds of the operands often prove that nothing overflows, and that an int will do.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "codegen/text/text_emitter.h"

namespace quern::text {

using kir::Op;

Code TextEmitter::Number(int64_t value) const {
  const auto real = static_cast<double>(value);
  Code code{absl::StrCat(value), value < 0 ? Level::kPrefix : Level::kAtom, real, real, value, true};
  const bool fits = FitsInt(real, real);
  code.narrow = fits && language_.narrows;
  code.multiple = MultipleOf(value);
  if (!fits) code.text += "L";
  if (value == INT64_MIN) code.text = "(-9223372036854775807L - 1)", code.level = Level::kAtom;
  return code;
}

Code TextEmitter::Wide(const Code& code) {
  if (!code.narrow) return code;
  Code wide = Bounded(Cast(Type(DType::kI64), code), code.low, code.high);
  wide.literal = code.literal;
  wide.multiple = code.multiple;
  return wide;
}

Code TextEmitter::Narrowed(const Code& code) {
  if (code.narrow || !language_.narrows || !FitsInt(code.low, code.high)) return code;
  Code narrow = Bounded(Cast("int", code), code.low, code.high);
  narrow.narrow = true;
  narrow.multiple = code.multiple;
  return narrow;
}

// a SYMBOL b with what is known of its value, computed in 64 bits where 32 might not do.
Code TextEmitter::Arithmetic(const char* symbol, Level level, const Code& a, const Code& b, double low, double high,
                             int64_t multiple) {
  const bool widen = a.narrow && b.narrow && !FitsInt(low, high);
  Code code = Infix(symbol, level, widen ? Wide(a) : a, b);
  code.multiple = multiple;
  return Bounded(std::move(code), low, high);
}

Code TextEmitter::Sum(const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(*a.literal + *b.literal);
  if (a.literal == 0 || b.literal == 0) return a.literal == 0 ? b : a;
  return Arithmetic("+", Level::kSum, a, b, a.low + b.low, a.high + b.high, std::min(a.multiple, b.multiple));
}

Code TextEmitter::Difference(const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(*a.literal - *b.literal);
  if (b.literal == 0) return a;
  return Arithmetic("-", Level::kSum, a, b, a.low - b.high, a.high - b.low, std::min(a.multiple, b.multiple));
}

Code TextEmitter::Product(const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(*a.literal * *b.literal);
  if (a.literal == 0 || b.literal == 0) return Number(0);
  if (a.literal == 1 || b.literal == 1) return a.literal == 1 ? b : a;
  const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return Arithmetic("*", Level::kProduct, a, b, low, high, std::min(a.multiple * b.multiple, kMostMultiple));
}

Code TextEmitter::IndexOperator(Op op, const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(EvalInteger(op, DType::kI64, *a.literal, *b.literal, 0));
  if (op == Op::kAdd || op == Op::kSub || op == Op::kMul) {
    const Code plain = op == Op::kAdd ? Sum(a, b) : op == Op::kSub ? Difference(a, b) : Product(a, b);
    if (plain.low > -0x1p62 && plain.high < 0x1p62) return plain;
  }
  if (op == Op::kMin || op == Op::kMax) {
    const bool min = op == Op::kMin, narrow = a.narrow && b.narrow;
    Code call = Call(op, narrow ? DType::kI32 : DType::kI64, {a, b});
    call.low = min ? std::min(a.low, b.low) : std::max(a.low, b.low);
    call.high = min ? std::min(a.high, b.high) : std::max(a.high, b.high);
    call.narrow = narrow;
    call.multiple = std::min(a.multiple, b.multiple);
    return call;
  }
  const Code call = Call(op, DType::kI64, {a, b});
  if (!b.literal || *b.literal < 1) return call;
  if (op == Op::kDiv) {
    if (*b.literal == 1) return a;
    return Bounded(Infix("/", Level::kProduct, a, b), std::trunc(a.low / b.low), std::trunc(a.high / b.low));
  }
  if (op == Op::kMod) {
    if (a.low >= 0 && a.high < b.low) return a;
    return Bounded(a.low >= 0 ? Infix("%", Level::kProduct, a, b) : call, 0, b.high - 1);
  }
  return call;
}

Code TextEmitter::Least(const Code& a, const Code& b) {
  if (a.high <= b.low) return a;
  return b.high <= a.low ? b : IndexOperator(Op::kMin, a, b);
}

Code TextEmitter::Position(const View& view, const std::vector<Code>& index) {
  Code position = view.offset;
  for (size_t d = 0; d < index.size(); ++d) position = Sum(position, Product(index[d], view.strides[d]));
  return position;
}

Code TextEmitter::Inside(const std::vector<Code>& index, const std::vector<Code>& sizes) {
  std::string inside;
  for (size_t d = 0; d < index.size() && d < sizes.size(); ++d) {
    absl::StrAppend(&inside, d == 0 ? "" : " && ", CallText("inside", {index[d].text, sizes[d].text}));
  }
  return {inside};
}

}  // namespace quern::text
