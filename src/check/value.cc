#include "check/value.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/region.h"
#include "kir/decode.h"
#include "kir/quantise.h"

namespace quern::check {
namespace {

// `infinity`: the bits of the dtype's infinity, sign off; larger ones are NaNs.
template <typename T>
Special Scan(std::span<const uint8_t> bytes, T infinity) {
  bool nan = false, inf = false;
  const T mask = static_cast<T>(~(T{1} << (8 * sizeof(T) - 1)));
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T bits;
    std::memcpy(&bits, bytes.data() + at, sizeof(T));
    bits &= mask;
    nan |= bits > infinity;
    inf |= bits == infinity;
  }
  return {nan, inf};
}

}  // namespace

StatusOr<std::vector<int64_t>> SizesOf(const ir::TensorType& type, const Binding& binding) {
  std::vector<int64_t> dims;
  int64_t elements = 1;
  bool overflow = false, empty = false;
  for (const Extent& dim : type.dims) {
    QUERN_ASSIGN(const int64_t size, dim.Evaluate(binding));
    if (size < 0) return absl::InvalidArgumentError(absl::StrFormat("the size %s is %d", dim.ToString(), size));
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(elements, size, &elements);
    dims.push_back(size);
  }
  if (!empty && (overflow || elements > kMostElements)) {
    return absl::InvalidArgumentError(absl::StrFormat("a value of %s has more than the %d elements that a check takes",
                                                      type.ToString(), kMostElements));
  }
  if (IsBlock(type.dtype) && (dims.empty() || dims.back() % Row(type.dtype).block_elements != 0)) {
    return absl::InvalidArgumentError(absl::StrFormat("the rows of %s are not whole blocks of %d elements",
                                                      type.ToString(), Row(type.dtype).block_elements));
  }
  return dims;
}

StatusOr<int64_t> BytesOf(const ir::TensorType& type, bool parameter, const Binding& binding) {
  QUERN_RETURN_IF_ERROR(SizesOf(type, binding).status());
  const kir::BufferType stored = codegen::BufferTypeOf(type, parameter);
  return kir::LayoutBytes(stored.layout, stored.dtype, stored.dims).Evaluate(binding);
}

StatusOr<ir::RefTensor> Decode(const ir::TensorType& type, bool parameter, const Binding& binding,
                               std::span<const uint8_t> bytes) {
  QUERN_ASSIGN(std::vector<int64_t> dims, SizesOf(type, binding));
  const kir::Layout layout = codegen::BufferTypeOf(type, parameter).layout;
  if (layout != kir::Layout::kPlanar) return ir::RefTensorFromBytes(type.dtype, std::move(dims), bytes);
  ir::RefTensor tensor{type.dtype, std::move(dims), {}};
  tensor.data.resize(tensor.elements());
  const int64_t k = tensor.dims.back(), row_bytes = kir::LayoutRowBytes(layout, type.dtype, k);
  if (k == 0 || tensor.elements() / k * row_bytes != static_cast<int64_t>(bytes.size())) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%u bytes are no planar value of %s", bytes.size(), type.ToString()));
  }
  for (int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data[i] = kir::DecodePlanar(type.dtype, bytes.data() + i / k * row_bytes, k, i % k);
  return tensor;
}

StatusOr<std::vector<uint8_t>> Encode(const ir::RefTensor& tensor) {
  if (tensor.dtype == DType::kQ8_0 || tensor.dtype == DType::kQ8_K) {
    const int64_t k = tensor.dims.back(), row_bytes = kir::LayoutRowBytes(kir::Layout::kPlanar, tensor.dtype, k);
    const int64_t rows = k == 0 ? 0 : tensor.elements() / k;
    std::vector<uint8_t> bytes(rows * row_bytes);
    const std::vector<float> values(tensor.data.begin(), tensor.data.end());
    for (int64_t r = 0; r < rows; ++r)
      kir::QuantiseToPlanar(tensor.dtype, values.data() + r * k, k, bytes.data() + r * row_bytes, k, 0);
    return bytes;
  }
  if (IsBlock(tensor.dtype))
    return absl::UnimplementedError(absl::StrFormat("values of %s are not encoded", std::string(Name(tensor.dtype))));
  return ir::BytesOf(tensor);
}

Special Specials(DType dtype, std::span<const uint8_t> bytes) {
  if (dtype == DType::kF32) return Scan<uint32_t>(bytes, 0x7F800000);
  if (dtype == DType::kF64) return Scan<uint64_t>(bytes, 0x7FF0000000000000);
  if (dtype == DType::kF16) return Scan<uint16_t>(bytes, 0x7C00);
  if (dtype == DType::kBF16) return Scan<uint16_t>(bytes, 0x7F80);
  return {};
}

Special Specials(const ir::RefTensor& tensor) {
  Special found;
  for (const double value : tensor.data) {
    found.nan |= std::isnan(value);
    found.inf |= std::isinf(value);
  }
  return found;
}

std::vector<int64_t> IndexOf(std::span<const int64_t> dims, int64_t element) {
  std::vector<int64_t> index(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    index[d] = element % std::max<int64_t>(dims[d], 1);
    element /= std::max<int64_t>(dims[d], 1);
  }
  return index;
}

std::string Text(std::span<const int64_t> index) { return absl::StrCat("[", absl::StrJoin(index, ", "), "]"); }

}  // namespace quern::check
