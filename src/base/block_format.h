// What a block format is: one file in base/formats and one row of QUERN_BLOCK_FORMATS (dtype.h).
//
//   const BlockFormat& Format_q4_0() {
//     static constexpr BlockFormat format = {
//         .name = "q4_0",
//         ...
//         .code = "u8[2 + i % 16] >> i / 16 * 4 & 15",
//         .zero = 8,
//         .d = "f16[0]",
//     };
//     return format;
//   }
//
// Element i of a block is, in f32, rounded after each operation:
//
//   (d * scale) * (code - zero) - dmin * minimum + added        with `levels`: levels[code] for code - zero
//
// where the fields are KIR expressions over the bytes of the block: u8[a] and i8[a] are byte a as a number (i64),
// f16[a] and f32[a] element a of the block as an array of those, e8[a] 2 to the power of byte a less 128, a a number;
// half[n] is the f16 whose bits are n, grid[n] word n of the format's table. A float may be multiplied by a constant.
// Places in the block follow from i alone; what an operator takes, and every integer but `scale`, is never negative and
// below 2^31; a group shares scale and minimum. A format has minimums or `added`, not both. The interpreter
// (kir/decode.h), text of C and Metal (codegen/text), instructions of CPUs and PTX (codegen/llvm), the GGUF reader and
// names in IR text follow from this. SIMD tiles (simd/tiles) are the fast path of products, where there are any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/dtype.h"

namespace quern {

// How much the elements of a block count, by the squares of what they are multiplied with: an importance matrix.
struct Importance {
  const float* of;    // of each element; none is negative, NaN or infinite
  float mean_square;  // of the elements of the whole row
};

struct BlockFormat {
  const char* name;  // in IR text
  // Of tensors in GGUF files, "Q4_0"; none: no file has them.
  std::optional<uint32_t> gguf_type = {};
  const char* gguf_name = nullptr;
  int elements, bytes;  // of a block
  const char* code;     // below 256
  int zero = 0;
  std::span<const int8_t> levels = {};  // of each code; none: the code itself, from zero on
  std::span<const uint16_t> grid = {};  // the table that expressions look words up in: several codes each
  int group;                            // elements that share a scale
  const char* d;                        // of the block
  const char* scale = nullptr;          // an integer; none: 1
  const char* dmin = nullptr;           // of the block; none: nothing is taken away
  const char* minimum = nullptr;
  const char* added = nullptr;  // of the block; none: nothing is
  // The format of the activations that SIMD tiles multiply these weights with (kir/block_products.h). None:
  // activations stay f32, and products decode.
  std::optional<DType> activation = {};
  // Activations: a quantised row keeps the sums of so many neighbours; 0: this is no format of activations.
  int sums = 0;
  // A block of `elements` numbers, none of them NaN or infinite: ggml's reference quantiser, bit for bit. A scale that
  // is no half becomes infinite.
  void (*quantise)(const float* x, uint8_t* block) = nullptr;
  // The same where elements count more or less, as ggml does it with an importance matrix. None: it makes no
  // difference.
  void (*quantise_by)(const float* x, const Importance& importance, uint8_t* block) = nullptr;
};

// Precondition: IsBlock(dtype). A reference to a constant.
const BlockFormat& FormatOf(DType dtype);

}  // namespace quern
