#include "ir/linear_quantise.h"

#include "ir/shape.h"
#include "ir/window.h"

namespace quern::ir {

std::vector<AttrDef> ScaleAttributes() {
  return {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{1}, .doc = "of scales that are not one"},
          {.name = "block",
           .kind = AttrKind::kInt,
           .default_value = int64_t{0},
           .doc = "elements of a scale along axis; 0: one scale, or one for each index"}};
}

std::optional<Attributes> ScalesChannelsLast(const Node& node, std::span<const TensorType> operands) {
  if (node.attributes.Int("block") != 0) return std::nullopt;
  return operands[1].rank() == 0 ? node.attributes : AxisChannelsLast(node, operands);
}

Status CheckScales(const InferContext& context) {
  const TensorType &x = context.operands[0], &scale = context.operands[1];
  const int64_t block = context.attributes.Int("block");
  if (block < 0) return context.AttributeError("block", "0 or more");
  if (block > 0 || scale.rank() == 1) {
    QUERN_ASSIGN(const int axis, AxisOf(context));
    std::vector<Extent> wanted = {x.dims[axis]};
    if (block > 0) {
      wanted = x.dims;
      wanted[axis] = wanted[axis].CeilDividedBy(block);
    }
    if (!context.Equal(scale.dims, wanted)) return context.ShapeError(1, ToString(wanted));
  } else if (scale.rank() != 0) {
    return context.ShapeError(1, "[], or of one dimension");
  }
  if (context.operands.size() > 2 && !context.Equal(context.operands[2].dims, scale.dims))
    return context.ShapeError(2, ToString(scale.dims));
  return absl::OkStatus();
}

Value ScaleOf(Expansion& e, Value value, const TensorType& x, const Attributes& attributes) {
  if (!e.ok()) return {};
  const std::vector<Extent> own = e.type(value).dims;
  const int64_t block = attributes.Int("block");
  if (own.empty() && block == 0) return value;
  const int64_t rank = x.rank(), axis = FromStart(attributes.Int("axis"), rank);
  if (block == 0) {
    std::vector<Extent> dims(rank - axis, Extent(1));
    dims[0] = x.dims[axis];
    return e.Sized(value, std::move(dims));
  }
  std::vector<Extent> apart = own;
  apart.insert(apart.begin() + axis + 1, Extent(1));
  std::vector<Extent> repeated = apart, whole = x.dims;
  repeated[axis + 1] = block;
  whole[axis] = own[axis] * Extent(block);
  value = e.Sized(e.Add("Expand", {e.Sized(value, std::move(apart))}, {{"shape", std::move(repeated)}}), whole);
  return e.Add("Narrow", {value},
               {{"axis", axis}, {"start", std::vector<Extent>{0}}, {"length", std::vector<Extent>{x.dims[axis]}}});
}

std::vector<int> DequantisedBy(const Graph& graph, int n, const std::vector<bool>& once) {
  static const OpDef *const difference = FindOp("Sub"), *const product = FindOp("Mul");
  constexpr size_t kMost = 4;
  std::vector<int> nodes;
  while (nodes.size() < kMost) {
    const Node& node = graph.node(n);
    const bool factor = node.op == product && nodes.empty();
    if (!IsCast(node) && node.op != difference && !factor) break;
    const size_t from = factor && once[node.inputs[0].node] ? 1 : 0;
    const Value x = node.inputs[from];
    if (once[n] || once[x.node] || graph.type(x).dims != node.results[0].dims) break;
    if (!IsCast(node) && !once[node.inputs[1 - from].node]) break;
    nodes.push_back(n);
    if (IsCast(node) && ScalarBytes(graph.type(x).dtype) == 1) return nodes;
    n = x.node;
  }
  return {};
}

double QuotientIn(DType dtype, double x, double scale) {
  return dtype == DType::kF64 ? x / scale : static_cast<double>(static_cast<float>(x) / static_cast<float>(scale));
}

StatusOr<Value> MakeAllBytes(const MakeNode& make, DType dtype) {
  QUERN_ASSIGN(const Value numbers,
               make("Iota", {}, {{"shape", std::vector<Extent>{Extent(256)}}, {"dtype", DType::kI32}}));
  return make("Cast", {numbers}, {{"to", dtype}});  // of i8 those above 127 wrap
}

StatusOr<Value> MakeLookedUp(const MakeNode& make, Value table, Value bytes) {
  QUERN_ASSIGN(const Value places, make("Cast", {bytes}, {{"to", DType::kI32}}));
  return MakePicked(make, table, places);  // a negative one counts from the end
}

StatusOr<Value> MakeQuantized(const MakeNode& make, Value x, const LinearForm& form) {
  std::vector<Value> operands = {x, form.scale};
  if (form.zero) operands.push_back(*form.zero);
  return make("QuantizeLinear", std::move(operands), {{"axis", form.axis}, {"to", form.dtype}});
}

StatusOr<Value> MakeDequantized(const MakeNode& make, Value bytes, const LinearForm& form) {
  std::vector<Value> operands = {bytes, form.scale};
  if (form.zero) operands.push_back(*form.zero);
  return make("DequantizeLinear", std::move(operands), {{"axis", form.axis}});
}

std::optional<LinearForm> LinearFormOf(const Graph& graph, const Node& node) {
  if ((!IsQuantizeLinear(node) && !IsDequantizeLinear(node)) || node.attributes.Int("block") != 0) return std::nullopt;
  LinearForm form{node.inputs[1]};
  if (node.inputs.size() > 2) form.zero = node.inputs[2];
  form.dtype = IsQuantizeLinear(node) ? node.results[0].dtype : graph.type(node.inputs[0]).dtype;
  if (graph.type(form.scale).rank() != 0)
    form.axis = FromStart(node.attributes.Int("axis"), node.results[0].dims.size());
  return form;
}

Value SymmetricScale(Expansion& e, Value x, std::optional<int64_t> axis, int64_t most) {
  if (!e.ok()) return x;
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < e.type(x).rank(); ++d) {
    if (d != axis) axes.push_back(d);
  }
  const Value size = e.Add("Reduce", {e.Add("Abs", {x})}, {{"op", "max"}, {"axes", axes}, {"keep_dim", false}});
  const Value scale = e.Add("Div", {size, e.Scalar(static_cast<double>(most), DType::kF32)});
  return e.Add("Where", {e.Add("Eq", {size, e.Scalar(0, DType::kF32)}), e.Scalar(1, DType::kF32), scale});
}

StatusOr<Value> MakeAtLeast(const MakeNode& make, Value x, Value least) { return make("Max", {x, least}, {}); }
StatusOr<Value> MakeAtMost(const MakeNode& make, Value x, Value most) { return make("Min", {x, most}, {}); }

int64_t ScaleAt(const RefTensor& scale, const std::vector<int64_t>& index, const Attributes& attributes) {
  const int64_t block = attributes.Int("block");
  if (scale.dims.empty() && block == 0) return 0;
  const int64_t axis = FromStart(attributes.Int("axis"), index.size());
  if (block == 0) return index[axis];
  std::vector<int64_t> at = index;
  at[axis] /= block;
  return scale.Offset(at);
}

}  // namespace quern::ir
