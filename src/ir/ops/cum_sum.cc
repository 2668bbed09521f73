// CumSum: sums of the elements so far along one axis.
//
//   y[i] = x[0] + ... + x[i]; exclusive: without x[i]; reverse: x[i] + ... + x[n - 1]

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  QUERN_RETURN_IF_ERROR(NormalAxis("CumSum", context.attributes.Int("axis"), x.rank()).status());
  return std::vector<TensorType>{x};
}

std::vector<bool> Axes(const Node& node, int rank) {
  std::vector<bool> along(rank);
  along[*NormalAxis("CumSum", node.attributes.Int("axis"), rank)] = true;
  return along;
}

LineDef::Scan Scan(const Node& node) { return {node.attributes.Bool("exclusive"), node.attributes.Bool("reverse")}; }

constexpr LineDef kLine = {.axes = Axes, .reduce = [](const Node&) { return kir::ReduceOp::kSum; }, .scan = Scan};

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const Attributes& attributes = context.node.attributes;
  QUERN_ASSIGN(const int axis, NormalAxis("CumSum", attributes.Int("axis"), static_cast<int>(x.dims.size())));
  int64_t stride = 1;
  for (size_t d = axis + 1; d < x.dims.size(); ++d) stride *= x.dims[d];
  const int64_t length = x.dims[axis], lines = length == 0 ? 0 : x.elements() / length;
  for (int64_t l = 0; l < lines; ++l) {
    const int64_t first = l / stride * stride * length + l % stride;
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = first + (attributes.Bool("reverse") ? length - 1 - i : i) * stride;
      const double before = sum;
      sum += x.data[at];
      y.data[at] = RoundTo(y.dtype, attributes.Bool("exclusive") ? before : sum);
    }
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_cum_sum() {
  static const OpDef* const op = Make({
      .name = "CumSum",
      .doc = "sums of the elements so far along one axis",
      .kind = OpKind::kRoot,
      .family = "lines",
      .operands = {{.name = "x", .kind = OperandKind::kNumeric}},
      .attributes =
          {{.name = "axis", .kind = AttrKind::kInt},
           {.name = "exclusive", .kind = AttrKind::kBool, .default_value = false, .doc = "without the element itself"},
           {.name = "reverse", .kind = AttrKind::kBool, .default_value = false, .doc = "from the end"}},
      .infer = Infer,
      .line = &kLine,
      .reference = Reference,
      .rtol = 2e-5,
      .atol = 2e-5,
      .onnx = "CumSum",
  });
  return *op;
}

}  // namespace quern::ir
