// A look at a run region by region: what checks of kernels hang on to. Without an observer a run is one walk over all
// of its dispatches; with one, every region of the fused graph runs on its own, between two calls.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/extent.h"
#include "base/status.h"
#include "lir/plan.h"
#include "quern/abi.h"

namespace quern {

// One region about to run, or done.
struct RegionStep {
  int variant = 0;  // position among the executable's
  const lir::Plan* plan = nullptr;
  // The region's, in order: launches[0].region is its node, of the graph of launches[0].body; -1: one copy.
  std::span<const lir::Launch> launches;
  std::span<uint8_t* const> bases;  // memory of each buffer of the plan
  const Binding* symbols = nullptr;
  bool once = false;  // parameter-only work, when parameters are bound

  int region() const { return launches[0].region; }
  // Where the values of the graph lie that the region is a node of.
  const std::vector<std::vector<lir::Argument>>& values() const { return plan->bodies[launches[0].body].values; }
};

// Called on the thread of the run, between kernels. An error ends the run with that error.
class RegionObserver {
 public:
  virtual ~RegionObserver() = default;
  virtual Status Before(const RegionStep& step) = 0;
  virtual Status After(const RegionStep& step) = 0;
};

// How a plan runs when it is watched.
struct Stepping {
  RegionObserver* observer = nullptr;  // null: a run is not cut
  int variant = 0;
  // For tests of checks: what runs in place of a launch's kernel. May be empty.
  std::function<quern_kernel*(const lir::Launch& launch, quern_kernel* kernel)> substitute;
};

}  // namespace quern
