// Activation encoders against ggml's bytes, and the planar form against the block form.
#include "kir/quantise.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "golden.h"
#include "gtest/gtest.h"
#include "kir/decode.h"
#include "kir/layout.h"
#include "support/block_formats.h"

namespace quern::kir {
namespace {

constexpr int kRows = 64, kColumns = 256;

TEST(QuantiseTest, EqualsGgmlByteForByte) {
  GoldenFile golden;
  if (!golden.Open()) GTEST_SKIP() << "no models in " QUERN_MODELS_DIR;
  const auto x = golden.Array<float>("activation");
  for (DType format : {DType::kQ8_0, DType::kQ8_K}) {
    const auto expected = golden.Array<uint8_t>("act_" + std::string(Name(format)));
    const int64_t row_bytes = RowBytes(format, kColumns);
    for (int r = 0; r < kRows; ++r) {
      std::vector<uint8_t> row(row_bytes);
      QuantiseToBlocks(format, &x[r * kColumns], kColumns, row.data());
      for (int64_t b = 0; b < row_bytes; ++b) {
        ASSERT_EQ(row[b], expected[r * row_bytes + b]) << Name(format) << " row " << r << " byte " << b;
      }
    }
  }
}

// Weights, in every format that has a quantiser. iq4_nl's golden blocks are of a reference that llama.cpp does not make
// files by: ctest `quantise` holds that one to a file.
TEST(QuantiseTest, WeightsEqualGgmlByteForByte) {
  GoldenFile golden;
  if (!golden.Open()) GTEST_SKIP() << "no models in " QUERN_MODELS_DIR;
  const auto x = golden.Array<float>("src");
  int held = 0;
  for (const DType format : AllFormats()) {
    const std::string name = std::string(Name(format)) + ".bytes";
    if (format == DType::kIQ4_NL || FormatOf(format).quantise == nullptr || !golden.header.contains(name)) continue;
    const auto expected = golden.Array<uint8_t>(name);
    std::vector<uint8_t> bytes(expected.size());
    QuantiseToBlocks(format, x.data(), kRows * kColumns, bytes.data());
    EXPECT_EQ(bytes, expected) << name;
    ++held;
  }
  EXPECT_EQ(held, 14);
}

// Rows of zeros, of one number, and of numbers at either end of what floats are stay defined, and zeros stay zeros.
TEST(QuantiseTest, ExtremesAreDefined) {
  for (const DType format : AllFormats()) {
    if (FormatOf(format).quantise == nullptr) continue;
    for (const float value : {0.0f, -0.0f, 1.0f, -3.5f, 1e-45f, -1e-39f, 3e38f}) {
      std::vector<float> x(512, value), back(512);
      x[300] = -value;
      std::vector<uint8_t> row(RowBytes(format, 512));
      QuantiseToBlocks(format, x.data(), 512, row.data());
      DecodeRow(format, row.data(), 512, back.data());
      if (value == 0) EXPECT_EQ(std::count(back.begin(), back.end(), 0.0f), 512) << Name(format);
    }
  }
}

TEST(QuantiseTest, PlanarHoldsTheQuantsScalesAndSumsOfTheBlocks) {
  constexpr uint32_t kSeed = 20231;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0, 3);
  for (DType format : {DType::kQ8_0, DType::kQ8_K}) {
    const int64_t block = Row(format).block_elements, group = format == DType::kQ8_0 ? 32 : 16;
    const int64_t row_k = 7 * block, start = 2 * block, k = 3 * block;
    std::vector<float> x(k);
    for (float& value : x) value = normal(random);
    const PlanarRow at = PlanarRowOf(format, row_k);
    std::vector<uint8_t> row(at.row_bytes, 0x5a), blocks(RowBytes(format, k));
    QuantiseToPlanar(format, x.data(), k, row.data(), row_k, start);
    QuantiseToBlocks(format, x.data(), k, blocks.data());
    for (int64_t j = 0; j < k; ++j) {
      ASSERT_EQ(DecodePlanar(format, row.data(), row_k, start + j), DecodeElement(format, blocks.data(), j)) << j;
    }
    for (int64_t g = 0; g < k / group; ++g) {
      int expected = 0;
      for (int64_t j = 0; j < group; ++j) expected += static_cast<int8_t>(row[start + g * group + j]);
      int16_t sum;
      std::memcpy(&sum, &row[at.sums + (start / group + g) * 2], 2);
      ASSERT_EQ(sum, expected) << Name(format) << " group " << g;
    }
    // Columns outside [start, start + k) are not touched.
    for (int64_t j = 0; j < row_k; ++j) {
      if (j < start || j >= start + k) ASSERT_EQ(row[j], 0x5a) << j;
    }
    for (int64_t b = 0; b < 7; ++b) {
      if (b < 2 || b >= 5) ASSERT_EQ(row[at.scales + b * 4], 0x5a) << b;
    }
  }
}

TEST(QuantiseTest, ZeroAndLoneExtremes) {
  float x[256] = {};
  for (DType format : {DType::kQ8_0, DType::kQ8_K}) {
    const QuantisedBlock zero = QuantiseBlock(format, x);
    EXPECT_EQ(zero.d, 0);
    EXPECT_EQ(zero.quants[0], 0);
  }
  x[7] = -2;
  // q8_K maps the extreme to -127 with the sign in the scale; q8_0 keeps the sign in the quant.
  EXPECT_EQ(QuantiseBlock(DType::kQ8_K, x).quants[7], -127);
  EXPECT_FLOAT_EQ(QuantiseBlock(DType::kQ8_K, x).d, 2.0f / 127);
  EXPECT_EQ(QuantiseBlock(DType::kQ8_0, x).quants[7], -127);
  x[7] = 2;
  EXPECT_EQ(QuantiseBlock(DType::kQ8_K, x).quants[7], -127);
  EXPECT_EQ(QuantiseBlock(DType::kQ8_0, x).quants[7], 127);
}

// q8_0 rounds halves away from zero, q8_K to even.
TEST(QuantiseTest, HalvesRoundAsTheFormatSays) {
  float x[256] = {};
  x[0] = 127, x[1] = 2.5f, x[2] = -2.5f, x[3] = 3.5f;
  const QuantisedBlock away = QuantiseBlock(DType::kQ8_0, x);
  EXPECT_EQ(away.quants[1], 3);
  EXPECT_EQ(away.quants[2], -3);
  EXPECT_EQ(away.quants[3], 4);
  const QuantisedBlock even = QuantiseBlock(DType::kQ8_K, x);  // scaled by -1
  EXPECT_EQ(even.quants[1], -2);
  EXPECT_EQ(even.quants[2], 2);
  EXPECT_EQ(even.quants[3], -4);
}

}  // namespace
}  // namespace quern::kir
