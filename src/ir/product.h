// What passes and blocks know of products: which nodes are some, and which dtypes meet in one.
#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"
#include "ir/identity.h"

namespace quern::ir {

// f32, f16 or bf16: what is multiplied as f32; i8 or u8: what is added up in i32.
bool IsShortFloat(DType dtype);
bool IsByte(DType dtype);

// A matrix product of operand 0 and the weight or tensor that is operand 1.
bool IsMatMul(const Node& node);
// The same of each row by the matrix, of those of operand 1, that operand 2 names.
bool IsGroupedMatMul(const Node& node);
// Whether this is a MatMul of floats of so few terms that arithmetic of columns beside rows is quicker.
bool IsShortSum(const Graph& graph, const Node& node);
// Whether operand 1 of a product lies as rows of K.
bool ReadsRows(const Node& product);
// Whether this product of f32 by f16 or bf16 may take both sides as sums of two bf16, and leave out the product of the
// second ones: the attribute as_bf16.
AttrDef AsBf16Attribute();
bool MayBeAsBf16(const Node& product);
// Whether products of these two may.
bool MayTakeAsBf16(DType activation, DType weight);
// What a MatMul or PickedMatMul may be off by, of the magnitude of the terms. As sums x0 + x1 and w0 + w1 of parts of 8
// bits x1 is less than 2^-7 x, and rounded to as many, and w1 at most 7/8 2^-7 w: what is left out, 7/8 2^-14 and 2^-16
// of a term, comes to the roundings of the sum.
inline constexpr double kProductError = 2e-6, kAsBf16Error = 7.2e-5;
Contract ContractOfProduct(const Node& product);
// The error of an attribute as_bf16 beside other dtypes.
Status CheckAsBf16(const InferContext& context);
// The product of `a` and `rows`, [.., N, K].
StatusOr<Value> MakeProductOfRows(const MakeNode& make, Value a, Value rows);
// An IsShortSum in columns and rows: a [.., M, K] by b, [.., N, K] where `rows`, else [.., K, N], both of `graph`, to
// which `make` adds. Sums start with `zero`, a constant of no dimensions.
StatusOr<Value> MakeShortSum(const MakeNode& make, const Graph& graph, Value a, Value b, bool rows, Value zero);

// Columns of weights that lie together in panels.
inline constexpr int64_t kPanelColumns = 32;
// Whether this is a MatMulPanels, whose operand 1 is [columns / 32 rounded up, K, 32], or where several elements are a
// word, pairs of bf16 or quads of bytes, [.., K / elements rounded up, 32, elements].
bool ReadsPanels(const Node& product);
bool ReadsPairs(const Graph& graph, const Node& product);
int64_t ElementsOfWord(DType dtype);
// Such panels of a matrix of constant extents: [N, K] where `rows`, else [K, N]; zeros behind the last column, and
// behind the last k. Of bf16 K is even.
StatusOr<Value> MakePanels(const MakeNode& make, Value weights, const TensorType& type, bool rows);
// The rows of `k` elements, [N, K], in the panels of type `type` that `product` reads.
StatusOr<Value> MakeRowsOfPanels(const MakeNode& make, Value panels, const TensorType& type, const Extent& k,
                                 const Node& product);
// The product of `a` and that many columns in panels.
StatusOr<Value> MakeProductOfPanels(const MakeNode& make, Value a, Value panels, int64_t columns);

// Whether this is a PickedMatMul: operand 1 is [E, N, K], operand 2 says the matrix of each row, or where the run of
// each matrix begins.
bool PicksMatrices(const Node& product);
bool PicksByRun(const Node& product);
// Rows sorted by which of `matrices` they are multiplied by.
struct RowRuns {
  Value order, inverse;  // [M]: the row that stands at each place, and the place of each row
  Value starts;          // [matrices]
};
// `which` [M] names a matrix for each row as the indices of GroupedMatMul do: from the end where negative, clamped.
StatusOr<RowRuns> MakeRowRuns(const MakeNode& make, Value which, const TensorType& type, int64_t matrices);
// `which`: by runs their starts, else the matrix of each row.
StatusOr<Value> MakePickedProduct(const MakeNode& make, Value a, Value matrices, Value which, bool runs, bool as_bf16);

// Whether a MatMul takes these two: halves and block formats are weights of f32 activations, bytes with and without a
// sign go together, else both are alike: floats, i32 or i64.
bool Multiplies(DType activation, DType weight);
// What their products are added in, and the result: f32 of a block format, i32 of bytes, where integers wrap.
DType ProductType(DType activation, DType weight);
// "f32, f16, bf16 or a block format": the weights that go with these activations, for errors.
std::string WeightsOf(DType activation);
// The int8 format that f32 activations are quantised to beside weights of this format; none where they stay f32.
std::optional<DType> ActivationFormat(DType weight);

}  // namespace quern::ir
