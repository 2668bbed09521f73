#include "ir/interpret.h"

#include <cstring>

#include "base/half.h"
#include "kir/decode.h"

namespace quern::ir {
namespace {

template <typename T>
double ReadAs(const uint8_t* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

double ReadScalar(DType dtype, const uint8_t* data, int64_t i) {
  switch (dtype) {
    case DType::kF32: return ReadAs<float>(data, i);
    case DType::kF64: return ReadAs<double>(data, i);
    case DType::kF16: return HalfToFloat(static_cast<uint16_t>(ReadAs<uint16_t>(data, i)));
    case DType::kBF16: return BFloat16ToFloat(static_cast<uint16_t>(ReadAs<uint16_t>(data, i)));
    case DType::kI8: return ReadAs<int8_t>(data, i);
    case DType::kI16: return ReadAs<int16_t>(data, i);
    case DType::kI32: return ReadAs<int32_t>(data, i);
    case DType::kI64: return ReadAs<int64_t>(data, i);
    case DType::kU8: return ReadAs<uint8_t>(data, i);
    case DType::kU16: return ReadAs<uint16_t>(data, i);
    case DType::kU32: return ReadAs<uint32_t>(data, i);
    case DType::kU64: return ReadAs<uint64_t>(data, i);
    case DType::kBool: return data[i] != 0;
    case DType::kQ4_0:
    case DType::kQ8_0:
    case DType::kQ4_K:
    case DType::kQ5_K:
    case DType::kQ6_K:
    case DType::kQ8_K: break;
  }
  return 0;
}

StatusOr<std::vector<int64_t>> Sizes(const TensorType& type, const Binding& binding) {
  std::vector<int64_t> dims;
  for (const Extent& dim : type.dims) {
    QUERN_ASSIGN(const int64_t size, dim.Evaluate(binding));
    if (size < 0) return absl::InvalidArgumentError(absl::StrFormat("extent %s is %d", dim.ToString(), size));
    dims.push_back(size);
  }
  return dims;
}

StatusOr<std::vector<RefTensor>> Evaluate(const Graph& graph, const Binding& binding,
                                          std::span<const RefTensor* const> region_inputs, const Feeds* feeds) {
  std::vector<std::vector<RefTensor>> values(graph.nodes().size());
  size_t next_input = 0;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    for (const TensorType& type : node.results) {
      RefTensor result{type.dtype, {}, {}};
      QUERN_ASSIGN(result.dims, Sizes(type, binding));
      result.data.resize(result.elements());
      values[n].push_back(std::move(result));
    }
    const std::string_view op = node.op->name;
    if (op == "Constant") {
      QUERN_ASSIGN(values[n][0], RefTensorFromBytes(node.results[0].dtype, values[n][0].dims, *node.data));
    } else if (node.op->kind == OpKind::kLeaf) {
      const RefTensor* fed = nullptr;
      const std::string& name = node.attributes.String("name");
      if (feeds == nullptr) {
        fed = region_inputs[next_input++];
      } else if (const auto it = feeds->find(name); it != feeds->end()) {
        fed = &it->second;
      } else {
        return absl::InvalidArgumentError(absl::StrFormat("no value for %s %s", node.op->name, name));
      }
      if (fed->dtype != node.results[0].dtype || fed->dims != values[n][0].dims) {
        return absl::InvalidArgumentError(
            absl::StrFormat("the value for %s is not of type %s", name, node.results[0].ToString()));
      }
      values[n][0] = *fed;
    } else {
      std::vector<const RefTensor*> operands;
      for (const Value& input : node.inputs) operands.push_back(&values[input.node][input.result]);
      if (node.body != nullptr) {
        QUERN_ASSIGN(values[n], Evaluate(*node.body, binding, operands, nullptr));
        continue;
      }
      if (node.op->reference == nullptr)
        return absl::UnimplementedError(absl::StrFormat("%s has no reference", node.op->name));
      RefContext context{node, operands, binding, values[n]};
      QUERN_RETURN_IF_ERROR(WithOrigin(graph, node.origin, node.op->reference(context)));
    }
  }
  std::vector<RefTensor> outputs;
  for (const Value& output : graph.outputs) outputs.push_back(values[output.node][output.result]);
  return outputs;
}

}  // namespace

StatusOr<RefTensor> RefTensorFromBytes(DType dtype, std::vector<int64_t> dims, std::span<const uint8_t> bytes) {
  RefTensor tensor{dtype, std::move(dims), {}};
  const int64_t elements = tensor.elements();
  const int64_t row = tensor.dims.empty() ? 1 : tensor.dims.back();
  if (row % Row(dtype).block_elements != 0 ||
      elements / Row(dtype).block_elements * Row(dtype).block_bytes != static_cast<int64_t>(bytes.size())) {
    return absl::InvalidArgumentError(absl::StrFormat("%u bytes are no tensor of %d elements of %s", bytes.size(),
                                                      elements, std::string(Name(dtype))));
  }
  tensor.data.resize(elements);
  for (int64_t i = 0; i < elements; ++i) {
    tensor.data[i] = IsBlock(dtype)
                         ? kir::DecodeElement(dtype, bytes.data() + RowBytes(dtype, row) * (i / row), i % row)
                         : ReadScalar(dtype, bytes.data(), i);
  }
  return tensor;
}

StatusOr<std::vector<RefTensor>> Interpret(const Graph& graph, const Binding& binding, const Feeds& feeds) {
  for (const ExtentConstraint& constraint : graph.constraints) {
    QUERN_ASSIGN(const int64_t left, constraint.left.Evaluate(binding));
    QUERN_ASSIGN(const int64_t right, constraint.right.Evaluate(binding));
    if (left != right) {
      return absl::InvalidArgumentError(absl::StrFormat("extents %s = %d and %s = %d do not agree",
                                                        constraint.left.ToString(), left, constraint.right.ToString(),
                                                        right));
    }
  }
  return Evaluate(graph, binding, {}, &feeds);
}

}  // namespace quern::ir
