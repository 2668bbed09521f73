// What a GGUF v3 file begins with: metadata and where its tensors lie. Their bytes follow, in the order given, each
// padded to the alignment.
//
//   stream.Write(GgufHeader(metadata, tensors));
//   for (..) stream.Write(bytes), stream.Write(GgufPadding(metadata, bytes.size()));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "import/metadata.h"

namespace quern {

struct GgufTensor {
  std::string name;
  std::vector<int64_t> dims;  // outermost first
  uint32_t type;              // ggml's number
  uint64_t bytes;
};

// `general.alignment` of the metadata, 32 where it has none; a power of two, which a file that was read has.
uint64_t GgufAlignment(const Metadata& metadata);
// Zeros that follow `bytes` bytes.
std::string GgufPadding(const Metadata& metadata, uint64_t bytes);
// With the padding before the first tensor.
std::string GgufHeader(const Metadata& metadata, std::span<const GgufTensor> tensors);

}  // namespace quern
