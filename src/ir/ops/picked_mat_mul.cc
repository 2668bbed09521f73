// PickedMatMul: rows of x, each by one of several matrices w [E, N, K]: y[m] = x[m] w[e]. What products by picked
// matrices become where tiles can read these (picked_products); w may have a block format, and x be quantised then.
//
// by = "row": row m is multiplied by matrix which[m], as GroupedMatMul understands indices.
// by = "run": rows stand sorted by their matrix, those of e from which[e] to which[e + 1]; the first begin at 0, the
//     last end with the rows. They are meant to ascend: a run begins no earlier than the one before it, and none
//     behind the last row.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/product.h"
#include "ir/shape.h"
#include "ir/sum_products.h"

namespace quern::ir {
namespace {

bool PicksByRun(const Attributes& attributes) { return attributes.String("by") == "run"; }

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &w = context.operands[1], &which = context.operands[2];
  QUERN_RETURN_IF_ERROR(CheckAsBf16(context));
  if (x.rank() != 2) return context.ShapeError(0, "[M, K]");
  if (w.rank() != 3 || !context.Equal(x.dims[1], w.dims[2]))
    return context.ShapeError(1, absl::StrCat("[E, N, ", x.dims[1].ToString(), "]"));
  if (!w.elements().is_constant() || w.elements().constant() < 1)
    return context.ShapeError(1, "matrices of sizes that are known, and not empty");
  if (!IsBlock(w.dtype) && !IsShortFloat(w.dtype)) return context.DTypeError(1, WeightsOf(DType::kF32));
  if (x.dtype != DType::kF32 && (!IsBlock(w.dtype) || x.dtype != ActivationFormat(w.dtype)))
    return context.DTypeError(0, "f32, or what goes with the format of w");
  const std::vector<Extent> picks = {PicksByRun(context.attributes) ? w.dims[0] : x.dims[0]};
  if (!context.Equal(which.dims, picks)) return context.ShapeError(2, ToString(picks));
  return std::vector<TensorType>{{DType::kF32, {x.dims[0], w.dims[1]}}};
}

struct Sums {
  template <typename Term>
  static void Run(RefContext& context, const Term& term) {
    const RefTensor &x = *context.operands[0], &w = *context.operands[1], &which = *context.operands[2];
    RefTensor& y = context.results[0];
    const int64_t columns = y.dims[1], k = x.dims[1], last = w.dims[0] - 1;
    const bool runs = PicksByRun(context.node.attributes);
    int64_t e = 0;
    for (int64_t m = 0; m < y.dims[0]; ++m) {
      while (runs && e < last && which.Integer(e + 1) <= m) ++e;
      if (!runs) {
        const Wide at = which.Integer(m);
        e = static_cast<int64_t>(std::clamp<Wide>(at < 0 ? at + last + 1 : at, 0, last));
      }
      for (int64_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) sum += term(x.data[m * k + i], w.data[(e * columns + n) * k + i]);
        y.data[m * columns + n] = RoundTo(y.dtype, sum);
      }
    }
  }
};

}  // namespace

const OpDef& Op_picked_mat_mul() {
  static const OpDef* const op = Make({
      .name = "PickedMatMul",
      .doc = "rows, each by one of several matrices, that of its own or of the run that it is in",
      .kind = OpKind::kRoot,
      .family = "matmul",
      .operands = {{.name = "x", .kind = OperandKind::kActivation, .shape = "[M, K]", .own_dtype = true},
                   {.name = "w", .kind = OperandKind::kWeight, .shape = "[E, N, K]", .own_dtype = true},
                   {.name = "which",
                    .kind = OperandKind::kIndex,
                    .shape = "[M], the matrix of each row; by runs [E], where each begins",
                    .own_dtype = true}},
      .attributes =
          {{.name = "by", .kind = AttrKind::kString, .default_value = std::string("row"), .choices = {"row", "run"}},
           AsBf16Attribute()},
      .infer = Infer,
      .reference = ReferenceOfProducts<Sums>,
      .rtol = kProductError,
      .contract = ContractOfProduct,
      .magnitude = MagnitudeOfProducts<Sums>,
  });
  return *op;
}

bool PicksMatrices(const Node& product) { return product.op == &Op_picked_mat_mul(); }
bool PicksByRun(const Node& product) { return PicksByRun(product.attributes); }

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

StatusOr<Value> MakePickedProduct(const MakeNode& make, Value a, Value matrices, Value which, bool runs, bool as_bf16) {
  return make("PickedMatMul", {a, matrices, which}, {{"by", std::string(runs ? "run" : "row")}, {"as_bf16", as_bf16}});
}

}  // namespace quern::ir
