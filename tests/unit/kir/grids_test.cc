// Formats whose codes are looked up in a grid, against ggml's own values and dot products (tests/golden/grids.txt, of
// record_grids.py): every entry of every grid.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "kir/block_fields.h"
#include "kir/decode.h"

namespace quern::kir {
namespace {

struct GridLine {
  DType format;
  std::vector<uint8_t> block = {};
  uint64_t hash;
  float dot;
};

std::vector<GridLine> Lines() {
  std::vector<GridLine> lines;
  std::ifstream file(QUERN_SOURCE_DIR "/tests/golden/grids.txt");
  std::string name, bytes, hash, dot;
  while (file >> name >> bytes >> hash >> dot) {
    GridLine line{.format = DTypeFromName(name).value(),
                  .hash = std::strtoull(hash.c_str(), nullptr, 16),
                  .dot = std::strtof(dot.c_str(), nullptr)};
    for (size_t at = 0; at < bytes.size(); at += 2)
      line.block.push_back(static_cast<uint8_t>(std::strtoul(bytes.substr(at, 2).c_str(), nullptr, 16)));
    lines.push_back(line);
  }
  return lines;
}

TEST(Grids, ValuesAndDotsAreThoseOfGgml) {
  std::map<DType, int> lines;
  for (const GridLine& line : Lines()) {
    const int n = lines[line.format]++;
    SCOPED_TRACE(std::string(Name(line.format)) + ", block " + std::to_string(n));
    ASSERT_EQ(static_cast<int64_t>(line.block.size()), RowBytes(line.format, 256));
    float values[256];
    DecodeRow(line.format, line.block.data(), 256, values);
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t at = 0; at < sizeof values; ++at)
      hash = (hash ^ reinterpret_cast<const uint8_t*>(values)[at]) * 0x100000001b3;
    EXPECT_EQ(hash, line.hash);
    double dot = 0, magnitude = 0;
    for (int j = 0; j < 256; ++j) {
      const double term = values[j] * ((37 * j + 11 * n) % 255 - 127) / 16.0;
      dot += term;
      magnitude += std::abs(term);
    }
    EXPECT_NEAR(line.dot, dot, 1e-6 * magnitude);
  }
  EXPECT_EQ(lines.size(), 7);
}

TEST(Grids, EveryEntryIsSeen) {
  std::map<DType, std::set<int64_t>> seen;
  for (const GridLine& line : Lines()) {
    const BlockFields& fields = FieldsOf(line.format);
    for (int i = 0; i < 256; ++i) {
      std::vector<int64_t> values;
      for (const BlockStep& step : fields.steps) {
        auto arg = [&](int a) { return step.args[a] < 0 ? 0 : values[step.args[a]]; };
        int64_t value = 0;
        if (!step.values.empty())
          value = step.values[i];
        else if (step.kind == BlockStep::Kind::kLoad)
          value = line.block[arg(0)];
        else if (step.kind == BlockStep::Kind::kGrid) {
          value = FormatOf(line.format).grid[arg(0)];
          seen[line.format].insert(arg(0));
        } else if (step.kind == BlockStep::Kind::kApply) {
          value = EvalInteger(step.op, DType::kI64, arg(0), arg(1), arg(2));
        }
        values.push_back(value);
      }
    }
  }
  for (const auto& [format, entries] : seen) EXPECT_EQ(entries.size(), FormatOf(format).grid.size()) << Name(format);
}

}  // namespace
}  // namespace quern::kir
