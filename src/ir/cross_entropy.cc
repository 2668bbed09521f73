#include "ir/cross_entropy.h"

#include <cmath>

#include "ir/backward.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

template <bool kBackward>
StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &labels = context.operands[1];
  if (x.rank() != 2) return context.ShapeError(0, "[N, C]");
  const bool indices = labels.dtype == DType::kI32 || labels.dtype == DType::kI64;
  if (!indices && labels.dtype != x.dtype) return context.DTypeError(1, "i32, i64 or that of the logits");
  const std::vector<Extent> rows = {x.dims[0]}, wanted = indices ? rows : x.dims;
  if (!context.Equal(labels.dims, wanted)) return context.ShapeError(1, ToString(wanted));
  if (!kBackward) return std::vector<TensorType>{{x.dtype, rows}};
  if (!context.Equal(context.operands[2].dims, rows)) return context.ShapeError(2, ToString(rows));
  return std::vector<TensorType>{x};
}

template <bool kBackward>
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent> dims = graph.type(inputs[0]).dims, column = {dims[0], 1};
  const Term x = Term::Wide(e, inputs[0]);
  const DType stored = node.results[0].dtype;
  const Term whole = x.Call("ReduceLogSumExp", {{"axes", std::vector<int64_t>{1}}, {"keep_dim", true}});
  const auto give = [&](const Term& value) {
    return e.Finish({e.Stored(value.Sized(node.results[0].dims).value, stored)});
  };
  if (IsFloat(graph.type(inputs[1]).dtype)) {
    const Term t = Term::Wide(e, inputs[1]);
    if (!kBackward) return give((t * (whole - x)).Sum({1}));
    const Term dloss = Term::Wide(e, inputs[2]).Sized(column);
    return give((x.Call("Softmax", {{"axis", int64_t{1}}}) * t.Sum({1}) - t) * dloss);
  }
  const Term ids(e, e.Sized(e.Stored(inputs[1], DType::kI64), column));
  const Term size(e, e.Add("Size", {}, {{"extent", std::vector<Extent>{dims[1]}}}));
  const Term none(e, IntegerOf(e, 0)), ignored = ids.Join("Eq", Term(e, IntegerOf(e, node.attributes.Int("ignore"))));
  const Term inside = none.Join("Le", ids).Join("BitAnd", ids.Join("Lt", size));
  // One place of the row, whatever the label: the others are compared with it.
  const Term places(e, e.Iota({1, dims[1]}, 1));
  const Term hit = places.Join("Eq", ids);
  const Term nan = x.Like(NAN), zero = x.Like(0);
  if (!kBackward) {
    const Term logit = Term::Choose(hit, x, zero).Sum({1});
    return give(Term::Choose(ignored, zero, Term::Choose(inside, whole - logit, nan)));
  }
  const Term dloss = Term::Wide(e, inputs[2]).Sized(column);
  const Term factor = Term::Choose(inside, dloss, nan);
  const Term dx = (x.Call("Softmax", {{"axis", int64_t{1}}}) - Term::Choose(hit, x.Like(1), zero)) * factor;
  return give(Term::Choose(ignored, zero, dx));
}

// `row` makes of the logits of a row, their shares by softmax, log of the sum, and the labels as shares what the result
// has there; `rest` where the label is ignored (0) or has no place (NaN).
template <typename Row, typename Rest>
void ForEachRow(const RefContext& context, const Row& row, const Rest& rest) {
  const RefTensor &x = *context.operands[0], &labels = *context.operands[1];
  const int64_t rows = x.dims[0], width = x.dims[1];
  for (int64_t n = 0; n < rows; ++n) {
    const double* const logits = x.data.data() + n * width;
    std::vector<double> share(static_cast<size_t>(width)), wanted(static_cast<size_t>(width));
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < width; ++c)
      if (std::isnan(logits[c]) || logits[c] > largest) largest = std::isnan(largest) ? largest : logits[c];
    const double base = std::isinf(largest) ? 0 : largest;
    for (int64_t c = 0; c < width; ++c) sum += share[c] = std::exp(logits[c] - base);
    for (double& s : share) s /= sum;
    if (IsFloat(labels.dtype)) {
      for (int64_t c = 0; c < width; ++c) wanted[c] = labels.data[n * width + c];
    } else {
      const Wide label = labels.Integer(n);
      if (label == context.node.attributes.Int("ignore") || label < 0 || label >= width) {
        rest(n, label == context.node.attributes.Int("ignore") ? 0.0 : NAN);
        continue;
      }
      wanted[static_cast<size_t>(label)] = 1;
    }
    row(n, logits, share, base + std::log(sum), wanted);
  }
}

template <bool kSizes>
Status Loss(RefContext& context) {
  RefTensor& y = context.results[0];
  const bool dense = IsFloat(context.operands[1]->dtype);
  ForEachRow(
      context,
      [&](int64_t n, const double* logits, const std::vector<double>&, double whole,
          const std::vector<double>& wanted) {
        double loss = 0;
        for (size_t c = 0; c < wanted.size(); ++c) {
          if (!dense && wanted[c] == 0) continue;
          loss += kSizes ? std::fabs(wanted[c]) * (std::fabs(whole) + std::fabs(logits[c]))
                         : wanted[c] * (whole - logits[c]);
        }
        y.data[n] = kSizes ? loss : RoundTo(y.dtype, loss);
      },
      [&](int64_t n, double value) { y.data[n] = value; });
  return absl::OkStatus();
}

template <bool kSizes>
Status Gradient(RefContext& context) {
  const RefTensor& dloss = *context.operands[2];
  RefTensor& dx = context.results[0];
  const int64_t width = dx.dims[1];
  ForEachRow(
      context,
      [&](int64_t n, const double* logits, const std::vector<double>& share, double,
          const std::vector<double>& wanted) {
        double all = 0, largest = 1;
        for (const double w : wanted) all += w;
        for (size_t c = 0; c < wanted.size(); ++c) largest = std::max(largest, std::fabs(logits[c]));
        for (size_t c = 0; c < wanted.size(); ++c) {
          const double size = largest * share[c] * std::fabs(all) + std::fabs(wanted[c]);
          const double value = (share[c] * all - wanted[c]) * dloss.data[n];
          dx.data[n * width + static_cast<int64_t>(c)] =
              kSizes ? size * std::fabs(dloss.data[n]) : RoundTo(dx.dtype, value);
        }
      },
      [&](int64_t n, double value) {
        for (int64_t c = 0; c < width; ++c) dx.data[n * width + c] = value;
      });
  return absl::OkStatus();
}

}  // namespace

const OpDef* CrossEntropy(const char* name, const char* doc, bool backward) {
  std::vector<OperandDef> operands = {
      {.name = "logits", .kind = OperandKind::kFloat, .shape = "[N, C]"},
      {.name = "labels", .shape = "i32 or i64 [N], or shares [N, C]", .own_dtype = true}};
  if (backward) operands.push_back({.name = "dloss", .kind = OperandKind::kFloat, .shape = "[N]"});
  std::vector<Example> examples = {
      {{"f32[3, 7]", "i64[3]"}}, {{"f32[S, 5]", "f32[S, 5]"}}, {{"f16[2, 131]", "i32[2]"}}};
  const char* const losses[] = {"f32[3]", "f32[S]", "f16[2]"};
  for (size_t i = 0; backward && i < examples.size(); ++i) examples[i].operands.push_back(losses[i]);
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kComposite,
      .operands = std::move(operands),
      .attributes = {{.name = "ignore",
                      .kind = AttrKind::kInt,
                      .default_value = int64_t{-100},
                      .doc = "the label of rows that do not count"}},
      .infer = backward ? Infer<true> : Infer<false>,
      .reference = backward ? Gradient<false> : Loss<false>,
      .expand = backward ? Expand<true> : Expand<false>,
      .rtol = 2e-5,
      .magnitude = backward ? Gradient<true> : Loss<true>,
      .examples = std::move(examples),
  });
}

}  // namespace quern::ir
