// Sizes and offsets of the layouts.
#include "kir/layout.h"

#include <set>

#include "gtest/gtest.h"
#include "kir/decode.h"

namespace quern::kir {
namespace {

constexpr Layout kLayouts[] = {Layout::kRow, Layout::kBlocks, Layout::kPlanar, Layout::kPanel16, Layout::kKn32};

TEST(LayoutTest, NamesRoundTrip) {
  for (Layout layout : kLayouts) EXPECT_EQ(LayoutFromName(Row(layout).name), layout);
  EXPECT_EQ(LayoutFromName("column"), std::nullopt);
}

TEST(LayoutTest, DtypesOfEachLayout) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(LayoutAllows(Layout::kRow, dtype), !IsBlock(dtype) && dtype != DType::kC64) << Name(dtype);
    EXPECT_EQ(LayoutAllows(Layout::kBlocks, dtype), IsBlock(dtype)) << Name(dtype);
    EXPECT_EQ(LayoutAllows(Layout::kPlanar, dtype), dtype == DType::kQ8_0 || dtype == DType::kQ8_K) << Name(dtype);
    EXPECT_EQ(LayoutAllows(Layout::kPanel16, dtype), IsBlock(dtype)) << Name(dtype);
    const bool summed = dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kU32;
    EXPECT_EQ(LayoutAllows(Layout::kKn32, dtype), summed) << Name(dtype);
  }
}

TEST(LayoutTest, PlanarPlanesDoNotOverlapAndAreAligned) {
  for (DType dtype : {DType::kQ8_0, DType::kQ8_K}) {
    const int64_t block = Row(dtype).block_elements, group = dtype == DType::kQ8_0 ? 32 : 16;
    for (int64_t blocks : {1, 2, 3, 5, 7, 8, 17, 22}) {
      const int64_t k = blocks * block;
      const PlanarRow row = PlanarRowOf(dtype, k);
      EXPECT_GE(row.scales, k);
      EXPECT_GE(row.sums, row.scales + blocks * 4);
      EXPECT_GE(row.wide_sums, row.sums + k / group * 2);
      const int64_t wide = dtype == DType::kQ8_K ? k / 32 * 2 : 0;
      EXPECT_GE(row.row_bytes, row.wide_sums + wide);
      EXPECT_EQ(row.scales % 64, 0);
      EXPECT_EQ(row.sums % 64, 0);
      EXPECT_EQ(row.wide_sums % 64, 0);
      EXPECT_EQ(row.row_bytes % 64, 0);
      EXPECT_LT(row.row_bytes, k + blocks * 4 + k / group * 2 + wide + 4 * 64);
    }
  }
}

TEST(LayoutTest, PanelPlanesFollowEachOther) {
  for (DType dtype : {DType::kQ4_K, DType::kQ5_K}) {
    const Panel16 panel = Panel16Of(dtype, 512);
    EXPECT_EQ(panel.scales, 512 * 16);
    EXPECT_EQ(panel.mins - panel.scales, 512 / 32 * 16 * 4);
    EXPECT_EQ(panel.supers - panel.mins, 2 * 4 * 16 * 2 * 2);
    EXPECT_GE(panel.bytes - panel.supers, 2 * 16 * 4);  // room for any level's form
  }
  const Panel16 q6 = Panel16Of(DType::kQ6_K, 512);
  EXPECT_EQ(q6.supers - q6.scales, 512 / 16 * 16 * 4);
  EXPECT_GE(q6.bytes, q6.supers);
  const Panel16 q8 = Panel16Of(DType::kQ8_0, 96);
  EXPECT_EQ(q8.bytes, 96 * 16 + 3 * 16 * 4);
}

TEST(LayoutTest, CodeOffsetsOfAPanelAreAPermutation) {
  std::set<int64_t> seen;
  for (int64_t r = 0; r < 16; ++r) {
    for (int64_t j = 0; j < 96; ++j) seen.insert(Panel16CodeOffset(r, j));
  }
  EXPECT_EQ(seen.size(), 16u * 96);
  EXPECT_EQ(*seen.rbegin(), 16 * 96 - 1);
  EXPECT_EQ(Panel16CodeOffset(3, 5), 1 * 64 + 3 * 4 + 1);
  EXPECT_EQ(Kn32Offset(3, 5), 5 * 32 + 3);
}

TEST(LayoutTest, BytesOfBuffersWithSymbols) {
  const Extent m = Extent::Symbol("M");
  EXPECT_EQ(LayoutBytes(Layout::kRow, DType::kF16, {m, 7}), m * 14);
  EXPECT_EQ(LayoutBytes(Layout::kRow, DType::kF32, {}), Extent(4));
  EXPECT_EQ(LayoutBytes(Layout::kBlocks, DType::kQ4_K, {m, 512}), m * 288);
  EXPECT_EQ(LayoutBytes(Layout::kPlanar, DType::kQ8_K, {m, 256}), m * (256 + 64 + 64 + 64));
  EXPECT_EQ(LayoutBytes(Layout::kPanel16, DType::kQ4_0, {16, 64}), Extent(64 * 16 + 2 * 64));
  EXPECT_EQ(LayoutBytes(Layout::kKn32, DType::kF32, {32, 5}), Extent(5 * 32 * 4));
}

}  // namespace
}  // namespace quern::kir
