// Random graphs ahead of time: the bytes of their outputs and state are those that the JIT's kernels leave, on every
// level this machine has. Parameters lie in a made-up model file, or in the object; some work depends on them alone.
//
// QUERN_RANDOM_SEED=n runs that graph alone and prints it; QUERN_LONG_TESTS=n runs n times as many.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "aot/support/support.h"
#include "unit/aot/compiled_graph.h"

namespace quern::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kGraphs = 64;

struct Case : GraphCase {
  const LevelRunner* level = nullptr;
  std::vector<std::vector<uint8_t>> expected;
};

Status MakeCase(uint64_t seed, const std::vector<LevelRunner>& levels, Case& test) {
  std::mt19937_64 choose(seed * 7919);
  test.level = &levels[choose() % levels.size()];
  QUERN_RETURN_IF_ERROR(PlanRandomCase(seed, *test.level->target, choose, true, test));
  QUERN_ASSIGN(test.expected, RunGraph(test.compiled, *test.level, 1, test.random.binding, test.bytes));
  return absl::OkStatus();
}

TEST(RandomGraphs, AheadOfTimeAsInProcess) {
  std::vector<LevelRunner> levels;
  for (const cpu::Target* target : cpu::HostTargets()) {
    StatusOr<LevelRunner> runner = LevelRunner::Create(*target);
    ASSERT_TRUE(runner.ok()) << runner.status();
    levels.push_back(*std::move(runner));
  }
  const uint64_t one = FromEnvironment("QUERN_RANDOM_SEED", 0);
  const uint64_t first = one != 0 ? one : 1, count = one != 0 ? 1 : kGraphs * FromEnvironment("QUERN_LONG_TESTS", 1);
  std::string folder = (fs::temp_directory_path() / "quern-aot-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<std::unique_ptr<Case>> cases;
  size_t once = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Case& test = *cases.emplace_back(std::make_unique<Case>());
    const Status made = MakeCase(seed, levels, test);
    ASSERT_TRUE(made.ok()) << "seed " << seed << ": " << made;
    const StatusOr<aot::Artefacts> files = aot::Compile(test.model, {});
    ASSERT_TRUE(files.ok()) << "seed " << seed << ": " << files.status();
    std::ofstream(absl::StrCat(folder, "/", test.model.name, ".o"), std::ios::binary) << files->body;
    once += test.compiled.plan.once.size();
    if (one != 0) std::printf("%s%s", ir::Print(test.random.graph).c_str(), lir::Print(test.compiled.plan).c_str());
  }
  const std::string library_path = folder + "/graphs.so";
  ASSERT_EQ(
      std::system(absl::StrCat(QUERN_C_COMPILER " -shared -Wl,-z,defs ", folder, "/*.o -lm -o ", library_path).c_str()),
      0);
  void* const library = dlopen(library_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const quern_runner backwards = {RunBackwards, nullptr, 2};
  for (const std::unique_ptr<Case>& test : cases) {
    for (const quern_runner* runner : {static_cast<const quern_runner*>(nullptr), &backwards}) {
      const auto got = RunCompiled(*test, library, runner);
      const std::string where = absl::StrCat("seed ", test->seed, ", ", test->level->target->name,
                                             runner != nullptr ? ", with a runner" : "");
      ASSERT_TRUE(got.ok()) << where << ": " << got.status();
      for (size_t o = 0; o < got->size(); ++o)
        EXPECT_TRUE((*got)[o] == test->expected[o]) << where << ": output " << o << " has other bits";
    }
  }
  if (one == 0) EXPECT_GT(once, 0) << "no graph has work that depends on its parameters alone";
  std::printf("%d graphs from seed %d, %d launches of parameters alone\n", static_cast<int>(count),
              static_cast<int>(first), static_cast<int>(once));
  dlclose(library);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace quern::testing
