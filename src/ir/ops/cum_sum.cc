// CumSum: sums of the elements so far along one axis.
//
//   y[i] = x[0] + ... + x[i]; exclusive: without x[i]; reverse: x[i] + ... + x[n - 1]

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(AxisOf(context).status());
  return std::vector<TensorType>{context.operands[0]};
}

std::vector<bool> Axes(const Node& node, int rank) {
  std::vector<bool> along(rank);
  along[FromStart(node.attributes.Int("axis"), rank)] = true;
  return along;
}

LineDef::Scan Scan(const Node& node) { return {node.attributes.Bool("exclusive"), node.attributes.Bool("reverse")}; }

constexpr LineDef kLine = {.axes = Axes, .reduce = [](const Node&) { return kir::ReduceOp::kSum; }, .scan = Scan};

// The sums of `term` of the elements, each given to `put` with its position.
template <typename Term, typename Put>
void SumAlong(const RefContext& context, const Term& term, const Put& put) {
  const Attributes& attributes = context.node.attributes;
  const bool exclusive = attributes.Bool("exclusive"), reverse = attributes.Bool("reverse");
  ForEachLine(*context.operands[0], attributes.Int("axis"), [&](const std::vector<int64_t>& line) {
    decltype(term(0)) sum = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      const int64_t at = line[reverse ? line.size() - 1 - i : i];
      const auto before = sum;
      sum += term(at);
      put(at, exclusive ? before : sum);
    }
  });
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  if (IsInteger(y.dtype)) {
    SumAlong(context, [&](int64_t at) { return x.Integer(at); }, [&](int64_t at, Wide sum) { y.SetInteger(at, sum); });
  } else {
    SumAlong(
        context, [&](int64_t at) { return x.data[at]; },
        [&](int64_t at, double sum) { y.data[at] = RoundTo(y.dtype, sum); });
  }
  return absl::OkStatus();
}

// Of the terms so far: their roundings are left where they cancel.
Status Magnitude(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  SumAlong(
      context, [&](int64_t at) { return std::fabs(x.data[at]); },
      [&](int64_t at, double sum) { context.results[0].data[at] = sum; });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_cum_sum() {
  static const OpDef* const op = Make({
      .name = "CumSum",
      .doc = "sums of the elements so far along one axis",
      .kind = OpKind::kRoot,
      .family = "lines",
      .operands = {{.name = "x", .kind = OperandKind::kNumeric, .shape = "rank 1 or more"}},
      .attributes =
          {{.name = "axis", .kind = AttrKind::kInt},
           {.name = "exclusive", .kind = AttrKind::kBool, .default_value = false, .doc = "without the element itself"},
           {.name = "reverse", .kind = AttrKind::kBool, .default_value = false, .doc = "from the end"}},
      .infer = Infer,
      .line = &kLine,
      .reference = Reference,
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .onnx = "CumSum",
  });
  return *op;
}

}  // namespace quern::ir
