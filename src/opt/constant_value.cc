#include "opt/constant_value.h"

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "ir/interpret.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

constexpr double kExactInteger = 9007199254740992.0;  // 2^53

template <typename T>
void Put(std::vector<uint8_t>& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

}  // namespace

std::optional<double> ScalarConstant(const ir::Graph& graph, ir::Value value) {
  const ir::Node& node = graph.node(value.node);
  if (!Is(node, "Constant") || node.results[0].elements() != Extent(1)) return std::nullopt;
  const StatusOr<ir::RefTensor> tensor = ir::RefTensorFromBytes(node.results[0].dtype, {1}, *node.data);
  if (!tensor.ok()) return std::nullopt;
  return tensor->data[0];
}

std::optional<std::vector<uint8_t>> BytesOf(const ir::RefTensor& tensor) {
  std::vector<uint8_t> bytes;
  for (const double value : tensor.data) {
    switch (tensor.dtype) {
      case DType::kF32: Put(bytes, static_cast<float>(value)); break;
      case DType::kF64: Put(bytes, value); break;
      case DType::kF16: Put(bytes, FloatToHalf(static_cast<float>(value))); break;
      case DType::kBF16: Put(bytes, FloatToBFloat16(static_cast<float>(value))); break;
      case DType::kI8: Put(bytes, static_cast<int8_t>(value)); break;
      case DType::kI16: Put(bytes, static_cast<int16_t>(value)); break;
      case DType::kI32: Put(bytes, static_cast<int32_t>(value)); break;
      case DType::kU8: Put(bytes, static_cast<uint8_t>(value)); break;
      case DType::kU16: Put(bytes, static_cast<uint16_t>(value)); break;
      case DType::kU32: Put(bytes, static_cast<uint32_t>(value)); break;
      case DType::kBool: Put(bytes, static_cast<uint8_t>(value != 0)); break;
      case DType::kI64:
      case DType::kU64:
        if (std::fabs(value) >= kExactInteger) return std::nullopt;
        if (tensor.dtype == DType::kI64)
          Put(bytes, static_cast<int64_t>(value));
        else
          Put(bytes, static_cast<uint64_t>(value));
        break;
      case DType::kQ4_0:
      case DType::kQ8_0:
      case DType::kQ4_K:
      case DType::kQ5_K:
      case DType::kQ6_K:
      case DType::kQ8_K: return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace quern::opt
