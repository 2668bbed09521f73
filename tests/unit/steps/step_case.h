// A graph of text with branches or loops, run in every way there is: by definition, on one thread and two, fused and
// with every op on its own, watched by a checker, ahead of time without and with a runner, on the emulated device, and
// through its own text.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "base/check.h"
#include "check/checker.h"
#include "check/oracle.h"
#include "compiler/model.h"
#include "ir/counted.h"
#include "support/temp_folder.h"
#include "unit/aot/compiled_graph.h"
#include "unit/steps/on_device.h"

namespace quern::testing {

// The native level's runner, shared by the tests of a program.
inline const LevelRunner& NativeLevel() {
  static const LevelRunner* const level = [] {
    StatusOr<LevelRunner> runner = LevelRunner::Create(*cpu::HostTargets().back());
    QUERN_CHECK(runner.ok());
    return new LevelRunner(*std::move(runner));
  }();
  return *level;
}

inline CompiledGraph PlanText(std::string_view text, bool fuse = true) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  StatusOr<compiler::PipelineOptions> options = compiler::PipelineOptionsOf({});
  EXPECT_TRUE(options.ok()) << options.status();
  options->fuse = fuse;
  options->verify_steps = true;
  StatusOr<CompiledGraph> planned = PlanGraph(*graph, {}, *options);
  EXPECT_TRUE(planned.ok()) << planned.status();
  return planned.ok() ? *std::move(planned) : CompiledGraph{};
}

using Outputs = std::vector<std::vector<uint8_t>>;

// A run with every region held to the interpreter, each on the operands that it really saw.
inline StatusOr<Outputs> RunChecked(const CompiledGraph& compiled, bool fuse, const LevelRunner& level,
                                    const Binding& binding, const BytesByName& bytes) {
  QUERN_ASSIGN(compiler::PipelineOptions pipeline, compiler::PipelineOptionsOf({}));
  pipeline.fuse = fuse;
  check::Checker checker({.kind = check::Kind::kRef, .cache = level.cache});
  ExecutableOptions options;
  options.cache = level.cache;
  options.pool = std::make_shared<ThreadPool>(1);
  options.stepping.observer = &checker;
  Variant variant{{}, [&]() -> StatusOr<lir::Plan> {
                    QUERN_ASSIGN(compiler::PlannedVariant planned,
                                 compiler::PlanVariant(compiled.prepared, {}, pipeline));
                    checker.SetGraph(0, std::move(planned.graph));
                    return std::move(planned.plan);
                  }};
  QUERN_ASSIGN(const std::unique_ptr<Executable> executable,
               Executable::Create(SignatureOf(compiled.prepared), {std::move(variant)}, std::move(options)));
  return RunOnce(*executable, compiled.prepared, binding, bytes);
}

// One run of a graph: its sizes, and values of leaves in the place of those that are drawn, by name.
struct Trial {
  Binding binding;
  BytesByName given = {};
};

// Graphs of text in every way they run, each way compiled once for all trials.
class StepCase {
 public:
  StepCase(std::string_view text, std::vector<Trial> trials) : text_(text), trials_(std::move(trials)) {}

  void Check() {
    const StatusOr<ir::Graph> graph = ir::Parse(text_);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const StatusOr<ir::Graph> again = ir::Parse(ir::Print(*graph));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(ir::SameGraph(*graph, *again)) << ir::Print(*graph);
    graph_ = *graph;
    for (const bool fuse : {true, false}) CheckFused(fuse);
  }

 private:
  void CheckFused(bool fuse) {
    const CompiledGraph compiled = PlanText(text_, fuse);
    GraphCase test;
    test.random.graph = graph_;
    test.random.binding = trials_[0].binding;
    test.bytes = BytesOf(trials_[0]);
    test.compiled = compiled;
    test.model.name = fuse ? "fused" : "single";
    test.model.signature = SignatureOf(compiled.prepared);
    test.model.levels = {{NativeLevel().target, {{{}, compiled.plan}}}};
    std::mt19937_64 choose(kSeed);
    PlaceParams(test, choose);
    const StatusOr<aot::Workspace> workspace = aot::PlaceWorkspace(test.model);
    ASSERT_TRUE(workspace.ok()) << workspace.status();
    test.workspace = *workspace;
    const TempFolder folder;
    void* const library = Library(test, folder.path());
    ASSERT_NE(library, nullptr);
    for (const Trial& trial : trials_) {
      std::string where = fuse ? "fused" : "not fused";
      for (const auto& [symbol, value] : trial.binding) absl::StrAppend(&where, ", ", symbol, " ", value);
      test.random.binding = trial.binding;
      test.bytes = BytesOf(trial);
      CheckTrial(test, trial, library, fuse, where + ": ");
    }
    dlclose(library);
  }

  void CheckTrial(const GraphCase& test, const Trial& trial, void* library, bool fuse, const std::string& where) {
    ir::Feeds feeds = RandomFeeds(graph_, trial.binding, kSeed);
    for (auto& [name, feed] : feeds) {
      StatusOr<ir::RefTensor> value = ir::RefTensorFromBytes(feed.dtype, feed.dims, test.bytes.find(name)->second);
      ASSERT_TRUE(value.ok()) << where << name << ": " << value.status();
      feed = *std::move(value);
    }
    StatusOr<check::GraphOracle> oracle = check::GraphOracle::Create(graph_, trial.binding, feeds, kSeed);
    ASSERT_TRUE(oracle.ok()) << where << oracle.status();
    const LevelRunner& level = NativeLevel();
    const StatusOr<Outputs> one = RunGraph(test.compiled, level, 1, trial.binding, test.bytes),
                            two = RunGraph(test.compiled, level, 2, trial.binding, test.bytes);
    ASSERT_TRUE(one.ok()) << where << one.status() << lir::Print(test.compiled.plan);
    ASSERT_TRUE(two.ok()) << where << two.status();
    EXPECT_TRUE(*one == *two) << where << "other bits on two threads";
    for (size_t o = 0; o < one->size(); ++o) {
      const ir::RefTensor& expected = oracle->expected()[o];
      const StatusOr<ir::RefTensor> got = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*one)[o]);
      ASSERT_TRUE(got.ok()) << where << got.status();
      EXPECT_EQ(oracle->WorstText(static_cast<int>(o), *got), "")
          << where << ir::Print(test.compiled.prepared) << lir::Print(test.compiled.plan);
    }
    if (ir::AllCountedSizes(graph_).empty()) CheckOnDevice(*oracle, trial, test.bytes, fuse, where);
    const StatusOr<Outputs> checked = RunChecked(test.compiled, fuse, level, trial.binding, test.bytes);
    ASSERT_TRUE(checked.ok()) << where << checked.status();
    EXPECT_TRUE(*checked == *one) << where << "a run that is checked has other bits";
    const quern_runner backwards = {RunBackwards, nullptr, 2};
    for (const quern_runner* runner : {static_cast<const quern_runner*>(nullptr), &backwards}) {
      const StatusOr<Outputs> got = RunCompiled(test, library, runner);
      ASSERT_TRUE(got.ok()) << where << got.status();
      EXPECT_TRUE(*got == *one) << where << "other bits ahead of time" << (runner != nullptr ? ", with a runner" : "");
    }
  }

  // Devices are given every size.
  void CheckOnDevice(check::GraphOracle& oracle, const Trial& trial, const BytesByName& bytes, bool fuse,
                     const std::string& where) {
    const StatusOr<Outputs> written = RunWrittenDown(graph_, fuse, trial.binding, bytes);
    ASSERT_TRUE(written.ok()) << where << written.status();
    for (size_t o = 0; o < written->size(); ++o) {
      const ir::RefTensor& expected = oracle.expected()[o];
      const StatusOr<ir::RefTensor> got = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*written)[o]);
      ASSERT_TRUE(got.ok()) << where << got.status();
      EXPECT_EQ(oracle.WorstText(static_cast<int>(o), *got), "") << where << "on the emulated device";
    }
  }

  // The graph ahead of time, as a library of this process.
  static void* Library(const GraphCase& test, const std::string& folder) {
    const std::string stem = (std::filesystem::path(folder) / test.model.name).string();
    const StatusOr<aot::Artefacts> files = aot::Compile(test.model, {});
    EXPECT_TRUE(files.ok()) << files.status();
    if (!files.ok()) return nullptr;
    std::ofstream(stem + ".o", std::ios::binary) << files->body;
    const std::string command = absl::StrCat(QUERN_C_COMPILER " -shared -Wl,-z,defs ", stem, ".o -lm -o ", stem, ".so");
    EXPECT_EQ(std::system(command.c_str()), 0);
    void* const library = dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
  }

  BytesByName BytesOf(const Trial& trial) const {
    BytesByName bytes = RandomBytes(graph_, trial.binding, kSeed);
    // Parameters are bound once: those of the first trial.
    const BytesByName first = RandomBytes(graph_, trials_[0].binding, kSeed);
    for (const ir::Node* param : ir::AllParams(graph_)) {
      const std::string& name = param->attributes.String("name");
      bytes[name] = first.find(name)->second;
    }
    for (const auto& [name, value] : trial.given) bytes[name] = value;
    return bytes;
  }

  static constexpr uint64_t kSeed = 1;
  const std::string text_;
  const std::vector<Trial> trials_;
  ir::Graph graph_;
};

inline void CheckGraph(std::string_view text, std::vector<Trial> trials) { StepCase(text, std::move(trials)).Check(); }

// The bytes of a number.
template <typename T>
std::vector<uint8_t> BytesOf(T value) {
  std::vector<uint8_t> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

}  // namespace quern::testing
