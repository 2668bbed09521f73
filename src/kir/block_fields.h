// The fields of a block format (base/block_format.h), ready to be run or emitted: its expressions as one list of steps,
// each after those that it takes, what repeats said once.
//
//   const BlockFields& fields = FieldsOf(DType::kQ4_0);
//   for (const BlockStep& step : fields.steps) values.push_back(...);   // then values[fields.code], values[fields.d]
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/block_format.h"
#include "kir/operators.h"

namespace quern::kir {

struct BlockStep {
  enum class Kind : uint8_t {
    kIndex,  // i: the element's number in its block
    kConst,  // `constant`
    kLoad,   // what lies at byte args[0] of the block: u8 or i8 as an integer, f16 or f32 as f32
    kPower,  // 2 to the power of byte args[0] less 128, as f32
    kHalf,   // the f16 whose bits are args[0], as f32
    kTimes,  // args[0], an f32, by `factor`
    kGrid,   // word args[0] of the format's grid
    kApply,  // `op` on integers args[0..]
  };
  Kind kind = Kind::kIndex;
  DType dtype = DType::kI64;  // kLoad
  int64_t constant = 0;
  float factor = 1;
  Op op = Op::kAdd;
  std::array<int, 3> args = {-1, -1, -1};
  std::vector<int32_t> values = {};  // for each i, where no byte of the block decides; else empty

  // What each of 4, 8 or 16 neighbours, the first a multiple of that, is above the first, where that is the same all
  // over the block; else empty.
  const std::vector<int>& OverRun(int neighbours) const;

  std::array<std::vector<int>, 3> over_run = {};  // of 4, 8 and 16
  int alike = 16;  // so many neighbours, the first a multiple of that, have one value: a power of two, at most 16
};

struct BlockFields {
  std::vector<BlockStep> steps;
  int first_of_code = 0;  // the steps before are the same for all elements of a group, or follow from i alone
  int code = -1, d = -1;  // steps
  int scale = -1, dmin = -1, minimum = -1, added = -1;  // -1 where the format has none
};

// 2 to the power of `byte` less 128, which is a subnormal of f32 where byte is 0 or 1.
float PowerOfByte(int64_t byte);

// Of a format whose expressions are right: tests/unit/kir/block_fields_test.cc asks that of all.
const BlockFields& FieldsOf(DType format);

}  // namespace quern::kir
