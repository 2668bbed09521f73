// Products of a few rows: up to how many are dotted with weights as these lie, and their results.
#include <gmock/gmock.h>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "quern/graph.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Kernel(const char* rows, int64_t k, const char* dtype, const Options& options) {
  Graph g;
  g.Symbol("S", 9, 32);
  const Value x = g.Input("x", absl::StrFormat("f32[%s, %d]", rows, k));
  const Value w = g.Param("w", absl::StrFormat("%s[1024, %d]", dtype, k));
  g.Output("y", g.Op("MatMul", {x, w}, {{"transpose_b", true}}));
  return *g.Dump({.stage = "kir", .kernel = "MatMul"}, options);
}

TEST(FewRows, OfBlocksAreDottedWithWeightsAsTheyLie) {
  for (const char* const rows : {"1", "9", "32", "S"}) {
    const std::string kernel = Kernel(rows, 768, "q4_K", {.cpu = "x86-64-v4"});
    EXPECT_THAT(kernel, HasSubstr("dot_q4_K")) << rows;
    EXPECT_THAT(kernel, Not(HasSubstr("many"))) << rows;
  }
  EXPECT_THAT(Kernel("33", 768, "q4_K", {.cpu = "x86-64-v4"}), HasSubstr("mma_q4_K"));
  EXPECT_THAT(Kernel("9", 768, "q8_0", {.cpu = "x86-64-v3"}), HasSubstr("dot_q8_0"));
  // Without panels in the dot, as before; and where a row has bits of its own.
  EXPECT_THAT(Kernel("9", 768, "q8_0", {.cpu = "x86-64-v2"}), HasSubstr("mma_q8_0"));
  const Options own = {.cpu = "x86-64-v4", .invariant = true};
  EXPECT_THAT(Kernel("8", 768, "q4_K", own), HasSubstr("many 1"));
  EXPECT_THAT(Kernel("9", 768, "q4_K", own), HasSubstr("mma_q4_K"));
  // Weights that become floats: for each eight rows anew.
  EXPECT_THAT(Kernel("9", 768, "q4_K", {.cpu = "x86-64-v4", .exact = true}), HasSubstr("mma_f32"));
}

TEST(FewRows, OfFloatsToo) {
  for (const char* const rows : {"8", "16", "S"})
    EXPECT_THAT(Kernel(rows, 768, "f16", {.cpu = "x86-64-v4"}), HasSubstr("dot_f16")) << rows;
  EXPECT_THAT(Kernel("17", 768, "f16", {.cpu = "x86-64-v4"}), HasSubstr("mma_f32"));
  EXPECT_THAT(Kernel("16", 8200, "f16", {.cpu = "x86-64-v4"}), HasSubstr("mma_f32"));
  EXPECT_THAT(Kernel("9", 768, "f16", {.cpu = "x86-64-v4", .invariant = true}), HasSubstr("mma_f32"));
}

// With what comes before and after them: rows that are computed, two products of one left side, an epilogue.
TEST(FewRows, HaveTheResultsOfMany) {
  for (const char* const dtype : {"f32", "f16", "bf16"}) {
    for (const char* const right : {"Param", "Input"}) {
      for (const char* const rows : {"9", "13", "16", "17", "S"}) {
        ExpectRight(
            absl::StrReplaceAll(
                R"(graph g$s {
  %0 = Input() {name = "x"} : f32[$m, 37]
  %1 = $r() {name = "w"} : $t[67, 37]
  %2 = $r() {name = "v"} : $t[67, 37]
  %3 = Input() {name = "b"} : f32[$m, 67]
  %4 = Silu(%0) : f32[$m, 37]
  %5 = MatMul(%4, %1) {transpose_b = true} : f32[$m, 67]
  %6 = MatMul(%4, %2) {transpose_b = true} : f32[$m, 67]
  %7 = Sigmoid(%5) : f32[$m, 67]
  %8 = Mul(%7, %6) : f32[$m, 67]
  %9 = Add(%8, %3) : f32[$m, 67]
  return %9
})",
                {{"$s", *rows == 'S' ? " sym S in 9..32" : ""}, {"$m", rows}, {"$r", right}, {"$t", dtype}}),
            *rows == 'S' ? std::vector<Binding>{{{"S", 9}}, {{"S", 23}}, {{"S", 32}}} : std::vector<Binding>{{}});
      }
    }
  }
}

}  // namespace
}  // namespace quern
