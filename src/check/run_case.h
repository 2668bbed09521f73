// One graph compiled and run on given bytes: what replaying, reducing and the search for the op to blame have in
// common.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/interpret.h"
#include "lir/plan.h"
#include "runtime/executable.h"

namespace quern::check {

// The memory of each Input and Param by name, states among them: scalars dense, Params of block formats as in a file,
// Inputs of q8_0 and q8_K planar.
using Bytes = std::map<std::string, std::vector<uint8_t>, std::less<>>;

// Outputs in the graph's order, and the sizes that they have: those that the run was given and those that it found.
struct Ran {
  std::vector<std::vector<uint8_t>> outputs;
  Binding sizes;
};

// `fused` (leaves, Regions, views) with its plan, on `options`; donated outputs come from the state. Errors: those of
// Executable; a leaf without bytes, or with another number of them.
StatusOr<Ran> RunCase(const ir::Graph& fused, const lir::Plan& plan, const Binding& sizes, const Bytes& bytes,
                      ExecutableOptions options);

// The bytes as the interpreter reads them. Errors: a leaf without bytes, or with another number of them.
StatusOr<ir::Feeds> FeedsOf(const ir::Graph& graph, const Binding& sizes, const Bytes& bytes);

}  // namespace quern::check
