// The variants of a graph, one a guard, planned when a run first asks for one.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "compiler/pipeline.h"
#include "compiler/prepared_graph.h"
#include "runtime/executable.h"

namespace quern::compiler {

// Given the graph of each variant when it has been planned, with the variant's number; null where nobody looks.
using VariantHook = std::function<void(int index, ir::Graph graph)>;

// In the order of `guards`.
std::vector<Variant> VariantsOf(std::shared_ptr<PreparedGraph> graph, std::span<const SymbolRanges> guards,
                                const PipelineOptions& pipeline, const VariantHook& planned);

}  // namespace quern::compiler
