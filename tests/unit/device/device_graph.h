// Graphs on their way to a device: what the tests of this folder run.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/emulated/emulated_device.h"
#include "device/executor.h"
#include "ir/graph.h"
#include "unit/compiler/graph_runner.h"
#include "unit/device/device_run.h"

namespace quern::testing {

// A norm, maps, a plain product, a row reduction, carried state, a constant and work on parameters alone, with sizes
// from distinct primes. `past` moves where the state is written.
constexpr std::string_view kSmallGraph = R"(graph small sym P in 0..20, S in 1..23 {
  %0 = Input() {name = "x"} : f32[S, 37]
  %1 = Param() {name = "gain"} : f32[37]
  %2 = Param() {name = "w"} : f32[37, 41]
  %3 = Input() {name = "cache"} : f32[43, 37]
  %4 = RmsNorm(%0, %1) {eps = 1e-5} : f32[S, 37]
  %5 = Mul(%1, %1) : f32[37]
  %6 = Add(%4, %5) : f32[S, 37]
  %7 = Update(%3, %6) {axis = 0, start = <P>} : f32[43, 37]
  %8 = MatMul(%6, %2) : f32[S, 41]
  %9 = Silu(%8) : f32[S, 41]
  %10 = Softmax(%9) {axis = -1} : f32[S, 41]
  return %10, %7
  donate "cache" -> 1
})";

struct DeviceGraph {
  ir::Graph prepared;                         // for no target
  std::vector<device::PlannedVariant> plans;  // for blocks of threads
  std::shared_ptr<const device::LoadableProgram> program;
};

// Planned for blocks of threads, one variant a guard. Aborts the test on an error.
inline void PlanForDevice(std::string_view text, const std::vector<SymbolRanges>& guards, DeviceGraph& made) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  compiler::PipelineOptions options;
  options.facts.blocks.emplace();
  const StatusOr<hir::Module> module = hir::WrapGraph(*graph);
  ASSERT_TRUE(module.ok()) << module.status();
  StatusOr<ir::Graph> prepared = compiler::PrepareGraph(*module, options);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  made.prepared = *std::move(prepared);
  for (const SymbolRanges& guard : guards) {
    StatusOr<compiler::PlannedVariant> planned = compiler::PlanVariant(made.prepared, guard, options);
    ASSERT_TRUE(planned.ok()) << planned.status();
    made.plans.push_back({guard, std::move(planned->plan)});
  }
  const auto program = MakeLoadable(SignatureOf(made.prepared), made.plans, nullptr);
  ASSERT_TRUE(program.ok()) << program.status();
  made.program = *program;
}

inline const std::vector<SymbolRanges>& SmallGuards() {
  static const auto* const guards = new std::vector<SymbolRanges>{{{"S", {1, 1}}}, {{"S", {2, 23}}}};
  return *guards;
}

// Numbers that repeat after 97, between -1 and 1.
inline std::vector<float> Wave(size_t count, double step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(static_cast<double>(i % 97) * step));
  return values;
}

inline std::span<const uint8_t> Bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)};
}

// The JIT reads parameters where they are.
inline Status BindSmall(Runnable& runnable) {
  static const auto* const gain = new std::vector<float>(Wave(37, 0.31));
  static const auto* const w = new std::vector<float>(Wave(37 * 41, 0.17));
  QUERN_RETURN_IF_ERROR(runnable.BindParam("gain", Bytes(*gain)));
  return runnable.BindParam("w", Bytes(*w));
}

// The output of one step of the small graph, whose input depends on `past`.
inline StatusOr<std::vector<float>> StepSmall(Runnable& runnable, int64_t past, int64_t rows) {
  const std::vector<float> x = Wave(static_cast<size_t>(rows) * 37, 0.23 + 0.01 * static_cast<double>(past));
  std::vector<float> y(static_cast<size_t>(rows) * 41, -9.0f);
  const ConstBytes in{x.data(), static_cast<int64_t>(x.size() * sizeof(float))};
  const MutableBytes out{y.data(), static_cast<int64_t>(y.size() * sizeof(float))};
  QUERN_RETURN_IF_ERROR(runnable.Run({&in, 1}, {&out, 1}, {{"P", past}, {"S", rows}}));
  return y;
}

// What the JIT makes of the same graph: parameters are bound.
struct Jitted {
  ir::Graph prepared;
  std::unique_ptr<Executable> executable;
};
inline void MakeJitted(std::string_view text, Jitted& made) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<LevelRunner> level = LevelRunner::Create(*cpu::ResolveTarget("native").value());
  ASSERT_TRUE(level.ok()) << level.status();
  StatusOr<CompiledGraph> compiled = PlanGraph(*graph, {}, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  made.prepared = std::move(compiled->prepared);
  ExecutableOptions options;
  options.cache = level->cache;
  options.pool = std::make_shared<ThreadPool>(1);
  Variant variant{{}, [plan = std::move(compiled->plan)]() -> StatusOr<lir::Plan> { return plan; }};
  StatusOr<std::unique_ptr<Executable>> executable =
      Executable::Create(SignatureOf(made.prepared), {std::move(variant)}, std::move(options));
  ASSERT_TRUE(executable.ok()) << executable.status();
  made.executable = *std::move(executable);
  ASSERT_TRUE(BindSmall(*made.executable).ok());
}

inline void ExpectClose(const std::vector<float>& got, const std::vector<float>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::fabs(expected[i]))) << i;
}

}  // namespace quern::testing
