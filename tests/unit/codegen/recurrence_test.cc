// Kernels of recurrences: DeltaRule, SelectiveSteps, TriangularSolve, of sizes around their blocks; states in place.

#include "absl/strings/str_format.h"
#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

// `carry`: the state is donated, and written over.
std::string Delta(const char* length, int groups, int heads, int n, int m, bool by_channel, bool carry) {
  const std::string q = absl::StrFormat("f32[B, %s, %d, %d]", length, groups, n),
                    v = absl::StrFormat("f32[B, %s, %d, %d]", length, heads, m),
                    each = absl::StrFormat("f32[B, %s, %d]", length, heads),
                    g = by_channel ? absl::StrFormat("f32[B, %s, %d, %d]", length, heads, n) : each,
                    state = absl::StrFormat("f32[B, %d, %d, %d]", heads, n, m);
  return absl::StrCat("graph g sym B in 1..5, S in 0..9, T in 0..300 {\n  %0 = Input() {name = \"q\"} : ", q,
                      "\n  %1 = Input() {name = \"k\"} : ", q, "\n  %2 = Input() {name = \"v\"} : ", v,
                      "\n  %3 = Input() {name = \"g\"} : ", g, "\n  %4 = Input() {name = \"beta\"} : ", each,
                      "\n  %5 = Input() {name = \"s\"} : ", state, "\n  %6:2 = DeltaRule(%0, %1, %2, %3, %4, %5) : ", v,
                      ", ", state, "\n  return %6.0, %6.1\n", carry ? "  donate \"s\" -> 1\n" : "", "}");
}

TEST(Recurrence, DeltaRuleOfOneTokenAndOfMore) {
  for (const bool carry : {false, true}) {
    for (const bool by_channel : {false, true}) {
      for (const char* length : {"1", "S", "3"}) {
        SCOPED_TRACE(absl::StrCat(length, carry ? " carried" : "", by_channel ? " by channel" : ""));
        CheckFused(Delta(length, 1, 2, 5, 11, by_channel, carry), {{"B", 3}, {"S", 7}}, 2e-5, kCpu);
        CheckFused(Delta(length, 3, 3, 9, 131, by_channel, carry), {{"B", 1}, {"S", 0}}, 2e-5, kCpu);
        CheckFused(Delta(length, 2, 4, 1, 1, by_channel, carry), {{"B", 2}, {"S", 1}}, 2e-5, kCpu);
      }
    }
  }
}

// Heads that share a chunk: three, two where three do not divide them, and eight.
TEST(Recurrence, DeltaRuleOfManyHeads) {
  for (const bool carry : {false, true}) {
    for (const bool by_channel : {false, true}) {
      SCOPED_TRACE(absl::StrCat(carry ? " carried" : "", by_channel ? " by channel" : ""));
      CheckFused(Delta("1", 4, 12, 5, 11, by_channel, carry), {{"B", 3}}, 2e-5, kCpu);
      CheckFused(Delta("1", 7, 14, 9, 131, by_channel, carry), {{"B", 2}}, 2e-5, kCpu);
      CheckFused(Delta("1", 16, 32, 3, 7, by_channel, carry), {{"B", 1}}, 2e-5, kCpu);
    }
  }
}

// Lengths around one chunk and several; by channel there are none.
TEST(Recurrence, DeltaRuleInChunks) {
  for (const int64_t tokens : {0, 1, 15, 16, 17, 43}) {
    SCOPED_TRACE(tokens);
    CheckFused(Delta("T", 1, 2, 29, 35, false, true), {{"B", 2}, {"T", tokens}}, 2e-5, kCpu);
  }
  CheckFused(Delta("T", 2, 4, 5, 131, false, false), {{"B", 1}, {"T", 19}}, 2e-5, kCpu);
  CheckFused(Delta("T", 1, 2, 5, 11, true, true), {{"B", 2}, {"T", 19}}, 2e-5, kCpu);
  CheckFused(Delta("37", 1, 1, 1, 1, false, true), {{"B", 3}}, 2e-5, kCpu);
  CheckFused(Delta("32", 3, 3, 9, 32, false, true), {{"B", 1}}, 2e-5, kCpu);
}

TEST(Recurrence, OneResultAlone) {
  for (const int heads : {2, 8}) {
    for (const char* length : {"1", "S", "T"}) {
      std::string text = Delta(length, 1, heads, 5, 11, false, false);
      for (const char* result : {"%6.0", "%6.1"}) {
        CheckFused(absl::StrReplaceAll(text, {{"%6.0, %6.1", result}}), {{"B", 2}, {"S", 4}, {"T", 19}}, 2e-5, kCpu);
      }
    }
  }
}

TEST(Recurrence, SelectiveSteps) {
  for (const bool carry : {false, true}) {
    for (const char* length : {"1", "S"}) {
      for (const auto& [channels, n, decays] : {std::tuple(5, 3, 3),
                                                {64, 16, 16},
                                                {131, 17, 17},
                                                {67, 33, 33},
                                                {5, 1, 1},
                                                {5, 3, 1},
                                                {131, 17, 1},
                                                {67, 131, 1}}) {
        const std::string x = absl::StrFormat("f32[B, %s, %d]", length, channels),
                          b = absl::StrFormat("f32[B, %s, %d]", length, n),
                          state = absl::StrFormat("f32[B, %d, %d]", channels, n);
        SCOPED_TRACE(absl::StrCat(x, " ", n, " ", decays, carry ? " carried" : ""));
        CheckFused(absl::StrCat("graph g sym B in 1..5, S in 0..9 {\n  %0 = Input() {name = \"x\"} : ", x,
                                "\n  %1 = Input() {name = \"dt\"} : ", x,
                                absl::StrFormat("\n  %%2 = Input() {name = \"a\"} : f32[%d, %d]", channels, decays),
                                "\n  %3 = Input() {name = \"b\"} : ", b, "\n  %4 = Input() {name = \"c\"} : ", b,
                                absl::StrFormat("\n  %%5 = Input() {name = \"d\"} : f32[%d]", channels),
                                "\n  %6 = Input() {name = \"s\"} : ", state,
                                "\n  %7:2 = SelectiveSteps(%0, %1, %2, %3, %4, %5, %6) : ", x, ", ", state,
                                "\n  return %7.0, %7.1\n", carry ? "  donate \"s\" -> 1\n" : "", "}"),
                   {{"B", 2}, {"S", 5}}, 2e-5, kCpu);
      }
    }
  }
}

TEST(Recurrence, TriangularSolve) {
  for (const char* lower : {"true", "false"}) {
    for (const char* transpose : {"true", "false"}) {
      for (const auto& [n, columns] :
           {std::pair("1", "1"), {"7", "33"}, {"8", "32"}, {"S", "5"}, {"19", "S"}, {"L", "37"}}) {
        const std::string b = absl::StrFormat("f32[3, B, %s, %s]", n, columns);
        SCOPED_TRACE(absl::StrCat(b, " lower ", lower, " transpose ", transpose));
        // L has the range of any symbol: more solved rows than scratch keeps.
        CheckFused(
            absl::StrCat("graph g sym B in 1..5, L in 1..1048576, S in 0..40 {\n  %0 = Input() {name = \"a\"} : ",
                         absl::StrFormat("f32[3, B, %s, %s]", n, n), "\n  %1 = Input() {name = \"b\"} : ", b,
                         "\n  %2 = TriangularSolve(%0, %1) {unit = true, lower = ", lower, ", transpose = ", transpose,
                         "} : ", b, "\n  return %2\n}"),
            {{"B", 2}, {"L", 11}, {"S", 6}}, 1e-4, kCpu);
      }
    }
  }
}

}  // namespace
}  // namespace quern::codegen
