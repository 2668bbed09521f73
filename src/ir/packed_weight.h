// Schemes of packed weights that are no block formats of files: numbers of 8 or 4 bits in a tensor of their own, with
// scales beside them (DequantMatMul).
//
//   int8      w i8 [K, N]                 scale [ceil(K/block), N]                     w = q s
//   int8a     w i8 [K, N]                 scale, zero point alike                      w = (q - z) s
//   int4      w u8, ceil(K N / 2) bytes   scale, zero point alike                      w = (q - z) s
//   fp8e4m3   w u8 [K, N]                 scale [N], or none                           w = float8(q) s
//   fp8e5m2   the same
//   nvfp4     w u8, ceil(K N / 2) bytes   scale u8 [ceil(K/16), N], global [1]         w = float4(q) float8e4m3(s) g
//
// Of two numbers in a byte the first is the low half; number p N + j is that of row p and column j. The last group of
// rows may be short. float8 and float4 are those of ir/small_float.h.
#pragma once

#include <string>
#include <vector>

#include "ir/composite.h"
#include "ir/small_float.h"

namespace quern::ir {

struct PackedScheme {
  const char* name;
  DType dtype;               // of w
  bool nibbles;              // two numbers a byte
  bool in_blocks;            // the attribute `block` is the rows that share a scale
  bool has_zero_point;       // operand 3 is read
  const SmallFloat* floats;  // null: the numbers are integers
  DType scale;               // its dtype
};
// The names of all, and one by its name, which is one of them.
std::vector<const char*> PackedSchemes();
const PackedScheme& FindPackedScheme(const std::string& name);

// Rows that share a scale.
int64_t RowsOfScale(const PackedScheme& scheme, const Attributes& attributes);

// Operand numbers.
enum PackedOperand { kPackedX, kPackedWeight, kPackedScale, kPackedExtra };
// The weight [K, N] in `dtype`, f32 or f64, of operands as DequantMatMul has them.
Value UnpackedWeight(Expansion& e, const Node& node, std::span<const Value> inputs, const Extent& k, const Extent& n,
                     DType dtype);

}  // namespace quern::ir
