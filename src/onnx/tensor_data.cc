#include "onnx/tensor_data.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/half.h"

namespace quern::onnx {
namespace {

// How the elements of a type lie in a file.
enum class Form : uint8_t { kPlain, kNibbles, kFloat8, kNone };
// The field that has them where there are no raw bytes.
enum class Field : uint8_t { kFloats, kInts32, kInts64, kDoubles, kUInts64, kNone };

struct TypeRow {
  const char* name;
  std::optional<DType> dtype;
  Form form = Form::kPlain;
  Field field = Field::kNone;
  int exponent_bits = 0;  // of a float of 8 bits
};

// By the numbers of the format.
constexpr TypeRow kTypes[] = {
    {"UNDEFINED", {}, Form::kNone},
    {"FLOAT", DType::kF32, Form::kPlain, Field::kFloats},
    {"UINT8", DType::kU8, Form::kPlain, Field::kInts32},
    {"INT8", DType::kI8, Form::kPlain, Field::kInts32},
    {"UINT16", DType::kU16, Form::kPlain, Field::kInts32},
    {"INT16", DType::kI16, Form::kPlain, Field::kInts32},
    {"INT32", DType::kI32, Form::kPlain, Field::kInts32},
    {"INT64", DType::kI64, Form::kPlain, Field::kInts64},
    {"STRING", {}, Form::kNone},
    {"BOOL", DType::kBool, Form::kPlain, Field::kInts32},
    {"FLOAT16", DType::kF16, Form::kPlain, Field::kInts32},
    {"DOUBLE", DType::kF64, Form::kPlain, Field::kDoubles},
    {"UINT32", DType::kU32, Form::kPlain, Field::kUInts64},
    {"UINT64", DType::kU64, Form::kPlain, Field::kUInts64},
    {"COMPLEX64", DType::kC64, Form::kPlain, Field::kFloats},
    {"COMPLEX128", {}, Form::kNone},
    {"BFLOAT16", DType::kBF16, Form::kPlain, Field::kInts32},
    {"FLOAT8E4M3FN", DType::kF16, Form::kFloat8, Field::kInts32, 4},
    {"FLOAT8E4M3FNUZ", {}, Form::kNone},
    {"FLOAT8E5M2", DType::kF16, Form::kFloat8, Field::kInts32, 5},
    {"FLOAT8E5M2FNUZ", {}, Form::kNone},
    {"UINT4", DType::kU8, Form::kNibbles, Field::kInts32},
    {"INT4", DType::kI8, Form::kNibbles, Field::kInts32},
    {"FLOAT4E2M1", {}, Form::kNone},
};

// The f16 of a float of 8 bits: the upper half of one where it has 5 bits of exponent.
uint16_t HalfOf(uint8_t bits, int exponent_bits) {
  if (exponent_bits == 5) return static_cast<uint16_t>(bits << 8);
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const auto sign = static_cast<uint16_t>((bits & 0x80) << 8);
  if (exponent == 15 && mantissa == 7) return sign | 0x7e00;
  // Below 2^-6 its numbers are multiples of 2^-9, which f16 has as normal ones.
  if (exponent == 0 && mantissa == 0) return sign;
  if (exponent > 0) return static_cast<uint16_t>(sign | (exponent + 8) << 10 | mantissa << 7);
  const int top = std::bit_width(static_cast<unsigned>(mantissa)) - 1;
  return static_cast<uint16_t>(sign | (top + 6) << 10 | (mantissa << (10 - top) & 0x3ff));
}

template <typename To, typename From>
void Store(const From& from, std::vector<uint8_t>& bytes) {
  bytes.resize(from.size() * sizeof(To));
  for (int i = 0; i < from.size(); ++i) {
    const To value = static_cast<To>(from.Get(i));
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
}

// Elements of a field as bytes of `width` each; truncated, as a file has nothing wider than its type.
std::vector<uint8_t> FromField(const format::Tensor& tensor, Field field, int width) {
  std::vector<uint8_t> bytes;
  const auto integers = [&](const auto& from) {
    if (width == 1) return Store<uint8_t>(from, bytes);
    if (width == 2) return Store<uint16_t>(from, bytes);
    if (width == 4) return Store<uint32_t>(from, bytes);
    Store<uint64_t>(from, bytes);
  };
  switch (field) {
    case Field::kFloats: Store<float>(tensor.float_data(), bytes); break;
    case Field::kDoubles: Store<double>(tensor.double_data(), bytes); break;
    case Field::kInts32: integers(tensor.int32_data()); break;
    case Field::kInts64: integers(tensor.int64_data()); break;
    case Field::kUInts64: integers(tensor.uint64_data()); break;
    case Field::kNone: break;
  }
  return bytes;
}

}  // namespace

std::string TypeName(int type) {
  if (type >= 0 && type < static_cast<int>(std::size(kTypes))) return kTypes[type].name;
  return absl::StrCat("type ", type);
}

StatusOr<DType> DTypeOf(int type) {
  if (type >= 0 && type < static_cast<int>(std::size(kTypes)) && kTypes[type].dtype) return *kTypes[type].dtype;
  return absl::UnimplementedError(absl::StrFormat("there are no tensors of %s", TypeName(type)));
}

StatusOr<Data> ReadTensor(const format::Tensor& tensor, std::span<const uint8_t> raw, bool is_raw) {
  const auto wrong = [&](std::string what) {
    return absl::InvalidArgumentError(absl::StrFormat("tensor %s %s", tensor.name(), what));
  };
  Data data;
  const StatusOr<DType> dtype = DTypeOf(tensor.data_type());
  if (!dtype.ok())
    return absl::UnimplementedError(absl::StrFormat("tensor %s: %s", tensor.name(), dtype.status().message()));
  data.dtype = *dtype;
  const TypeRow& row = kTypes[tensor.data_type()];
  int64_t elements = 1;
  for (const int64_t dim : tensor.dims()) {
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements) || elements > kMostElements)
      return wrong(absl::StrFormat("has a size of %d, and more elements than there are bytes for", dim));
    data.dims.push_back(dim);
  }
  const bool nibbles = row.form == Form::kNibbles;
  const int stored = row.form == Form::kPlain ? ScalarBytes(data.dtype) : 1;
  const int64_t expected = nibbles ? (elements + 1) / 2 : elements * stored;
  std::shared_ptr<std::vector<uint8_t>> own;
  if (!is_raw) {
    own = std::make_shared<std::vector<uint8_t>>(FromField(tensor, row.field, stored));
    raw = *own;
  }
  if (static_cast<int64_t>(raw.size()) != expected)
    return wrong(absl::StrFormat("has %u bytes; %d elements of %s have %d", raw.size(), elements, row.name, expected));
  if (data.dtype == DType::kBool) {
    for (const uint8_t byte : raw) {
      if (byte > 1) return wrong(absl::StrFormat("has a bool that is %d", byte));
    }
  }
  if (row.form == Form::kPlain) {
    data.bytes = raw;
    data.owner = std::move(own);
    return data;
  }
  auto made = std::make_shared<std::vector<uint8_t>>(elements * ScalarBytes(data.dtype));
  for (int64_t i = 0; i < elements; ++i) {
    if (nibbles) {
      const int bits = raw[i / 2] >> (i % 2 * 4) & 15;
      (*made)[i] = static_cast<uint8_t>(data.dtype == DType::kI8 && bits > 7 ? bits - 16 : bits);
    } else {
      const uint16_t half = HalfOf(raw[i], row.exponent_bits);
      std::memcpy(made->data() + 2 * i, &half, 2);
    }
  }
  data.bytes = *made;
  data.owner = std::move(made);
  return data;
}

}  // namespace quern::onnx
