// For the tests of the quantised tiles: the formats, random blocks with legal fields, and what each tile means in
// double.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/half.h"
#include "kir/decode.h"
#include "kir/layout.h"
#include "kir/quantise.h"
#include "support/block_formats.h"
#include "unit/simd/float_support.h"

namespace quern::simd {

struct QuantFormat {
  DType weight;
  DType activation;
  std::string name;
};

// Those that have tiles.
inline std::vector<QuantFormat> QuantFormats() {
  std::vector<QuantFormat> formats;
  for (const DType weight : AllFormats()) {
    if (FormatOf(weight).activation) formats.push_back({weight, *FormatOf(weight).activation, FormatOf(weight).name});
  }
  return formats;
}

// Whether a level keeps a panel16 of the format as kir/layout.h describes it. `amx` has forms of its own
// (simd/tiles/amx_q32.h, amx_q256.h), and of the K-quants so have the levels of x86 that multiply bytes in pairs
// (WordPanelAt): what their packs write is judged by what their matrix products make of it.
inline bool HasPlainPanels(const QuantFormat& format, const std::string& level) {
  if (level == "amx") return false;
  return format.activation != DType::kQ8_K || level == "avx512vnni" || level == "neon";
}

// How the random fields are drawn. kExtreme: codes, scales and activations at their ends, where a 16-bit sum would
// overflow.
enum class Draw { kUniform, kExtreme };

// Random rows of blocks. Codes and scales take every value; d and dmin are halves of ordinary, tiny or zero size.
inline void FillBlocks(DType dtype, Draw draw, int64_t k, std::mt19937& random, uint8_t* row) {
  const int64_t bytes = RowBytes(dtype, k), block = Row(dtype).block_bytes;
  std::uniform_int_distribution<int> byte(0, 255);
  const int extreme = byte(random) % 3;  // all ones, all zeros, or 0x80 (the most negative int8)
  for (int64_t i = 0; i < bytes; ++i) {
    row[i] = static_cast<uint8_t>(draw == Draw::kUniform ? byte(random)
                                  : extreme == 0         ? 0xff
                                  : extreme == 1         ? 0
                                                         : 0x80);
  }
  std::uniform_real_distribution<float> size(-0.01f, 0.02f);
  auto scale = [&] {
    const int kind = byte(random) % 8;
    return kind == 0 ? 0.0f : kind == 1 ? size(random) * 1e-4f : size(random);  // 1e-6: a subnormal half
  };
  for (int64_t at = 0; at < bytes; at += block) {
    const float d = scale(), dmin = scale();
    kir::PutScales(dtype, row + at, d, dmin);
  }
}

// A planar row of quants of every value, or all at the ends.
inline void FillPlanar(DType dtype, Draw draw, int64_t k, std::mt19937& random, uint8_t* row) {
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> x(k);
  for (float& value : x) value = normal(random);
  if (draw == Draw::kExtreme) {
    const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
    for (float& value : x) value = sign * 3;
  }
  kir::QuantiseToPlanar(dtype, x.data(), k, row, k, 0);
}

// sum, and the sum of the terms' magnitudes by which errors are judged.
struct Reference {
  double value = 0, magnitude = 0;
};

// A weight's value, and its size by which errors are judged: of q4_K and q5_K the scaled code and the minimum count as
// two terms.
struct Weight {
  double value, size;
};
inline std::vector<Weight> DecodeWeights(DType dtype, const uint8_t* row, int64_t k) {
  std::vector<Weight> weights(k);
  for (int64_t i = 0; i < k; ++i) {
    const kir::BlockElement element = kir::ReadBlockElement(dtype, row, i);
    const double value = kir::BlockValue(dtype, element);
    const double minimum = static_cast<double>(element.dmin) * element.minimum;
    const double beside = minimum - static_cast<double>(element.added);
    weights[i] = {value, std::abs(value + beside) + std::abs(beside)};
  }
  return weights;
}
inline std::vector<double> DecodePlanarRow(DType dtype, const uint8_t* row, int64_t k) {
  std::vector<double> values(k);
  for (int64_t i = 0; i < k; ++i) values[i] = kir::DecodePlanar(dtype, row, k, i);
  return values;
}

// before + w . x
inline Reference DotReference(double before, const std::vector<Weight>& w, const std::vector<double>& x) {
  Reference sum{before, std::abs(before)};
  for (size_t i = 0; i < w.size(); ++i) {
    sum.value += w[i].value * x[i];
    sum.magnitude += w[i].size * std::abs(x[i]);
  }
  return sum;
}

}  // namespace quern::simd
