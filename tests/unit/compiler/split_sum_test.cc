// Products of few chunks and a long k, whose sums are parts that a second kernel adds up.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

struct Sizes {
  int batch, m, n, k;
};

// a b + bias and the product itself, in both orders of the right side.
std::string Text(const Sizes& sizes, const std::string& a, const std::string& b, const std::string& y,
                 bool transposed) {
  const std::string batch = sizes.batch == 0 ? "" : absl::StrCat(sizes.batch, ", ");
  return absl::StrReplaceAll(
      R"(graph g {
  %0 = Input() {name = "a"} : $a[$c$m, $k]
  %1 = Input() {name = "b"} : $b[$r]
  %2 = MatMul(%0, %1) {transpose_b = $t} : $y[$c$m, $n]
  %3 = Input() {name = "bias"} : $y[$n]
  %4 = Add(%2, %3) : $y[$c$m, $n]
  return %4, %2
})",
      {{"$a", a},
       {"$b", b},
       {"$y", y},
       {"$c", batch},
       {"$m", absl::StrCat(sizes.m)},
       {"$n", absl::StrCat(sizes.n)},
       {"$k", absl::StrCat(sizes.k)},
       {"$r", absl::StrCat(batch, transposed ? sizes.n : sizes.k, ", ", transposed ? sizes.k : sizes.n)},
       {"$t", transposed ? "true" : "false"}});
}

// The kernel whose chunks are for parts of the sums of a product, if there is one.
std::optional<kir::Kernel> KernelOfParts(const std::string& text) {
  const StatusOr<Planned> planned = Plan(text);
  EXPECT_TRUE(planned.ok()) << planned.status() << text;
  for (const kir::Kernel& kernel : planned->compiled.plan.kernels) {
    for (const kir::GridDim& dim : kernel.grid) {
      if (dim.index == "s0") return kernel;
    }
  }
  return std::nullopt;
}

TEST(SplitSum, OfEveryFormAndDtype) {
  struct Row {
    const char *a, *b, *y;
  };
  constexpr Row kRows[] = {{"f32", "f32", "f32"}, {"f32", "f16", "f32"}, {"bf16", "bf16", "bf16"},
                           {"f16", "f16", "f16"}, {"i8", "i8", "i32"},   {"u8", "i8", "i32"},
                           {"f64", "f64", "f64"}};
  // Panels with and without a rest of columns, few rows, few columns, one of each; parts that end in a shorter one.
  constexpr Sizes kSizes[] = {{1, 13, 37, 5003}, {0, 13, 37, 5003}, {3, 67, 64, 2053},
                              {1, 7, 33, 4099},  {1, 31, 5, 3001},  {1, 1, 1, 4097}};
  for (const Row& row : kRows) {
    for (const Sizes& sizes : kSizes) {
      for (const bool transposed : {false, true}) {
        const std::string text = Text(sizes, row.a, row.b, row.y, transposed);
        SCOPED_TRACE(text);
        ExpectRight(text, {{}});
      }
    }
  }
}

TEST(SplitSum, ComesWithFewChunksAndALongDepth) {
  const auto parts = [](const Sizes& sizes, bool transposed = false) {
    return KernelOfParts(Text(sizes, "f32", "f32", "f32", transposed)).has_value();
  };
  EXPECT_FALSE(parts({1, 13, 37, 2047}));
  EXPECT_TRUE(parts({1, 13, 37, 2048}));
  EXPECT_TRUE(parts({1, 192, 64, 4096}));
  EXPECT_TRUE(parts({1, 193, 64, 4096}));
  EXPECT_TRUE(parts({1, 96 * 32, 64, 4096}));
  EXPECT_FALSE(parts({1, 96 * 33, 64, 4096}));
  EXPECT_TRUE(parts({1, 64, 2048, 4096}));
  EXPECT_FALSE(parts({1, 64, 2112, 4096}));
  EXPECT_TRUE(parts({32, 64, 64, 4096}));
  EXPECT_FALSE(parts({33, 64, 64, 4096}));
  EXPECT_TRUE(parts({1, 1, 1, 1 << 20}));
  EXPECT_TRUE(parts({1, 8, 32, 6000}));
  EXPECT_TRUE(parts({1, 100, 8, 6000}));
  EXPECT_TRUE(parts({1, 8, 1024, 1024}));
  EXPECT_FALSE(parts({1, 8, 1024, 1023}));
  EXPECT_FALSE(parts({1, 9, 1024, 1024}));
  // Matrices whose right side lies as weights do have chunks of their own, unless those are few and the sum long.
  EXPECT_TRUE(parts({0, 64, 64, 4096}, true));
  EXPECT_FALSE(parts({0, 64, 64, 4095}, true));
  EXPECT_TRUE(parts({0, 64, 448, 4096}, true));
  EXPECT_FALSE(parts({0, 64, 449, 4096}, true));
  EXPECT_TRUE(parts({0, 240 * 7, 64, 4096}, true));
  EXPECT_FALSE(parts({0, 240 * 8, 64, 4096}, true));
}

// How many rows there are is known at the run: they count as few, unless columns alone are many.
TEST(SplitSum, OfRowsKnownAtTheRun) {
  const auto text = [](int n) {
    return absl::StrReplaceAll(R"(graph g sym S in 9..100000 {
  %0 = Input() {name = "a"} : f32[S, 4100]
  %1 = Input() {name = "b"} : f32[4100, $n]
  %2 = MatMul(%0, %1) {transpose_b = false} : f32[S, $n]
  return %2
})",
                               {{"$n", absl::StrCat(n)}});
  };
  EXPECT_TRUE(KernelOfParts(text(512)).has_value());
  EXPECT_FALSE(KernelOfParts(text(576)).has_value());
  ExpectRight(text(36), {{{"S", 9}}, {{"S", 211}}});
}

// Of a convolution parts are whole channels: 7 x 7 pixels are one chunk of columns.
TEST(SplitSum, OfWindows) {
  const auto text = [](const char* type) {
    return absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : $t[1, 467, 7, 7]
  %1 = Input() {name = "w"} : $t[37, 467, 3, 3]
  %2 = Conv(%0, %1) {pads = [1, 1, 1, 1]} : $t[1, 37, 7, 7]
  %3 = Relu(%2) : $t[1, 37, 7, 7]
  return %3
})",
                               {{"$t", type}});
  };
  for (const char* const type : {"f32", "f16", "bf16", "f64"}) {
    EXPECT_TRUE(KernelOfParts(text(type)).has_value()) << type;
    ExpectRight(text(type), {{}});
  }
}

// Where each of 64 threads can have parts of a thousand elements and more, it has one.
TEST(SplitSum, GivesWorkToManyThreads) {
  constexpr Sizes kSizes[] = {{1, 64, 64, 1 << 16}, {1, 512, 64, 1 << 14}, {1, 1, 1, 1 << 16},     {1, 8, 1024, 4096},
                              {1, 1024, 128, 8192}, {1, 2000, 32, 8192},   {3, 100, 100, 1 << 15}, {1, 3, 2560, 4096},
                              {1, 700, 7, 1 << 16}, {0, 64, 64, 1 << 16},  {0, 240, 64, 1 << 16},  {0, 9, 32, 1 << 16}};
  for (const Sizes& sizes : kSizes) {
    for (const bool transposed : {false, true}) {
      const std::string text = Text(sizes, "f32", "f32", "f32", transposed);
      const StatusOr<Planned> planned = Plan(text);
      ASSERT_TRUE(planned.ok()) << planned.status();
      int64_t most = 0;
      for (const kir::Kernel& kernel : planned->compiled.plan.kernels)
        most = std::max(most, kir::GridChunks(kernel, {}).value_or(0));
      EXPECT_GE(most, 64) << text;
    }
  }
}

// The bits of a row are its own, beside however many others, on any number of threads.
TEST(SplitSum, RowsHaveTheirOwnBits) {
  const auto rows = [](int m, int threads) {
    const StatusOr<Planned> planned = Plan(Text({1, m, 36, 4100}, "f32", "f32", "f32", true));
    EXPECT_TRUE(planned.ok()) << planned.status();
    const StatusOr<const cpu::Target*> target = cpu::ResolveTarget("native");
    const StatusOr<LevelRunner> level = LevelRunner::Create(**target);
    // The same rows at the front, whatever stands behind them.
    const BytesByName most = RandomBytes(Plan(Text({1, 96, 36, 4100}, "f32", "f32", "f32", true))->graph, {}, 1);
    BytesByName bytes = most;
    bytes.find("a")->second.resize(static_cast<size_t>(m) * 4100 * 4);
    const auto outputs = RunGraph(planned->compiled, *level, threads, {}, bytes);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return std::vector<uint8_t>(outputs->at(0).begin(), outputs->at(0).begin() + 9 * 36 * 4);
  };
  const std::vector<uint8_t> few = rows(9, 1);
  EXPECT_EQ(few, rows(96, 1));
  EXPECT_EQ(few, rows(41, 3));
}

}  // namespace
}  // namespace quern
