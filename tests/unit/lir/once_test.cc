// Which values of plans depend on parameters alone, are the same in several plans, and where they lie.
#include "lir/once.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/graph.h"

namespace quern::lir {
namespace {

// w -> Exp -> Neg, and `more` of it; x + the last, with rows of this many.
Plan MakePlan(const std::string& rows, const std::string& last = "Neg", const std::string& param = "w") {
  const auto unary = [](int n, int from, const std::string& op) {
    return absl::StrFormat(
        "  %%%d = Region(%%%d) {family = \"map\"} : f32[11, 3] body graph body {\n    %%0 = Input() {name = \"a\"} : "
        "f32[11, 3]\n    %%1 = %s(%%0) : f32[11, 3]\n    return %%1\n  }\n",
        n, from, op);
  };
  const std::string text = "graph g {\n  %0 = Param() {name = \"" + param +
                           "\"} : f32[11, 3]\n  %1 = Input() {name = \"x\"} : f32[" + rows + ", 11, 3]\n" +
                           unary(2, 0, "Exp") + unary(3, 2, "Abs") + unary(4, 3, last) +
                           "  %5 = Region(%1, %4) {family = \"map\"} : f32[" + rows +
                           ", 11, 3] body graph body {\n    %0 = Input() {name = \"a\"} : f32[" + rows +
                           ", 11, 3]\n    %1 = Input() {name = \"b\"} : f32[11, 3]\n    %2 = Add(%0, %1) : f32[" +
                           rows + ", 11, 3]\n    return %2\n  }\n  return %5\n}";
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  StatusOr<Plan> plan = BuildPlan(*graph, {}, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(Once, KeepsWhatRunsReadAndOverlapsTheRest) {
  const Plan plan = MakePlan("5");
  ASSERT_EQ(plan.once.size(), 3u);
  const std::map<int, OnceValue> kept = KeptOnce(plan);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept.begin()->second.params, std::set<std::string>{"w"});
  EXPECT_EQ(plan.buffers[kept.begin()->first].offset, Extent(0));
  EXPECT_EQ(plan.once_kept_bytes, Extent(192));
  EXPECT_EQ(plan.once_bytes, Extent(3 * 192));  // two temporaries are in use at once
  EXPECT_EQ(OnceLaunchesFor(plan, {kept.begin()->first}), (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(OnceLaunchesFor(plan, {}).empty());
}

TEST(Once, EqualValuesOfTwoPlansLieInOnePlace) {
  const auto key = [](const Plan& plan) { return KeptOnce(plan).begin()->second.key; };
  Plan few = MakePlan("5"), many = MakePlan("17");
  EXPECT_EQ(key(few), key(many));
  EXPECT_NE(key(few), key(MakePlan("5", "Sqrt")));
  EXPECT_NE(key(few), key(MakePlan("5", "Neg", "v")));
  Plan other = MakePlan("5", "Sqrt");
  Plan* const plans[] = {&few, &many, &other};
  PlaceOnceTogether(plans);
  const auto offset = [](const Plan& plan) { return plan.buffers[KeptOnce(plan).begin()->first].offset; };
  EXPECT_EQ(offset(few), offset(many));
  EXPECT_NE(offset(few), offset(other));
  for (const Plan* plan : plans) {
    EXPECT_EQ(plan->once_kept_bytes, Extent(2 * 192));
    EXPECT_EQ(plan->once_bytes, Extent(4 * 192));
    EXPECT_TRUE(Verify(*plan).ok()) << Verify(*plan);
  }
}

}  // namespace
}  // namespace quern::lir
