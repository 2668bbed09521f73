// An architecture of models: one file of models/architectures, which says how its graph is made from a file's tensors.
//
//   const Architecture& Architecture_qwen3() {
//     static constexpr Architecture architecture = {.name = "qwen3", .doc = "...", .build = Build};
//     return architecture;
//   }
#pragma once

#include <span>
#include <string_view>

#include "models/decoder.h"

namespace quern::models {

struct Architecture {
  const char* name;            // general.architecture of its files
  const char* doc;             // what sets it apart, in a line
  Value (*build)(Decoder& d);  // the logits of its last rows
};

// Every one, by name.
std::span<const Architecture* const> Architectures();
// Null: there is none of that name.
const Architecture* FindArchitecture(std::string_view name);

}  // namespace quern::models
