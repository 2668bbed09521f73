// GroupedMatMul: each row of x by the weights that it names, as a mixture of experts has them:
// y[i] = x[i] w[indices[i]], where w is [E, K, N], or [E, N, K] with transpose_b. An index counts from the end where it
// is negative, and is clamped (Gather). Expands to products of one row each, whose right sides are read where they lie;
// w may have a block format (rows of K, so transpose_b), and x is f32 then.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/composite.h"
#include "ir/product.h"
#include "ir/shape.h"
#include "ir/sum_products.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &w = context.operands[1], &indices = context.operands[2];
  const bool rows = context.attributes.Bool("transpose_b");
  if (x.rank() != 2) return context.ShapeError(0, "[M, K]");
  const Extent &m = x.dims[0], &k = x.dims[1];
  if (w.rank() != 3 || !context.Equal(k, w.dims[rows ? 2 : 1]))
    return context.ShapeError(1, absl::StrCat(rows ? "[E, N, " : "[E, ", k.ToString(), rows ? "]" : ", N]"));
  if (!context.AtLeast(w.dims[0], 1)) return context.ShapeError(1, "1 matrix or more");
  if (IsBlock(w.dtype) && !rows) return context.AttributeError("transpose_b", "true beside a block-format w");
  if (IsBlock(w.dtype) ? x.dtype != DType::kF32 : !Multiplies(x.dtype, w.dtype))
    return context.DTypeError(1, std::string(Name(x.dtype)));
  if (!context.Equal(indices.dims, std::vector<Extent>{m})) return context.ShapeError(2, ToString({m}));
  return std::vector<TensorType>{{x.dtype, {m, w.dims[rows ? 1 : 2]}}};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Extent m = node.results[0].dims[0], n = node.results[0].dims[1], k = e.type(inputs[0]).dims[1];
  const Value x = e.Sized(inputs[0], {m, Extent(1), k});
  const Value w = e.Add("Gather", {inputs[1], inputs[2]}, {{"axis", int64_t{0}}});
  const Value y = e.Add("MatMul", {x, w}, {{"transpose_b", node.attributes.Bool("transpose_b")}});
  return e.Finish({e.Sized(y, {m, n})});
}

struct Sums {
  template <typename Term>
  static void Run(RefContext& context, const Term& term) {
    const RefTensor &x = *context.operands[0], &w = *context.operands[1], &indices = *context.operands[2];
    RefTensor& y = context.results[0];
    const bool rows = context.node.attributes.Bool("transpose_b");
    const int64_t k = x.dims[1];
    for (int64_t i = 0; i < y.dims[0]; ++i) {
      Wide at = indices.Integer(i);
      if (at < 0) at += w.dims[0];
      const int64_t which = static_cast<int64_t>(std::clamp<Wide>(at, 0, w.dims[0] - 1));
      for (int64_t n = 0; n < y.dims[1]; ++n) {
        double sum = 0;
        for (int64_t t = 0; t < k; ++t)
          sum += term(x.data[i * k + t],
                      w.At(rows ? std::vector<int64_t>{which, n, t} : std::vector<int64_t>{which, t, n}));
        y.data[i * y.dims[1] + n] = RoundTo(y.dtype, sum);
      }
    }
  }
};

}  // namespace

const OpDef& Op_grouped_mat_mul() {
  static const OpDef* const op = Make({
      .name = "GroupedMatMul",
      .doc = "each row by the one of several matrices that its index names",
      .kind = OpKind::kComposite,
      .operands =
          {{.name = "x", .kind = OperandKind::kFloat, .shape = "[M, K]", .own_dtype = true},
           {.name = "w", .kind = OperandKind::kWeight, .shape = "[E, K, N], transposed [E, N, K]", .own_dtype = true},
           {.name = "indices", .kind = OperandKind::kIndex, .shape = "[M]", .own_dtype = true}},
      .attributes = {{.name = "transpose_b", .kind = AttrKind::kBool, .default_value = false, .doc = "w is [E, N, K]"}},
      .infer = Infer,
      .reference = ReferenceOfProducts<Sums>,
      .expand = Expand,
      .rtol = 2e-6,
      .magnitude = MagnitudeOfProducts<Sums>,
      .examples = {{{"f32[2, 3]", "f32[7, 3, 5]", "i32[2]"}}},
  });
  return *op;
}

bool IsGroupedMatMul(const Node& node) { return node.op == &Op_grouped_mat_mul(); }

}  // namespace quern::ir
