// What an ELF object says of its symbols.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace quern::aot {

struct ObjectSymbols {
  std::map<std::string, uint64_t> sizes;  // in bytes, of what is defined
  std::vector<std::string> undefined;     // sorted
  // Whether one of those is of the C library's mathematics (-lm) rather than memcpy and its like.
  bool needs_mathematics() const;
};

// Error: Internal, what is no object.
StatusOr<ObjectSymbols> ReadObjectSymbols(const std::string& object);

}  // namespace quern::aot
