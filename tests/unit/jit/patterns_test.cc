// Indices over the lanes: quotients, remainders, limits and comparisons of a loop's index, which the emitter keeps as
// constants beside a scalar where it can. Random ones at every level, bit for bit what the interpreter makes of them.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "jit_support.h"

namespace quern::jit_test {
namespace {

constexpr int kSize = 320;  // of what is read

// An expression over c, r and literals.
std::string RandomIndex(Rng& rng, int depth) {
  const auto pick = [&](std::initializer_list<int> from) { return from.begin()[rng() % from.size()]; };
  if (depth == 0) return rng() % 4 == 0 ? absl::StrCat(pick({0, 1, 3, 16, 32, 47})) : "c";
  const std::string a = RandomIndex(rng, depth - 1);
  switch (rng() % 8) {
    case 0: return absl::StrCat("(", a, " + ", pick({1, 2, 7, 16, 32, 48}), ")");
    case 1: return absl::StrCat("(", a, " - ", pick({1, 3, 16, 64}), ")");
    case 2: return absl::StrCat("(", a, " * ", pick({2, 3, 8}), ")");
    case 3: return absl::StrCat("(", a, " / ", pick({1, 2, 3, 4, 6, 16, 32, 48, 64}), ")");
    case 4:
    case 5: return absl::StrCat("(", a, " % ", pick({1, 2, 3, 4, 6, 8, 16, 32, 48, 64, 96}), ")");
    case 6: return absl::StrCat(rng() % 2 == 0 ? "min(" : "max(", a, ", ", pick({0, 5, 15, 16, 31, 63, 100}), ")");
    default: return absl::StrCat("(", a, rng() % 2 == 0 ? " + " : " - ", RandomIndex(rng, depth - 1), ")");
  }
}

TEST(Patterns, AreWhatTheInterpreterMakesOfThem) {
  constexpr int kStatements = 12, kWidth = 200;
  const char* loops[][2] = {{"0", "64"}, {"0", "200"}, {"32", "96"}, {"5", "69"},
                            {"0", "37"}, {"0", "N"},   {"16", "N"},  {"r * 32", "r * 32 + 64"}};
  std::vector<kir::Kernel> kernels;
  for (uint64_t seed = kSeed; seed < kSeed + 24; ++seed) {
    Rng rng(seed);
    const auto& loop = loops[seed % std::size(loops)];
    std::string body;
    for (int s = 0; s < kStatements; ++s) {
      const auto inside = [&](int depth) {
        return absl::StrCat("max(0, min(", RandomIndex(rng, depth), ", ", kSize - 1, "))");
      };
      absl::StrAppend(&body, "      y[r, ", s, ", max(0, min(c, ", kWidth - 1, "))] = select(", RandomIndex(rng, 2),
                      " < ", rng() % 3 == 0 ? "c" : "32", ", x[", inside(3), "], h[", inside(2), "])\n");
    }
    if (std::getenv("QUERN_SHOW")) printf("p%lu %s\n%s", seed, loop[0], body.c_str());
    kernels.push_back(Parse(absl::StrCat("kernel p", seed, " (\n  x : f32[", kSize, "] in\n  h : f32[", kSize,
                                         "] in\n  y : f32[4, ", kStatements, ", ", kWidth,
                                         "] inout\n) sym N in 20..200 {\n  grid r in 0..4 {\n    vec c in ", loop[0],
                                         " .. ", loop[1], " {\n", body, "    }\n  }\n}\n")));
  }
  std::vector<Case> cases;
  for (const kir::Kernel& kernel : kernels) {
    for (const int64_t n : {20, 33, 192}) {
      Rng rng(kSeed);
      Case test{.kernel = &kernel, .symbols = {{"N", n}}, .buffers = {}, .tolerance = {0, 0}, .each = {}};
      test.buffers = MakeBuffers(kernel, test.symbols);
      FillInputs(kernel, test.buffers, {.range = 2}, rng);
      cases.push_back(std::move(test));
    }
  }
  CheckCases(cases);
}

// What all lanes have alike is no multiple of what the index was, once something is added.
TEST(Patterns, ADifferenceKeepsItsRemainder) {
  std::string body;
  int statements = 0;
  for (const int add : {1, 3, 8, 20}) {
    for (const int by : {2, 8, 16}) {
      absl::StrAppend(&body, "      y[r, ", statements++, ", c] = x[((r * 16 + c + ", add, ") - c) % ", by, "]\n");
      absl::StrAppend(&body, "      y[r, ", statements++, ", c] = x[((r * 16 + c + ", add, ") - c) / ", by, "]\n");
    }
  }
  const kir::Kernel kernel =
      Parse(absl::StrCat("kernel p (\n  x : f32[", kSize, "] in\n  y : f32[4, ", statements,
                         ", 64] out\n) {\n  grid r in 0..4 {\n    vec c in 0..64 {\n", body, "    }\n  }\n}\n"));
  Rng rng(kSeed);
  Case test{.kernel = &kernel, .symbols = {}, .buffers = {}, .tolerance = {0, 0}, .each = {}};
  test.buffers = MakeBuffers(kernel, test.symbols);
  FillInputs(kernel, test.buffers, {.range = 2}, rng);
  CheckCases({test});
}

// Every second element of rows of every length up to two vectors, from some before the row to some behind it, at once
// and where the loop keeps inside; and what is read as 0 or as another number outside.
TEST(Patterns, EverySecondElementOfARow) {
  std::vector<kir::Kernel> kernels;
  for (const int row : {1, 2, 3, 7, 8, 9, 13, 14, 15, 16, 17, 26, 28, 29, 31, 32, 33, 34, 47, 63, 64, 65, 66, 97}) {
    const int columns = (row + 9) / 2, statements = 14;
    std::string body;
    int s = 0;
    const auto loop = [&](int low, int high, int shift, const char* element) {
      if (low < high)
        absl::StrAppendFormat(&body, "    vec c in %d..%d { y[r, %d, c] = %s }\n", low, high, s,
                              absl::StrReplaceAll(element, {{"$", absl::StrCat("r, c * 2 + ", shift, " - 4")}}));
      ++s;
    };
    for (int shift = 0; shift < 6; ++shift) loop(0, columns, shift, "(x[$] else 0.0)");
    for (int shift = 2; shift < 5; ++shift)
      loop(0, columns - 1, shift, "(x[$] else 5.0) + cast<f32>(h[$] else 0.0f16)");
    // From 2 c to 2 c + 2, all inside.
    for (int shift = 4; shift < 7; ++shift) loop(0, (row - 1) / 2, shift, "x[$]");
    for (int shift = 1; shift < 3; ++shift) loop(2, (row - 1) / 2, shift, "cast<f32>(h[$])");
    EXPECT_EQ(s, statements);
    kernels.push_back(
        Parse(absl::StrCat("kernel s", row, " (\n  x : f32[3, ", row, "] in\n  h : f16[3, ", row, "] in\n  y : f32[3, ",
                           statements, ", ", columns, "] inout\n) {\n  grid r in 0..3 {\n", body, "  }\n}\n")));
  }
  std::vector<Case> cases;
  for (const kir::Kernel& kernel : kernels) {
    Rng rng(kSeed);
    Case test{.kernel = &kernel, .symbols = {}, .buffers = {}, .tolerance = {0, 0}, .each = {}};
    test.buffers = MakeBuffers(kernel, test.symbols);
    FillInputs(kernel, test.buffers, {.range = 2}, rng);
    cases.push_back(std::move(test));
  }
  CheckCases(cases);
}

}  // namespace
}  // namespace quern::jit_test
