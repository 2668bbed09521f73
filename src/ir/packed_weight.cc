#include "ir/packed_weight.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace quern::ir {
namespace {

constexpr int64_t kRowsOfNvfp4 = 16;

constexpr PackedScheme kSchemes[] = {
    {"int8", DType::kI8, false, true, false, 0, 0, DType::kF32},
    {"int8a", DType::kI8, false, true, true, 0, 0, DType::kF32},
    {"int4", DType::kU8, true, true, true, 0, 0, DType::kF32},
    {"fp8e4m3", DType::kU8, false, false, false, 8, 3, DType::kF32},
    {"fp8e5m2", DType::kU8, false, false, false, 8, 2, DType::kF32},
    {"nvfp4", DType::kU8, true, false, true, 4, 1, DType::kU8},
};

// The value of each code at its place.
Value Table(Expansion& e, int bits, int mantissa, DType dtype) {
  std::vector<double> values;
  for (int code = 0; code < 1 << bits; ++code) values.push_back(FloatOfCode(code, bits, mantissa));
  return e.Floats(values, dtype);
}

Value Decoded(Expansion& e, Value codes, int bits, int mantissa, DType dtype) {
  return e.Add("Gather", {Table(e, bits, mantissa, dtype), e.Stored(codes, DType::kI32)});
}

// The first `count` elements along axis 0.
Value First(Expansion& e, Value value, const Extent& count) {
  return e.Add(
      "Narrow", {value},
      {{"axis", int64_t{0}}, {"start", std::vector<Extent>{Extent(0)}}, {"length", std::vector<Extent>{count}}});
}

// The halves of bytes, low before high, as [K, N].
Value Halves(Expansion& e, Value bytes, const Extent& k, const Extent& n) {
  if (!e.ok()) return {};
  const Extent count = e.type(bytes).elements();
  const Value twice =
      e.Add("Expand", {e.Sized(bytes, {count, Extent(1)})}, {{"shape", std::vector<Extent>{count, Extent(2)}}});
  const Value shifts = e.Stored(e.Integers({0, 4}), DType::kU8), low = e.Stored(e.Integers({15}), DType::kU8);
  const Value halves = e.Add("BitAnd", {e.Add("Shr", {twice, shifts}), low});
  return e.Sized(First(e, e.Sized(halves, {count * 2}), k * n), {k, n});
}

// Rows [G, N] of groups as [K, N], each `rows` times.
Value ByRow(Expansion& e, Value groups, const Extent& k, int64_t rows) {
  if (!e.ok()) return {};
  const std::vector<Extent> dims = e.type(groups).dims;
  const Value wide = e.Add("Expand", {e.Sized(groups, {dims[0], Extent(1), dims[1]})},
                           {{"shape", std::vector<Extent>{dims[0], Extent(rows), dims[1]}}});
  return First(e, e.Sized(wide, {dims[0] * rows, dims[1]}), k);
}

}  // namespace

std::vector<const char*> PackedSchemes() {
  std::vector<const char*> names;
  for (const PackedScheme& scheme : kSchemes) names.push_back(scheme.name);
  return names;
}

const PackedScheme& FindPackedScheme(const std::string& name) {
  for (const PackedScheme& scheme : kSchemes) {
    if (name == scheme.name) return scheme;
  }
  QUERN_CHECK(false);
  return kSchemes[0];
}

int64_t RowsOfScale(const PackedScheme& scheme, const Attributes& attributes) {
  return scheme.in_blocks ? attributes.Int("block") : kRowsOfNvfp4;
}

double FloatOfCode(int code, int bits, int mantissa) {
  const int exponent_bits = bits - 1 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  const int fraction = code & ((1 << mantissa) - 1), exponent = code >> mantissa & ((1 << exponent_bits) - 1);
  const double sign = code >> (bits - 1) & 1 ? -1 : 1;
  const bool last = exponent == (1 << exponent_bits) - 1;
  // E5M2 is as IEEE says; E4M3 has one NaN of each sign; E2M1 numbers alone.
  if (bits == 8 && mantissa == 2 && last)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (bits == 8 && mantissa == 3 && last && fraction == 7) return std::numeric_limits<double>::quiet_NaN();
  const double scaled = exponent == 0 ? fraction : fraction + (1 << mantissa);
  return sign * std::ldexp(scaled, std::max(exponent, 1) - bias - mantissa);
}

Value UnpackedWeight(Expansion& e, const Node& node, std::span<const Value> inputs, const Extent& k, const Extent& n,
                     DType dtype) {
  const PackedScheme& scheme = FindPackedScheme(node.attributes.String("scheme"));
  const int64_t rows = RowsOfScale(scheme, node.attributes);
  const auto has = [&](PackedOperand operand) { return inputs.size() > static_cast<size_t>(operand); };
  Value w = inputs[kPackedWeight];
  if (scheme.nibbles) w = Halves(e, w, k, n);
  if (scheme.float_bits != 0) {
    w = Decoded(e, w, scheme.float_bits, scheme.mantissa, dtype);
    if (!has(kPackedScale)) return w;
    // A scale for each column; or E4M3 for each group and column, and one for all.
    if (!scheme.nibbles) return e.Add("Mul", {w, e.Stored(inputs[kPackedScale], dtype)});
    const Value scale = ByRow(e, Decoded(e, inputs[kPackedScale], 8, 3, dtype), k, rows);
    return e.Add("Mul", {e.Add("Mul", {w, scale}), e.Stored(inputs[kPackedExtra], dtype)});
  }
  w = e.Stored(w, dtype);
  if (scheme.has_zero_point) w = e.Add("Sub", {w, ByRow(e, e.Stored(inputs[kPackedExtra], dtype), k, rows)});
  return e.Add("Mul", {w, ByRow(e, e.Stored(inputs[kPackedScale], dtype), k, rows)});
}

}  // namespace quern::ir
