// A graph compiled the whole way, run on random values under a checker, with a kernel of it broken on purpose.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "check/checker.h"
#include "check/replay.h"
#include "compiler/model.h"
#include "compiler/pipeline.h"
#include "hir/module.h"
#include "opt/passes.h"
#include "support/random_graph.h"

namespace quern::testing {

// A kernel that computes what it should, and then puts a value where it does not belong.
struct Fault {
  std::string label;    // part of that of its launch
  int64_t element = 0;  // of the parameter that it writes, f32
  float value = 1234;
  bool fused_only = false;  // the kernels of single ops, with which the op to blame is sought, are healthy
};

// What a faulty kernel runs and breaks: one at a time.
struct ActiveFault {
  quern_kernel* healthy = nullptr;
  int parameter = 0;
  Fault fault;
};
inline ActiveFault& Active() {
  static ActiveFault active;
  return active;
}
inline void FaultyKernel(const quern_args* args, void* scratch, int64_t begin, int64_t end) {
  Active().healthy(args, scratch, begin, end);
  static_cast<float*>(args->buffers[Active().parameter])[Active().fault.element] = Active().fault.value;
}

struct WatchedRun {
  Status status;
  std::optional<check::Finding> finding;
  check::Checker::Counts counts;
};

class WatchedGraph {
 public:
  // MIR text; values are random but for those in `bytes`.
  explicit WatchedGraph(std::string_view text, Binding sizes = {}, check::Bytes bytes = {})
      : sizes_(std::move(sizes)), bytes_(std::move(bytes)) {
    StatusOr<ir::Graph> graph = ir::Parse(text);
    EXPECT_TRUE(graph.ok()) << graph.status();
    graph_ = *std::move(graph);
    for (auto& [name, value] : RandomBytes(graph_, sizes_, 1)) bytes_.emplace(name, std::move(value));
    options_ = *compiler::PipelineOptionsOf({});
    StatusOr<ir::Graph> fused = opt::FuseRegions(graph_, {.families = codegen::Families()});
    EXPECT_TRUE(fused.ok()) << fused.status();
    fused_ = *std::move(fused);
    StatusOr<lir::Plan> plan = lir::BuildPlan(fused_, fused_.symbols, options_.facts);
    EXPECT_TRUE(plan.ok()) << plan.status();
    plan_ = *std::move(plan);
    cache_ = std::make_shared<KernelCache>(*jit::Engine::Create({.threads = 1}));
  }

  WatchedRun Run(check::Kind kind, const std::vector<Fault>& faults = {}, const std::string& folder = "") {
    check::CheckerOptions options{.kind = kind, .folder = folder, .facts = options_.facts, .cache = cache_};
    options.substitute = [&faults, this](const lir::Launch& launch, quern_kernel* kernel) {
      return Substituted(faults, launch, kernel);
    };
    check::Checker checker(options);
    checker.SetGraph(0, fused_);
    ExecutableOptions executable = Options();
    executable.stepping = {&checker, 0, options.substitute};
    const auto ran = check::RunCase(fused_, plan_, sizes_, bytes_, std::move(executable));
    return {ran.status(), checker.finding(), checker.counts()};
  }

  // The reproduction that a finding names, with healthy kernels.
  std::optional<check::Finding> ReplayHealthy(const check::Finding& finding) {
    const std::string path = finding.reproduction.substr(finding.reproduction.find("replay ") + 7);
    StatusOr<check::Reproduction> read = check::Read(path);
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok()) return finding;
    check::Planned planned{read->graph, *opt::FuseRegions(read->graph, {.families = codegen::Families()}), {}};
    planned.plan = *lir::BuildPlan(planned.fused, planned.fused.symbols, options_.facts);
    StatusOr<std::optional<check::Finding>> again = check::Replay(*read, planned, Options());
    EXPECT_TRUE(again.ok()) << again.status();
    return again.ok() ? *again : finding;
  }

  const lir::Plan& plan() const { return plan_; }

 private:
  ExecutableOptions Options() const {
    ExecutableOptions options;
    options.cache = cache_;
    options.pool = std::make_shared<ThreadPool>(1);
    return options;
  }

  quern_kernel* Substituted(const std::vector<Fault>& faults, const lir::Launch& launch, quern_kernel* kernel) const {
    // A launch of the whole, or one of a single op: then the parameter that is written comes last.
    const auto own = std::find_if(plan_.launches.begin(), plan_.launches.end(), [&](const lir::Launch& l) {
      return l.label == launch.label && l.region == launch.region && l.arguments == launch.arguments;
    });
    int written = static_cast<int>(launch.arguments.size()) - 1;
    for (size_t p = 0; own != plan_.launches.end() && p < launch.arguments.size(); ++p) {
      if (plan_.kernels[own->kernel].params[p].mode != kir::Mode::kIn) written = static_cast<int>(p);
    }
    for (const Fault& fault : faults) {
      if (launch.label.find(fault.label) == std::string::npos || (fault.fused_only && own == plan_.launches.end()))
        continue;
      Active() = {kernel, written, fault};
      return FaultyKernel;
    }
    return kernel;
  }

  ir::Graph graph_, fused_;
  Binding sizes_;
  check::Bytes bytes_;
  compiler::PipelineOptions options_;
  lir::Plan plan_;
  std::shared_ptr<KernelCache> cache_;
};

// A folder for one test's files.
inline std::string FreshFolder(const std::string& name) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / ("quern_check_" + name)).string();
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

}  // namespace quern::testing
