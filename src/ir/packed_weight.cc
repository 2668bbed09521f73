#include "ir/packed_weight.h"

#include "base/check.h"

namespace quern::ir {
namespace {

constexpr int64_t kRowsOfNvfp4 = 16;

constexpr PackedScheme kSchemes[] = {
    {"int8", DType::kI8, false, true, false, nullptr, DType::kF32},
    {"int8a", DType::kI8, false, true, true, nullptr, DType::kF32},
    {"int4", DType::kU8, true, true, true, nullptr, DType::kF32},
    {"fp8e4m3", DType::kU8, false, false, false, &kE4m3, DType::kF32},
    {"fp8e5m2", DType::kU8, false, false, false, &kE5m2, DType::kF32},
    {"nvfp4", DType::kU8, true, false, true, &kE2m1, DType::kU8},
};

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

Value UnpackedWeight(Expansion& e, const Node& node, std::span<const Value> inputs, const Extent& k, const Extent& n,
                     DType dtype) {
  const PackedScheme& scheme = FindPackedScheme(node.attributes.String("scheme"));
  const int64_t rows = RowsOfScale(scheme, node.attributes);
  const auto has = [&](PackedOperand operand) { return inputs.size() > static_cast<size_t>(operand); };
  Value w = inputs[kPackedWeight];
  if (scheme.nibbles) w = Halves(e, w, k, n);
  if (scheme.floats != nullptr) {
    w = DecodedFloats(e, w, *scheme.floats, dtype);
    if (!has(kPackedScale)) return w;
    // A scale for each column; or E4M3 for each group and column, and one for all.
    if (!scheme.nibbles) return e.Add("Mul", {w, e.Stored(inputs[kPackedScale], dtype)});
    const Value scale = ByRow(e, DecodedFloats(e, inputs[kPackedScale], kE4m3, dtype), k, rows);
    return e.Add("Mul", {e.Add("Mul", {w, scale}), e.Stored(inputs[kPackedExtra], dtype)});
  }
  w = e.Stored(w, dtype);
  if (scheme.has_zero_point) w = e.Add("Sub", {w, ByRow(e, e.Stored(inputs[kPackedExtra], dtype), k, rows)});
  return e.Add("Mul", {w, ByRow(e, e.Stored(inputs[kPackedScale], dtype), k, rows)});
}

}  // namespace quern::ir
