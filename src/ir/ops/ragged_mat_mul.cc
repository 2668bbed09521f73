// RaggedMatMul: runs of rows, each by a matrix of its own: y[m] = x[m] w[e], where w is [E, N, K] and run e goes from
// starts[e] to starts[e + 1]; the first begins at 0, the last ends with the rows. Starts are meant to ascend: a run
// begins no earlier than the one before it, and none behind the last row. What products by picked matrices become where
// there are many rows (ragged_products); w may have a block format, and x be quantised then.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/block_format.h"
#include "ir/product.h"
#include "ir/shape.h"
#include "ir/sum_products.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &w = context.operands[1], &starts = context.operands[2];
  if (x.rank() != 2) return context.ShapeError(0, "[M, K]");
  if (w.rank() != 3 || !context.Equal(x.dims[1], w.dims[2]))
    return context.ShapeError(1, absl::StrCat("[E, N, ", x.dims[1].ToString(), "]"));
  if (!w.elements().is_constant() || w.elements().constant() < 1)
    return context.ShapeError(1, "matrices of sizes that are known, and not empty");
  if (!IsBlock(w.dtype) && !IsShortFloat(w.dtype)) return context.DTypeError(1, WeightsOf(DType::kF32));
  if (IsBlock(w.dtype) && !FormatOf(w.dtype).is_weight) return context.UnsupportedError(1, "a format of weights");
  if (x.dtype != DType::kF32 && (!IsBlock(w.dtype) || x.dtype != ActivationFormat(w.dtype)))
    return context.DTypeError(0, "f32, or what goes with the format of w");
  if (!context.Equal(starts.dims, std::vector<Extent>{w.dims[0]})) return context.ShapeError(2, ToString({w.dims[0]}));
  return std::vector<TensorType>{{DType::kF32, {x.dims[0], w.dims[1]}}};
}

struct Sums {
  template <typename Term>
  static void Run(RefContext& context, const Term& term) {
    const RefTensor &x = *context.operands[0], &w = *context.operands[1], &starts = *context.operands[2];
    RefTensor& y = context.results[0];
    const int64_t columns = y.dims[1], k = x.dims[1];
    int64_t e = 0;
    for (int64_t m = 0; m < y.dims[0]; ++m) {
      while (e + 1 < w.dims[0] && starts.Integer(e + 1) <= m) ++e;
      for (int64_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) sum += term(x.data[m * k + i], w.data[(e * columns + n) * k + i]);
        y.data[m * columns + n] = RoundTo(y.dtype, sum);
      }
    }
  }
};

}  // namespace

const OpDef& Op_ragged_mat_mul() {
  static const OpDef* const op = Make({
      .name = "RaggedMatMul",
      .doc = "runs of rows, each by a matrix of its own",
      .kind = OpKind::kRoot,
      .family = "matmul",
      .operands = {{.name = "x", .kind = OperandKind::kActivation, .shape = "[M, K]", .own_dtype = true},
                   {.name = "w", .kind = OperandKind::kWeight, .shape = "[E, N, K]", .own_dtype = true},
                   {.name = "starts", .kind = OperandKind::kIndex, .shape = "[E]", .own_dtype = true}},
      .infer = Infer,
      .reference = ReferenceOfProducts<Sums>,
      .rtol = 2e-6,
      .magnitude = MagnitudeOfProducts<Sums>,
  });
  return *op;
}

bool IsRagged(const Node& product) { return product.op == &Op_ragged_mat_mul(); }

StatusOr<RowRuns> MakeRowRuns(const MakeNode& make, Value which, const TensorType& type, int64_t matrices) {
  RowRuns runs;
  const Extent all(matrices), &rows = type.dims[0];
  const auto numbers = [&](const Extent& count, DType dtype) {
    return make("Iota", {}, {{"shape", std::vector<Extent>{count}}, {"dtype", dtype}});
  };
  const auto reshaped = [&](Value x, std::vector<Extent> dims) {
    return make("Reshape", {x}, {{"shape", std::move(dims)}});
  };
  // The matrix of each row, as Gather understands indices: from a table of their own numbers.
  QUERN_ASSIGN(const Value each, numbers(all, DType::kI32));
  QUERN_ASSIGN(const Value named, make("Gather", {each, which}, {{"axis", int64_t{0}}}));
  QUERN_ASSIGN(const Value sorted, make("Sort", {named}, {}));
  runs.order = {sorted.node, 1};
  QUERN_ASSIGN(const Value places, numbers(rows, DType::kI64));
  QUERN_ASSIGN(runs.inverse, make("ScatterElements", {places, runs.order, places}, {}));
  // A run begins behind all rows of matrices before its own.
  QUERN_ASSIGN(const Value column, reshaped(each, {all, Extent(1)}));
  QUERN_ASSIGN(const Value row, reshaped(named, {Extent(1), rows}));
  QUERN_ASSIGN(const Value before, make("Lt", {row, column}, {}));
  QUERN_ASSIGN(const Value ones, make("Cast", {before}, {{"to", DType::kI32}}));
  QUERN_ASSIGN(runs.starts, make("Reduce", {ones}, {{"op", std::string("sum")}, {"axes", std::vector<int64_t>{1}}}));
  return runs;
}

StatusOr<Value> MakeRaggedProduct(const MakeNode& make, Value a, Value matrices, Value starts) {
  return make("RaggedMatMul", {a, matrices, starts}, {});
}

}  // namespace quern::ir
