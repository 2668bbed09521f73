// What a Graph hands to a Program: internals of the public interface (quern/graph.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/make_executable.h"
#include "compiler/pipeline.h"
#include "compiler/profiled.h"
#include "quern/graph.h"
#include "runtime/executable.h"

namespace quern {

struct Program::State_ {
  hir::Module module;
  compiler::MadeExecutable made;
  std::vector<TensorInfo> inputs, outputs, params, states;
  std::vector<Port> rooms;      // outputs as large as they may be: what runs are given memory for
  std::optional<Binding> last;  // all sizes of the last run that went well
  double prepare_seconds = 0;
  Options options;  // of what keys of variants are made
  compiler::Profiled profiled;

  StatusOr<std::vector<std::vector<int64_t>>> OutputShapes(const std::vector<ConstTensor>& inputs,
                                                           const Binding& symbols) const;
  StatusOr<std::vector<std::vector<int64_t>>> LastShapes() const;
  Status Precompile(const Binding& symbols);
  Status Run(const std::vector<ConstTensor>& inputs, const std::vector<MutableTensor>& outputs, const Binding& symbols);
};

namespace compiler {

// Everything that a program is made of but its memory for weights.
struct ProgramSpec {
  const hir::Module* module = nullptr;
  std::vector<SymbolRanges> guards;                          // tried in order; one for all sizes follows
  std::map<std::string, std::span<const std::byte>> params;  // those with bytes
};

// The guards with which a graph of these symbols is compiled when nothing else is asked: a graph of one symbol has a
// variant for 1 and one for 2..8, where matrix products are bound by the memory that holds the weights.
std::vector<SymbolRanges> DefaultGuards(const SymbolRanges& symbols);

StatusOr<std::unique_ptr<Program::State_>> MakeProgram(const ProgramSpec& spec, const Options& options);

}  // namespace compiler
}  // namespace quern
