#include "check/oracle.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "absl/strings/str_format.h"
#include "check/value.h"
#include "ir/op.h"

namespace quern::check {

using ir::RefTensor;

namespace {

// Runs with results moved, first as far as contracts say, then twice as far.
struct Step {
  int runs;
  double scale;
};
constexpr Step kSteps[] = {{6, 1}, {150, 2}};

bool Same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

GraphOracle::GraphOracle(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds, uint64_t seed)
    : graph_(graph), binding_(binding), feeds_(feeds), seed_(seed) {}

StatusOr<GraphOracle> GraphOracle::Create(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds,
                                          uint64_t seed) {
  GraphOracle oracle(graph, binding, feeds, seed);
  QUERN_ASSIGN(const Evaluation plain, Evaluate(graph, binding, feeds));
  for (const ir::Value& output : graph.outputs) {
    const RefTensor& tensor = oracle.expected_.emplace_back(plain.At(output));
    oracle.ranges_.push_back({tensor.data, tensor.data, std::vector<bool>(tensor.data.size())});
  }
  return oracle;
}

Status GraphOracle::Widen(int runs, double scale) {
  for (int i = 0; i < runs; ++i) {
    QUERN_ASSIGN(const Evaluation moved, Evaluate(graph_, binding_, feeds_, {seed_ * 1000003 + ++runs_, scale}));
    for (size_t o = 0; o < expected_.size(); ++o) {
      Range& range = ranges_[o];
      const std::vector<double>& values = moved.At(graph_.outputs[o]).data;
      for (size_t e = 0; e < values.size(); ++e) {
        const double value = values[e], wanted = expected_[o].data[e];
        if (!Same(value, wanted) && !(std::isfinite(value) && std::isfinite(wanted))) range.wild[e] = true;
        if (value < range.low[e]) range.low[e] = value;
        if (value > range.high[e]) range.high[e] = value;
      }
    }
  }
  return absl::OkStatus();
}

double GraphOracle::Allowed(int output, Error error, size_t element) const {
  const Range& range = ranges_[output];
  if (range.wild[element]) return INFINITY;
  const double wanted = expected_[output].data[element];
  if (!std::isfinite(wanted)) return 0;
  double allowed = 3 * std::max(range.high[element] - wanted, wanted - range.low[element]);
  const DType dtype = expected_[output].dtype;
  if (IsFloat(dtype)) {
    const ir::OpDef& op = *graph_.node(graph_.outputs[output].node).op;
    if (error == Error::kContract)
      allowed += op.rtol * std::fabs(wanted) + op.atol;
    else if (error == Error::kRounding)
      allowed += kRounding * std::fabs(wanted);
    allowed += FLT_MIN;  // denormals are flushed
  }
  if (IsBlock(dtype)) allowed += kRounding * std::fabs(wanted);  // decoded in f32
  return allowed;
}

std::optional<Difference> GraphOracle::Judge(int output, const RefTensor& got) const {
  const Error error = ErrorOf(graph_, graph_.node(graph_.outputs[output].node));
  std::optional<Difference> worst;
  double most = -1;
  int64_t wrong = 0;
  for (size_t e = 0; e < got.data.size(); ++e) {
    const double value = got.data[e], wanted = expected_[output].data[e];
    if (Same(value, wanted)) continue;
    const double allowed = Allowed(output, error, e), off = std::fabs(value - wanted);
    if (std::isinf(allowed) || off <= allowed) continue;
    ++wrong;
    const double factor = std::isfinite(off) ? off / std::max(allowed, DBL_MIN) : INFINITY;
    if (factor <= most) continue;
    most = factor;
    worst = Difference{output, static_cast<int64_t>(e), value, wanted, allowed, 0};
  }
  if (worst) worst->wrong = wrong;
  return worst;
}

StatusOr<std::optional<Difference>> GraphOracle::Worst(int output, const RefTensor& got) {
  const RefTensor& wanted = expected_[output];
  if (got.dtype != wanted.dtype || got.dims != wanted.dims)
    return absl::InvalidArgumentError("the answer has another type than the graph's output");
  std::optional<Difference> worst = Judge(output, got);
  while (worst && widened_ < 2) {
    const bool last = widened_ == 1;
    const int64_t before = worst->wrong;
    QUERN_RETURN_IF_ERROR(Widen(kSteps[widened_].runs, kSteps[widened_].scale));
    ++widened_;
    worst = Judge(output, got);
    if (last) doubted_ += before - (worst ? worst->wrong : 0);
  }
  return worst;
}

std::string GraphOracle::WorstText(int output, const RefTensor& got) {
  const StatusOr<std::optional<Difference>> worst = Worst(output, got);
  if (!worst.ok()) return std::string(worst.status().message());
  if (!worst->has_value()) return "";
  const Difference& d = **worst;
  return absl::StrFormat("output %d element %s is %.9g, not %.9g (%.3g off, %.3g allowed; %d wrong)", output,
                         Text(IndexOf(got.dims, d.element)), d.got, d.expected, std::fabs(d.got - d.expected),
                         d.allowed, d.wrong);
}

}  // namespace quern::check
