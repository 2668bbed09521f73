// What tests know of every block format, from the table: so a new one is in them by its row.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/half.h"
#include "kir/block_fields.h"

namespace quern {

inline std::vector<DType> AllFormats() {
  std::vector<DType> formats;
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) formats.push_back(static_cast<DType>(d));
  return formats;
}

// Those that parameters of models may have.
inline std::vector<DType> WeightFormats() {
  std::vector<DType> formats;
  for (const DType format : AllFormats()) {
    if (FormatOf(format).is_weight) formats.push_back(format);
  }
  return formats;
}

// Sets d of a block, and dmin where it has one: of random bytes they may be infinite.
inline void PutScales(DType format, uint8_t* block, float d, float dmin) {
  const kir::BlockFields& fields = kir::FieldsOf(format);
  for (const auto& [number, value] : {std::pair(fields.d, d), std::pair(fields.dmin, dmin)}) {
    if (number < 0) continue;
    const kir::BlockStep& load = fields.steps[number];
    uint8_t* const at = block + fields.steps[load.args[0]].values[0];
    const uint16_t half = FloatToHalf(value);
    if (load.dtype == DType::kF32)
      std::memcpy(at, &value, sizeof value);
    else
      std::memcpy(at, &half, sizeof half);
  }
}

}  // namespace quern
