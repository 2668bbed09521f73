// Block decoders against ggml's own output, and every layout against @blocks, bit for bit.
#include "kir/decode.h"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "golden.h"
#include "gtest/gtest.h"
#include "kir/layout.h"
#include "kir/quantise.h"

namespace quern::kir {
namespace {

constexpr int kRows = 64, kColumns = 256;
// Weights with the activations that ggml multiplies them by, and how near its sums are to those of its values: of q8_1
// it takes the sum of a block, a rounded half, and of three levels it sums before it takes the half of d.
struct Format {
  DType weight;
  const char* activation;
  double near = 1e-6;
};
constexpr Format kFormats[] = {{DType::kQ4_0, "q8_0"},   {DType::kQ8_0, "q8_0"},        {DType::kQ4_K, "q8_K"},
                               {DType::kQ5_K, "q8_K"},   {DType::kQ6_K, "q8_K"},        {DType::kQ5_0, "q8_0"},
                               {DType::kIQ4_NL, "q8_0"}, {DType::kQ4_1, "q8_1", 1e-3},  {DType::kQ5_1, "q8_1", 1e-3},
                               {DType::kQ2_K, "q8_K"},   {DType::kQ3_K, "q8_K"},        {DType::kIQ4_XS, "q8_K"},
                               {DType::kMXFP4, "q8_0"},  {DType::kTQ1_0, "q8_K", 1e-5}, {DType::kTQ2_0, "q8_K", 1e-5}};

uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }

#define SKIP_WITHOUT_GOLDEN(golden) \
  if (!(golden).Open()) GTEST_SKIP() << "no models in " QUERN_MODELS_DIR

TEST(DecodeTest, EqualsGgmlBitForBit) {
  GoldenFile golden;
  SKIP_WITHOUT_GOLDEN(golden);
  for (const auto& [format, activation, near] : kFormats) {
    const std::string name(Name(format));
    const auto bytes = golden.Array<uint8_t>(name + ".bytes");
    const auto expected = golden.Array<uint32_t>(name + ".dequant");
    const int64_t row_bytes = RowBytes(format, kColumns);
    ASSERT_EQ(bytes.size(), static_cast<size_t>(kRows * row_bytes)) << name;
    for (int r = 0; r < kRows; ++r) {
      float values[kColumns];
      DecodeRow(format, &bytes[r * row_bytes], kColumns, values);
      for (int j = 0; j < kColumns; ++j) {
        ASSERT_EQ(BitsOf(values[j]), expected[r * kColumns + j]) << name << " row " << r << " element " << j;
      }
    }
  }
}

// Two blocks each, and what the Python package gguf 0.19 decodes them to.
TEST(DecodeTest, EqualsTheGgufPackageBitForBit) {
  struct Golden {
    DType format;
    std::vector<uint8_t> blocks;
    std::vector<uint32_t> values;
  };
  const Golden goldens[] = {
      {DType::kQ5_0,
       {76, 34,  212, 61, 86,  72,  3,  173, 217, 208, 163, 23,  164, 226, 221, 54,  225, 96,  81, 81,  144, 63,
        0,  191, 228, 59, 159, 232, 99, 207, 169, 204, 114, 165, 83,  234, 231, 226, 236, 254, 8,  236, 26,  20},
       {0xbe23b800, 0xbd172000, 0x3de2b000, 0xbe498000, 0x3d172000, 0xbde2b000, 0x3d498000, 0x3cc98000,
        0x3e23b800, 0xbdfbe000, 0x3c498000, 0x00000000, 0x3c498000, 0x3c498000, 0xbe498000, 0xbc498000,
        0xbe498000, 0x3dfbe000, 0x3e23b800, 0xbd172000, 0x3dfbe000, 0xbe3ce800, 0x3dfbe000, 0xbcc98000,
        0xbd172000, 0xbe23b800, 0xbcc98000, 0x3d972000, 0xbe0a8800, 0xbe0a8800, 0x3de2b000, 0xbe23b800,
        0x41b60000, 0x3fe00000, 0xc17c0000, 0x40e00000, 0x41c40000, 0xc10c0000, 0xc0a80000, 0xc18c0000,
        0xc1440000, 0xc0600000, 0x40e00000, 0xc1c40000, 0xc1600000, 0xc1a80000, 0x41280000, 0x41a80000,
        0xc1280000, 0xc1a80000, 0xc18c0000, 0xc1a80000, 0xc1440000, 0x41280000, 0x419a0000, 0xc1c40000,
        0x40600000, 0x40600000, 0x40600000, 0xc1d20000, 0x41e00000, 0xc1c40000, 0xbfe00000, 0xbfe00000}},
      {DType::kIQ4_NL,
       {76, 34,  105, 36,  103, 166, 48,  222, 72, 91, 39,  20, 70,  46, 126, 42, 46,  120,
        0,  191, 196, 226, 239, 233, 149, 209, 17, 92, 200, 96, 138, 67, 202, 42, 108, 43},
       {0x3e23b800, 0xbf1a4600, 0xbdfbe000, 0xbe8a8800, 0xbfc7ed00, 0x3f8c1b00, 0x3c498000, 0x3eef4800,
        0xbdfbe000, 0xbf1a4600, 0xbe8a8800, 0x3f8c1b00, 0x3f8c1b00, 0x3e9d6c00, 0x3f8c1b00, 0x3c498000,
        0xbe8a8800, 0xbf82a900, 0xbe8a8800, 0x3e9d6c00, 0xbf4ca600, 0x3f593e00, 0xbf1a4600, 0xbedc6400,
        0xbf82a900, 0xbfa3b800, 0xbf1a4600, 0xbf82a900, 0xbdfbe000, 0xbf82a900, 0xbf82a900, 0xbdfbe000,
        0x42ab8000, 0x43114000, 0xc345c000, 0xc1b60000, 0x42750000, 0x43360000, 0x43360000, 0xc2b98000,
        0xbfe00000, 0x435e4000, 0xc22f0000, 0x42e38000, 0xc22f0000, 0xc22f0000, 0xc2b98000, 0xc2850000,
        0xc2b98000, 0xc31bc000, 0xc31bc000, 0xc31bc000, 0xc1b60000, 0xc2f18000, 0x43360000, 0x42750000,
        0xc2b98000, 0x421a0000, 0xbfe00000, 0x42ab8000, 0xc2b98000, 0x43114000, 0x421a0000, 0x43114000}}};
  for (const Golden& golden : goldens) {
    ASSERT_EQ(static_cast<int64_t>(golden.blocks.size()), RowBytes(golden.format, 64));
    for (int64_t j = 0; j < 64; ++j)
      EXPECT_EQ(BitsOf(DecodeElement(golden.format, golden.blocks.data(), j)), golden.values[j])
          << Name(golden.format) << " " << j;
  }
}

// ggml gives no dequantised q8_K; its value is one product.
TEST(DecodeTest, Q8KIsQuantTimesScale) {
  GoldenFile golden;
  SKIP_WITHOUT_GOLDEN(golden);
  const auto bytes = golden.Array<uint8_t>("act_q8_K");
  for (int r = 0; r < kRows; ++r) {
    const uint8_t* row = &bytes[r * 292];
    float d;
    std::memcpy(&d, row, 4);
    for (int j = 0; j < kColumns; ++j) {
      const float expected = d * static_cast<float>(static_cast<int8_t>(row[4 + j]));
      ASSERT_EQ(BitsOf(DecodeElement(DType::kQ8_K, row, j)), BitsOf(expected)) << r << " " << j;
    }
  }
}

// The dot products that ggml computed from its blocks, recomputed from our decoded values in double.
TEST(DecodeTest, DotProductsAgreeWithGgml) {
  GoldenFile golden;
  SKIP_WITHOUT_GOLDEN(golden);
  for (const auto& [format, act_name, near] : kFormats) {
    const DType act = DTypeFromName(act_name).value_or(DType::kQ8_0);  // q8_1: the same quants
    const std::string name(Name(format));
    const auto weights = golden.Array<uint8_t>(name + ".bytes");
    const auto activations = golden.Array<uint8_t>("act_" + std::string(Name(act)));
    const auto expected = golden.Array<float>(name + ".vecdot_" + act_name);
    for (int r = 0; r < kRows; ++r) {
      double dot = 0, magnitude = 0;
      for (int j = 0; j < kColumns; ++j) {
        const double term = static_cast<double>(DecodeElement(format, &weights[r * RowBytes(format, kColumns)], j)) *
                            DecodeElement(act, &activations[r * RowBytes(act, kColumns)], j);
        dot += term;
        magnitude += std::abs(term);
      }
      EXPECT_NEAR(dot, expected[r], near * magnitude + 1e-30) << name << " row " << r;
    }
  }
}

TEST(DecodeTest, PanelKeepsEveryValue) {
  GoldenFile golden;
  SKIP_WITHOUT_GOLDEN(golden);
  for (const auto& [format, activation, near] : kFormats) {
    const int64_t row_bytes = RowBytes(format, kColumns);
    const auto bytes = golden.Array<uint8_t>(std::string(Name(format)) + ".bytes");
    const int64_t k = 3 * kColumns;  // several blocks in a row, from different golden rows
    std::vector<uint8_t> rows(16 * 3 * row_bytes);
    for (int r = 0; r < 16; ++r) {
      for (int b = 0; b < 3; ++b) {
        std::memcpy(&rows[(r * 3 + b) * row_bytes], &bytes[(r * 3 + b) % kRows * row_bytes], row_bytes);
      }
    }
    std::vector<uint8_t> panel(LayoutRowBytes(Layout::kPanel16, format, k), 0xa5);
    for (int r = 0; r < 16; ++r) {
      for (int64_t j = 0; j < k; ++j) {
        WritePanel16(format, panel.data(), k, r, j, ReadBlockElement(format, &rows[r * 3 * row_bytes], j));
      }
    }
    for (int r = 0; r < 16; ++r) {
      for (int64_t j = 0; j < k; ++j) {
        ASSERT_EQ(BitsOf(DecodePanel16(format, panel.data(), k, r, j)),
                  BitsOf(DecodeElement(format, &rows[r * 3 * row_bytes], j)))
            << Name(format) << " row " << r << " element " << j;
      }
    }
  }
}

TEST(DecodeTest, PlanarKeepsEveryValue) {
  GoldenFile golden;
  SKIP_WITHOUT_GOLDEN(golden);
  for (DType format : {DType::kQ8_0, DType::kQ8_K}) {
    const auto bytes = golden.Array<uint8_t>("act_" + std::string(Name(format)));
    const int64_t k = 5 * kColumns;  // five rows of the file as one
    std::vector<uint8_t> planar(LayoutRowBytes(Layout::kPlanar, format, k), 0xa5);
    BlocksToPlanar(format, bytes.data(), k, planar.data(), k, 0);
    for (int64_t j = 0; j < k; ++j) {
      ASSERT_EQ(BitsOf(DecodePlanar(format, planar.data(), k, j)), BitsOf(DecodeElement(format, bytes.data(), j)))
          << Name(format) << " element " << j;
    }
  }
}

// Blocks of ONNX models: a scale that is f32 and no half, and one more f32 that is added.
TEST(DecodeTest, FloatsBesideCodes) {
  const auto decoded = [](DType format, std::vector<float> floats, const std::vector<uint8_t>& codes) {
    std::vector<uint8_t> block(floats.size() * sizeof(float));
    std::memcpy(block.data(), floats.data(), block.size());
    block.insert(block.end(), codes.begin(), codes.end());
    EXPECT_EQ(static_cast<int64_t>(block.size()), RowBytes(format, 32)) << Name(format);
    std::vector<float> values(32);
    DecodeRow(format, block.data(), 32, values.data());
    return values;
  };
  constexpr float kScale = 0.100000001f, kAdded = -1.3f;
  std::vector<uint8_t> nibbles(16), bytes(32);
  for (int i = 0; i < 16; ++i) nibbles[i] = static_cast<uint8_t>(i | (15 - i) << 4);
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<uint8_t>(i * 8 + 7);
  const std::vector<float> n4_0 = decoded(DType::kN4_0, {kScale}, nibbles),
                           n4_1 = decoded(DType::kN4_1, {kScale, kAdded}, nibbles),
                           n8_0 = decoded(DType::kN8_0, {kScale}, bytes),
                           n8_1 = decoded(DType::kN8_1, {kScale, kAdded}, bytes);
  for (int i = 0; i < 32; ++i) {
    const int nibble = i < 16 ? i : 31 - i, byte = i * 8 + 7;
    EXPECT_EQ(n4_0[i], kScale * static_cast<float>(nibble - 8)) << i;
    const float scaled_nibble = kScale * static_cast<float>(nibble), scaled_byte = kScale * static_cast<float>(byte);
    EXPECT_EQ(n4_1[i], scaled_nibble + kAdded) << i;
    EXPECT_EQ(n8_0[i], kScale * static_cast<float>(static_cast<int8_t>(byte))) << i;
    EXPECT_EQ(n8_1[i], scaled_byte + kAdded) << i;
  }
}

}  // namespace
}  // namespace quern::kir
