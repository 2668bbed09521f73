// A tensor in a file of values: dense, row-major, little-endian, of a scalar dtype.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace quern {

struct FileTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};
using FileTensors = std::map<std::string, FileTensor, std::less<>>;

// Bytes of such a tensor; nothing where 64 bits do not count them.
inline std::optional<uint64_t> BytesOf(DType dtype, const std::vector<int64_t>& shape) {
  uint64_t bytes = static_cast<uint64_t>(ScalarBytes(dtype));
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace quern
