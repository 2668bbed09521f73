// Sums over rows at every range of their number: parts of rows need memory, which a plan has to bound.
#include "absl/strings/str_cat.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

constexpr int64_t kMostArena = int64_t{256} << 20;  // bytes of partial sums, whatever a range allows

std::string Text(const std::string& range, const std::string& dims, const std::string& out, const char* op) {
  return absl::StrCat("graph g sym B in ", range, " {\n  %0 = Input() {name = \"x\"} : f32[", dims,
                      "]\n  %1 = Reduce(%0) {axes = [0], op = \"", op, "\"} : f32[", out, "]\n  return %1\n}");
}

// Of any number of rows there is no number of parts.
TEST(RowSums, OfAnyNumberOfRows) {
  for (const char* op : {"sum", "max"}) {
    for (const char* columns : {"1", "5", "64", "1024"})
      ExpectRight(Text("1..", absl::StrCat("B, ", columns), columns, op), {{{"B", 1}}, {{"B", 300}}, {{"B", 1031}}});
    ExpectRight(Text("1..", "B", "", op), {{{"B", 1}}, {{"B", 70001}}});
  }
}

TEST(RowSums, PartsOfVeryManyRowsDoNotFillMemory) {
  for (const char* range : {"1..500000", "1..1000000", "1..1000000000"}) {
    SCOPED_TRACE(range);
    const std::string text = Text(range, "B, 1024", "1024", "sum");
    ExpectRight(text, {{{"B", 1031}}});
    const StatusOr<Planned> planned = Plan(text);
    ASSERT_TRUE(planned.ok()) << planned.status();
    const std::optional<int64_t> arena = planned->compiled.plan.arena_bytes.UpperBound(planned->graph.symbols);
    ASSERT_TRUE(arena.has_value());
    EXPECT_LE(*arena, kMostArena);
  }
}

}  // namespace
}  // namespace quern
