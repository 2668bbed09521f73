// Counted: of x, in which what counts comes first, as much along `axis` as `count` says. How much that is becomes the
// value of a symbol, `size`, when a run gets there: ir/counted.h. Along the first axis it is no more than another name
// for x; along another the axis goes first, and back. In a body each trip finds it, and the body alone names it.

#include "ir/counted.h"

#include "base/diagnostic.h"
#include "ir/composite.h"
#include "ir/kept.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const int64_t axis = context.attributes.Int("axis");
  if (axis < 0 || axis >= x.rank()) return context.AttributeError("axis", absl::StrFormat("0 to %d", x.rank() - 1));
  if (context.operands[1] != CountType()) return context.ShapeError(1, CountType().ToString());
  const std::vector<Extent>& size = context.attributes.Extents("size");
  const std::vector<std::string> symbols = size.size() == 1 ? size[0].Symbols() : std::vector<std::string>{};
  if (symbols.size() != 1 || size[0] != Extent::Symbol(symbols[0])) return context.AttributeError("size", "one symbol");
  if (!context.symbols.contains(symbols[0])) return context.Error(DiagnosticCode::kUnboundSymbol, symbols[0], "", "");
  TensorType result = x;
  result.dims[axis] = size[0];
  if (!context.AtLeast(x.dims[axis], size[0])) return context.AttributeError("size", "a symbol of smaller values");
  return std::vector<TensorType>{std::move(result)};
}

bool IsAlongOther(const Node& node) { return node.attributes.Int("axis") != 0; }

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const int64_t axis = node.attributes.Int("axis");
  std::vector<int64_t> first = {axis}, back;
  for (int64_t d = 0; d < node.results[0].rank(); ++d) {
    if (d != axis) first.push_back(d);
    back.push_back(d == axis ? 0 : d < axis ? d + 1 : d);
  }
  const Value turned = e.Add("Transpose", {inputs[0]}, {{"perm", first}});
  const Value counted = e.Add("Counted", {turned, inputs[1]}, {{"size", node.attributes.Extents("size")}});
  return e.Finish({e.Add("Transpose", {counted}, {{"perm", back}})});
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  std::vector<int64_t> index(y.dims.size());
  const int64_t all = y.elements();
  for (int64_t at = 0; at < all; ++at, NextIndex(y.dims, index)) y.Take(at, x, x.Offset(index));
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_counted() {
  static const OpDef* const op = Make({
      .name = "Counted",
      .doc = "as many of x along one axis as `count` says, the first ones; how many is the symbol `size` from there on",
      .kind = OpKind::kControl,
      .operands = {{.name = "x", .shape = "rank 1 or more"}, {.name = "count", .shape = "i64[]", .own_dtype = true}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                     {.name = "size", .kind = AttrKind::kExtents, .doc = "one symbol, which no run is given"}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .expands = IsAlongOther,
      .rtol = 0,
  });
  return *op;
}

bool IsCounted(const Node& node) { return node.op == &Op_counted(); }

}  // namespace quern::ir
