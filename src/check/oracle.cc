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

bool Same(const RefTensor& a, const RefTensor& b, int64_t e) {
  if (IsInteger(a.dtype)) return a.integers[e] == b.integers[e];
  return a.data[e] == b.data[e] || (std::isnan(a.data[e]) && std::isnan(b.data[e]));
}

// |a - b|, of integers exactly that.
double Distance(const RefTensor& a, const RefTensor& b, int64_t e) {
  if (!IsInteger(a.dtype)) return std::fabs(a.data[e] - b.data[e]);
  const ir::Wide off = a.Integer(e) - b.Integer(e);
  return static_cast<double>(off < 0 ? -off : off);
}

// A NaN has a sign, but not for people.
std::string Number(const RefTensor& tensor, int64_t e) {
  if (tensor.dtype == DType::kU64) return absl::StrFormat("%u", static_cast<uint64_t>(tensor.integers[e]));
  if (IsInteger(tensor.dtype)) return absl::StrFormat("%d", tensor.integers[e]);
  const double value = tensor.data[e];
  if (std::isnan(value)) return "nan";
  return absl::StrFormat("%.*g", tensor.dtype == DType::kF64 ? 17 : 9, value);
}

}  // namespace

GraphOracle::GraphOracle(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds, uint64_t seed)
    : graph_(graph), binding_(binding), feeds_(feeds), seed_(seed) {}

StatusOr<GraphOracle> GraphOracle::Create(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds,
                                          uint64_t seed) {
  GraphOracle oracle(graph, binding, feeds, seed);
  QUERN_ASSIGN(const Evaluation plain, Evaluate(graph, binding, feeds));
  QUERN_ASSIGN(oracle.magnitudes_, MagnitudesOf(graph, plain));
  oracle.binding_ = plain.sizes();
  for (const ir::Value& output : graph.outputs) {
    const RefTensor& tensor = oracle.expected_.emplace_back(plain.At(output));
    const int64_t elements = IsInteger(tensor.dtype) ? tensor.elements() : static_cast<int64_t>(tensor.data.size());
    Range& range = oracle.ranges_.emplace_back();
    range.most.resize(elements);
    range.wild.resize(elements);
    range.sizes.resize(IsInteger(tensor.dtype) ? 0 : elements);
    for (size_t e = 0; e < range.sizes.size(); ++e)
      range.sizes[e] = plain.SizeAt(oracle.magnitudes_, output, static_cast<int64_t>(e));
  }
  return oracle;
}

Status GraphOracle::Widen(int runs, double scale) {
  for (int i = 0; i < runs; ++i) {
    QUERN_ASSIGN(const Evaluation moved,
                 Evaluate(graph_, binding_, feeds_, {seed_ * 1000003 + ++runs_, scale}, &magnitudes_));
    for (size_t o = 0; o < expected_.size(); ++o) {
      Range& range = ranges_[o];
      const RefTensor &values = moved.At(graph_.outputs[o]), &wanted = expected_[o];
      for (size_t e = 0; e < range.most.size(); ++e) {
        if (Same(values, wanted, static_cast<int64_t>(e))) continue;
        const double off = Distance(values, wanted, static_cast<int64_t>(e));
        if (std::isfinite(off))
          range.most[e] = std::max(range.most[e], off);
        else
          range.wild[e] = true;
      }
    }
  }
  return absl::OkStatus();
}

double GraphOracle::Allowed(int output, Error error, size_t element) const {
  const Range& range = ranges_[output];
  if (range.wild[element]) return INFINITY;
  const double spread = 3 * range.most[element];
  const RefTensor& wanted = expected_[output];
  if (IsInteger(wanted.dtype) || wanted.dtype == DType::kBool) return spread;
  if (!std::isfinite(wanted.data[element])) return 0;
  if (IsBlock(wanted.dtype)) return spread + RoundingOf(DType::kF32) * std::fabs(wanted.data[element]);  // decoded
  const ir::Node& node = graph_.node(graph_.outputs[output].node);
  return spread + AllowedOf(node, error, wanted.dtype, range.sizes[element]) + FlushedOf(wanted.dtype);
}

std::optional<Difference> GraphOracle::Judge(int output, const RefTensor& got) const {
  const Error error = ErrorOf(graph_, graph_.node(graph_.outputs[output].node));
  const RefTensor& wanted = expected_[output];
  std::optional<Difference> worst;
  double most = -1;
  int64_t wrong = 0;
  for (int64_t e = 0; e < static_cast<int64_t>(ranges_[output].most.size()); ++e) {
    if (Same(got, wanted, e)) continue;
    const double allowed = Allowed(output, error, e), off = Distance(got, wanted, e);
    if (std::isinf(allowed) || off <= allowed) continue;
    ++wrong;
    const double factor = std::isfinite(off) ? off / std::max(allowed, DBL_MIN) : INFINITY;
    if (factor <= most) continue;
    most = factor;
    worst = Difference{output, e, got.Real(e), wanted.Real(e), allowed, 0, Number(got, e), Number(wanted, e)};
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
  return absl::StrFormat("output %d element %s is %s, not %s (%.3g off, %.3g allowed; %d wrong)", output,
                         Text(IndexOf(got.dims, IsComplex(got.dtype) ? d.element / 2 : d.element)), d.got_text,
                         d.expected_text, Distance(got, expected_[output], d.element), d.allowed, d.wrong);
}

}  // namespace quern::check
