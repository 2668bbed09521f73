// Makes a reproduction smaller for as long as it fails.
//
//   12 nodes, 5 leaves, 40960 bytes: %7 Softmax alone
//   3 nodes, 2 leaves, 320 bytes: 64 becomes 8
//
// In rounds, until one changes nothing: outputs are dropped, or become what they were computed from; a node's result
// becomes an Input that holds what the interpreter has for it, which cuts off everything above; a node gives way to an
// operand of the same type; sizes are halved; values become zeros or ones. Every try is a reproduction that verifies.
// Deterministic.
#pragma once

#include <functional>
#include <string>

#include "check/reproduction.h"

namespace quern::check {

struct ReduceOptions {
  int attempts = 2000;                               // of calls to `fails`, at most
  std::function<void(const std::string&)> log = {};  // a line for each step
};

// Precondition: fails(start), `fails` depends on its argument alone.
Reproduction Reduce(Reproduction start, const std::function<bool(const Reproduction&)>& fails,
                    const ReduceOptions& options);

}  // namespace quern::check
