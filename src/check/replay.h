// Runs a reproduction and says whether it still fails.
#pragma once

#include <functional>
#include <optional>

#include "check/finding.h"
#include "check/reproduction.h"
#include "lir/plan.h"
#include "runtime/executable.h"

namespace quern::check {

// A reproduction's graph on its way to machine code.
struct Planned {
  ir::Graph
      meaning;  // what its kernels have to compute: the graph, with quantised activations where they are asked for
  ir::Graph fused;
  lir::Plan plan;
  family::TargetFacts facts = {};  // that these were made for
  // In tests: what was done to the plan, for those of single ops with which the op to blame is sought.
  std::function<void(lir::Plan& plan)> edit_plan = {};
};

// What is wrong, or nothing. kRef: every region against the interpreter, which names the op to blame, then every
// output, for what goes wrong between regions; kNan: the first op that makes a NaN or an infinity. Errors: what keeps
// the graph from running.
StatusOr<std::optional<Finding>> Replay(const Reproduction& reproduction, const Planned& planned,
                                        ExecutableOptions options);

}  // namespace quern::check
