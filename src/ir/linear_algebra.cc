#include "ir/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/composite.h"
#include "ir/shape.h"
#include "linear/linear_algebra.h"
#include "linear/load_lapack.h"

namespace quern::ir {
namespace {

// Batches are shared out among that many.
constexpr int64_t kParts = 32;

using Types = std::vector<TensorType>;

// Of the operands of a call; the op that makes the node has checked them.
std::vector<Extent> Batch(std::span<const TensorType> operands) {
  return {operands[0].dims.begin(), operands[0].dims.end() - 2};
}

TensorType With(std::span<const TensorType> operands, std::vector<Extent> behind) {
  std::vector<Extent> dims = Batch(operands);
  dims.insert(dims.end(), behind.begin(), behind.end());
  return {operands[0].dtype, std::move(dims)};
}

Extent Rows(std::span<const TensorType> operands) { return operands[0].dims[operands[0].dims.size() - 2]; }
Extent Columns(std::span<const TensorType> operands) { return operands[0].dims.back(); }

// The smaller of two sizes, which are numbers where they differ.
Extent Smaller(const Extent& a, const Extent& b) {
  return a == b || !a.is_constant() || a.constant() <= b.constant() ? a : b;
}

Types SolveTypes(std::span<const TensorType> x) { return {x[1]}; }
Types SquareTypes(std::span<const TensorType> x) { return {x[0]}; }
Types NumberTypes(std::span<const TensorType> x) { return {With(x, {})}; }
Types TwoNumberTypes(std::span<const TensorType> x) { return {With(x, {}), With(x, {})}; }
Types QrTypes(std::span<const TensorType> x) {
  const Extent k = Smaller(Rows(x), Columns(x));
  return {With(x, {Rows(x), k}), With(x, {k, Columns(x)})};
}
Types SvdTypes(std::span<const TensorType> x) {
  const Extent k = Smaller(Rows(x), Columns(x));
  return {With(x, {Rows(x), k}), With(x, {k}), With(x, {k, Columns(x)})};
}
Types EighTypes(std::span<const TensorType> x) { return {With(x, {Rows(x)}), x[0]}; }

}  // namespace

const OpDef& Op_batched_dense_solve();
const OpDef& Op_cholesky();
const OpDef& Op_det();
const OpDef& Op_log_det();
const OpDef& Op_qr();
const OpDef& Op_svd();
const OpDef& Op_eigh();

namespace {

struct Call {
  const char* name;
  const OpDef& (*op)();  // what it computes
  quern_kernel *f32, *f64;
  Types (*types)(std::span<const TensorType> operands);
  size_t operands;
};
constexpr Call kCalls[] = {
    {"solve", Op_batched_dense_solve, quern_solve, quern_solve_f64, SolveTypes, 2},
    {"cholesky", Op_cholesky, quern_cholesky, quern_cholesky_f64, SquareTypes, 1},
    {"det", Op_det, quern_det, quern_det_f64, NumberTypes, 1},
    {"log_det", Op_log_det, quern_log_det, quern_log_det_f64, TwoNumberTypes, 1},
    {"qr", Op_qr, quern_qr, quern_qr_f64, QrTypes, 1},
    {"svd", Op_svd, quern_svd, quern_svd_f64, SvdTypes, 1},
    {"eigh", Op_eigh, quern_eigh, quern_eigh_f64, EighTypes, 1},
};

// The op's own reference.
Status ReferenceOfCall(const Call& call, RefContext& context) {
  Node node = context.node;
  node.op = &call.op();
  node.attributes = {};
  for (const AttrDef& attribute : node.op->attributes)
    node.attributes.Set(attribute.name, context.node.attributes.String("attrs") == "u");  // `upper`, where there is one
  RefContext same{node, context.operands, context.binding, context.results};
  return node.op->reference(same);
}

Status LoadLapack() {
  static const Status* const loaded = [] {
    char error[512];
    return new Status(quern_load_lapack(error, sizeof(error)) != 0 ? absl::OkStatus() : absl::UnavailableError(error));
  }();
  return *loaded;
}

std::string NameOf(std::string_view call, DType dtype) {
  return absl::StrCat("quern.", absl::string_view(call.data(), call.size()), dtype == DType::kF64 ? "_f64" : "");
}

}  // namespace

std::vector<CustomDef> LinearAlgebraCalls() {
  std::vector<CustomDef> rows;
  for (const Call& call : kCalls) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      CustomDef& row = rows.emplace_back();
      row.name = NameOf(call.name, dtype);
      row.kernel = dtype == DType::kF64 ? call.f64 : call.f32;
      row.load = LoadLapack;
      row.symbol = absl::StrCat("quern_", call.name, dtype == DType::kF64 ? "_f64" : "");
      row.parts = kParts;
      row.alignment = ScalarBytes(dtype);
      row.infer = [&call, dtype](std::span<const TensorType> operands, std::string_view) -> StatusOr<Types> {
        const bool fits = operands.size() == call.operands &&
                          std::all_of(operands.begin(), operands.end(),
                                      [&](const TensorType& type) { return type.dtype == dtype && type.rank() >= 2; });
        if (!fits)
          return absl::InvalidArgumentError(
              absl::StrFormat("Custom quern.%s: %u matrices of one dtype are its operands", call.name, call.operands));
        return call.types(operands);
      };
      row.reference = [&call](RefContext& context) { return ReferenceOfCall(call, context); };
      row.rtol = 1e-5;
    }
  }
  return rows;
}

Status CheckMatrices(const InferContext& context, bool square) {
  const TensorType& a = context.operands[0];
  if (a.dtype != DType::kF32 && a.dtype != DType::kF64) return context.UnsupportedError(0, "f32 or f64");
  const int rank = a.rank();
  if (rank < 2 || (square && !context.Equal(a.dims[rank - 1], a.dims[rank - 2])))
    return context.ShapeError(0, square ? "[.., N, N]" : "[.., M, N]");
  const bool numbers = a.dims[rank - 1].is_constant() && a.dims[rank - 2].is_constant();
  if (!square && !numbers && a.dims[rank - 1] != a.dims[rank - 2])
    return context.UnsupportedError(0, "[.., M, N], M and N numbers or the same");
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> ExpandToCall(Graph& graph, const Node& node, std::span<const Value> inputs, int origin,
                                          std::string_view name, std::string_view attribute) {
  Expansion e(graph, origin);
  const Value made = e.Add("Custom", {inputs.begin(), inputs.end()},
                           {{"name", NameOf(name, graph.type(inputs[0]).dtype)}, {"attrs", std::string(attribute)}});
  std::vector<Value> results;
  for (int r = 0; r < static_cast<int>(node.results.size()); ++r) results.push_back({made.node, r});
  return e.Finish(std::move(results));
}

Matrix MatrixOf(const RefTensor& tensor, int64_t rows, int64_t columns, int64_t batch) {
  Matrix matrix(rows, columns);
  std::copy_n(tensor.data.begin() + batch * rows * columns, rows * columns, matrix.data.begin());
  return matrix;
}

void PutMatrix(RefTensor& tensor, const Matrix& from, int64_t batch) {
  const int64_t size = static_cast<int64_t>(from.data.size());
  std::copy_n(from.data.begin(), size, tensor.data.begin() + batch * size);
}

void ForEachMatrix(const RefContext& context, const std::function<void(const Matrix& a, int64_t batch)>& visit) {
  const RefTensor& a = *context.operands[0];
  const int64_t rows = a.dims[a.dims.size() - 2], columns = a.dims.back();
  const int64_t batches = std::accumulate(a.dims.begin(), a.dims.end() - 2, int64_t{1}, std::multiplies<>());
  for (int64_t batch = 0; batch < batches; ++batch) visit(MatrixOf(a, rows, columns, batch), batch);
}

Matrix ReferenceSolve(Matrix a, Matrix b, double* determinant) {
  const int64_t n = a.rows;
  std::vector<int64_t> order(n);  // of the unknowns
  std::iota(order.begin(), order.end(), 0);
  double product = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t row = k, column = k;
    for (int64_t i = k; i < n; ++i) {
      for (int64_t j = k; j < n; ++j) {
        if (std::fabs(a.at(i, j)) > std::fabs(a.at(row, column))) row = i, column = j;
      }
    }
    for (int64_t j = 0; j < n; ++j) std::swap(a.at(k, j), a.at(row, j));
    for (int64_t j = 0; j < b.columns; ++j) std::swap(b.at(k, j), b.at(row, j));
    for (int64_t i = 0; i < n; ++i) std::swap(a.at(i, k), a.at(i, column));
    std::swap(order[k], order[column]);
    if (row != k) product = -product;
    if (column != k) product = -product;
    const double pivot = a.at(k, k);
    product *= pivot;
    for (int64_t i = 0; i < n; ++i) {
      if (i == k || a.at(i, k) == 0) continue;
      const double factor = a.at(i, k) / pivot;
      for (int64_t j = k; j < n; ++j) a.at(i, j) -= factor * a.at(k, j);
      for (int64_t j = 0; j < b.columns; ++j) b.at(i, j) -= factor * b.at(k, j);
    }
  }
  if (determinant != nullptr) *determinant = product;
  Matrix x(n, b.columns);
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < b.columns; ++j) x.at(order[k], j) = b.at(k, j) / a.at(k, k);
  }
  return x;
}

void ReferenceEigen(Matrix a, std::vector<double>& values, Matrix& vectors) {
  const int64_t n = a.rows;
  Matrix v(n, n);
  for (int64_t i = 0; i < n; ++i) v.at(i, i) = 1;
  double all = 0;
  for (const double value : a.data) all += value * value;
  constexpr int kMostSweeps = 60;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double off = 0;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) off += a.at(p, q) * a.at(p, q);
    }
    if (!(off > 1e-34 * all)) break;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (a.at(p, q) == 0) continue;
        // The angle at which the pair's element off the diagonal is 0.
        const double angle = std::atan2(2 * a.at(p, q), a.at(q, q) - a.at(p, p)) / 2;
        const double c = std::cos(angle), s = std::sin(angle);
        for (int64_t i = 0; i < n; ++i) {
          const double x = a.at(i, p), y = a.at(i, q);
          a.at(i, p) = c * x - s * y;
          a.at(i, q) = s * x + c * y;
          const double t = v.at(i, p), u = v.at(i, q);
          v.at(i, p) = c * t - s * u;
          v.at(i, q) = s * t + c * u;
        }
        for (int64_t j = 0; j < n; ++j) {
          const double x = a.at(p, j), y = a.at(q, j);
          a.at(p, j) = c * x - s * y;
          a.at(q, j) = s * x + c * y;
        }
      }
    }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t i, int64_t j) { return a.at(i, i) != a.at(j, j) ? a.at(i, i) < a.at(j, j) : i < j; });
  values.assign(n, 0);
  vectors = Matrix(n, n);
  for (int64_t k = 0; k < n; ++k) {
    values[k] = a.at(order[k], order[k]);
    const double sign = SignOf(v, order[k]);
    for (int64_t i = 0; i < n; ++i) vectors.at(i, k) = sign * v.at(i, order[k]);
  }
}

double SignOf(const Matrix& vectors, int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < vectors.rows; ++i) sum += vectors.at(i, column) / (static_cast<double>(i) + std::numbers::pi);
  return sum < 0 ? -1 : 1;
}

Status LargestMagnitude(RefContext& context) {
  std::vector<RefTensor> results = context.results;
  for (size_t r = 0; r < results.size(); ++r) results[r].dtype = context.node.results[r].dtype;
  RefContext same{context.node, context.operands, context.binding, results};
  QUERN_RETURN_IF_ERROR(context.node.op->reference(same));
  const RefTensor& a = *context.operands[0];
  const int64_t batches = std::accumulate(a.dims.begin(), a.dims.end() - 2, int64_t{1}, std::multiplies<>());
  for (size_t r = 0; r < results.size(); ++r) {
    const std::vector<double>& values = results[r].data;
    const size_t each = batches == 0 ? 0 : values.size() / static_cast<size_t>(batches);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(i / each * each);
      double largest = 0;
      for (auto at = first; at != first + static_cast<std::ptrdiff_t>(each); ++at)
        largest = std::max(largest, std::fabs(*at));
      context.results[r].data[i] = largest;
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::ir
