#include "ir/dense_solve.h"

#include "absl/strings/str_cat.h"
#include "ir/composite.h"
#include "ir/linear_algebra.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

template <bool kBatched>
StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckMatrices(context, true));
  const TensorType &a = context.operands[0], &b = context.operands[1];
  if (!kBatched && a.rank() != 2) return context.ShapeError(0, "[N, N]");
  std::vector<Extent> dims(a.dims.begin(), a.dims.end() - 1);
  const bool vector = context.attributes.Bool("vector");
  bool fits = b.rank() == a.rank() - (vector ? 1 : 0);
  for (size_t d = 0; fits && d < dims.size(); ++d) fits = context.Equal(b.dims[d], dims[d]);
  if (!fits) return context.ShapeError(1, absl::StrCat(ToString(dims), vector ? "" : " and columns behind it"));
  return std::vector<TensorType>{b};
}

Status Reference(RefContext& context) {
  const RefTensor& b = *context.operands[1];
  const bool vector = context.node.attributes.Bool("vector");
  ForEachMatrix(context, [&](const Matrix& a, int64_t batch) {
    const int64_t columns = vector ? 1 : b.dims.back();
    PutMatrix(context.results[0], ReferenceSolve(a, MatrixOf(b, a.rows, columns, batch)), batch);
  });
  return absl::OkStatus();
}

// A vector is a matrix of one column.
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  if (!node.attributes.Bool("vector")) return ExpandToCall(graph, node, inputs, origin, "solve");
  Expansion e(graph, origin);
  std::vector<Extent> dims = node.results[0].dims;
  dims.emplace_back(1);
  const std::vector<Value> columns = {inputs[0], e.Sized(inputs[1], std::move(dims))};
  QUERN_ASSIGN(const std::vector<Value> x, ExpandToCall(graph, node, columns, origin, "solve"));
  return e.Finish({e.Sized(x[0], node.results[0].dims)});
}

}  // namespace

const OpDef* SolveOfDense(const char* name, const char* doc, bool batched, std::vector<Example> examples) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kComposite,
      .operands = {{.name = "a", .kind = OperandKind::kFloat, .shape = batched ? "[.., N, N]" : "[N, N]"},
                   {.name = "b",
                    .kind = OperandKind::kFloat,
                    .shape = batched ? "[.., N, K], vector [.., N]" : "[N, K], vector [N]"}},
      .attributes = {{.name = "vector", .kind = AttrKind::kBool, .default_value = false, .doc = "b has no columns"}},
      .infer = batched ? Infer<true> : Infer<false>,
      .reference = Reference,
      .expand = Expand,
      .rtol = 1e-5,
      .magnitude = LargestMagnitude,
      .examples = std::move(examples),
  });
}

}  // namespace quern::ir
