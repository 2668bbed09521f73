// Block sizes and the offsets inside planar rows and panels, as src/kir/layout.h defines them (this folder sees nothing of
// kir; tests/unit/simd/quant_layout_test.cc holds the two together).
#pragma once

#include <cstdint>

namespace quern::simd {
namespace {

// The formats of weights. kGroup: elements that share a scale in a panel. kActivation: elements of a block of the
// activations they are multiplied by (32: q8_0, 256: q8_K).
struct Q8_0 {
  static constexpr int kElements = 32, kBytes = 34, kGroup = 32, kActivation = 32;
};
struct Q4_0 {
  static constexpr int kElements = 32, kBytes = 18, kGroup = 32, kActivation = 32;
};
struct Q4_K {
  static constexpr int kElements = 256, kBytes = 144, kGroup = 32, kActivation = 256;
};
struct Q6_K {
  static constexpr int kElements = 256, kBytes = 210, kGroup = 16, kActivation = 256;
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
