// MatMulPanels: a [.., M, K] by weights that were put in panels of 32 columns, b [columns / 32 rounded up, K, 32]: what
// MatMul becomes where its weights may be copied once (hoist_weights). Element (k, n) of the weights is
// b[n / 32, k, n % 32]; what lies behind the last column is not read.
//
// Words of 32 bits hold several neighbours along k: two where both are bf16, b [.., K / 2, 32, 2], four of bytes, whose
// sums are i32, b [.., K / 4 rounded up, 32, 4]. Element (k, n) is b[n / 32, k / 4, n % 32, k % 4] then; what lies
// behind the last k is not read.

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
  if (a.dtype != DType::kF32 && a.dtype != DType::kBF16 && !IsByte(a.dtype))
    return context.DTypeError(0, "f32, bf16, i8 or u8");
  if (IsByte(a.dtype) ? !IsByte(b.dtype) : a.dtype != b.dtype)
    return context.DTypeError(1, IsByte(a.dtype) ? "i8 or u8" : std::string(Name(a.dtype)));
  const int64_t word = ElementsOfWord(a.dtype);
  const Extent panels(CeilDiv(columns, kPanelColumns)), &k = a.dims.back(), each(word);
  const auto words_fit = [&](const Extent& words) {
    if (IsByte(a.dtype) && k.is_constant()) return words == k.CeilDividedBy(word);
    return context.Equal(k, words * each);
  };
  const bool fits = b.rank() == (word > 1 ? 4 : 3) && b.dims[0] == panels && words_fit(b.dims[1]) &&
                    b.dims[2] == Extent(kPanelColumns) && (word == 1 || b.dims[3] == each);
  if (!fits) {
    return context.ShapeError(1, absl::StrFormat("[%s, %s%s, %d%s]", panels.ToString(), k.ToString(),
                                                 word > 1 ? absl::StrCat(" / ", word) : "", kPanelColumns,
                                                 word > 1 ? absl::StrCat(", ", word) : ""));
  }
  std::vector<Extent> dims = a.dims;
  dims.back() = Extent(columns);
  return std::vector<TensorType>{{ProductType(a.dtype, b.dtype), std::move(dims)}};
}

struct Terms {
  template <typename Visit>
  static void ForEach(RefContext& context, const Visit& visit) {
    const RefTensor &a = *context.operands[0], &b = *context.operands[1];
    const int64_t k = a.dims.back(), columns = context.results[0].dims.back(), words = b.dims[1],
                  each = b.dims.size() == 4 ? b.dims[3] : 1, elements = context.results[0].elements();
    for (int64_t at = 0; at < elements; ++at) {
      const int64_t row = at / columns, n = at % columns;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t word = (n / kPanelColumns * words + i / each) * kPanelColumns + n % kPanelColumns;
        visit(at, row * k + i, word * each + i % each);
      }
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
      .operands = {{.name = "a", .kind = OperandKind::kLeftSide, .shape = "[.., M, K]", .own_dtype = true},
                   {.name = "b",
                    .kind = OperandKind::kRightSide,
                    .shape =
                        "[columns / 32 rounded up, K, 32], of bf16 [.., K / 2, 32, 2], of bytes [.., K / 4, 32, 4]",
                    .own_dtype = true}},
      .attributes = {{.name = "columns", .kind = AttrKind::kInt}},
      .infer = Infer,
      .reference = ReferenceOfTerms<Terms>,
      .rtol = 2e-6,
      .magnitude = MagnitudeOfProducts<SumsOf<Terms>>,
  });
  return *op;
}

bool ReadsPanels(const Node& product) { return product.op == &Op_mat_mul_panels(); }

bool ReadsPairs(const Graph& graph, const Node& product) {
  return ReadsPanels(product) && graph.type(product.inputs[1]).dtype == DType::kBF16;
}

int64_t ElementsOfWord(DType dtype) { return IsByte(dtype) ? 4 : dtype == DType::kBF16 ? 2 : 1; }

StatusOr<Value> MakePanels(const MakeNode& make, Value weights, const TensorType& type, bool rows) {
  const size_t along = rows ? 0 : 1;  // the dimension of columns
  const int64_t columns = type.dims[along].constant(), panels = CeilDiv(columns, kPanelColumns),
                word = ElementsOfWord(type.dtype), rest = type.dims[1 - along].constant() % word;
  if (columns % kPanelColumns != 0 || rest != 0) {
    std::vector<int64_t> none(2), high(2);
    high[along] = panels * kPanelColumns - columns;
    if (rest != 0) high[1 - along] = word - rest;
    QUERN_ASSIGN(weights, make("Pad", {weights}, {{"low", none}, {"high", high}}));
  }
  const Extent k = type.dims[1 - along];
  if (word > 1) {
    const Extent words(CeilDiv(k.constant(), word)), each(word), all(panels), width(kPanelColumns);
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

StatusOr<Value> MakeRowsOfPanels(const MakeNode& make, Value panels, const TensorType& type, const Extent& k,
                                 const Node& product) {
  const bool words = type.rank() == 4;
  const std::vector<int64_t> perm = words ? std::vector<int64_t>{0, 2, 1, 3} : std::vector<int64_t>{0, 2, 1};
  QUERN_ASSIGN(const Value turned, make("Transpose", {panels}, {{"perm", perm}}));
  const std::vector<Extent> dims = {type.dims[0] * type.dims[2], words ? type.dims[1] * type.dims[3] : type.dims[1]};
  QUERN_ASSIGN(Value rows, make("Reshape", {turned}, {{"shape", dims}}));
  if (k.is_constant() && dims[1] != k) {
    QUERN_ASSIGN(rows, make("Slice", {rows}, {{"axis", int64_t{1}}, {"start", int64_t{0}}, {"stop", k.constant()}}));
  }
  return make("Slice", {rows},
              {{"axis", int64_t{0}}, {"start", int64_t{0}}, {"stop", product.attributes.Int("columns")}});
}

StatusOr<Value> MakeProductOfPanels(const MakeNode& make, Value a, Value panels, int64_t columns) {
  return make("MatMulPanels", {a, panels}, {{"columns", columns}});
}

}  // namespace quern::ir
