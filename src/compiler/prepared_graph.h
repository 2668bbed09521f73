// The graph of a module after the passes that do not depend on sizes, made when it is first asked for: a start that
// finds its plans in the cache never asks.
#pragma once

#include <optional>
#include <utility>

#include "compiler/pipeline.h"
#include "hir/module.h"

namespace quern::compiler {

// Not thread-safe.
class PreparedGraph {
 public:
  // The module outlives it.
  PreparedGraph(const hir::Module* module, PipelineOptions pipeline)
      : module_(module), pipeline_(std::move(pipeline)) {}

  // Valid as long as this is. Errors: those of PrepareGraph.
  StatusOr<const ir::Graph*> Get() {
    if (!graph_) {
      QUERN_ASSIGN(graph_, PrepareGraph(*module_, pipeline_));
    }
    return &*graph_;
  }

 private:
  const hir::Module* module_;
  const PipelineOptions pipeline_;
  std::optional<ir::Graph> graph_;
};

}  // namespace quern::compiler
