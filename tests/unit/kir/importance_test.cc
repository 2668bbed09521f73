// Blocks by an importance against ggml's, by the hashes of tests/golden/importance/rows.txt (record.py there makes the
// rows by the same rule).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/block_format.h"
#include "kir/quantise.h"
#include "support/block_formats.h"

namespace quern::kir {
namespace {

constexpr int kColumns = 512;

// Numbers of 24 bits.
struct Draw {
  uint64_t seed;
  int64_t operator()() {
    seed += 0x9E3779B97F4A7C15;
    uint64_t z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return static_cast<int64_t>((z ^ z >> 31) >> 40);
  }
};

struct Row {
  std::vector<float> x, importance;
};
Row RowOf(int number) {
  Draw draw{static_cast<uint64_t>(number)};
  Row row;
  const int kind = number % 6, spread = number / 6 % 8;
  for (int j = 0; j < kColumns; ++j) {
    const int64_t bits = draw(), size = draw(), count = draw(), scale = draw();
    double value = static_cast<double>(bits - (1 << 23)) / (1 << 23);
    switch (kind) {
      case 1: value = std::ldexp(value, static_cast<int>(size % 12) - 6); break;
      case 2: value = size % 10 == 0 ? value : 0; break;
      case 3: value = std::abs(value); break;
      case 4: value = -std::abs(value) - 0.125; break;
      case 5: value = j < 300 ? static_cast<double>(bits % 3 - 1) : 0; break;
      default: break;
    }
    row.x.push_back(static_cast<float>(value));
    double weight = static_cast<double>(count) / (1 << 24);
    switch (spread) {
      case 1: weight = std::ldexp(weight, static_cast<int>(scale % 24) - 12); break;
      case 2: weight = scale % 20 == 0 ? weight : 0; break;
      case 3: weight = 0; break;
      case 4: weight = 1; break;
      case 5: weight = j < 32 || j >= 480 ? weight : 0; break;
      case 6: weight = std::ldexp(weight, -60); break;
      case 7: weight = std::ldexp(weight, 60); break;
      default: break;
    }
    row.importance.push_back(static_cast<float>(weight));
  }
  return row;
}

TEST(Importance, BlocksAreThoseOfGgml) {
  std::ifstream file(QUERN_SOURCE_DIR "/tests/golden/importance/rows.txt");
  std::map<std::string, int> held;
  std::string name, hash;
  int number = 0;
  while (file >> name >> number >> hash) {
    const Row row = RowOf(number);
    for (const DType format : AllFormats()) {
      if (FormatOf(format).gguf_name == nullptr || name != FormatOf(format).gguf_name) continue;
      std::vector<uint8_t> bytes(static_cast<size_t>(RowBytes(format, kColumns)));
      QuantiseToBlocksBy(format, row.x.data(), row.importance.data(), kColumns, bytes.data());
      uint64_t made = 0xcbf29ce484222325;
      for (const uint8_t byte : bytes) made = (made ^ byte) * 0x100000001b3;
      EXPECT_EQ(made, std::strtoull(hash.c_str(), nullptr, 16)) << name << " row " << number;
      ++held[name];
    }
  }
  EXPECT_EQ(held.size(), 15u);
  for (const auto& [format, rows] : held) EXPECT_EQ(rows, 51) << format;
}

// An importance of zeros and of numbers at either end of what floats are stays defined.
TEST(Importance, ExtremesAreDefined) {
  for (const DType format : AllFormats()) {
    if (FormatOf(format).quantise_by == nullptr) continue;
    for (const float value : {0.0f, -0.0f, 1e-45f, 1.0f, -3e38f}) {
      for (const float weight : {0.0f, 1e-45f, 1.0f, 3e38f}) {
        std::vector<float> x(kColumns), importance(kColumns, weight);
        x[300] = value;
        std::vector<uint8_t> bytes(static_cast<size_t>(RowBytes(format, kColumns)));
        QuantiseToBlocksBy(format, x.data(), importance.data(), kColumns, bytes.data());
      }
    }
  }
}

}  // namespace
}  // namespace quern::kir
