// Layouts: where the elements of a buffer lie. A layout is part of a buffer's type; only `pack` moves between layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/block_format.h"
#include "base/dtype.h"
#include "base/extent.h"

namespace quern::kir {

enum class Layout : uint8_t {
  kRow,     // dense, last dimension fastest. The only layout of scalar dtypes in graphs.
  kBlocks,  // rows of ggml blocks, byte for byte as in a GGUF file. Block formats only.
  kPlanar,  // quantised activations: in each row the int8 quants [K], then the f32 scales [K / block], then i16 sums of
            // 16 quants (q8_K) or of 32 (q8_0), then for q8_K also those of 32; a row is padded to 64 bytes. q8_0 and
            // q8_K only.
  kPanel16,  // weights of 16 rows interleaved for 4-way dot products: quants as bytes [K/4][16][4] followed by the
             // scales of each group for the 16 rows; a missing row is zero. Block formats, rank 2, 16 rows.
  kKn32,     // [K][32]: 32 rows of a weight transposed; a missing row is zero. f32, f64 or u32 (what is packed into
             // words), rank 2, 32 rows.
};

struct LayoutRow {
  Layout layout;
  const char* name;  // as printed after '@'; kRow prints nothing
};
const LayoutRow& Row(Layout layout);
std::optional<Layout> LayoutFromName(std::string_view name);

// Whether rows lie between each other, 16 or 32 of them.
inline bool IsPanel(Layout layout) { return layout == Layout::kPanel16 || layout == Layout::kKn32; }

// Whether a buffer of `dtype` may have `layout`.
bool LayoutAllows(Layout layout, DType dtype);

// Whether a copy leads from one to the other: dense rows of one dtype, or to dense floats from other floats or from the
// blocks of a format, which are decoded.
bool CanCopy(DType from, Layout from_layout, DType to, Layout to_layout);

// Bytes from one row (index of the second-to-last dimension) to the next, for rows of `k` elements. For panels, the
// bytes of one whole panel (16 or 32 rows).
int64_t LayoutRowBytes(Layout layout, DType dtype, int64_t k);

// Bytes of a buffer with these extents: every dimension but the last counts rows (panels: one panel).
Extent LayoutBytes(Layout layout, DType dtype, const std::vector<Extent>& dims);

// Offsets inside a planar row of k elements (bytes). Quants are at 0.
struct PlanarRow {
  int64_t scales;     // f32, one a block of 32 (q8_0) or 256 (q8_K)
  int64_t sums;       // i16, one a group of 32 (q8_0) or 16 (q8_K)
  int64_t wide_sums;  // q8_K: i16, one a group of 32, what minimums multiply; q8_0: same as row_bytes
  int64_t row_bytes;  // padded to 64
};
PlanarRow PlanarRowOf(DType dtype, int64_t k);

// Offsets inside a panel16 of k elements (bytes). Quants are at 0, [K/4][16][4] unsigned bytes.
// group = PanelGroup(dtype).
//   scales: f32 [K/group][16]: what a code of the group is multiplied by. d, or the product d * scale, which f32 holds
//           exactly, so the accumulator of a group is finished by one conversion and one fma.
//   mins:   where HasMinimums: i16 [K/group/2][16][2] minimums, two groups interleaved for a 2-way word dot.
//   supers: where HasMinimums: f32 [K/256][16] dmin; where HasAdded: f32 [K/32][16] what is added.
// bytes has room for any level's form: `amx` has signed codes (src/simd/tiles/amx_q32.h), or of blocks of 256 code *
// scale in two bytes (amx_q256.h), and levels that multiply bytes in pairs have scales as words there (quant_layout.h),
// which only a level's packs and tiles see.
struct Panel16 {
  int64_t scales, mins, supers, bytes;
};
Panel16 Panel16Of(DType dtype, int64_t k);

// Elements of a weight's block that share a scale.
inline int64_t PanelGroup(DType dtype) { return FormatOf(dtype).group; }
// Whether a group has a minimum, too, that is taken away from code * scale.
inline bool HasMinimums(DType dtype) { return FormatOf(dtype).dmin != nullptr; }
// Whether a block has a number that is added to its elements.
inline bool HasAdded(DType dtype) { return FormatOf(dtype).added != nullptr; }

}  // namespace quern::kir
