// Metadata of a model: values by key, as GGUF has them. A GGUF file's lie in its mapping; what another kind of file
// says is put here under the same keys, and lies in memory of the metadata's own.
//
// Every read goes through a typed getter. Thread-safe once it is no longer written.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

// An array of metadata as it lies in a GGUF file; its elements have been walked and lie inside.
struct GgufArray {
  GgufType type;
  uint64_t count;
  std::span<const uint8_t> bytes;
};

using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;

// Bytes of one value of a type of fixed size; 0 of strings and arrays.
uint64_t BytesOfGgufType(GgufType type);
// "u8", "string", ..
const char* NameOfGgufType(GgufType type);

// Move-only: views into it keep their address.
class Metadata {
 public:
  Metadata() = default;
  Metadata(Metadata&&) = default;
  Metadata& operator=(Metadata&&) = default;
  Metadata(const Metadata&) = delete;
  Metadata& operator=(const Metadata&) = delete;

  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return values_; }
  bool Has(std::string_view key) const { return values_.contains(key); }

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
  // Of integers of a byte each: these, where the file has them.
  StatusOr<std::span<const uint8_t>> Bytes(std::string_view key) const;

  // The type that a GGUF file has, or would have, the value of `key` as; u32 and i32 where these hold it. Precondition:
  // Has(key).
  GgufType TypeOf(std::string_view key) const;

  // Of a key that is not there yet: whether it was not. Texts and arrays that the value refers to outlive this.
  bool Add(std::string_view key, GgufType type, GgufValue value);
  // Each takes the place of what the key had. Texts and lists are copied.
  void Put(std::string_view key, GgufValue value);
  void PutInt(std::string_view key, int64_t value);  // not negative: unsigned
  void PutText(std::string_view key, std::string_view text);
  void PutTexts(std::string_view key, std::span<const std::string> texts);
  void PutFloats(std::string_view key, std::span<const float> numbers);
  void PutInts(std::string_view key, std::span<const int32_t> numbers);
  void PutBools(std::string_view key, const std::vector<bool>& flags);
  void Remove(std::string_view key);
  // Every value of `other`, under the same keys; of texts and lists copies.
  void PutAll(const Metadata& other);

 private:
  StatusOr<const GgufValue*> Find(std::string_view key) const;
  StatusOr<const GgufArray*> Array(std::string_view key) const;
  std::span<const uint8_t> Keep(std::vector<uint8_t> bytes);

  std::map<std::string, GgufValue, std::less<>> values_;
  std::map<std::string, GgufType, std::less<>> types_;  // of what was added with one
  std::deque<std::vector<uint8_t>> own_;
};

// One line: the value of a metadata key for people, arrays shortened.
std::string ToString(const GgufValue& value);

}  // namespace quern
