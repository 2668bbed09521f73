// CompileKey: everything that a kernel's machine code depends on. Equal keys, equal objects, byte for byte; the test of
// that is `quern cache verify`, which compiles every entry again.
//
// A new thing that changes code is a new field here and a row in KeyFields, and nothing else: hashing, storing,
// comparing and explaining walk the table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace quern::cache {

struct CompileKey {
  std::string kernel;      // KIR text, names normalised; of a plan, kPlanText and all that it follows from
  std::string symbol;      // of the function in the object
  std::string level;       // "avx512vnni"
  std::string features;    // the instructions that the code may use, all of them
  std::string options;     // of code generation
  std::string primitives;  // hash of the level's SIMD bitcode
  std::string llvm;        // version of the code generator
  std::string build;       // hash of Quern's own sources between KIR and object
  bool operator==(const CompileKey&) const = default;
};

// Plans lie beside kernels, under keys of their own (compiler/kept_plans.h).
inline constexpr std::string_view kPlanText = "plan of ";
inline bool IsPlan(const CompileKey& key) { return key.kernel.starts_with(kPlanText); }

struct KeyField {
  const char* name;
  std::string CompileKey::* value;
};
// In the order in which people want to read about differences.
std::span<const KeyField> KeyFields();

// Over names, lengths and values of all fields.
Hash128 HashOf(const CompileKey& key);

}  // namespace quern::cache
