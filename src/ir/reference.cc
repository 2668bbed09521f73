// Tensors of the double interpreter: indexing, rounding to a dtype.

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "ir/op.h"

namespace quern::ir {
namespace {

template <typename T>
double Wrap(double value) {
  if (std::isnan(value)) return 0;
  // Values of integer ops lie within 64 bits: wrap as the machine does.
  return static_cast<double>(static_cast<T>(static_cast<int64_t>(std::clamp(value, -9.2e18, 9.2e18))));
}

}  // namespace

double RefTensor::At(std::span<const int64_t> index) const {
  int64_t offset = 0;
  const size_t skip = index.size() - dims.size();
  for (size_t d = 0; d < dims.size(); ++d) offset = offset * dims[d] + (dims[d] == 1 ? 0 : index[skip + d]);
  return data[offset];
}

void NextIndex(std::span<const int64_t> dims, std::span<int64_t> index) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return;
    index[d] = 0;
  }
}

double RoundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32: return value;  // kept in double: the oracle is more exact than what it judges
    case DType::kF16: return HalfToFloat(FloatToHalf(static_cast<float>(value)));
    case DType::kBF16: return BFloat16ToFloat(FloatToBFloat16(static_cast<float>(value)));
    case DType::kF64: return value;
    case DType::kI8: return Wrap<int8_t>(value);
    case DType::kI16: return Wrap<int16_t>(value);
    case DType::kI32: return Wrap<int32_t>(value);
    case DType::kU8: return Wrap<uint8_t>(value);
    case DType::kU16: return Wrap<uint16_t>(value);
    case DType::kU32: return Wrap<uint32_t>(value);
    case DType::kI64:
    case DType::kU64: return value;
    case DType::kBool: return value != 0;
    case DType::kQ4_0:
    case DType::kQ8_0:
    case DType::kQ4_K:
    case DType::kQ5_K:
    case DType::kQ6_K:
    case DType::kQ8_K: return value;  // decoded values of a block
  }
  return value;
}

}  // namespace quern::ir
