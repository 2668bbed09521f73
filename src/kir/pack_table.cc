// The pack table: every change of format or layout that there is a primitive for. f16 to f32 and back is a cast, not a
// pack. Quantising follows ggml's reference encoders bit for bit; see quantise.h.
#include "kir/block_products.h"
#include "kir/tile_op.h"

namespace quern::kir {
namespace {

constexpr PackRow kPacks[] = {
    {DType::kF32, Layout::kRow, DType::kQ8_0, Layout::kPlanar, "qk_pack_q8_0_planar", "f32 rows quantised to q8_0"},
    {DType::kF32, Layout::kRow, DType::kQ8_K, Layout::kPlanar, "qk_pack_q8_K_planar", "f32 rows quantised to q8_K"},
    {DType::kF32, Layout::kRow, DType::kF32, Layout::kKn32, "qk_pack_f32_kn32", kTransposeDoc},
    {DType::kF16, Layout::kRow, DType::kF32, Layout::kKn32, "qk_pack_f16_kn32", kTransposeDoc},
};

}  // namespace

std::span<const PackRow> PackTable() {
  static const std::vector<PackRow>* const table = [] {
    auto* all = new std::vector<PackRow>(BlockPacks());
    all->insert(all->begin(), std::begin(kPacks), std::end(kPacks));
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
