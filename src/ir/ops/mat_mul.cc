// MatMul: a [.., M, K] by b [.., K, N], or b [.., N, K] with transpose_b; batch dimensions broadcast.
//
// b may be a weight in a block format (rows of K, so transpose_b), and a then f32 or quantised (q8_0, q8_K). The result
// is f32 for block formats, else a's dtype; halves accumulate in f32.

#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &a = context.operands[0], &b = context.operands[1];
  const bool transposed = context.attributes.Bool("transpose_b");
  if (a.rank() < 2 || b.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrFormat("MatMul: %s and %s need two dimensions or more", a.ToString(), b.ToString()));
  }
  if (IsBlock(b.dtype) && (!transposed || b.rank() != 2)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("MatMul: a block-format weight is [N, K] with transpose_b, got %s", b.ToString()));
  }
  if (IsBlock(a.dtype) && !IsBlock(b.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("MatMul: quantised %s goes with a block-format weight, not %s", a.ToString(), b.ToString()));
  }
  if (!IsBlock(a.dtype) && !IsBlock(b.dtype) && a.dtype != b.dtype &&
      !(a.dtype == DType::kF32 && IsFloat(b.dtype) && b.dtype != DType::kF64)) {
    return absl::InvalidArgumentError(absl::StrFormat("MatMul: %s does not go with %s", a.ToString(), b.ToString()));
  }
  if (IsBlock(b.dtype) && !IsBlock(a.dtype) && a.dtype != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrFormat("MatMul: %s does not go with %s", a.ToString(), b.ToString()));
  }
  const Extent &k = a.dims.back(), &b_k = transposed ? b.dims.back() : b.dims[b.rank() - 2];
  if (k != b_k) {
    if (k.is_constant() && b_k.is_constant()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("MatMul: %s by %s do not agree in K", a.ToString(), b.ToString()));
    }
    context.constraints->push_back({k, b_k});
  }
  QUERN_ASSIGN(std::vector<Extent> dims, BroadcastDims({a.dims.begin(), a.dims.end() - 2},
                                                       {b.dims.begin(), b.dims.end() - 2}, context.constraints));
  dims.push_back(a.dims[a.rank() - 2]);
  dims.push_back(transposed ? b.dims[b.rank() - 2] : b.dims.back());
  return std::vector<TensorType>{{IsBlock(b.dtype) ? DType::kF32 : a.dtype, std::move(dims)}};
}

// Position of the element at the broadcast of `index`.
int64_t Offset(const RefTensor& tensor, std::span<const int64_t> index) {
  int64_t offset = 0;
  const size_t skip = index.size() - tensor.dims.size();
  for (size_t d = 0; d < tensor.dims.size(); ++d)
    offset = offset * tensor.dims[d] + (tensor.dims[d] == 1 ? 0 : index[skip + d]);
  return offset;
}

Status Reference(RefContext& context) {
  const RefTensor &a = *context.operands[0], &b = *context.operands[1];
  RefTensor& y = context.results[0];
  const bool transposed = context.node.attributes.Bool("transpose_b");
  const int64_t k = a.dims.back();
  const size_t rank = y.dims.size();
  std::vector<int64_t> index(rank), at_a(rank), at_b(rank);
  const int64_t step = transposed ? 1 : y.dims.back();  // of b, from one term to the next
  for (double& out : y.data) {
    at_a = at_b = index;
    at_a[rank - 1] = at_b[rank - 2] = at_b[rank - 1] = 0;
    at_b[rank - (transposed ? 2 : 1)] = index[rank - 1];
    const double *x = a.data.data() + Offset(a, at_a), *w = b.data.data() + Offset(b, at_b);
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += x[i] * w[i * step];
    out = RoundTo(y.dtype, sum);
    NextIndex(y.dims, index);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_mat_mul() {
  static const OpDef* const op = Make({
      .name = "MatMul",
      .doc = "matrix product; batch dimensions broadcast",
      .kind = OpKind::kRoot,
      .family = "matmul",
      .operands = {{.name = "a", .kind = OperandKind::kActivation, .own_dtype = true},
                   {.name = "b", .kind = OperandKind::kWeight, .own_dtype = true}},
      .attributes = {{.name = "transpose_b", .kind = AttrKind::kBool, .default_value = false, .doc = "b is [N, K]"}},
      .infer = Infer,
      .reference = Reference,
      .rtol = 2e-5,
      .atol = 2e-5,
      .onnx = "MatMul",
  });
  return *op;
}

}  // namespace quern::ir
