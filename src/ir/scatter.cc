#include "ir/scatter.h"

#include <algorithm>
#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

// Calls `write` with the places of an element of x and of the element of the update that is for it, in row-major order
// of the update.
template <typename Write>
void ForEachWrite(const RefContext& context, const Write& write) {
  const RefTensor &x = *context.operands[0], &indices = *context.operands[1], &update = *context.operands[2];
  const ScatterPlaces places =
      context.node.op->scatter->places(context.node, static_cast<int>(x.dims.size()),
                                       static_cast<int>(indices.dims.size()), static_cast<int>(update.dims.size()));
  std::vector<int64_t> index(update.dims.size());
  const int64_t elements = update.elements();
  for (int64_t from = 0; from < elements; ++from, NextIndex(update.dims, index)) {
    std::vector<int64_t> which, to(x.dims.size());
    for (const int d : places.walked) which.push_back(index[d]);
    if (places.by_element) which = index;
    for (const auto& [own, d] : places.free) to[d] = index[own];
    bool inside = true;
    for (size_t n = 0; n < places.named.size(); ++n) {
      std::vector<int64_t> at = which;
      if (!places.by_element) at.push_back(static_cast<int64_t>(n));
      const int64_t size = x.dims[places.named[n]];
      Wide place = indices.Integer(indices.Offset(at));
      if (place < 0) place += size;
      inside = inside && place >= 0 && place < size;
      to[places.named[n]] = static_cast<int64_t>(place);
    }
    if (inside) write(x.Offset(to), from);
  }
}

bool Adds(const Node& node) { return ScatterReduction(node) == kir::ReduceOp::kSum; }
bool Multiplies(const Node& node) { return ScatterReduction(node) == kir::ReduceOp::kProd; }

Wide Joined(const Node& node, Wide a, Wide b) {
  const std::optional<kir::ReduceOp> reduction = ScatterReduction(node);
  if (reduction == kir::ReduceOp::kMax) return std::max(a, b);
  if (reduction == kir::ReduceOp::kMin) return std::min(a, b);
  return Adds(node) ? a + b : Times(a, b);
}

double Joined(const Node& node, double a, double b) {
  if (Adds(node)) return a + b;
  if (Multiplies(node)) return a * b;
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return ScatterReduction(node) == kir::ReduceOp::kMax ? std::max(a, b) : std::min(a, b);
}

}  // namespace

std::optional<kir::ReduceOp> ScatterReduction(const Node& node) {
  const std::string& name = node.attributes.String("reduction");
  if (name == "none") return std::nullopt;
  return kir::ReduceOpFromName(name == "add" ? "sum" : name == "mul" ? "prod" : name);
}

bool ScatterRounds(const Node& node) { return IsFloat(node.results[0].dtype) && (Adds(node) || Multiplies(node)); }

bool ScatterIsWidened(const Node& node) {
  const DType dtype = node.results[0].dtype;
  return ScatterRounds(node) && (dtype == DType::kF16 || dtype == DType::kBF16);
}

StatusOr<std::vector<Value>> WidenedScatter(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value x = e.Wide(inputs[0]), update = e.Wide(inputs[2]);
  return e.Finish({e.Stored(e.Add(node.op->name, {x, inputs[1], update}, node.attributes), node.results[0].dtype)});
}

Status ReferenceScatter(RefContext& context) {
  const RefTensor &x = *context.operands[0], &update = *context.operands[2];
  RefTensor& y = context.results[0];
  y.data = x.data;
  y.integers = x.integers;
  const bool replaces = !ScatterReduction(context.node).has_value();
  ForEachWrite(context, [&](int64_t at, int64_t from) {
    if (replaces)
      y.Take(at, update, from);
    else if (IsInteger(y.dtype))
      y.SetInteger(at, Joined(context.node, y.Integer(at), update.Integer(from)));
    else
      y.data[at] = Joined(context.node, y.data[at], update.data[from]);
  });
  for (double& value : y.data) {
    if (ScatterRounds(context.node)) value = RoundTo(y.dtype, value);
  }
  return absl::OkStatus();
}

Status MagnitudeOfScatter(RefContext& context) {
  const RefTensor &x = *context.operands[0], &update = *context.operands[2];
  RefTensor& y = context.results[0];
  for (size_t i = 0; i < y.data.size(); ++i) y.data[i] = std::fabs(x.data[i]);
  ForEachWrite(context, [&](int64_t at, int64_t from) {
    const double size = std::fabs(update.data[from]);
    y.data[at] = Adds(context.node) ? y.data[at] + size : Multiplies(context.node) ? y.data[at] * size : size;
  });
  return absl::OkStatus();
}

}  // namespace quern::ir
