// What base/block_format.h asks of every format.
#include "kir/block_fields.h"

#include <cmath>
#include <random>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "kir/decode.h"
#include "support/block_formats.h"

namespace quern::kir {
namespace {

TEST(BlockFormats, SayWhatTheyMust) {
  std::set<std::string> names;
  std::set<uint32_t> types;
  for (const DType dtype : AllFormats()) {
    const BlockFormat& format = FormatOf(dtype);
    SCOPED_TRACE(format.name);
    EXPECT_TRUE(names.insert(format.name).second);
    EXPECT_EQ(format.gguf_type.has_value(), format.gguf_name != nullptr);
    if (format.gguf_type) EXPECT_TRUE(types.insert(*format.gguf_type).second);
    EXPECT_EQ(format.elements % format.group, 0);
    EXPECT_TRUE(format.elements == 32 || format.elements == 256);  // what runs of lanes and rows of tensors count on
    if (std::string_view(format.d).starts_with("f")) EXPECT_EQ(format.bytes % 2, 0);  // halves are read where they lie
    EXPECT_TRUE(format.dmin == nullptr || format.added == nullptr);
    EXPECT_EQ(format.dmin == nullptr, format.minimum == nullptr);
    EXPECT_TRUE(format.levels.empty() || format.zero == 0);
    if (format.activation) EXPECT_GT(FormatOf(*format.activation).sums, 0);
    EXPECT_EQ(RowBytes(dtype, 2 * format.elements), 2 * format.bytes);
  }
}

// Of random blocks: bytes are read inside, what must not be negative is not, and groups share what they must.
TEST(BlockFormats, FieldsAreWithinTheirBounds) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (const DType dtype : AllFormats()) {
    const BlockFormat& format = FormatOf(dtype);
    const BlockFields& fields = FieldsOf(dtype);
    SCOPED_TRACE(format.name);
    for (int trial = 0; trial < 50; ++trial) {
      std::vector<uint8_t> block(format.bytes);
      for (uint8_t& byte : block) byte = static_cast<uint8_t>(trial == 0 ? 0xff : random());
      std::vector<int64_t> before;
      for (int i = 0; i < format.elements; ++i) {
        std::vector<int64_t> values;
        for (const BlockStep& step : fields.steps) {
          int64_t args[3] = {};
          for (int a = 0; a < 3 && step.args[a] >= 0; ++a) args[a] = values[step.args[a]];
          switch (step.kind) {
            case BlockStep::Kind::kIndex: values.push_back(i); break;
            case BlockStep::Kind::kConst: values.push_back(step.constant); break;
            case BlockStep::Kind::kLoad:
              ASSERT_GE(args[0], 0);
              ASSERT_LE(args[0] + ScalarBytes(step.dtype), format.bytes);
              values.push_back(step.dtype == DType::kI8 ? static_cast<int8_t>(block[args[0]]) : block[args[0]]);
              break;
            case BlockStep::Kind::kPower:
            case BlockStep::Kind::kTimes: values.push_back(0); break;
            case BlockStep::Kind::kHalf:
              ASSERT_GE(args[0], 0);
              ASSERT_LT(args[0], 65536);
              values.push_back(0);
              break;
            case BlockStep::Kind::kGrid:
              ASSERT_GE(args[0], 0);
              ASSERT_LT(args[0], static_cast<int64_t>(format.grid.size()));
              values.push_back(format.grid[args[0]]);
              break;
            case BlockStep::Kind::kApply: {
              for (int a = 0; a < 3 && step.args[a] >= 0; ++a) ASSERT_GE(args[a], 0) << Row(step.op).name;
              values.push_back(EvalInteger(step.op, DType::kI64, args[0], args[1], args[2]));
              break;
            }
          }
          if (!step.values.empty()) ASSERT_EQ(step.values[i], values.back());
          const size_t s = values.size() - 1;
          if (i % step.alike != 0) ASSERT_EQ(values[s], before[s]) << s << " of " << i;
        }
        before = values;
        const BlockElement element = ReadBlockElement(dtype, block.data(), i);
        ASSERT_EQ(element.code, values[fields.code]);
        ASSERT_GE(element.code, 0);
        ASSERT_LT(element.code, format.levels.empty() ? 256 : static_cast<int>(format.levels.size()));
        if (fields.scale >= 0) ASSERT_EQ(element.scale, values[fields.scale]);
        if (fields.minimum >= 0) ASSERT_EQ(element.minimum, values[fields.minimum]);
        ASSERT_GE(element.minimum, 0);
        const BlockElement first = ReadBlockElement(dtype, block.data(), i / format.group * format.group);
        ASSERT_EQ(element.scale, first.scale);
        ASSERT_EQ(element.minimum, first.minimum);
      }
    }
  }
}

TEST(BlockFormats, RowsAndElementsAreAlike) {
  std::mt19937 random(11);
  for (const DType dtype : AllFormats()) {
    const int64_t k = 3 * FormatOf(dtype).elements;
    std::vector<uint8_t> row(RowBytes(dtype, k));
    for (uint8_t& byte : row) byte = static_cast<uint8_t>(random() & 0x3b);  // no half or float is infinite or NaN
    std::vector<float> values(k);
    DecodeRow(dtype, row.data(), k, values.data());
    for (int64_t j = 0; j < k; ++j) ASSERT_EQ(values[j], DecodeElement(dtype, row.data(), j)) << Name(dtype) << j;
  }
}

TEST(BlockSteps, PowersOfBytes) {
  for (int byte = 0; byte < 255; ++byte) EXPECT_EQ(PowerOfByte(byte), std::ldexp(1.0f, byte - 128)) << byte;
}

TEST(BlockSteps, KnowHowTheyRunOverNeighbours) {
  const BlockFields& fields = FieldsOf(DType::kQ4_0);  // u8[2 + i % 16] >> i / 16 * 4 & 15
  const BlockStep& shifted = fields.steps[fields.steps[fields.code].args[0]];
  const BlockStep& byte = fields.steps[shifted.args[0]];
  EXPECT_EQ(fields.steps[byte.args[0]].OverRun(4), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(fields.steps[shifted.args[1]].OverRun(8), std::vector<int>(8, 0));
  EXPECT_EQ(byte.OverRun(8), std::vector<int>{});
}

}  // namespace
}  // namespace quern::kir
