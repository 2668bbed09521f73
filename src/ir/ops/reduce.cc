// Reduce: sum, mean, max, min or product over axes; of bools whether any or all are true. Of nothing: 0 and 1, the
// limits of an integer dtype or infinities, NaN for a mean, and that none is true but all are.

#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/composite.h"
#include "ir/pairs.h"
#include "ir/reduction.h"
#include "ir/shape.h"
#include "ir/window.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

bool OfBools(const Attributes& attributes) {
  return attributes.String("op") == "any" || attributes.String("op") == "all";
}

std::vector<bool> AlongAxes(const Node& node, int rank) { return ReducedAxes(node.attributes, rank); }

kir::ReduceOp Operator(const Node& node) {
  const std::string& op = node.attributes.String("op");
  if (op == "any" || op == "all") return op == "any" ? kir::ReduceOp::kMax : kir::ReduceOp::kMin;
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
  const std::string& op = context.attributes.String("op");
  if (IsComplex(types[0].dtype)) {
    if (op != "sum" && op != "mean" && op != "prod") return context.DTypeError(0, "numbers that have an order");
    return types;
  }
  if (op == "mean" && !IsFloat(types[0].dtype)) return context.DTypeError(0, "a float for a mean");
  if ((types[0].dtype == DType::kBool) != OfBools(context.attributes))
    return context.DTypeError(0, OfBools(context.attributes) ? "bool" : "a number");
  return types;
}

// Row by row, of what is left of x behind what is multiplied.
Value ProductOfPairs(const PairsContext& context) {
  Expansion& e = context.e;
  const std::vector<bool> reduced = ReducedAxes(context.node.attributes, context.rank(0));
  std::vector<int64_t> perm;
  std::vector<Extent> left = {Extent(1)};
  for (const bool along : {true, false}) {
    for (size_t d = 0; d < reduced.size(); ++d) {
      if (reduced[d] != along) continue;
      perm.push_back(static_cast<int64_t>(d));
      if (along)
        left[0] = left[0] * context.types[0].dims[d];
      else
        left.push_back(context.types[0].dims[d]);
    }
  }
  perm.push_back(static_cast<int64_t>(perm.size()));
  left.emplace_back(2);
  const Value rows = e.Sized(e.Add("Transpose", {context.x[0]}, {{"perm", perm}}), left);
  const std::vector<Extent> one(left.begin() + 1, left.end());
  const Value start = e.Add("Expand", {e.Floats({1, 0}, DType::kF32)}, {{"shape", one}});
  const auto step = [](Expansion& body, std::span<const Value> x) {
    const Parts a = PartsOf(body, x[0]), b = PartsOf(body, x[1]);
    const auto op = [&](const char* name, Value u, Value v) { return body.Add(name, {u, v}); };
    const Value re = op("Sub", op("Mul", a.re, b.re), op("Mul", a.im, b.im));
    const Value im = op("Add", op("Mul", a.re, b.im), op("Mul", a.im, b.re));
    return std::vector<Value>{PairsOf(body, {re, im})};
  };
  return e.Scan(left[0], {start}, {rows}, step)[0];
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  if (context.node.attributes.String("op") != "prod") return SameOfPairs(context);
  const Value product = ProductOfPairs(context);
  std::vector<Extent> dims = context.node.results[0].dims;
  dims.emplace_back(2);
  return context.e.Finish({context.e.Sized(product, std::move(dims))});
}

// Bytes that are 0 or 1: their largest or smallest.
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  Attributes attributes = node.attributes;
  attributes.Set("op", std::string(node.attributes.String("op") == "any" ? "max" : "min"));
  const Value folded = e.Add("Reduce", {e.Stored(inputs[0], DType::kU8)}, std::move(attributes));
  return e.Finish({e.Stored(folded, DType::kBool)});
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

Status ReferenceOfComplex(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const std::string& op = context.node.attributes.String("op");
  const int64_t elements = y.elements();
  for (int64_t at = 0; at < elements; ++at) y.SetComplex(at, op == "prod" ? 1 : 0);
  ForEachTerm(context, [&](int64_t at, int64_t from) {
    const std::complex<double> a = y.Complex(at), b = x.Complex(from);
    if (op == "prod")
      y.SetComplex(at, {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()});
    else
      y.SetComplex(at, a + b);
  });
  const double count = op == "mean" ? TermsOf(context) : 1;
  for (double& part : y.data) part /= count;
  return absl::OkStatus();
}

Status Reference(RefContext& context) {
  if (IsComplex(context.results[0].dtype)) return ReferenceOfComplex(context);
  if (IsInteger(context.results[0].dtype)) return ReferenceOfIntegers(context);
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const std::string& op = context.node.attributes.String("op");
  double start = 0;
  if (op == "prod" || op == "all") start = 1;
  if (op == "max") start = -INFINITY;
  if (op == "min") start = INFINITY;
  std::fill(y.data.begin(), y.data.end(), start);
  ForEachTerm(context, [&](int64_t at, int64_t from) {
    double& out = y.data[at];
    const double value = x.data[from];
    if (op == "sum" || op == "mean")
      out += value;
    else if (op == "prod" || op == "all")
      out *= value;
    else if (op == "any")
      out = std::max(out, value);
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
    const double size = IsComplex(x.dtype) ? std::abs(x.Complex(from)) : std::fabs(x.data[from]);
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
      .doc = "sum, mean, max, min or product over axes; any or all of bools",
      .kind = OpKind::kRoot,
      .family = "lines",
      .operands = {{.name = "x", .shape = "a number, for any and all a bool"}},
      .attributes = {{.name = "op",
                      .kind = AttrKind::kString,
                      .choices = {"sum", "mean", "max", "min", "prod", "any", "all"}},
                     {.name = "axes", .kind = AttrKind::kInts},
                     {.name = "keep_dim", .kind = AttrKind::kBool, .default_value = false}},
      .infer = Infer,
      .line = &kLine,
      .channels_last = ChannelsLast,
      .reference = Reference,
      .expand = Expand,
      .expands = [](const Node& node) { return OfBools(node.attributes); },
      .pairs = Pairs,
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .examples = {{{"bool[3, 7]"}, {{"op", std::string("any")}, {"axes", std::vector<int64_t>{1}}}},
                   {{"bool[S, 5, 2]"},
                    {{"op", std::string("all")}, {"axes", std::vector<int64_t>{0, 2}}, {"keep_dim", true}}},
                   {{"f32[2, 3]"}, {{"op", std::string("sum")}, {"axes", std::vector<int64_t>{1}}}}},
  });
  return *op;
}

}  // namespace quern::ir
