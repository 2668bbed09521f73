// Tensors of the interpreter: indexing, and what each dtype holds of a value. Integers wrap, floats become integers by
// the nearest that there is: the rules of the kernel language, stated once more.

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/half.h"
#include "ir/op.h"

namespace quern::ir {
namespace {

// `value` as `dtype` holds it, in 64 bits.
int64_t Wrap(DType dtype, Wide value) {
  const int bits = 8 * ScalarBytes(dtype);
  const uint64_t low = static_cast<uint64_t>(value);
  if (bits == 64) return static_cast<int64_t>(low);
  const uint64_t kept = low & ((uint64_t{1} << bits) - 1);
  const bool negative = !IsUnsigned(dtype) && (kept >> (bits - 1)) != 0;
  return static_cast<int64_t>(kept) - (negative ? int64_t{1} << bits : 0);
}

}  // namespace

Wide Lowest(DType dtype) { return IsUnsigned(dtype) ? 0 : -(Wide{1} << (8 * ScalarBytes(dtype) - 1)); }

Wide Highest(DType dtype) {
  const int bits = 8 * ScalarBytes(dtype);
  return (Wide{1} << (IsUnsigned(dtype) ? bits : bits - 1)) - 1;
}

Wide Saturated(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  const double within = std::clamp(std::trunc(value), -0x1p64, 0x1p64);
  return std::clamp(static_cast<Wide>(within), Lowest(dtype), Highest(dtype));
}

int64_t RefTensor::elements() const {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

void RefTensor::Allocate() {
  if (IsInteger(dtype))
    integers.assign(elements(), 0);
  else
    data.assign(IsComplex(dtype) ? 2 * elements() : elements(), 0);
}

int64_t RefTensor::Offset(std::span<const int64_t> index) const {
  int64_t offset = 0;
  const size_t skip = index.size() - dims.size();
  for (size_t d = 0; d < dims.size(); ++d) offset = offset * dims[d] + (dims[d] == 1 ? 0 : index[skip + d]);
  return offset;
}

double RefTensor::Real(int64_t at) const { return IsInteger(dtype) ? static_cast<double>(Integer(at)) : data[at]; }

Wide RefTensor::Integer(int64_t at) const {
  if (!IsInteger(dtype)) return data[at] != 0 ? 1 : 0;
  return dtype == DType::kU64 ? static_cast<Wide>(static_cast<uint64_t>(integers[at])) : integers[at];
}

void RefTensor::SetInteger(int64_t at, Wide value) { integers[at] = Wrap(dtype, value); }

void RefTensor::Take(int64_t at, const RefTensor& from, int64_t position) {
  if (IsInteger(dtype))
    integers[at] = from.integers[position];
  else if (IsComplex(dtype))
    SetComplex(at, from.Complex(position));
  else
    data[at] = from.data[position];
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
    case DType::kF64: return value;
    case DType::kC64: return value;  // a part of one
    case DType::kF16: return HalfToFloat(FloatToHalf(static_cast<float>(value)));
    case DType::kBF16: return BFloat16ToFloat(FloatToBFloat16(static_cast<float>(value)));
    case DType::kBool: return value != 0; QUERN_BLOCK_CASES return value;  // decoded values of a block
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64: break;
  }
  QUERN_CHECK(false && "integers are not rounded");
  return 0;
}

double RoundOnce(DType dtype, double value) {
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  return RoundTo(dtype, half ? RoundToOdd(value) : value);
}

}  // namespace quern::ir
