// Many elementwise ops in one kernel whose loops are cut: bit for bit what they are op by op, at every level of this
// machine, for extents around vectors and strips.
#include "support/wide_graph.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

using Outputs = std::vector<std::vector<uint8_t>>;

StatusOr<CompiledGraph> Compiled(const ir::Graph& graph, const cpu::Target& target, bool fuse) {
  QUERN_ASSIGN(compiler::PipelineOptions options, compiler::PipelineOptionsOf({.cpu = target.name}));
  options.verify_steps = true;
  options.fuse = fuse;
  return PlanGraph(graph, {}, options);
}

void ExpectSameBits(const std::string& text, const std::vector<Binding>& bindings, size_t launches = 1) {
  SCOPED_TRACE(text);
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const cpu::Target* target : cpu::HostTargets()) {
    SCOPED_TRACE(target->name);
    const StatusOr<LevelRunner> level = LevelRunner::Create(*target);
    ASSERT_TRUE(level.ok()) << level.status();
    const StatusOr<CompiledGraph> fused = Compiled(*graph, *target, true), apart = Compiled(*graph, *target, false);
    ASSERT_TRUE(fused.ok()) << fused.status();
    ASSERT_TRUE(apart.ok()) << apart.status();
    ASSERT_EQ(fused->plan.launches.size(), launches);
    for (const Binding& binding : bindings) {
      const BytesByName bytes = RandomBytes(*graph, binding, 1);
      const StatusOr<Outputs> one = RunGraph(*fused, *level, 1, binding, bytes),
                              two = RunGraph(*fused, *level, 2, binding, bytes),
                              each = RunGraph(*apart, *level, 1, binding, bytes);
      ASSERT_TRUE(one.ok()) << one.status();
      ASSERT_TRUE(each.ok()) << each.status();
      EXPECT_TRUE(*one == *each);
      EXPECT_TRUE(two.ok() && *one == *two);
    }
  }
}

TEST(Wide, EveryDtype) {
  ExpectSameBits(WideGraph(1, {.nodes = 160, .symbols = "sym S in 1..40000", .dims = "S"}),
                 {{{"S", 1}}, {{"S", 63}}, {{"S", 256}}, {{"S", 2049}}, {{"S", 20000}}});
}

TEST(Wide, Doubles) {
  ExpectSameBits(
      WideGraph(
          2, {.nodes = 120, .symbols = "sym S in 1..4000", .dims = "3, S", .row = "S", .real = "f64", .mixed = false}),
      {{{"S", 7}}, {{"S", 1025}}});
}

// A chain of the same few ops over and over, whose loops are written once.
TEST(Wide, LongChains) {
  constexpr std::array kOps = {"Tanh(%", "Mul(%0, %", "Sigmoid(%", "Sub(%0, %", "Sin(%", "Add(%0, %", "Abs(%"};
  for (const size_t different : {size_t{1}, kOps.size()}) {
    std::string text = "graph g sym S in 1..9000 {\n  %0 = Input() {name = \"x\"} : f32[S]\n";
    for (size_t n = 1; n <= 500; ++n)
      absl::StrAppend(&text, "  %", n, " = ", kOps[n % different], n - 1, ") : f32[S]\n");
    ExpectSameBits(text + "  return %500\n}", {{{"S", 1}}, {{"S", 65}}, {{"S", 4099}}});
  }
}

// Regions of nodes that do not touch.
TEST(Wide, NodesThatDoNotTouch) {
  std::string text = "graph g sym S in 1..9000 {\n  %0 = Input() {name = \"x\"} : f32[S]\n", results;
  for (int n = 1; n <= 260; ++n) absl::StrAppend(&text, "  %", n, " = Sub(%0, %", n - 1, ") : f32[S]\n");
  for (int n = 261; n <= 520; ++n) {
    absl::StrAppend(&text, "  %", n, n % 2 == 0 ? " = Tanh(%" : " = Neg(%", n - 260, ") : f32[S]\n");
    absl::StrAppend(&results, n == 261 ? "%" : ", %", n - 260, ", %", n);
  }
  ExpectSameBits(text + "  return " + results + "\n}", {{{"S", 1}}, {{"S", 65}}, {{"S", 3001}}}, 3);
}

TEST(Wide, LikeTheDoubleInterpreter) {
  ExpectRight(WideGraph(3, {.nodes = 100, .symbols = "sym S in 1..4000", .dims = "S", .mixed = false}),
              {{{"S", 31}}, {{"S", 3000}}});
}

}  // namespace
}  // namespace quern
