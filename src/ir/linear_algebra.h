// What the ops of linear algebra have in common: batches of matrices, the C functions that compute them
// (linear/linear_algebra.h, as calls that any Custom is), and references that share nothing with those.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/custom.h"
#include "ir/op.h"

namespace quern::ir {

// Their rows for the table of ir/custom.h, under names that no caller's op may have.
std::vector<CustomDef> LinearAlgebraCalls();

// Operand 0 as [.., N, N], or [.., M, N] without `square`, f32 or f64; else an error.
Status CheckMatrices(const InferContext& context, bool square);

// A node that calls `name` ("solve") in the dtype of operand 0; `attribute` is handed to it.
StatusOr<std::vector<Value>> ExpandToCall(Graph& graph, const Node& node, std::span<const Value> inputs, int origin,
                                          std::string_view name, std::string_view attribute = "");

// Square and other matrices of the references, row-major.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> data = {};

  Matrix(int64_t m, int64_t n) : rows(m), columns(n), data(m * n) {}
  double& at(int64_t i, int64_t j) { return data[i * columns + j]; }
  double at(int64_t i, int64_t j) const { return data[i * columns + j]; }
};
// By batch: the matrix of operand 0, and where the batch stands.
void ForEachMatrix(const RefContext& context, const std::function<void(const Matrix& a, int64_t batch)>& visit);
// The matrix of that batch in a tensor of [.., rows, columns].
Matrix MatrixOf(const RefTensor& tensor, int64_t rows, int64_t columns, int64_t batch);
void PutMatrix(RefTensor& tensor, const Matrix& from, int64_t batch);

// x of a x = b by Gauss and Jordan with full pivoting; the determinant where `determinant` is not null.
Matrix ReferenceSolve(Matrix a, Matrix b, double* determinant = nullptr);
// Eigenvalues of a symmetric matrix, rising, and vectors in columns, by Jacobi's rotations.
void ReferenceEigen(Matrix a, std::vector<double>& values, Matrix& vectors);
// The sign that eigenvectors and singular vectors have: their sum by weights 1 / (i + pi) is not negative.
double SignOf(const Matrix& vectors, int64_t column);

// The magnitude of every result element: the largest of its batch's matrix, or vector.
Status LargestMagnitude(RefContext& context);

}  // namespace quern::ir
