// Reduce: sum, mean, max, min or product over axes.

#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/reduction.h"
#include "ir/shape.h"
#include "ir/window.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

std::vector<bool> AlongAxes(const Node& node, int rank) { return ReducedAxes(node.attributes, rank); }

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
  QUERN_ASSIGN(std::vector<TensorType> types, InferReduced(context));
  if (context.attributes.String("op") == "mean" && !IsFloat(types[0].dtype))
    return context.DTypeError(0, "a float for a mean");
  return types;
}

// How many elements make one: 0 of an empty line.
double TermsOf(const RefContext& context) {
  const RefTensor& x = *context.operands[0];
  const std::vector<bool> reduced = ReducedAxes(context.node.attributes, x.dims.size());
  double count = 1;
  for (size_t d = 0; d < reduced.size(); ++d) count *= reduced[d] ? static_cast<double>(x.dims[d]) : 1;
  return count;
}

Status ReferenceOfIntegers(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const std::string& op = context.node.attributes.String("op");
  const Wide start = op == "prod" ? 1 : op == "max" ? Lowest(y.dtype) : op == "min" ? Highest(y.dtype) : 0;
  const int64_t elements = y.elements();
  for (int64_t at = 0; at < elements; ++at) y.SetInteger(at, start);
  ForEachTerm(context, [&](int64_t at, int64_t from) {
    const Wide total = y.Integer(at), value = x.Integer(from);
    if (op == "sum")
      y.SetInteger(at, total + value);
    else if (op == "prod")
      y.SetInteger(at, Times(total, value));
    else
      y.SetInteger(at, (op == "max") == (total < value) ? value : total);
  });
  return absl::OkStatus();
}

Status Reference(RefContext& context) {
  if (IsInteger(context.results[0].dtype)) return ReferenceOfIntegers(context);
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const std::string& op = context.node.attributes.String("op");
  double start = 0;
  if (op == "prod") start = 1;
  if (op == "max") start = -INFINITY;
  if (op == "min") start = INFINITY;
  std::fill(y.data.begin(), y.data.end(), start);
  ForEachTerm(context, [&](int64_t at, int64_t from) {
    double& out = y.data[at];
    const double value = x.data[from];
    if (op == "sum" || op == "mean")
      out += value;
    else if (op == "prod")
      out *= value;
    else if (std::isnan(value) || std::isnan(out))
      out = NAN;
    else
      out = op == "max" ? std::max(out, value) : std::min(out, value);
  });
  const double count = op == "mean" ? TermsOf(context) : 1;
  for (double& out : y.data) out = RoundTo(y.dtype, out / count);
  return absl::OkStatus();
}

// Of a sum or mean that of its terms. Of a product |result|; the largest and smallest are exact.
Status Magnitude(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const std::string& op = context.node.attributes.String("op");
  const bool product = op == "prod";
  std::fill(y.data.begin(), y.data.end(), product ? 1 : 0);
  ForEachTerm(context, [&](int64_t at, int64_t from) {
    const double size = std::fabs(x.data[from]);
    y.data[at] = product ? y.data[at] * size : y.data[at] + size;
  });
  const double count = op == "mean" ? TermsOf(context) : 1;
  for (double& out : y.data) out /= count;
  return absl::OkStatus();
}

// Of an image: what is left of its axes must not be in another order.
std::optional<Attributes> ChannelsLast(const Node& node, std::span<const TensorType> operands) {
  const std::vector<bool> reduced = ReducedAxes(node.attributes, operands[0].dims.size());
  const bool in_order = reduced[1] || std::all_of(reduced.begin() + 2, reduced.end(), std::identity());
  if (!node.attributes.Bool("keep_dim") && !in_order) return std::nullopt;
  Attributes attributes = node.attributes;
  std::vector<int64_t> axes = attributes.Ints("axes");
  for (int64_t& axis : axes) axis = AxisWithChannelsLast(axis, operands[0].dims.size());
  attributes.Set("axes", std::move(axes));
  return attributes;
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
      .channels_last = ChannelsLast,
      .reference = Reference,
      .rtol = 2e-5,
      .magnitude = Magnitude,
  });
  return *op;
}

}  // namespace quern::ir
