// Random graphs through the whole compiler: passes, regions, plans, kernels, machine code and the executable, held to
// the double interpreter; fused and with every op on its own, on this machine's own level and another one, on one
// thread and on two.
//
// QUERN_RANDOM_SEED=n runs that graph alone and prints it; QUERN_LONG_TESTS=n runs n times as many. Slices are
// independent, so that they can run as programs of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "codegen/cpu/target.h"
#include "compiler/model.h"
#include "opt/passes.h"
#include "unit/compiler/graph_runner.h"
#include "unit/compiler/random_case.h"

namespace quern::testing {
namespace {

constexpr uint64_t kGraphs = 2560, kSlices = 10, kBatch = 16;

class RandomGraphs : public ::testing::TestWithParam<uint64_t> {
 protected:
  static void SetUpTestSuite() {
    levels_ = new std::vector<LevelRunner>;
    for (const cpu::Target* target : cpu::HostTargets()) {
      StatusOr<LevelRunner> runner = LevelRunner::Create(*target);
      ASSERT_TRUE(runner.ok()) << runner.status();
      levels_->push_back(*std::move(runner));
    }
  }
  static void TearDownTestSuite() {
    delete levels_;
    levels_ = nullptr;
  }

  // The graphs `seeds`, compiled together.
  void Check(const std::vector<uint64_t>& seeds) {
    std::vector<Case> cases;
    for (const uint64_t seed : seeds) {
      StatusOr<Case> made = MakeCase(seed);
      ASSERT_TRUE(made.ok()) << "seed " << seed << ": " << made.status();
      cases.push_back(*std::move(made));
    }
    for (Case& test : cases) {
      const Status evaluated = MakeOracles(test);
      ASSERT_TRUE(evaluated.ok()) << "seed " << test.seed << ": " << evaluated << ir::Print(test.meaning);
    }
    for (size_t l = 0; l < levels_->size(); ++l) CheckOnLevel(cases, l);
    for (const Case& test : cases) {
      for (const Trial& trial : test.trials) doubted_ += trial.oracle->doubted();
    }
  }

  int64_t doubted_ = 0, elements_ = 0;

 private:
  // The native level takes every case, each other one its share.
  void CheckOnLevel(std::vector<Case>& cases, size_t level) {
    const LevelRunner& runner = (*levels_)[level];
    const bool native = level + 1 == levels_->size();
    const StatusOr<compiler::PipelineOptions> known = compiler::PipelineOptionsOf({.cpu = runner.target->name});
    ASSERT_TRUE(known.ok()) << known.status();
    struct Planned {
      Case* test;
      bool fuse;
      CompiledGraph graph;
    };
    std::vector<Planned> planned;
    std::vector<kir::Kernel> kernels;
    for (Case& test : cases) {
      if (!native && std::mt19937_64(test.seed * 31)() % (levels_->size() - 1) != level) continue;
      for (const bool fuse : {true, false}) {
        compiler::PipelineOptions options = *known;
        options.verify_steps = true;
        options.exact = test.exact;
        options.fuse = fuse;
        StatusOr<CompiledGraph> graph = PlanGraph(test.random.graph, test.guard, options);
        if (!graph.ok()) {
          ADD_FAILURE() << Where(test, level, fuse) << graph.status() << "\n" << ir::Print(test.random.graph);
          continue;
        }
        for (const kir::Kernel& kernel : graph->plan.kernels) kernels.push_back(kernel);
        planned.push_back({&test, fuse, *std::move(graph)});
      }
    }
    std::vector<std::string> symbols;
    for (size_t k = 0; k < kernels.size(); ++k) symbols.push_back(absl::StrCat("k", k));
    const auto compiled = runner.cache->Get(kernels, symbols);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (Planned& plan : planned) {
      for (Trial& trial : plan.test->trials) CheckTrial(*plan.test, trial, plan.graph, level, plan.fuse);
    }
  }

  void CheckTrial(const Case& test, Trial& trial, const CompiledGraph& graph, size_t level, bool fuse) {
    const LevelRunner& runner = (*levels_)[level];
    const auto one = RunGraph(graph, runner, 1, trial.binding, trial.bytes),
               two = RunGraph(graph, runner, 2, trial.binding, trial.bytes);
    const std::string where =
        absl::StrCat(Where(test, level, fuse), "B ", trial.binding.at("B"), ", S ", trial.binding.at("S"), ": ");
    ASSERT_TRUE(one.ok()) << where << one.status() << "\n" << ir::Print(test.random.graph);
    ASSERT_TRUE(two.ok()) << where << two.status();
    for (size_t o = 0; o < one->size(); ++o) {
      const ir::RefTensor& expected = trial.oracle->expected()[o];
      const auto got = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*one)[o]);
      ASSERT_TRUE(got.ok()) << where << got.status();
      const std::string difference = trial.oracle->WorstText(static_cast<int>(o), *got);
      EXPECT_EQ(difference, "") << where << "\n"
                                << ir::Print(test.random.graph) << (print_ ? lir::Print(graph.plan) : "");
      EXPECT_TRUE((*one)[o] == (*two)[o]) << where << "output " << o << " is another on two threads";
      elements_ += expected.elements();
      if (difference.empty() || !print_) continue;
      for (const kir::Kernel& kernel : graph.plan.kernels) std::printf("%s\n", kir::Print(kernel).c_str());
    }
  }

  static std::string Where(const Case& test, size_t level, bool fuse) {
    return absl::StrCat("seed ", test.seed, ", ", (*levels_)[level].target->name, fuse ? ", fused" : ", not fused",
                        test.exact ? ", exact: " : ": ");
  }

  static std::vector<LevelRunner>* levels_;
  const bool print_ = std::getenv("QUERN_RANDOM_SEED") != nullptr;
};
std::vector<LevelRunner>* RandomGraphs::levels_ = nullptr;

TEST_P(RandomGraphs, MeanTheSame) {
  if (const uint64_t seed = FromEnvironment("QUERN_RANDOM_SEED", 0); seed != 0) {
    if (GetParam() != 0) GTEST_SKIP() << "one seed";
    std::printf("%s", ir::Print(MakeCase(seed)->meaning).c_str());
    return Check({seed});
  }
  const uint64_t graphs = kGraphs / kSlices * FromEnvironment("QUERN_LONG_TESTS", 1);
  for (uint64_t at = 0; at < graphs && !HasFatalFailure(); at += kBatch) {
    std::vector<uint64_t> seeds;
    for (uint64_t i = at; i < std::min(graphs, at + kBatch); ++i) seeds.push_back(SeedOf(GetParam(), i));
    Check(seeds);
  }
  std::printf("%d graphs from seed %d, %d elements (%d beside a jump)\n", static_cast<int>(graphs),
              static_cast<int>(SeedOf(GetParam(), 0)), static_cast<int>(elements_), static_cast<int>(doubted_));
}

INSTANTIATE_TEST_SUITE_P(Slice, RandomGraphs, ::testing::Range(uint64_t{0}, kSlices));

// Over the graphs of all slices: what they hold, and what fusion joins with something else.
TEST(RandomGraphOps, AreAllDrawnAndFused) {
  std::map<std::string, int> drawn, fused;
  for (uint64_t slice = 0; slice < kSlices; ++slice) {
    for (uint64_t i = 0; i < kGraphs / kSlices; ++i) {
      const StatusOr<Case> made = MakeCase(SeedOf(slice, i));
      ASSERT_TRUE(made.ok()) << made.status();
      for (const ir::Node& node : made->random.graph.nodes()) ++drawn[node.op->name];
      const StatusOr<hir::Module> module = hir::WrapGraph(made->random.graph);
      ASSERT_TRUE(module.ok()) << module.status();
      const StatusOr<ir::Graph> prepared = compiler::PrepareGraph(*module, {});
      ASSERT_TRUE(prepared.ok()) << prepared.status();
      const StatusOr<compiler::PlannedVariant> variant = compiler::FuseVariant(*prepared, {}, {});
      ASSERT_TRUE(variant.ok()) << variant.status();
      for (const ir::Node& node : variant->graph.nodes()) {
        if (node.bodies.empty()) continue;
        std::vector<std::string> inner;
        for (const ir::Node& op : node.body().nodes()) {
          if (op.op->kind != ir::OpKind::kLeaf) inner.push_back(op.op->name);
        }
        if (inner.size() < 2) continue;
        for (const std::string& name : inner) ++fused[name];
      }
    }
  }
  std::string text;
  for (const ir::OpDef* op : ir::Ops()) {
    if (op->kind == ir::OpKind::kRegion || op->kind == ir::OpKind::kPack) continue;         // passes make these
    if (!op->bodies.empty()) continue;                                                      // tests/unit/steps
    if (op->kind == ir::OpKind::kRoot && std::string_view(op->family) == "call") continue;  // custom_test.cc
    EXPECT_GT(drawn[op->name], 0) << op->name << " was never drawn";
    // StopGradient is its operand, and gone before fusion.
    if (op->kind == ir::OpKind::kElementwise && std::string_view(op->name) != "StopGradient")
      EXPECT_GT(fused[op->name], 0) << op->name << " was never fused";
    absl::StrAppend(&text, text.empty() ? "" : ", ", op->name, " ", drawn[op->name]);
    if (fused[op->name] > 0) absl::StrAppend(&text, " (", fused[op->name], ")");
  }
  std::printf("ops drawn (in regions of several): %s\n", text.c_str());
}

}  // namespace
}  // namespace quern::testing
