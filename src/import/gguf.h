// GGUF v2 and v3: metadata and tensors of a mapped model file.
//
// The file is hostile until checked: every count is compared with the bytes that are left before anything is allocated,
// every metadata read goes through a typed getter, every tensor lies inside the file, aligned. Total allocation is a
// small multiple of the number of keys and tensors; strings, arrays and weights stay in the mapping. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "import/model_file.h"

namespace quern {

// The number of ggml's type of that name ("Q4_K"), or nothing.
std::optional<uint32_t> GgmlTypeOf(std::string_view name);

class GgufFile : public ModelFile {
 public:
  // Maps and checks `path`. Errors say what is wrong and at which byte.
  static StatusOr<GgufFile> Open(const std::string& path);
  // The same over bytes that outlive the object (tests, fuzzing).
  static StatusOr<GgufFile> Parse(std::span<const uint8_t> bytes);

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }

 private:
  Status Read(std::span<const uint8_t> bytes);

  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
};

}  // namespace quern
