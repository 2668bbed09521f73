// Element types: the scalar dtypes and the block formats of weights, one enum and one table.
//
// A block format packs `block_elements` consecutive elements of a row into `block_bytes` bytes; a scalar dtype is the
// case of one element. All else about a format is in its file, base/formats/NAME.cc (block_format.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// The block formats, a row each: the enumerator without its k, and the name of the file. New ones go to the end.
#define QUERN_BLOCK_FORMATS(ROW) \
  ROW(Q4_0, q4_0)                \
  ROW(Q8_0, q8_0)                \
  ROW(Q4_K, q4_K)                \
  ROW(Q5_K, q5_K)                \
  ROW(Q6_K, q6_K)                \
  ROW(Q8_K, q8_K)                \
  ROW(Q5_0, q5_0)                \
  ROW(IQ4_NL, iq4_nl)            \
  ROW(Q4_1, q4_1)                \
  ROW(Q5_1, q5_1)                \
  ROW(Q2_K, q2_K)                \
  ROW(Q3_K, q3_K)                \
  ROW(IQ4_XS, iq4_xs)            \
  ROW(MXFP4, mxfp4)              \
  ROW(TQ1_0, tq1_0)              \
  ROW(TQ2_0, tq2_0)              \
  ROW(IQ2_XXS, iq2_xxs)          \
  ROW(IQ2_XS, iq2_xs)            \
  ROW(IQ2_S, iq2_s)              \
  ROW(IQ3_XXS, iq3_xxs)          \
  ROW(IQ3_S, iq3_s)              \
  ROW(IQ1_S, iq1_s)              \
  ROW(IQ1_M, iq1_m)              \
  ROW(N4_0, n4_0)                \
  ROW(N4_1, n4_1)                \
  ROW(N8_0, n8_0)                \
  ROW(N8_1, n8_1)

namespace quern {

#define QUERN_ENUMERATOR(format, file) k##format,
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
  kC64,
  QUERN_BLOCK_FORMATS(QUERN_ENUMERATOR)
};
#undef QUERN_ENUMERATOR

// In a switch, the labels of all block formats.
#define QUERN_BLOCK_CASE(format, file) case ::quern::DType::k##format:
#define QUERN_BLOCK_CASES QUERN_BLOCK_FORMATS(QUERN_BLOCK_CASE)

#define QUERN_COUNT(format, file) +1
inline constexpr int kScalarDTypeCount = static_cast<int>(DType::kC64) + 1;
inline constexpr int kDTypeCount = kScalarDTypeCount QUERN_BLOCK_FORMATS(QUERN_COUNT);
#undef QUERN_COUNT

enum class DTypeClass : uint8_t { kFloat, kSigned, kUnsigned, kBool, kComplex, kBlock };

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
// c64: two f32, re and im. A dtype of graphs alone: kernels see pairs (opt/complex_as_pairs.cc).
inline bool IsComplex(DType dtype) { return Row(dtype).kind == DTypeClass::kComplex; }
inline bool IsBlock(DType dtype) { return Row(dtype).kind == DTypeClass::kBlock; }
// Bytes of one scalar element. Precondition: not a block format.
int ScalarBytes(DType dtype);
// Bytes of a row of `elements`; for block formats elements must be a multiple of block_elements.
int64_t RowBytes(DType dtype, int64_t elements);

// The dtype named `name` as printed by Name(), or nullopt.
std::optional<DType> DTypeFromName(std::string_view name);

// The common type of a binary operation on `a` and `b`, commutative: equal types stay, f16 with bf16 gives f32, an
// integer with a float gives f64 if f64 or a 64-bit integer is involved and else f32, u8+i8 gives i16, u32+i32 gives
// i64; otherwise the wider; c64 with any but f64, with which it has none, gives c64. Neither may be a block format.
DType Promote(DType a, DType b);

}  // namespace quern
