// A graph given as text, compiled as any other and held to the double interpreter.
#pragma once

#include <gtest/gtest.h>

#include "check/oracle.h"
#include "codegen/cpu/target.h"
#include "compiler/model.h"
#include "support/random_graph.h"
#include "unit/compiler/graph_runner.h"

namespace quern::testing {

struct Planned {
  ir::Graph graph;
  CompiledGraph compiled;
};

inline StatusOr<Planned> Plan(std::string_view text, const SymbolRanges& guard = {}) {
  QUERN_ASSIGN(ir::Graph graph, ir::Parse(text));
  QUERN_ASSIGN(compiler::PipelineOptions options, compiler::PipelineOptionsOf({}));
  options.verify_steps = true;
  options.exact = true;
  QUERN_ASSIGN(CompiledGraph compiled, PlanGraph(graph, guard, options));
  return Planned{std::move(graph), std::move(compiled)};
}

inline StatusOr<std::vector<std::vector<uint8_t>>> RunPlanned(const Planned& planned, const Binding& binding) {
  QUERN_ASSIGN(const cpu::Target* target, cpu::ResolveTarget("native"));
  QUERN_ASSIGN(const LevelRunner level, LevelRunner::Create(*target));
  return RunGraph(planned.compiled, level, 2, binding, RandomBytes(planned.graph, binding, 1));
}

// Is what the double interpreter makes of it for those sizes.
inline void ExpectRightFor(const Planned& planned, const Binding& binding) {
  const auto outputs = RunPlanned(planned, binding);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const ir::Feeds feeds = RandomFeeds(planned.graph, binding, 1);
  StatusOr<check::GraphOracle> oracle = check::GraphOracle::Create(planned.graph, binding, feeds, 1);
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  for (size_t o = 0; o < outputs->size(); ++o) {
    const ir::RefTensor& expected = oracle->expected()[o];
    const auto got = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*outputs)[o]);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(oracle->WorstText(static_cast<int>(o), *got), "");
  }
}

// Compiles, and is right for each of the sizes.
inline void ExpectRight(std::string_view text, const std::vector<Binding>& bindings) {
  SCOPED_TRACE(text);
  const StatusOr<Planned> planned = Plan(text);
  ASSERT_TRUE(planned.ok()) << planned.status();
  for (const Binding& binding : bindings) ExpectRightFor(*planned, binding);
}

}  // namespace quern::testing
