// Random graphs with branches and loops, two deep in each other, through the whole compiler: held to the double
// interpreter, fused and with every op on its own, on one thread and two; ahead of time with the bits of the JIT;
// on the emulated device.
//
// QUERN_RANDOM_SEED=n runs that graph alone and prints it; QUERN_LONG_TESTS=n runs n times as many.
#include "unit/device/has_no_blocks.h"
#include "unit/steps/step_case.h"

namespace quern::testing {
namespace {

constexpr uint64_t kGraphs = 96;

struct Drawn : GraphCase {
  Outputs expected;
};

void Count(const ir::Graph& graph, std::map<std::string, int>& counts) {
  for (const ir::Node& node : graph.nodes()) {
    ++counts[node.op->name];
    for (const auto& body : node.bodies) Count(*body, counts);
  }
}

class RandomSteps : public ::testing::Test {
 protected:
  void Check(uint64_t seed, Drawn& test) {
    std::mt19937_64 choose(seed * 7919);
    test.random = MakeRandomGraph(seed, {.nodes = static_cast<int>(4 + choose() % 8),
                                         .discontinuous = seed % 3 == 0,
                                         .most_elements = 300,
                                         .counted = seed % 3 == 1,  // others are a device's
                                         .bodies = 2});
    test.exact = true;
    const std::string where = absl::StrCat("seed ", seed, ": ");
    const ir::Graph& graph = test.random.graph;
    const StatusOr<ir::Graph> again = ir::Parse(ir::Print(graph));
    ASSERT_TRUE(again.ok()) << where << again.status() << ir::Print(graph);
    EXPECT_TRUE(ir::SameGraph(graph, *again)) << where << ir::Print(graph);
    const Binding& binding = test.random.binding;
    test.bytes = RandomBytes(graph, binding, seed);
    const ir::Feeds feeds = RandomFeeds(graph, binding, seed);
    StatusOr<check::GraphOracle> oracle = check::GraphOracle::Create(graph, binding, feeds, seed);
    ASSERT_TRUE(oracle.ok()) << where << oracle.status() << ir::Print(graph);
    for (const bool fuse : {true, false}) {
      StatusOr<compiler::PipelineOptions> options = compiler::PipelineOptionsOf({});
      ASSERT_TRUE(options.ok());
      options->verify_steps = true;
      options->exact = true;
      options->fuse = fuse;
      const StatusOr<CompiledGraph> compiled = PlanGraph(graph, {}, *options);
      ASSERT_TRUE(compiled.ok()) << where << compiled.status() << ir::Print(graph);
      const StatusOr<Outputs> one = RunGraph(*compiled, NativeLevel(), 1, binding, test.bytes),
                              two = RunGraph(*compiled, NativeLevel(), 2, binding, test.bytes);
      ASSERT_TRUE(one.ok()) << where << one.status() << ir::Print(graph);
      ASSERT_TRUE(two.ok()) << where << two.status();
      for (size_t o = 0; o < one->size(); ++o) {
        const ir::RefTensor& expected = oracle->expected()[o];
        const StatusOr<ir::RefTensor> got = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*one)[o]);
        ASSERT_TRUE(got.ok()) << where << got.status();
        EXPECT_EQ(oracle->WorstText(static_cast<int>(o), *got), "")
            << where << (fuse ? "fused\n" : "not fused\n") << ir::Print(graph);
        EXPECT_TRUE((*one)[o] == (*two)[o]) << where << "output " << o << " is another on two threads";
      }
      if (fuse != (seed % 2 == 0)) continue;
      if (seed % 3 == 0) CheckDevice(graph, fuse, binding, test.bytes, *oracle, where);
      test.expected = *one;
      test.compiled = *compiled;
    }
    doubted_ += oracle->doubted();
  }

  static void CheckDevice(const ir::Graph& graph, bool fuse, const Binding& binding, const BytesByName& bytes,
                          check::GraphOracle& oracle, const std::string& where) {
    const StatusOr<Outputs> got = RunWrittenDown(graph, fuse, binding, bytes);
    if (absl::IsUnimplemented(got.status()) && HasNoBlocks(graph)) return;
    ASSERT_TRUE(got.ok()) << where << got.status() << ir::Print(graph);
    for (size_t o = 0; o < got->size(); ++o) {
      const ir::RefTensor& expected = oracle.expected()[o];
      const StatusOr<ir::RefTensor> values = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*got)[o]);
      ASSERT_TRUE(values.ok()) << where << values.status();
      EXPECT_EQ(oracle.WorstText(static_cast<int>(o), *values), "") << where << "on the emulated device\n"
                                                                    << ir::Print(graph);
    }
  }

  int64_t doubted_ = 0;
};

TEST_F(RandomSteps, MeanTheSameAndRunAheadOfTime) {
  const uint64_t one = FromEnvironment("QUERN_RANDOM_SEED", 0);
  const uint64_t first = one != 0 ? one : 1, count = one != 0 ? 1 : kGraphs * FromEnvironment("QUERN_LONG_TESTS", 1);
  std::map<std::string, int> drawn;
  std::vector<std::unique_ptr<Drawn>> cases;
  const TempFolder folder;
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
    Drawn& test = *cases.emplace_back(std::make_unique<Drawn>());
    Check(seed, test);
    if (one != 0) std::printf("%s%s", ir::Print(test.random.graph).c_str(), lir::Print(test.compiled.plan).c_str());
    Count(test.random.graph, drawn);
    test.model.name = absl::StrCat("g", seed);
    test.model.signature = SignatureOf(test.compiled.prepared);
    test.model.levels = {{NativeLevel().target, {{{}, test.compiled.plan}}}};
    std::mt19937_64 choose(seed);
    PlaceParams(test, choose);
    const StatusOr<aot::Workspace> workspace = aot::PlaceWorkspace(test.model);
    ASSERT_TRUE(workspace.ok()) << "seed " << seed << ": " << workspace.status();
    test.workspace = *workspace;
    const StatusOr<aot::Artefacts> files = aot::Compile(test.model, {});
    ASSERT_TRUE(files.ok()) << "seed " << seed << ": " << files.status();
    std::ofstream(absl::StrCat(folder.path(), "/", test.model.name, ".o"), std::ios::binary) << files->body;
  }
  const std::string path = folder.path() + "/graphs.so";
  ASSERT_EQ(
      std::system(absl::StrCat(QUERN_C_COMPILER " -shared -Wl,-z,defs ", folder.path(), "/*.o -lm -o ", path).c_str()),
      0);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const quern_runner backwards = {RunBackwards, nullptr, 2};
  size_t too_large = 0;  // a workspace is for the largest sizes, and S may be a million
  for (size_t c = 0; c < cases.size(); ++c) {
    for (const quern_runner* runner : {static_cast<const quern_runner*>(nullptr), &backwards}) {
      const StatusOr<Outputs> got = RunCompiled(*cases[c], library, runner);
      too_large += absl::IsResourceExhausted(got.status()) ? 1 : 0;
      if (absl::IsResourceExhausted(got.status())) continue;
      ASSERT_TRUE(got.ok()) << "seed " << first + c << ": " << got.status();
      EXPECT_TRUE(*got == cases[c]->expected) << "seed " << first + c << ": other bits ahead of time";
    }
  }
  dlclose(library);
  EXPECT_LE(too_large, 4u);  // two ways of running each
  for (const char* op : {"If", "While", "Scan"}) {
    if (one == 0) EXPECT_GE(drawn[op], 10) << op;
  }
  std::printf("%d graphs from seed %d: %d If, %d While, %d Scan (%d elements beside a jump)\n", static_cast<int>(count),
              static_cast<int>(first), drawn["If"], drawn["While"], drawn["Scan"], static_cast<int>(doubted_));
}

}  // namespace
}  // namespace quern::testing
