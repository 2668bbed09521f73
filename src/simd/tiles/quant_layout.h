// Block sizes and the offsets inside blocks, planar rows and panels, as src/kir defines them (this folder sees nothing
// of kir; tests/unit/simd/quant_layout_test.cc holds the two together).
#pragma once

#include <cstdint>

namespace quern::simd {
namespace {

// The formats of weights. kGroup: elements that share a scale in a panel. kCodes: values of a code; kOffset: what is
// taken away from it. kActivation: elements of a block of the activations they are multiplied by (32: q8_0, 256: q8_K).
struct Q8_0 {
  static constexpr int kElements = 32, kBytes = 34, kGroup = 32, kCodes = 256, kOffset = 128, kActivation = 32;
};
struct Q4_0 {
  static constexpr int kElements = 32, kBytes = 18, kGroup = 32, kCodes = 16, kOffset = 8, kActivation = 32;
};

// K-quants: blocks of 256. kHasMins: each group has a minimum that is taken away from code * scale. Where the fields of
// a block are, in bytes: kD (with minimums: d and dmin), kScales, kNibbles, and kHigh, the bits above the nibbles.
struct KQuant {
  static constexpr int kElements = 256, kActivation = 256;
};
struct Q4_K : KQuant {
  static constexpr int kBytes = 144, kGroup = 32, kCodes = 16, kOffset = 0;
  static constexpr bool kHasMins = true;
  static constexpr int kD = 0, kScales = 4, kNibbles = 16;
};
struct Q5_K : KQuant {
  static constexpr int kBytes = 176, kGroup = 32, kCodes = 32, kOffset = 0;
  static constexpr bool kHasMins = true;
  static constexpr int kD = 0, kScales = 4, kHigh = 16, kNibbles = 48;
};
struct Q6_K : KQuant {
  static constexpr int kBytes = 210, kGroup = 16, kCodes = 64, kOffset = 32;
  static constexpr bool kHasMins = false;
  static constexpr int kNibbles = 0, kHigh = 128, kScales = 192, kD = 208;
};

// Offsets in bytes inside a planar row of k activations; the quants are at 0.
template <int kBlock>
struct PlanarAt {
  int64_t scales, sums, wide_sums;
  explicit PlanarAt(int64_t k)
      : scales((k + 63) / 64 * 64),
        sums(scales + (k / kBlock * 4 + 63) / 64 * 64),
        wide_sums(sums + (k / (kBlock == 256 ? 16 : 32) * 2 + 63) / 64 * 64) {}
};

// Offsets in bytes inside a panel16 of k elements; the codes are at 0.
template <class Format>
struct PanelAt {
  int64_t scales, mins, supers;
  explicit PanelAt(int64_t k) : scales(k * 16), mins(scales + k / Format::kGroup * 64), supers(mins + k) {}
};

}  // namespace
}  // namespace quern::simd
