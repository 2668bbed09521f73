// Element types: the scalar dtypes and the ggml block formats, one enum and one table.
//
// A block format packs `block_elements` consecutive elements of a row into `block_bytes` bytes; a scalar dtype is the
// case of one element. Everything else about a format (its decoder, its dot products) names it by this enum.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quern {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,
  // ggml block formats (byte layouts: ggml; kir/decode.h reads them)
  kQ4_0,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ8_K,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kQ8_K) + 1;

enum class DTypeClass : uint8_t { kFloat, kSigned, kUnsigned, kBool, kBlock };

struct DTypeRow {
  DType dtype;
  const char* name;  // "f32", "q4_K": what IR text prints and parses
  DTypeClass kind;
  int block_elements;  // 1 for scalars
  int block_bytes;     // bytes of one block, or of one scalar
};

// The row of `dtype`; every enumerator has one. Here and below: thread-safe, tables are constant.
const DTypeRow& Row(DType dtype);

inline std::string_view Name(DType dtype) { return Row(dtype).name; }
inline bool IsFloat(DType dtype) { return Row(dtype).kind == DTypeClass::kFloat; }
inline bool IsInteger(DType dtype) {
  return Row(dtype).kind == DTypeClass::kSigned || Row(dtype).kind == DTypeClass::kUnsigned;
}
inline bool IsUnsigned(DType dtype) { return Row(dtype).kind == DTypeClass::kUnsigned; }
inline bool IsBlock(DType dtype) { return Row(dtype).kind == DTypeClass::kBlock; }
// Bytes of one scalar element. Precondition: not a block format.
int ScalarBytes(DType dtype);
// Bytes of a row of `elements`; for block formats elements must be a multiple of block_elements.
int64_t RowBytes(DType dtype, int64_t elements);

// The dtype named `name` as printed by Name(), or nullopt.
std::optional<DType> DTypeFromName(std::string_view name);

// The common type of a binary operation on `a` and `b`, commutative: equal types stay, f16 with bf16 gives f32, an
// integer with a float gives f64 if f64 or a 64-bit integer is involved and else f32, u8+i8 gives i16, u32+i32 gives
// i64; otherwise the wider. Neither may be a block format.
DType Promote(DType a, DType b);

}  // namespace quern
