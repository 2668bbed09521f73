// The pack table: every change of format or layout that there is a primitive for. f16 to f32 and back is a cast, not a
// pack. Quantising follows ggml's reference encoders bit for bit; see quantise.h.
#include "kir/block_products.h"
#include "kir/tile_op.h"

namespace quern::kir {
namespace {

// Halves are moved as bits.
constexpr PackRow PairsOf(DType dtype) {
  return {
      dtype,
      Layout::kRow,
      DType::kU32,
      Layout::kKn32,
      "qk_pack_pairs",
      "32 rows of a weight to words [K/2][32] of two neighbours, the first in the low half; what is missing is zero",
      2};
}

// Bytes are moved as bits, with a sign or without.
constexpr PackRow QuadsOf(DType dtype) {
  return {dtype,
          Layout::kRow,
          DType::kU32,
          Layout::kKn32,
          "qk_pack_quads",
          "32 rows of bytes to words [K/4][32] of four neighbours, the first lowest; what is missing is zero",
          4};
}

constexpr PackRow kPacks[] = {
    {DType::kF32, Layout::kRow, DType::kQ8_0, Layout::kPlanar, "qk_pack_q8_0_planar", "f32 rows quantised to q8_0"},
    {DType::kF32, Layout::kRow, DType::kQ8_K, Layout::kPlanar, "qk_pack_q8_K_planar", "f32 rows quantised to q8_K"},
    {DType::kF32, Layout::kRow, DType::kF32, Layout::kKn32, "qk_pack_f32_kn32", kTransposeDoc},
    {DType::kF16, Layout::kRow, DType::kF32, Layout::kKn32, "qk_pack_f16_kn32", kTransposeDoc},
    {DType::kBF16, Layout::kRow, DType::kF32, Layout::kKn32, "qk_pack_bf16_kn32", kTransposeDoc},
    {DType::kF64, Layout::kRow, DType::kF64, Layout::kKn32, "qk_pack_f64_kn32", kTransposeDoc},
    PairsOf(DType::kF16),
    PairsOf(DType::kBF16),
    QuadsOf(DType::kI8),
    QuadsOf(DType::kU8),
};

// Rows of one dtype to rows of the same: bits, by the width of an element.
constexpr PackRow TurnOf(DType dtype, const char* symbol) {
  return {dtype, Layout::kRow, dtype, Layout::kRow, symbol, "rows become columns"};
}

constexpr PackRow kTurns[] = {
    TurnOf(DType::kF32, "qk_turn_4"),  TurnOf(DType::kF16, "qk_turn_2"), TurnOf(DType::kBF16, "qk_turn_2"),
    TurnOf(DType::kF64, "qk_turn_8"),  TurnOf(DType::kI8, "qk_turn_1"),  TurnOf(DType::kI16, "qk_turn_2"),
    TurnOf(DType::kI32, "qk_turn_4"),  TurnOf(DType::kI64, "qk_turn_8"), TurnOf(DType::kU8, "qk_turn_1"),
    TurnOf(DType::kU16, "qk_turn_2"),  TurnOf(DType::kU32, "qk_turn_4"), TurnOf(DType::kU64, "qk_turn_8"),
    TurnOf(DType::kBool, "qk_turn_1"),
};
static_assert(std::size(kTurns) == kScalarDTypeCount - 1);  // kernels have no c64

}  // namespace

std::span<const PackRow> PackTable() {
  static const std::vector<PackRow>* const table = [] {
    auto* all = new std::vector<PackRow>(BlockPacks());
    all->insert(all->begin(), std::begin(kPacks), std::end(kPacks));
    all->insert(all->end(), std::begin(kTurns), std::end(kTurns));
    return all;
  }();
  return *table;
}

const PackRow* FindPack(DType src, Layout src_layout, DType dst, Layout dst_layout) {
  for (const PackRow& row : PackTable()) {
    if (row.src == src && row.src_layout == src_layout && row.dst == dst && row.dst_layout == dst_layout) return &row;
  }
  return nullptr;
}

}  // namespace quern::kir
