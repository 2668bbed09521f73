// GGUF v2 and v3: metadata and tensors of a mapped model file.
//
// The file is hostile until checked: every count is compared with the bytes that are left before anything is allocated,
// every metadata read goes through a typed getter, every tensor lies inside the file, aligned. Total allocation is a
// small multiple of the number of keys and tensors; strings, arrays and weights stay in the mapping. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/mapped_file.h"
#include "base/status.h"

namespace quern {

// Types of metadata values, numbered as in the file.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// An array of metadata as it lies in the file; its elements have been walked and lie inside.
struct GgufArray {
  GgufType type;
  uint64_t count;
  std::span<const uint8_t> bytes;
};

using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;

struct GgufTensor {
  std::string name;
  std::vector<int64_t> dims;       // outermost first (the file has them innermost first)
  std::string type_name;           // ggml's: "Q4_K"
  std::optional<DType> dtype;      // absent: a ggml type that Quern does not read
  std::span<const uint8_t> bytes;  // in the mapping, aligned as the file says
};

class GgufFile {
 public:
  // Maps and checks `path`. Errors say what is wrong and at which byte.
  static StatusOr<GgufFile> Open(const std::string& path);
  // The same over bytes that outlive the object (tests, fuzzing).
  static StatusOr<GgufFile> Parse(std::span<const uint8_t> bytes);

  // The whole file; the bytes of tensors lie in it.
  std::span<const uint8_t> bytes() const { return bytes_; }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  // The tensor called `name`, or null.
  const GgufTensor* FindTensor(std::string_view name) const;
  bool Has(std::string_view key) const { return metadata_.contains(key); }

  // Typed getters. NotFound names the key; InvalidArgument names the key and its type. Integers convert between widths
  // when the value fits; a float key accepts f32 and f64.
  StatusOr<int64_t> Int(std::string_view key) const;
  StatusOr<double> Float(std::string_view key) const;
  StatusOr<bool> Bool(std::string_view key) const;
  StatusOr<std::string_view> String(std::string_view key) const;
  StatusOr<std::vector<std::string_view>> Strings(std::string_view key) const;
  StatusOr<std::vector<double>> Floats(std::string_view key) const;
  // Of integers, or of bools, which are 0 and 1.
  StatusOr<std::vector<int64_t>> Ints(std::string_view key) const;

 private:
  Status Read(std::span<const uint8_t> bytes);
  StatusOr<const GgufValue*> Find(std::string_view key) const;
  StatusOr<const GgufArray*> Array(std::string_view key) const;

  MappedFile file_;
  std::span<const uint8_t> bytes_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> tensor_index_;
};

// One line: the value of a metadata key for people, arrays shortened.
std::string ToString(const GgufValue& value);

}  // namespace quern
