// Tile ops: functions over tiles and slices with a meaning (a KIR body, which the interpreter runs) and, on a target
// that has one, a binding (a faster way to do the same). One op, one file in src/kir/tiles/, of which CMake makes the
// table; those of block formats follow from the formats (block_products.h), those of attention from the dtypes of its
// operands (flash_steps.h).
//
//   mma_f32 c += x, w      c : f32[m, n]   x : f32[m, k]   w : f32[n, k] @kn32
//
// Call convention of a CPU binding, the same for every op, `<symbol>_<level>` with C linkage:
//   for each tile:     float* or int32_t* data, int64_t ld   (ld: elements between rows; rank 1: 1)
//   for each operand:  const void* data, int64_t stride   (stride: bytes between rows of its second-to-last ranged
//                      dimension; 0 for rank 1). An absent optional operand is null, 0.
//   for each size:     int64_t, in the order of `sizes`
//   for each attribute: int64_t (integer) or float, in the order of `attributes`
//   then int64_t from_zero, of an op that `starts`: not 0 where the live elements of its tiles are 0 before, whatever
//   lies there
//   then void* workspace, when workspace_bytes is not null.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/divide.h"
#include "kir/kir.h"

namespace quern::kir {

struct TileOperand {
  const char* name;
  DType dtype;
  std::vector<const char*> dims;  // size names, or "" for a dimension taken by a point index
  Layout layout = Layout::kRow;
  bool optional = false;
};

struct TileAttribute {
  const char* name;
  DType dtype;  // kI64 or kF32
  double default_value;
};

// Operations of one call, as a profile counts them: what the product of the live sizes needs, whatever a binding does.
struct TileWork {
  double flops = 0;
  double bf16_ops = 0;  // multiplications and additions of products of bf16 by bf16
  double int8_ops = 0;  // likewise, of integer dot products
};

struct TileOp {
  const char* name;  // "mma_f32"
  const char* doc;
  std::vector<TileOperand> tiles;  // f32 or i32, read and written
  std::vector<TileOperand> operands;
  std::vector<const char*> sizes;  // "m", "n", "k": each is a dim of some tile or operand
  std::vector<TileAttribute> attributes;
  const char* meaning;  // KIR statements; see Meaning()
  double rtol;          // of a binding against the meaning in double, relative to sum |terms|
  const char* symbol;   // CPU binding "qk_mma_f32", or null: the meaning is expanded
  int64_t (*workspace_bytes)(std::span<const int64_t> sizes) = nullptr;
  TileWork (*work)(std::span<const int64_t> sizes) = nullptr;  // every op has it
  bool starts = false;  // its tiles have its sizes m, n as dims, and the binding may take them for 0
};

// 2 m n k of a product whose sizes are m, n, k.
inline TileWork FloatProduct(std::span<const int64_t> sizes) {
  return {.flops = 2.0 * static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) * static_cast<double>(sizes[2])};
}
// Of sizes m, n, e, k: of the rows that have k elements from their beginning on, e in each row.
inline TileWork RunProduct(std::span<const int64_t> sizes) {
  const int64_t rows = sizes[0] - CeilDiv(sizes[3], std::max<int64_t>(1, sizes[2])) + 1;
  return FloatProduct(std::array{std::max<int64_t>(0, rows), sizes[1], sizes[3]});
}
inline TileWork PairProduct(std::span<const int64_t> sizes) { return {.bf16_ops = FloatProduct(sizes).flops}; }
inline TileWork IntegerProduct(std::span<const int64_t> sizes) { return {.int8_ops = FloatProduct(sizes).flops}; }

// Every tile op, sorted by name.
std::span<const TileOp* const> TileOps();
const TileOp* FindTileOp(std::string_view name);
// The statements of op.meaning, over these names: tiles and operands are buffers of their declared dtype, layout and
// extents (a dim taken by a point index is left out); sizes are i64 and attributes scalars of their dtype. An absent
// optional operand reads as 0.
Block Meaning(const TileOp& op);

// The pack table: src type to dst type. CPU binding, C linkage, `<symbol>_<level>`:
//   void (void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k)
// strides in bytes between rows (a panel: bytes of the panel, unused). rows of a panel may be fewer than 16 or 32.
// A pack to @planar takes two more arguments, int64_t row_k, int64_t start: dst is the start of whole rows of row_k
// elements, of which the k elements of src become columns [start, start + k). Both are multiples of the block.
// Between dense rows of one dtype (Turns) the rows of src become the columns of dst: dst has k rows of `rows` elements.
struct PackRow {
  DType src;
  Layout src_layout;
  DType dst;
  Layout dst_layout;
  const char* symbol;  // where there is none, blocks are decoded element by element
  const char* doc;
  int merges = 1;  // elements of a row of src that become one of dst; the row of dst has room for them at least
};
inline constexpr const char* kTransposeDoc = "32 rows of a weight to f32 [K][32]; missing rows are zero";
std::span<const PackRow> PackTable();
// Whether a pack between these layouts transposes.
inline bool Turns(Layout from, Layout to) { return from == Layout::kRow && to == Layout::kRow; }
const PackRow* FindPack(DType src, Layout src_layout, DType dst, Layout dst_layout);

}  // namespace quern::kir
