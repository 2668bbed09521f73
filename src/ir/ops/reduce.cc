// Reduce: sum, mean, max, min or product over axes.

#include <algorithm>
#include <cmath>

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<bool>> ReducedAxes(const Attributes& attributes, int rank) {
  std::vector<bool> reduced(rank);
  for (const int64_t a : attributes.Ints("axes")) {
    QUERN_ASSIGN(const int axis, NormalAxis("Reduce", a, rank));
    if (reduced[axis]) return absl::InvalidArgumentError(absl::StrFormat("Reduce: axis %d is named twice", a));
    reduced[axis] = true;
  }
  return reduced;
}

std::vector<bool> AlongAxes(const Node& node, int rank) { return *ReducedAxes(node.attributes, rank); }

kir::ReduceOp Operator(const Node& node) {
  const std::string& op = node.attributes.String("op");
  return op == "mean" ? kir::ReduceOp::kSum : *kir::ReduceOpFromName(op);
}

kir::ExprRef Finish(const Node& node, const kir::ExprRef& value, const Extent& count) {
  using namespace kir::build::operators;
  if (node.attributes.String("op") != "mean") return value;
  return value / kir::build::CastTo(value->dtype, kir::build::FromExtent(count));
}

constexpr LineDef kLine = {.axes = AlongAxes, .reduce = Operator, .finish = Finish};

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  QUERN_ASSIGN(const std::vector<bool> reduced, ReducedAxes(context.attributes, x.rank()));
  if (context.attributes.String("op") == "mean" && !IsFloat(x.dtype))
    return absl::InvalidArgumentError("Reduce: mean takes floats");
  TensorType result{x.dtype, {}};
  for (int d = 0; d < x.rank(); ++d) {
    if (!reduced[d])
      result.dims.push_back(x.dims[d]);
    else if (context.attributes.Bool("keep_dim"))
      result.dims.push_back(Extent(1));
  }
  return std::vector<TensorType>{std::move(result)};
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const std::string& op = context.node.attributes.String("op");
  QUERN_ASSIGN(const std::vector<bool> reduced, ReducedAxes(context.node.attributes, static_cast<int>(x.dims.size())));
  double start = 0;
  if (op == "prod") start = 1;
  if (op == "max") start = -INFINITY;
  if (op == "min") start = INFINITY;
  std::fill(y.data.begin(), y.data.end(), start);
  int64_t count = 1;
  for (size_t d = 0; d < reduced.size(); ++d) count *= reduced[d] ? x.dims[d] : 1;
  std::vector<int64_t> index(x.dims.size());
  for (const double value : x.data) {
    int64_t at = 0;
    for (size_t d = 0; d < reduced.size(); ++d) {
      if (!reduced[d]) at = at * x.dims[d] + index[d];
    }
    double& out = y.data[at];
    if (op == "sum" || op == "mean")
      out += value;
    else if (op == "prod")
      out *= value;
    else if (std::isnan(value) || std::isnan(out))
      out = NAN;
    else
      out = op == "max" ? std::max(out, value) : std::min(out, value);
    NextIndex(x.dims, index);
  }
  for (double& out : y.data) out = RoundTo(y.dtype, op == "mean" ? out / static_cast<double>(count) : out);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_reduce() {
  static const OpDef* const op = Make({
      .name = "Reduce",
      .doc = "sum, mean, max, min or product over axes",
      .kind = OpKind::kRoot,
      .family = "lines",
      .operands = {{.name = "x", .kind = OperandKind::kNumeric}},
      .attributes = {{.name = "op", .kind = AttrKind::kString, .choices = {"sum", "mean", "max", "min", "prod"}},
                     {.name = "axes", .kind = AttrKind::kInts},
                     {.name = "keep_dim", .kind = AttrKind::kBool, .default_value = false}},
      .infer = Infer,
      .line = &kLine,
      .reference = Reference,
      .rtol = 2e-5,
      .atol = 2e-5,
  });
  return *op;
}

}  // namespace quern::ir
