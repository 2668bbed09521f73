// Where everything lies in the memory that the caller gives a compiled model. Sizes are upper bounds over the ranges of
// the symbols, so that no step can outgrow it.
//
//   0          quern_instance
//   128        dispatches of the step under way, then their quern_args, tables of pointers and of symbols, and where
//              the buffers of its loops lie
//   state      caches and other state, in the order of the signature
//   once       what depends on the weights alone, of all variants of the level that runs
//   arena      intermediate values
//   fixed      the workers' part: pointers to their scratch, then the scratch of each
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "aot/model.h"

namespace quern::aot {

struct Workspace {
  int64_t dispatches = 0, args = 0, pointers = 0, tables = 0, loops = 0;
  int64_t state = 0, state_bytes = 0;
  std::map<std::string, int64_t> states;  // offsets, by name
  int64_t once = 0;
  int64_t arena = 0, arena_bytes = 0;
  int64_t fixed = 0;    // the sum
  int64_t scratch = 0;  // of each worker
};

// The plans of a level get one memory for what depends on the weights alone, and offsets in it.
// Errors: a state, an arena or scratch without an upper bound.
StatusOr<Workspace> PlaceWorkspace(Model& model);

}  // namespace quern::aot
