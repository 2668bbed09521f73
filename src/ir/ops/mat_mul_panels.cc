// MatMulPanels: a [.., M, K] by weights that were put in panels of 32 columns, b [columns / 32 rounded up, K, 32]: what
// MatMul becomes where its weights may be copied once (hoist_weights). Element (k, n) of the weights is
// b[n / 32, k, n % 32]; what lies behind the last column is not read.
//
// Where both are bf16, two neighbours along k lie together: b [.., K / 2, 32, 2], and element (k, n) is
// b[n / 32, k / 2, n % 32, k % 2].

#include "absl/strings/str_format.h"
#include "base/divide.h"
#include "ir/identity.h"
#include "ir/product.h"
#include "ir/shape.h"
#include "ir/sum_products.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &a = context.operands[0], &b = context.operands[1];
  const int64_t columns = context.attributes.Int("columns");
  if (columns < 1) return context.AttributeError("columns", "at least 1");
  if (a.rank() < 2) return context.ShapeError(0, "[.., M, K]");
  if (a.dtype != DType::kF32 && a.dtype != DType::kBF16) return context.DTypeError(0, "f32 or bf16");
  const bool pairs = a.dtype == DType::kBF16;
  const Extent panels(CeilDiv(columns, kPanelColumns)), &k = a.dims.back();
  const bool fits = b.rank() == (pairs ? 4 : 3) && b.dims[0] == panels &&
                    context.Equal(k, pairs ? b.dims[1] * Extent(2) : b.dims[1]) && b.dims[2] == Extent(kPanelColumns) &&
                    (!pairs || b.dims[3] == Extent(2));
  if (!fits) {
    return context.ShapeError(1, absl::StrFormat("[%s, %s%s, %d%s]", panels.ToString(), k.ToString(),
                                                 pairs ? " / 2" : "", kPanelColumns, pairs ? ", 2" : ""));
  }
  std::vector<Extent> dims = a.dims;
  dims.back() = Extent(columns);
  return std::vector<TensorType>{{a.dtype, std::move(dims)}};
}

struct Sums {
  template <typename Term>
  static void Run(RefContext& context, const Term& term) {
    const RefTensor &a = *context.operands[0], &b = *context.operands[1];
    RefTensor& y = context.results[0];
    const int64_t k = a.dims.back(), columns = y.dims.back(), together = b.dims.size() == 4 ? b.dims[3] : 1;
    for (size_t at = 0; at < y.data.size(); ++at) {
      const int64_t row = static_cast<int64_t>(at) / columns, n = static_cast<int64_t>(at) % columns;
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t word = (n / kPanelColumns * k + i) / together * kPanelColumns + n % kPanelColumns;
        sum += term(a.data[row * k + i], b.data[word * together + i % together]);
      }
      y.data[at] = RoundTo(y.dtype, sum);
    }
  }
};

}  // namespace

const OpDef& Op_mat_mul_panels() {
  static const OpDef* const op = Make({
      .name = "MatMulPanels",
      .doc = "matrix product with weights in panels of 32 columns, as they are kept for one binding",
      .kind = OpKind::kRoot,
      .family = "matmul",
      .operands = {{.name = "a", .kind = OperandKind::kActivation, .shape = "[.., M, K]"},
                   {.name = "b",
                    .kind = OperandKind::kWeight,
                    .shape = "[columns / 32 rounded up, K, 32], of bf16 [.., K / 2, 32, 2]"}},
      .attributes = {{.name = "columns", .kind = AttrKind::kInt}},
      .infer = Infer,
      .reference = ReferenceOfProducts<Sums>,
      .rtol = 2e-6,
      .magnitude = MagnitudeOfProducts<Sums>,
  });
  return *op;
}

bool ReadsPanels(const Node& product) { return product.op == &Op_mat_mul_panels(); }

bool ReadsPairs(const Graph& graph, const Node& product) {
  return ReadsPanels(product) && graph.type(product.inputs[1]).rank() == 4;
}

StatusOr<Value> MakePanels(const MakeNode& make, Value weights, const TensorType& type, bool rows) {
  const size_t along = rows ? 0 : 1;  // the dimension of columns
  const int64_t columns = type.dims[along].constant(), panels = CeilDiv(columns, kPanelColumns);
  if (columns % kPanelColumns != 0) {
    std::vector<int64_t> none(2), high(2);
    high[along] = panels * kPanelColumns - columns;
    QUERN_ASSIGN(weights, make("Pad", {weights}, {{"low", none}, {"high", high}}));
  }
  const Extent k = type.dims[1 - along];
  if (type.dtype == DType::kBF16) {
    const Extent words(k.constant() / 2), each(2), all(panels), width(kPanelColumns);
    const std::vector<Extent> apart =
        rows ? std::vector<Extent>{all, width, words, each} : std::vector<Extent>{words, each, all, width};
    QUERN_ASSIGN(const Value split, make("Reshape", {weights}, {{"shape", apart}}));
    return make("Transpose", {split},
                {{"perm", rows ? std::vector<int64_t>{0, 2, 1, 3} : std::vector<int64_t>{2, 0, 3, 1}}});
  }
  const std::vector<Extent> parts = rows ? std::vector<Extent>{Extent(panels), Extent(kPanelColumns), k}
                                         : std::vector<Extent>{k, Extent(panels), Extent(kPanelColumns)};
  QUERN_ASSIGN(const Value split, make("Reshape", {weights}, {{"shape", parts}}));
  return make("Transpose", {split}, {{"perm", rows ? std::vector<int64_t>{0, 2, 1} : std::vector<int64_t>{1, 0, 2}}});
}

StatusOr<Value> MakeRowsOfPanels(const MakeNode& make, Value panels, const TensorType& type, const Node& product) {
  const bool words = type.rank() == 4;
  const std::vector<int64_t> perm = words ? std::vector<int64_t>{0, 2, 1, 3} : std::vector<int64_t>{0, 2, 1};
  QUERN_ASSIGN(const Value turned, make("Transpose", {panels}, {{"perm", perm}}));
  const std::vector<Extent> dims = {type.dims[0] * type.dims[2], words ? type.dims[1] * type.dims[3] : type.dims[1]};
  QUERN_ASSIGN(const Value rows, make("Reshape", {turned}, {{"shape", dims}}));
  return make("Slice", {rows},
              {{"axis", int64_t{0}}, {"start", int64_t{0}}, {"stop", product.attributes.Int("columns")}});
}

StatusOr<Value> MakeProductOfPanels(const MakeNode& make, Value a, Value panels, int64_t columns) {
  return make("MatMulPanels", {a, panels}, {{"columns", columns}});
}

}  // namespace quern::ir
