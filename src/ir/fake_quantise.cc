#include "ir/fake_quantise.h"

#include <algorithm>
#include <cmath>

#include "ir/linear_quantise.h"

namespace quern::ir {
namespace {

constexpr double kLeast = 1e-12;

}  // namespace

std::vector<OperandDef> LevelOperands(bool dy) {
  std::vector<OperandDef> operands = {
      {.name = "x", .kind = OperandKind::kFloat},
      {.name = "scale", .kind = OperandKind::kFloat, .shape = "[] or [axis of x], f32, of f64 f64", .own_dtype = true}};
  if (dy) operands.push_back({.name = "dy", .kind = OperandKind::kFloat, .shape = "as x"});
  return operands;
}

std::vector<AttrDef> LevelAttributes(std::vector<AttrDef> others) {
  std::vector<AttrDef> attributes = {
      {.name = "bits", .kind = AttrKind::kInt, .default_value = int64_t{8}, .doc = "8, 4 or 2"},
      {.name = "axis",
       .kind = AttrKind::kInts,
       .default_value = std::vector<int64_t>{},
       .doc = "the one along which each index has a scale; none: there is one scale"}};
  attributes.insert(attributes.end(), others.begin(), others.end());
  return attributes;
}

double LevelsOf(const Attributes& attributes) {
  return static_cast<double>((int64_t{1} << (attributes.Int("bits") - 1)) - 1);
}

std::vector<Extent> ScaleDims(const TensorType& x, const Attributes& attributes) {
  const std::vector<int64_t>& axes = attributes.Ints("axis");
  if (axes.empty()) return {};
  return {x.dims[FromStart(axes[0], x.dims.size())]};
}

std::vector<Extent> ScaleBesides(const TensorType& x, const Attributes& attributes) {
  std::vector<Extent> dims = x.dims;
  for (const int64_t axis : SharedAxes(x.dims.size(), attributes)) dims[axis] = Extent(1);
  return dims;
}

std::vector<int64_t> SharedAxes(size_t rank, const Attributes& attributes) {
  const std::vector<int64_t>& axes = attributes.Ints("axis");
  std::vector<int64_t> shared;
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d) {
    if (axes.empty() || d != FromStart(axes[0], rank)) shared.push_back(d);
  }
  return shared;
}

Status CheckLevels(const InferContext& context, int scale, int dy) {
  const TensorType& x = context.operands[0];
  const int64_t bits = context.attributes.Int("bits");
  if (bits != 8 && bits != 4 && bits != 2) return context.AttributeError("bits", "8, 4 or 2");
  const std::vector<int64_t>& axes = context.attributes.Ints("axis");
  if (axes.size() > 1) return context.AttributeError("axis", "one, or none");
  if (!axes.empty()) QUERN_RETURN_IF_ERROR(AxisOf(context, "axis", axes[0]).status());
  if (scale >= 0) {
    const DType wide = x.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    if (context.operands[scale].dtype != wide) return context.DTypeError(scale, std::string(Name(wide)));
    const std::vector<Extent> dims = ScaleDims(x, context.attributes);
    if (!context.Equal(context.operands[scale].dims, dims)) return context.ShapeError(scale, ToString(dims));
  }
  if (dy >= 0 && !context.Equal(context.operands[dy].dims, x.dims)) return context.ShapeError(dy, ToString(x.dims));
  return absl::OkStatus();
}

Value UsableScale(Expansion& e, Value scale, const TensorType& x, const Attributes& attributes) {
  if (!e.ok()) return {};
  const Value besides = e.Sized(scale, ScaleBesides(x, attributes));
  return e.Add("Max", {besides, e.Scalar(kLeast, e.type(scale).dtype)});
}

double UsableScale(double scale) { return scale < kLeast ? kLeast : scale; }

Value Levelled(Expansion& e, Value x, Value scale, const Attributes& attributes) {
  if (!e.ok()) return {};
  const double levels = LevelsOf(attributes);
  const DType dtype = e.type(x).dtype;
  const Value whole = e.Add("Round", {e.Add("Div", {x, scale})});
  return e.Add("Mul", {e.Add("Clamp", {whole, e.Scalar(-levels, dtype), e.Scalar(levels, dtype)}), scale});
}

double Levelled(DType dtype, double x, double scale, double levels) {
  const double whole = std::nearbyint(QuotientIn(dtype, x, scale));
  return (std::isnan(whole) ? whole : std::clamp(whole, -levels, levels)) * scale;
}

}  // namespace quern::ir
