#include "ir/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace quern::ir {

constexpr SmallFloat kE4m3 = {"e4m3", 8, 3, 448, 0x7f}, kE5m2 = {"e5m2", 8, 2, 57344, 0x7e, 0x7c},
                     kE2m1 = {"e2m1", 4, 1, 6}, kE8m0 = {"e8m0", 8, 0, 0x1p127, 0xff};

namespace {

constexpr SmallFloat kE3m2 = {"e3m2", 6, 2, 28}, kE2m3 = {"e2m3", 6, 3, 7.5};
constexpr const SmallFloat* kNumbers[] = {&kE4m3, &kE5m2, &kE3m2, &kE2m3, &kE2m1};

}  // namespace

std::vector<const char*> SmallFloats() {
  std::vector<const char*> names;
  for (const SmallFloat* format : kNumbers) names.push_back(format->name);
  return names;
}

const SmallFloat& FindSmallFloat(const std::string& name) {
  for (const SmallFloat* format : kNumbers) {
    if (name == format->name) return *format;
  }
  QUERN_CHECK(name == kE8m0.name);
  return kE8m0;
}

double ValueOf(const SmallFloat& format, int code) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (&format == &kE8m0) return code == format.nan ? kNaN : std::ldexp(1.0, code - 127);
  const int mantissa = format.mantissa, magnitude = code & (format.codes() / 2 - 1);
  const double sign = magnitude == code ? 1 : -1;
  if (magnitude == format.infinity) return sign * std::numeric_limits<double>::infinity();
  if (magnitude > format.last()) return kNaN;
  const int fraction = magnitude & ((1 << mantissa) - 1), exponent = magnitude >> mantissa;
  const int bias = (1 << (format.bits - 2 - mantissa)) - 1;
  const double scaled = exponent == 0 ? fraction : fraction + (1 << mantissa);
  return sign * std::ldexp(scaled, std::max(exponent, 1) - bias - mantissa);
}

Value DecodedFloats(Expansion& e, Value codes, const SmallFloat& format, DType dtype) {
  std::vector<double> values;
  for (int code = 0; code < format.codes(); ++code) values.push_back(ValueOf(format, code));
  return e.Add("Gather", {e.Floats(values, dtype), e.Stored(codes, DType::kI32)});
}

Value ScaleFloats(Expansion& e, Value scale, const Attributes& attributes, DType dtype) {
  if (!e.ok() || !IsInteger(e.type(scale).dtype)) return e.Stored(scale, dtype);
  return DecodedFloats(e, scale, FindSmallFloat(attributes.String("scale_format")), dtype);
}

double ScaleFloat(const RefTensor& scale, int64_t at, const Attributes& attributes) {
  if (!IsInteger(scale.dtype)) return scale.data[at];
  return ValueOf(FindSmallFloat(attributes.String("scale_format")), static_cast<int>(scale.integers[at]));
}

Status CheckScaleDType(const InferContext& context, int operand) {
  const DType dtype = context.operands[operand].dtype;
  if (IsFloat(dtype) || dtype == DType::kU8) return absl::OkStatus();
  return context.DTypeError(operand, "a float, or codes in u8");
}

AttrDef ScaleFormat() {
  return {.name = "scale_format",
          .kind = AttrKind::kString,
          .default_value = std::string(kE8m0.name),
          .doc = "of scales that are codes in u8",
          .choices = {kE8m0.name, kE4m3.name}};
}

}  // namespace quern::ir
