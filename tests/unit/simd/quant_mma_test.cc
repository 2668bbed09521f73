// qk_mma_q*: every level against the decoders of kir in double. The panel is written by kir's reference encoder, so the
// packs are not trusted here; but for forms of panels that only the level itself knows.
#include "unit/simd/quant_support.h"

#include "gtest/gtest.h"

namespace quern::simd {
namespace {

using Mma = void(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t panel_stride,
                 int64_t m, int64_t n, int64_t k);

using Pack = void(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k);

constexpr uint32_t kSeed = 31337;

void Check(const QuantFormat& format, const std::string& level, Draw draw, int64_t m, int64_t n, int64_t blocks) {
  std::mt19937 random(kSeed + m * 7 + n * 31 + blocks);
  const int64_t k = blocks * Row(format.weight).block_elements, row_bytes = RowBytes(format.weight, k);
  std::vector<uint8_t> w(n * row_bytes);
  Guarded<uint8_t> panel(kir::Panel16Of(format.weight, k).bytes);
  const bool plain = HasPlainPanels(format, level);
  for (int64_t j = 0; j < n; ++j) {
    FillBlocks(format.weight, draw, k, random, w.data() + j * row_bytes);
    if (!plain) continue;
    for (int64_t i = 0; i < k; ++i) {
      kir::WritePanel16(format.weight, panel.data(), k, j, i,
                        kir::ReadBlockElement(format.weight, w.data() + j * row_bytes, i));
    }
  }
  if (!plain) {
    Tile<Pack>("qk_pack_" + format.name + "_panel16", level)(panel.data(), panel.size(), w.data(), row_bytes, n, k);
  }
  const int64_t planar_bytes = kir::PlanarRowOf(format.activation, k).row_bytes;
  const int64_t x_stride = planar_bytes + 64 * (m % 2);
  Guarded<uint8_t> x((m - 1) * x_stride + planar_bytes);
  for (int64_t r = 0; r < m; ++r) FillPlanar(format.activation, draw, k, random, x.data() + r * x_stride);
  const int64_t c_ld = n + m % 3;
  Guarded<float> c((m - 1) * c_ld + n);
  std::vector<float> before(c.size());
  std::normal_distribution<float> normal(0, 1);
  for (int64_t i = 0; i < c.size(); ++i) c[i] = before[i] = normal(random);
  Tile<Mma>("qk_mma_" + format.name, level)(c.data(), c_ld, x.data(), x_stride, panel.data(), 0, m, n, k);
  std::vector<std::vector<Weight>> weights;
  std::vector<std::vector<double>> activations;
  for (int64_t j = 0; j < n; ++j) weights.push_back(DecodeWeights(format.weight, w.data() + j * row_bytes, k));
  for (int64_t r = 0; r < m; ++r) {
    activations.push_back(DecodePlanarRow(format.activation, x.data() + r * x_stride, k));
  }
  for (int64_t i = 0; i < c.size(); ++i) {
    const int64_t r = i / c_ld, j = i % c_ld;
    if (j >= n) {
      ASSERT_EQ(c[i], before[i]) << "stored outside, row " << r << " column " << j;
      continue;
    }
    const Reference sum = DotReference(before[i], weights[j], activations[r]);
    ASSERT_NEAR(c[i], sum.value, 1e-6 * sum.magnitude)
        << format.name << " " << level << " m " << m << " n " << n << " k " << k << " row " << r << " column " << j
        << " seed " << kSeed;
  }
}

TEST(QuantMmaTest, MatchesTheMeaning) {
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      for (int64_t m = 1; m <= 17; ++m) {
        Check(format, level, Draw::kUniform, m, 16, m % 3 + 1);
        if (testing::Test::HasFatalFailure()) return;
      }
      for (int64_t n = 1; n <= 16; ++n) {
        Check(format, level, Draw::kUniform, 5, n, 2);
        if (testing::Test::HasFatalFailure()) return;
      }
      Check(format, level, Draw::kUniform, 37, 16, 21);
      if (testing::Test::HasFatalFailure()) return;
      for (int64_t m : {3, 14}) {  // blocks of 32: more than a few rows have room for at once
        Check(format, level, Draw::kUniform, m, 16, format.activation == DType::kQ8_0 ? 69 : 9);
        if (testing::Test::HasFatalFailure()) return;
      }
      for (int64_t blocks : {1, 3, 5, 7}) {
        for (int64_t m : {1, 12, 29, 32, 37, 53, 67}) {
          Check(format, level, Draw::kUniform, m, 13, blocks);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(QuantMmaTest, HoldsAtTheEndsOfTheRanges) {
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      for (int64_t m : {1, 11, 13}) {
        Check(format, level, Draw::kExtreme, m, 16, 3);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// A row has the same bits however many rows it is beside, and wherever among them.
TEST(QuantMmaTest, RowsHaveBitsOfTheirOwn) {
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      constexpr int64_t kRows = 61, kColumns = 16;
      std::mt19937 random(kSeed);
      const int64_t k = 5 * Row(format.weight).block_elements, row_bytes = RowBytes(format.weight, k);
      std::vector<uint8_t> w(kColumns * row_bytes), panel(kir::Panel16Of(format.weight, k).bytes);
      for (int64_t j = 0; j < kColumns; ++j)
        FillBlocks(format.weight, Draw::kUniform, k, random, w.data() + j * row_bytes);
      Tile<Pack>("qk_pack_" + format.name + "_panel16", level)(panel.data(), 0, w.data(), row_bytes, kColumns, k);
      const int64_t stride = kir::PlanarRowOf(format.activation, k).row_bytes;
      std::vector<uint8_t> x(kRows * stride);
      for (int64_t r = 0; r < kRows; ++r)
        FillPlanar(format.activation, Draw::kUniform, k, random, x.data() + r * stride);
      const auto product = [&](int64_t first, int64_t rows) {
        std::vector<float> c(rows * kColumns, 0);
        Tile<Mma>("qk_mma_" + format.name, level)(c.data(), kColumns, x.data() + first * stride, stride, panel.data(),
                                                  0, rows, kColumns, k);
        return c;
      };
      const std::vector<float> all = product(0, kRows);
      for (const auto& [first, rows] : {std::pair{60, 1}, {7, 5}, {40, 9}, {13, 15}, {2, 16}, {30, 31}}) {
        const std::vector<float> some = product(first, rows);
        for (size_t i = 0; i < some.size(); ++i) {
          ASSERT_EQ(some[i], all[first * kColumns + i])
              << format.name << " " << level << " rows " << first << " +" << rows << " element " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::simd
