// What tests know of every block format, from the table: so a new one is in them by its row.
#pragma once

#include <string>
#include <vector>

#include "kir/block_fields.h"
#include "kir/random_buffer.h"

namespace quern {

inline std::vector<DType> AllFormats() {
  std::vector<DType> formats;
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) formats.push_back(static_cast<DType>(d));
  return formats;
}

}  // namespace quern
