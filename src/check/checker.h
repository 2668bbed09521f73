// Checks a run while it runs: every region beside the double interpreter on the operands that its kernels really saw,
// or for NaNs and infinities that appear. The first region that fails ends the run with Aborted, and the finding names
// the op.
//
//   Checker checker({.kind = Kind::kRef, .folder = ".", ...});
//   options.stepping.observer = &checker;   // of an Executable, whose variants call checker.SetGraph
//   const Status status = executable->Run(...);
//   if (checker.finding()) std::puts(checker.finding()->ToString().c_str());
//
// Operands are copied before the region's first kernel, since results may take over their memory. In a region of
// several ops the one to blame is sought by compiling them one by one: where that shows an op outside of its contract,
// it is named; else the op that makes the region's result is, as "fused".
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/finding.h"
#include "check/reproduction.h"
#include "check/run_case.h"
#include "codegen/region.h"
#include "ir/graph.h"
#include "runtime/executable.h"

namespace quern::check {

struct CheckerOptions {
  Kind kind = Kind::kRef;
  std::string folder = {};  // where a reproduction goes; empty: none is written
  Settings settings = {};   // what the reproduction says of how it ran
  family::TargetFacts facts = {};
  std::shared_ptr<KernelCache> cache = {};  // for kernels of one op; null: no op is sought inside of regions
  std::function<quern_kernel*(const lir::Launch& launch, quern_kernel* kernel)> substitute =
      {};                                               // as in Stepping: tests
  std::function<void(lir::Plan& plan)> edit_plan = {};  // of kernels of one op, before they are compiled: tests
};

// For one executable; not thread-safe.
class Checker : public RegionObserver {
 public:
  explicit Checker(CheckerOptions options) : options_(std::move(options)) {}

  // The fused graph of a variant, before its plan is bound.
  void SetGraph(int variant, ir::Graph graph) { graphs_[variant] = std::move(graph); }

  Status Before(const RegionStep& step) override;
  Status After(const RegionStep& step) override;

  const std::optional<Finding>& finding() const { return finding_; }
  struct Counts {
    int64_t regions = 0, elements = 0, doubted = 0;  // doubted: beside a jump of the graph, explained by many runs
  };
  const Counts& counts() const { return counts_; }
  // "checked 83 regions, 10240 elements: all inside their contracts"
  std::string Summary() const;

 private:
  // The graph that the region is a node of.
  const ir::Graph& GraphOf(const RegionStep& step) const {
    return lir::GraphOf(graphs_.at(step.variant), *step.plan, step.launches[0].body);
  }
  Status CheckOperands(const RegionStep& step);
  Status CheckReference(const RegionStep& step);
  Status CheckSpecials(const RegionStep& step);
  Status CheckCopy(const RegionStep& step);
  // What the region fails with when every op has a kernel of its own; none: nothing, or it cannot be told.
  std::optional<Finding> Blame(const RegionStep& step) const;
  // Adds what is known of the region, writes the reproduction, and is the error.
  Status Report(const RegionStep& step, Finding finding);
  StatusOr<std::string> WriteReproduction(const RegionStep& step, const Finding& finding) const;

  const CheckerOptions options_;
  std::map<int, ir::Graph> graphs_;
  ir::Graph region_;                       // that runs, for itself
  Bytes operands_;                         // its own, from before its first kernel
  std::vector<uint8_t> copied_;            // what the copy that runs has to copy
  std::set<const uint8_t*> clean_params_;  // that were looked through for NaNs
  std::optional<Finding> finding_;
  Counts counts_;
};

}  // namespace quern::check
