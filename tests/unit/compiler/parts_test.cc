// Products of f32 by halves as sums of bf16: their results, on any level, and where they are taken.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/half.h"
#include "opt/passes.h"
#include "quern/graph.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;
using ::testing::HasSubstr;
using ::testing::Not;

compiler::PipelineOptions PartsOptions() {
  compiler::PipelineOptions options = *compiler::PipelineOptionsOf({});
  options.verify_steps = true;
  options.facts.bf16_tiles = true;  // a level without multiplies pairs more slowly, and gets the same
  return options;
}

// What `text` is meant to compute, its products taken so, and its plan.
Planned InParts(std::string_view text) {
  const ir::Graph graph = *ir::Parse(text);
  const ir::Graph meaning = *opt::QuantiseActivations(*opt::ExpandComposites(graph), QuantiseOptionsOf(PartsOptions()));
  return {meaning, *PlanGraph(graph, {}, PartsOptions())};
}

void ExpectRightInParts(std::string_view text, const std::vector<Binding>& bindings) {
  SCOPED_TRACE(text);
  const Planned planned = InParts(text);
  EXPECT_THAT(lir::Print(planned.compiled.plan), HasSubstr("parts"));
  for (const Binding& binding : bindings) ExpectRightFor(planned, binding);
}

// Rows that fill tiles and not, columns that fill panels and not, k odd, in one piece and in blocks, a prologue, what
// follows, several products of one left side, batches, and sizes that are known at the run.
TEST(Parts, ProductsOfHalves) {
  struct Case {
    const char *symbols, *rows, *k, *n;
    std::vector<Binding> bindings;
  };
  const Case cases[] = {
      {"", "33", "2", "32", {{}}},
      {"", "37", "67", "31", {{}}},
      {"", "2, 1, 101", "257", "97", {{}}},
      {"", "61", "1536", "40", {{}}},
      {"", "289", "1601", "33", {{}}},
      {"", "41", "4099", "131", {{}}},
      {"", "517", "38", "192", {{}}},
      {" sym S in 9..300", "2, S", "30", "64", {{{"S", 17}}, {{"S", 251}}}},
      {" sym S in 33..700", "S", "70", "96", {{{"S", 33}}, {{"S", 601}}}},
  };
  for (const Case& test : cases) {
    for (const char* dtype : {"f16", "bf16"}) {
      ExpectRightInParts(
          absl::StrReplaceAll(R"(graph g$s {
  %0 = Input() {name = "a"} : f32[$m, $k]
  %1 = Param() {name = "b"} : $d[$n, $k]
  %2 = Param() {name = "c"} : $d[$k, $n]
  %3 = Param() {name = "d"} : f32[$n]
  %4 = Relu(%0) : f32[$m, $k]
  %5 = MatMul(%4, %1) {transpose_b = true} : f32[$m, $n]
  %6 = MatMul(%4, %2) : f32[$m, $n]
  %7 = Silu(%5) : f32[$m, $n]
  %8 = Mul(%7, %6) : f32[$m, $n]
  %9 = Add(%8, %3) : f32[$m, $n]
  return %9
})",
                              {{"$s", test.symbols}, {"$m", test.rows}, {"$k", test.k}, {"$n", test.n}, {"$d", dtype}}),
          test.bindings);
    }
  }
}

// Runs of rows that pick one of several matrices.
TEST(Parts, PickedMatrices) {
  for (const char* dtype : {"f16", "bf16"}) {
    ExpectRightInParts(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[151, 37]
  %1 = Param() {name = "w"} : $d[5, 67, 37]
  %2 = Input() {name = "i"} : i32[151]
  %3 = GroupedMatMul(%0, %1, %2) {transpose_b = true} : f32[151, 67]
  return %3
})",
                                           {{"$d", dtype}}),
                       {{}});
  }
}

// Infinities of either side keep their signs, beside numbers of 8 bits too, whose second parts are none; NaN and 0 by
// an infinity are NaN.
TEST(Parts, InfinitiesStay) {
  const Planned planned = InParts(R"(graph g {
  %0 = Input() {name = "x"} : f32[40, 3]
  %1 = Param() {name = "w"} : f16[5, 3]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[40, 5]
  return %2
})");
  const float inf = INFINITY, nan = NAN;
  const float rows[5][3] = {{inf, 1, 1}, {-inf, 0.1F, 3}, {1.5F, 2, 0.3F}, {nan, 1, 1}, {inf, 0, -inf}};
  const float weights[5][3] = {{1, 1, 1}, {-0.3F, 1, 1}, {inf, 0.1F, 1}, {0, 1, 1}, {1, 1, -1}};
  BytesByName bytes = {{"x", std::vector<uint8_t>(40 * 3 * sizeof(float))}, {"w", {}}};
  std::memcpy(bytes["x"].data(), rows, sizeof(rows));
  for (const auto& row : weights) {
    for (const float w : row) {
      const uint16_t half = FloatToHalf(w);
      bytes["w"].insert(bytes["w"].end(), {static_cast<uint8_t>(half), static_cast<uint8_t>(half >> 8)});
    }
  }
  const LevelRunner level = *LevelRunner::Create(**cpu::ResolveTarget("native"));
  const std::vector<std::vector<uint8_t>> got = *RunGraph(planned.compiled, level, 1, {}, bytes);
  for (int m = 0; m < 5; ++m) {
    for (int n = 0; n < 5; ++n) {
      float value = 0, wanted = 0;
      std::memcpy(&value, &got[0][(m * 5 + n) * sizeof(float)], sizeof(value));
      for (int i = 0; i < 3; ++i) wanted += rows[m][i] * weights[n][i];
      const bool right = std::isnan(wanted)   ? std::isnan(value)
                         : std::isinf(wanted) ? value == wanted
                                              : std::fabs(value - wanted) < 1e-3F;
      EXPECT_TRUE(right) << m << ", " << n << ": " << value << ", not " << wanted;
    }
  }
}

// Where the level multiplies bf16 on tiles and nothing asks for more, of many rows; a few are as fast without.
TEST(Parts, WhereTheyAreTaken) {
  const auto kernels = [](const char* dtype, int64_t rows, const Options& options) {
    Graph g;
    const Value x = g.Input("x", absl::StrCat("f32[", rows, ", 768]"));
    g.Output("y", g.Op("MatMul", {x, g.Param("w", absl::StrCat(dtype, "[768, 3072]"))}));
    return *g.Dump({.stage = "kir"}, options);
  };
  const Options amx = {.cpu = "amx"}, exact = {.cpu = "amx", .exact = true};
  for (const char* dtype : {"f16", "bf16"}) {
    EXPECT_THAT(kernels(dtype, 64, amx), HasSubstr("mma_bf16_parts"));
    EXPECT_THAT(kernels(dtype, 64, exact), Not(HasSubstr("mma_bf16_parts")));
    EXPECT_THAT(kernels(dtype, 64, {.cpu = "avx512vnni"}), Not(HasSubstr("mma_bf16_parts")));
    EXPECT_THAT(kernels(dtype, 8, amx), Not(HasSubstr("mma_bf16_parts")));
  }
  EXPECT_THAT(kernels("bf16", 9, amx), HasSubstr("mma_bf16_parts"));
  EXPECT_THAT(kernels("f16", 9, amx), Not(HasSubstr("mma_bf16_parts")));
  EXPECT_THAT(kernels("f32", 64, amx), Not(HasSubstr("mma_bf16_parts")));
}

}  // namespace
}  // namespace quern
