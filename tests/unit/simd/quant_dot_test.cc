// qk_dot_q*: every level against the decoders of kir in double, over shapes of primes, ends of value ranges, and memory
// that ends at a guard page.
#include "unit/simd/quant_support.h"

#include "gtest/gtest.h"

namespace quern::simd {
namespace {

using Dot = void(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride, int64_t m,
                 int64_t n, int64_t k, int64_t ahead, int64_t many);

struct Shape {
  int64_t m, n, blocks;
};

// The last weight row ends at the guard page; rows are `gap` bytes apart beyond their size, so strides are odd.
class QuantDotTest : public testing::Test {
 protected:
  void Check(const QuantFormat& format, const std::string& level, Draw draw, Shape shape, int64_t gap, bool exact_x) {
    std::mt19937 random(kSeed + shape.m * 7 + shape.n * 31 + shape.blocks);
    const int64_t k = shape.blocks * Row(format.weight).block_elements;
    const int64_t row_bytes = RowBytes(format.weight, k), w_stride = row_bytes + gap;
    Guarded<uint8_t> w((shape.n - 1) * w_stride + row_bytes);
    for (int64_t j = 0; j < shape.n; ++j) FillBlocks(format.weight, draw, k, random, w.data() + j * w_stride);

    const int64_t planar_bytes = kir::PlanarRowOf(format.activation, k).row_bytes;
    const int64_t x_stride = exact_x ? k * 4 + 4 * (shape.m % 3) : planar_bytes + 64 * (shape.m % 2);
    Guarded<uint8_t> x((shape.m - 1) * x_stride + (exact_x ? k * 4 : planar_bytes));
    std::normal_distribution<float> normal(0, 1);
    for (int64_t r = 0; r < shape.m; ++r) {
      uint8_t* row = x.data() + r * x_stride;
      if (!exact_x) {
        FillPlanar(format.activation, draw, k, random, row);
        continue;
      }
      for (int64_t i = 0; i < k; ++i) {
        const float value = normal(random);
        std::memcpy(row + 4 * i, &value, 4);
      }
    }
    const int64_t y_ld = shape.n + 5;
    std::vector<float> y(shape.m * y_ld);
    for (float& value : y) value = normal(random);
    const std::vector<float> before = y;
    Tile<Dot>("qk_dot_" + format.name + (exact_x ? "_x" : ""), level)(y.data(), y_ld, w.data(), w_stride, x.data(),
                                                                      x_stride, shape.m, shape.n, k, 4096, 0);
    std::vector<std::vector<Weight>> weights;
    for (int64_t j = 0; j < shape.n; ++j) weights.push_back(DecodeWeights(format.weight, w.data() + j * w_stride, k));
    std::vector<std::vector<double>> activations;
    for (int64_t r = 0; r < shape.m; ++r) {
      const uint8_t* row = x.data() + r * x_stride;
      if (!exact_x) {
        activations.push_back(DecodePlanarRow(format.activation, row, k));
        continue;
      }
      std::vector<float> exact(k);
      std::memcpy(exact.data(), row, k * 4);
      activations.emplace_back(exact.begin(), exact.end());
    }
    for (int64_t r = 0; r < shape.m; ++r) {
      for (int64_t j = 0; j < y_ld; ++j) {
        const int64_t at = r * y_ld + j;
        if (j >= shape.n) {
          ASSERT_EQ(y[at], before[at]) << "stored outside, row " << r << " column " << j;
          continue;
        }
        const Reference sum = DotReference(before[at], weights[j], activations[r]);
        ASSERT_NEAR(y[at], sum.value, 1e-6 * sum.magnitude)
            << format.name << (exact_x ? "_x " : " ") << level << " m " << shape.m << " n " << shape.n << " k " << k
            << " row " << r << " column " << j << " seed " << kSeed;
      }
    }
  }

  static constexpr uint32_t kSeed = 90210;
};

TEST_F(QuantDotTest, MatchesTheMeaning) {
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      for (bool exact_x : {false, true}) {
        for (int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 11, 13}) {
          for (int64_t blocks : {1, 2, 3, 5, 7}) {
            Check(format, level, Draw::kUniform, {m, 3, blocks}, m % 2 == 0 ? 0 : 2 * m, exact_x);
            if (HasFatalFailure()) return;
          }
        }
        for (int64_t n : {1, 2, 5, 17, 31, 61, 64}) {
          Check(format, level, Draw::kUniform, {1, n, 3}, 0, exact_x);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// From three rows on 16 columns at a time are packed; of blocks of 32, 16 blocks at a time.
TEST_F(QuantDotTest, ManyColumnsOfFewRows) {
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      const int64_t slab = Row(format.weight).block_elements == 32 ? 16 : 1;
      for (const auto& [n, blocks] : {std::pair<int64_t, int64_t>{16, 1}, {35, slab + 1}}) {
        for (int64_t m : {3, 4, 8, 11}) {
          Check(format, level, Draw::kUniform, {m, n, blocks}, m % 2 == 0 ? 0 : 2 * m, false);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(QuantDotTest, ARowAloneHasTheBitsOfOneOfMany) {
  constexpr int64_t kM = 8, kN = 35;
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      std::mt19937 random(kSeed);
      const int64_t k = 5 * Row(format.weight).block_elements, stride = RowBytes(format.weight, k);
      std::vector<uint8_t> w(kN * stride);
      for (int64_t j = 0; j < kN; ++j) FillBlocks(format.weight, Draw::kUniform, k, random, w.data() + j * stride);
      const int64_t x_stride = kir::PlanarRowOf(format.activation, k).row_bytes;
      std::vector<uint8_t> x(kM * x_stride);
      for (int64_t r = 0; r < kM; ++r)
        FillPlanar(format.activation, Draw::kUniform, k, random, x.data() + r * x_stride);
      auto* const dot = Tile<Dot>("qk_dot_" + format.name, level);
      std::vector<float> together(kM * kN), each(kM * kN);
      dot(together.data(), kN, w.data(), stride, x.data(), x_stride, kM, kN, k, 0, 1);
      for (int64_t r = 0; r < kM; ++r)
        dot(&each[r * kN], kN, w.data(), stride, x.data() + r * x_stride, x_stride, 1, kN, k, 0, 1);
      ASSERT_EQ(together, each) << format.name << " " << level << " seed " << kSeed;
    }
  }
}

TEST_F(QuantDotTest, HoldsAtTheEndsOfTheRanges) {
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      for (int64_t m : {1, 2, 3, 8}) {
        Check(format, level, Draw::kExtreme, {m, 29, 7}, 0, false);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Powers of two as scales begin with two subnormal numbers, of bytes 0 and 1.
TEST_F(QuantDotTest, HasTheLeastPowersOfTwo) {
  constexpr int64_t kBlocks = 11, kDepth = kBlocks * 32;
  std::mt19937 random(kSeed);
  const int64_t block_bytes = RowBytes(DType::kMXFP4, 32);
  Guarded<uint8_t> w(kBlocks * block_bytes), x(kir::PlanarRowOf(DType::kQ8_0, kDepth).row_bytes);
  FillBlocks(DType::kMXFP4, Draw::kUniform, kDepth, random, w.data());
  FillPlanar(DType::kQ8_0, Draw::kUniform, kDepth, random, x.data());
  for (int64_t b = 0; b < kBlocks; ++b) {
    w.data()[b * block_bytes] = static_cast<uint8_t>(b % 4);
    const float large = 0x1p+118f;
    std::memcpy(x.data() + kir::PlanarRowOf(DType::kQ8_0, kDepth).scales + b * 4, &large, 4);
  }
  const Reference sum =
      DotReference(0, DecodeWeights(DType::kMXFP4, w.data(), kDepth), DecodePlanarRow(DType::kQ8_0, x.data(), kDepth));
  for (const std::string& level : HostLevels()) {
    float y = 0;
    Tile<Dot>("qk_dot_mxfp4", level)(&y, 1, w.data(), w.size(), x.data(), x.size(), 1, 1, kDepth, 4096, 0);
    EXPECT_NEAR(y, sum.value, 1e-6 * sum.magnitude) << level << " seed " << kSeed;
  }
}

}  // namespace
}  // namespace quern::simd
