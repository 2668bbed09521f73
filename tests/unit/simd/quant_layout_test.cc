// The SIMD tiles state the layouts for themselves (they see nothing of kir): both statements must agree.
#include "simd/tiles/quant_layout.h"

#include "base/dtype.h"
#include "gtest/gtest.h"
#include "kir/layout.h"

namespace quern::simd {
namespace {

template <int kBlock>
void ComparePlanar(DType dtype) {
  for (int64_t blocks = 1; blocks <= 67; ++blocks) {
    const int64_t k = blocks * kBlock;
    const kir::PlanarRow want = kir::PlanarRowOf(dtype, k);
    const PlanarAt<kBlock> at(k);
    EXPECT_EQ(at.scales, want.scales) << k;
    EXPECT_EQ(at.sums, want.sums) << k;
    EXPECT_EQ(at.wide_sums, want.wide_sums) << k;
  }
}

TEST(QuantLayoutTest, PlanarRows) {
  ComparePlanar<32>(DType::kQ8_0);
  ComparePlanar<256>(DType::kQ8_K);
}

template <class Format>
void CompareBlock(DType dtype) {
  EXPECT_EQ(Format::kElements, Row(dtype).block_elements) << Name(dtype);
  EXPECT_EQ(Format::kBytes, Row(dtype).block_bytes) << Name(dtype);
}

template <class Format>
void ComparePanel(DType dtype) {
  CompareBlock<Format>(dtype);
  EXPECT_EQ(Format::kGroup, kir::PanelGroup(dtype)) << Name(dtype);
  EXPECT_EQ(Format::kLevels != nullptr, !FormatOf(dtype).levels.empty()) << Name(dtype);
  for (size_t l = 0; l < FormatOf(dtype).levels.size(); ++l) EXPECT_EQ(Format::kLevels[l], FormatOf(dtype).levels[l]);
  for (int64_t blocks = 1; blocks <= 67; ++blocks) {
    const int64_t k = blocks * Format::kElements;
    const kir::Panel16 want = kir::Panel16Of(dtype, k);
    const PanelAt<Format> at(k);
    EXPECT_EQ(at.scales, want.scales) << Name(dtype) << " " << k;
    EXPECT_EQ(at.mins, want.mins) << Name(dtype) << " " << k;
    if (kir::HasMinimums(dtype) || kir::HasAdded(dtype)) EXPECT_EQ(at.supers, want.supers) << k;
  }
}

TEST(QuantLayoutTest, BlocksWithoutPanels) {
  CompareBlock<N4_0>(DType::kN4_0);
  CompareBlock<N4_1>(DType::kN4_1);
  CompareBlock<N8_0>(DType::kN8_0);
  CompareBlock<N8_1>(DType::kN8_1);
}

TEST(QuantLayoutTest, Panels) {
  ComparePanel<Q8_0>(DType::kQ8_0);
  ComparePanel<Q4_0>(DType::kQ4_0);
  ComparePanel<Q4_K>(DType::kQ4_K);
  ComparePanel<Q5_K>(DType::kQ5_K);
  ComparePanel<Q6_K>(DType::kQ6_K);
  ComparePanel<Q5_0>(DType::kQ5_0);
  ComparePanel<Q4_1>(DType::kQ4_1);
  ComparePanel<Q5_1>(DType::kQ5_1);
  ComparePanel<IQ4_NL>(DType::kIQ4_NL);
  ComparePanel<MXFP4>(DType::kMXFP4);
  ComparePanel<Q2_K>(DType::kQ2_K);
  ComparePanel<Q3_K>(DType::kQ3_K);
  ComparePanel<Q8_K>(DType::kQ8_K);
  ComparePanel<TQ1_0>(DType::kTQ1_0);
  ComparePanel<TQ2_0>(DType::kTQ2_0);
  ComparePanel<IQ4_XS>(DType::kIQ4_XS);
  ComparePanel<IQ2_XXS>(DType::kIQ2_XXS);
  ComparePanel<IQ2_XS>(DType::kIQ2_XS);
  ComparePanel<IQ2_S>(DType::kIQ2_S);
  ComparePanel<IQ3_XXS>(DType::kIQ3_XXS);
  ComparePanel<IQ3_S>(DType::kIQ3_S);
  ComparePanel<IQ1_S>(DType::kIQ1_S);
  ComparePanel<IQ1_M>(DType::kIQ1_M);
}

}  // namespace
}  // namespace quern::simd
