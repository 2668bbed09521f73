// Smaller graphs from a reproduction's: what reducing tries. Each gives a reproduction that verifies, or an error where
// the ops do not allow it.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "check/reproduction.h"

namespace quern::check {

struct Cut {
  std::vector<ir::Value> outputs;           // of the old graph: what the new one returns
  std::map<ir::Value, ir::Value> bypassed;  // values for which another of the same type stands, earlier in the graph
  std::set<ir::Value> fed;                  // values that become Inputs, with what the interpreter has for them
};
// Everything that no output needs is gone, Inputs and symbols too. `values`: of all nodes; may be null when nothing is
// fed. Error, among others: a value that is fed holds a NaN, and no leaf did.
StatusOr<Reproduction> ApplyCut(const Reproduction& from, const Cut& cut, const Evaluation* values);

// A symbol with another, smaller value; every leaf keeps its first elements.
StatusOr<Reproduction> Shrink(const Reproduction& from, const std::string& symbol, int64_t size);
// A constant size, wherever leaves and attributes have it, made smaller; `leaf` and `axis`: in that place alone.
StatusOr<Reproduction> Shrink(const Reproduction& from, int64_t size, int64_t smaller, int leaf = -1, int axis = -1);

}  // namespace quern::check
