// Transpose: dimension d of the result is dimension perm[d] of the operand.

#include <algorithm>
#include <map>

#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/shape.h"
#include "ir/spelled_out.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const std::vector<int64_t>& perm = context.attributes.Ints("perm");
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool good = sorted.size() == x.dims.size();
  for (size_t d = 0; d < sorted.size(); ++d) good &= sorted[d] == static_cast<int64_t>(d);
  if (!good) return context.AttributeError("perm", absl::StrFormat("a permutation of 0 to %d", x.rank() - 1));
  TensorType result{x.dtype, {}};
  for (const int64_t d : perm) result.dims.push_back(x.dims[d]);
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  const std::vector<int64_t>& perm = context.node().attributes.Ints("perm");
  kir::Index at(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) at[perm[d]] = context.index()[d];
  return context.Operand(0, std::move(at));
}

std::optional<Strides> Steps(const Node& node, const Strides& x) {
  Strides made{node.results[0].dims, {}, x.offset};
  for (const int64_t d : node.attributes.Ints("perm")) made.steps.push_back(x.steps[d]);
  return made;
}

Status Reference(RefContext& context) {
  const std::vector<int64_t>& perm = context.node.attributes.Ints("perm");
  MoveElements(*context.operands[0], context.results[0], [&](std::vector<int64_t>& index) {
    const std::vector<int64_t> of_result = index;
    for (size_t d = 0; d < perm.size(); ++d) index[perm[d]] = of_result[d];
  });
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  std::vector<int64_t> perm = context.node.attributes.Ints("perm");
  perm.push_back(static_cast<int64_t>(perm.size()));
  return context.e.Finish({context.e.Add("Transpose", {context.x[0]}, {{"perm", std::move(perm)}})});
}

// Of two in a row one, and none where it moves nothing.
Replacement Identity(const IdentityContext& context) {
  std::vector<int64_t> perm = context.node.attributes.Ints("perm");
  Value x = context.inputs[0];
  const std::optional<TurnedView> first = AsTurned(context.graph, x);
  if (first) {
    for (int64_t& p : perm) p = first->perm[p];
    QUERN_ASSIGN(x, WithoutTurning(context.make, context.graph, *first));
  }
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  // Moving dimensions of one element moves nothing.
  const TensorType& type = context.graph.type(x);
  std::vector<int64_t> live;
  std::copy_if(perm.begin(), perm.end(), std::back_inserter(live),
               [&](int64_t p) { return type.dims[p] != Extent(1); });
  if (std::is_sorted(live.begin(), live.end())) return Reshaped(context, x);
  if (first) return context.make("Transpose", {x}, {{"perm", perm}});
  return std::nullopt;
}

}  // namespace

const OpDef& Op_transpose() {
  static const OpDef* const op = Make({
      .name = "Transpose",
      .doc = "dimension d of the result is dimension perm[d] of the operand",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "perm", .kind = AttrKind::kInts}},
      .infer = Infer,
      .map = Map,
      .strides = Steps,
      .identity = Identity,
      .reference = Reference,
      .pairs = Pairs,
      .onnx = "Transpose",
      .examples = {{{"f32[2, 3]"}, {{"perm", std::vector<int64_t>{1, 0}}}}},
  });
  return *op;
}

StatusOr<Value> MakeTransposed(const MakeNode& make, Value matrix) {
  return make("Transpose", {matrix}, {{"perm", std::vector<int64_t>{1, 0}}});
}

StatusOr<Value> MakePermuted(const MakeNode& make, Value x, std::vector<int64_t> perm) {
  return make("Transpose", {x}, {{"perm", std::move(perm)}});
}

std::optional<TurnedView> AsTurned(const Graph& graph, Value value) {
  const Node& last = graph.node(value.node);
  const Node& node = IsReshape(graph, last) ? graph.node(last.inputs[0].node) : last;
  if (node.op != &Op_transpose()) return std::nullopt;
  const std::vector<int64_t>& perm = node.attributes.Ints("perm");
  const std::vector<Extent>&turned = node.results[0].dims, &dims = graph.type(value).dims;
  // The run of its dimensions that each of the value's is, by where it begins in x.
  std::map<int64_t, size_t> runs;
  size_t d = 0;
  for (size_t r = 0; r < dims.size(); ++r) {
    if (d == turned.size()) return std::nullopt;
    runs[perm[d]] = r;
    Extent extent = turned[d++];
    while (extent != dims[r] && d < turned.size() && perm[d] == perm[d - 1] + 1) extent = extent * turned[d++];
    if (extent != dims[r]) return std::nullopt;
  }
  if (d != turned.size()) return std::nullopt;
  TurnedView view = {node.inputs[0], {}, std::vector<int64_t>(dims.size())};
  for (const auto& [start, r] : runs) {
    view.perm[r] = static_cast<int64_t>(view.dims.size());
    view.dims.push_back(dims[r]);
  }
  return view;
}

StatusOr<Value> WithoutTurning(const MakeNode& make, const Graph& graph, const TurnedView& view) {
  if (graph.type(view.x).dims == view.dims) return view.x;
  return MakeReshaped(make, view.x, view.dims);
}

const std::vector<int64_t>* PermutationOf(const Node& node) {
  return node.op == &Op_transpose() ? &node.attributes.Ints("perm") : nullptr;
}

}  // namespace quern::ir
