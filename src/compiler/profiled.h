// What a session or program shows its profiler.
#pragma once

#include <memory>
#include <string>

#include "base/time_span.h"
#include "compiler/pipeline.h"
#include "compiler/prepared_graph.h"
#include "hir/module.h"
#include "runtime/executable.h"

namespace quern::compiler {

struct Profiled {
  Executable* executable = nullptr;
  std::string model;         // path, or name of the graph
  std::string token_symbol;  // whose values are tokens; empty: none
  bool exact = false;
  int64_t context = 0;
  std::shared_ptr<const TimeSpans> steps;  // load and passes, growing as variants are compiled
  // How the plans came about, to show it.
  const hir::Module* module = nullptr;
  std::shared_ptr<PreparedGraph> graph;  // what variants are fused from
  PipelineOptions pipeline;              // that they are fused with; no spans
  bool specialise = false;
};

}  // namespace quern::compiler
