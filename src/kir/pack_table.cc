// The pack table: every change of format or layout that there is a primitive for. f16 to f32 and back is a cast, not a
// pack. Quantising follows ggml's reference encoders bit for bit; see quantise.h.
#include "kir/tile_op.h"

namespace quern::kir {
namespace {

constexpr const char* kPanelDoc = "16 rows of blocks to a panel for 4-way dot products; missing rows are zero";
constexpr const char* kTransposeDoc = "32 rows of a weight to f32 [K][32]; missing rows are zero";
constexpr const char* kUnpackDoc = "rows of blocks decoded to f32 rows";

constexpr PackRow kPacks[] = {
    {DType::kF32, Layout::kRow, DType::kQ8_0, Layout::kPlanar, "qk_pack_q8_0_planar", "f32 rows quantised to q8_0"},
    {DType::kF32, Layout::kRow, DType::kQ8_K, Layout::kPlanar, "qk_pack_q8_K_planar", "f32 rows quantised to q8_K"},
    {DType::kQ8_0, Layout::kBlocks, DType::kQ8_0, Layout::kPanel16, "qk_pack_q8_0_panel16", kPanelDoc},
    {DType::kQ4_0, Layout::kBlocks, DType::kQ4_0, Layout::kPanel16, "qk_pack_q4_0_panel16", kPanelDoc},
    {DType::kQ4_K, Layout::kBlocks, DType::kQ4_K, Layout::kPanel16, "qk_pack_q4_K_panel16", kPanelDoc},
    {DType::kQ5_K, Layout::kBlocks, DType::kQ5_K, Layout::kPanel16, "qk_pack_q5_K_panel16", kPanelDoc},
    {DType::kQ6_K, Layout::kBlocks, DType::kQ6_K, Layout::kPanel16, "qk_pack_q6_K_panel16", kPanelDoc},
    {DType::kF32, Layout::kRow, DType::kF32, Layout::kKn32, "qk_pack_f32_kn32", kTransposeDoc},
    {DType::kF16, Layout::kRow, DType::kF32, Layout::kKn32, "qk_pack_f16_kn32", kTransposeDoc},
    {DType::kQ8_0, Layout::kBlocks, DType::kF32, Layout::kKn32, "qk_pack_q8_0_kn32", kTransposeDoc},
    {DType::kQ4_0, Layout::kBlocks, DType::kF32, Layout::kKn32, "qk_pack_q4_0_kn32", kTransposeDoc},
    {DType::kQ4_K, Layout::kBlocks, DType::kF32, Layout::kKn32, "qk_pack_q4_K_kn32", kTransposeDoc},
    {DType::kQ5_K, Layout::kBlocks, DType::kF32, Layout::kKn32, "qk_pack_q5_K_kn32", kTransposeDoc},
    {DType::kQ6_K, Layout::kBlocks, DType::kF32, Layout::kKn32, "qk_pack_q6_K_kn32", kTransposeDoc},
    {DType::kQ8_0, Layout::kBlocks, DType::kF32, Layout::kRow, "qk_unpack_q8_0", kUnpackDoc},
    {DType::kQ4_0, Layout::kBlocks, DType::kF32, Layout::kRow, "qk_unpack_q4_0", kUnpackDoc},
    {DType::kQ4_K, Layout::kBlocks, DType::kF32, Layout::kRow, "qk_unpack_q4_K", kUnpackDoc},
    {DType::kQ5_K, Layout::kBlocks, DType::kF32, Layout::kRow, "qk_unpack_q5_K", kUnpackDoc},
    {DType::kQ6_K, Layout::kBlocks, DType::kF32, Layout::kRow, "qk_unpack_q6_K", kUnpackDoc},
};

}  // namespace

std::span<const PackRow> PackTable() { return kPacks; }

const PackRow* FindPack(DType src, Layout src_layout, DType dst, Layout dst_layout) {
  for (const PackRow& row : kPacks) {
    if (row.src == src && row.src_layout == src_layout && row.dst == dst && row.dst_layout == dst_layout) return &row;
  }
  return nullptr;
}

}  // namespace quern::kir
