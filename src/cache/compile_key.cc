#include "cache/compile_key.h"

#include "absl/strings/str_cat.h"

namespace quern::cache {

std::span<const KeyField> KeyFields() {
  static constexpr KeyField kFields[] = {
      {"build", &CompileKey::build},   {"llvm", &CompileKey::llvm},         {"primitives", &CompileKey::primitives},
      {"level", &CompileKey::level},   {"features", &CompileKey::features}, {"options", &CompileKey::options},
      {"symbol", &CompileKey::symbol}, {"kernel", &CompileKey::kernel},
  };
  static_assert(sizeof(CompileKey) == std::size(kFields) * sizeof(std::string), "a field of the key has no row");
  return kFields;
}

Hash128 HashOf(const CompileKey& key) {
  std::string bytes;
  for (const KeyField& field : KeyFields())
    absl::StrAppend(&bytes, field.name, " ", (key.*field.value).size(), ":", key.*field.value, "\n");
  return HashBytes(bytes);
}

}  // namespace quern::cache
