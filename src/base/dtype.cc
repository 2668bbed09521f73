#include "base/dtype.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/block_format.h"
#include "base/check.h"

namespace quern {
namespace {

constexpr DTypeRow kScalars[] = {
    {DType::kF32, "f32", DTypeClass::kFloat, 1, 4},    {DType::kF16, "f16", DTypeClass::kFloat, 1, 2},
    {DType::kBF16, "bf16", DTypeClass::kFloat, 1, 2},  {DType::kF64, "f64", DTypeClass::kFloat, 1, 8},
    {DType::kI8, "i8", DTypeClass::kSigned, 1, 1},     {DType::kI16, "i16", DTypeClass::kSigned, 1, 2},
    {DType::kI32, "i32", DTypeClass::kSigned, 1, 4},   {DType::kI64, "i64", DTypeClass::kSigned, 1, 8},
    {DType::kU8, "u8", DTypeClass::kUnsigned, 1, 1},   {DType::kU16, "u16", DTypeClass::kUnsigned, 1, 2},
    {DType::kU32, "u32", DTypeClass::kUnsigned, 1, 4}, {DType::kU64, "u64", DTypeClass::kUnsigned, 1, 8},
    {DType::kBool, "bool", DTypeClass::kBool, 1, 1},   {DType::kC64, "c64", DTypeClass::kComplex, 1, 8},
};
static_assert(std::size(kScalars) == kScalarDTypeCount);

std::array<DTypeRow, kDTypeCount> AllRows() {
  std::array<DTypeRow, kDTypeCount> rows{};
  std::copy(std::begin(kScalars), std::end(kScalars), rows.begin());
  for (int i = kScalarDTypeCount; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    const BlockFormat& format = FormatOf(dtype);
    rows[i] = {dtype, format.name, DTypeClass::kBlock, format.elements, format.bytes};
  }
  return rows;
}

const std::array<DTypeRow, kDTypeCount>& Rows() {
  static const std::array<DTypeRow, kDTypeCount> rows = AllRows();
  return rows;
}

}  // namespace

const DTypeRow& Row(DType dtype) { return Rows()[static_cast<size_t>(dtype)]; }

int ScalarBytes(DType dtype) {
  QUERN_CHECK(!IsBlock(dtype));
  return Row(dtype).block_bytes;
}

int64_t RowBytes(DType dtype, int64_t elements) {
  const DTypeRow& row = Row(dtype);
  QUERN_CHECK(elements % row.block_elements == 0);
  return elements / row.block_elements * row.block_bytes;
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const DTypeRow& row : Rows()) {
    if (name == row.name) return row.dtype;
  }
  return std::nullopt;
}

DType Promote(DType a, DType b) {
  QUERN_CHECK(!IsBlock(a) && !IsBlock(b));
  if (a == b) return a;
  if (a == DType::kBool) return b;
  if (b == DType::kBool) return a;
  if (IsComplex(a) || IsComplex(b)) return DType::kC64;
  if (IsFloat(a) && IsFloat(b)) {
    if (ScalarBytes(a) == ScalarBytes(b)) return DType::kF32;  // f16 with bf16
    return ScalarBytes(a) > ScalarBytes(b) ? a : b;
  }
  if (IsFloat(a) || IsFloat(b)) {
    return ScalarBytes(a) == 8 || ScalarBytes(b) == 8 ? DType::kF64 : DType::kF32;
  }
  if (IsUnsigned(a) == IsUnsigned(b)) return ScalarBytes(a) > ScalarBytes(b) ? a : b;
  // Mixed signs: the narrowest signed type that holds both; u64 has none and becomes i64.
  const DType u = IsUnsigned(a) ? a : b, s = IsUnsigned(a) ? b : a;
  if (ScalarBytes(s) > ScalarBytes(u)) return s;
  switch (ScalarBytes(u)) {
    case 1: return DType::kI16;
    case 2: return DType::kI32;
  }
  return DType::kI64;
}

}  // namespace quern
