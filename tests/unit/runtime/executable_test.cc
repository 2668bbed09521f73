// Executables of hand-made fused graphs, compiled and run: results, state, variants, the errors of a run, and what is
// given back at the end.
#include "runtime/executable.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <string>
#include <thread>

#include "support/memory_limit.h"
#include "support/resident.h"

namespace quern {
namespace {

std::unique_ptr<Executable> Make(std::string_view text, std::vector<SymbolRanges> guards, int threads = 2,
                                 std::vector<std::string>* lines = nullptr,
                                 std::shared_ptr<KernelCache>* cache = nullptr) {
  StatusOr<ir::Graph> parsed = ir::Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (!parsed.ok()) return nullptr;
  const auto graph = std::make_shared<const ir::Graph>(*std::move(parsed));
  StatusOr<std::shared_ptr<jit::Engine>> engine = jit::Engine::Create({.threads = 1});
  EXPECT_TRUE(engine.ok()) << engine.status();
  ExecutableOptions options;
  options.cache = std::make_shared<KernelCache>(*std::move(engine));
  options.pool = std::make_shared<ThreadPool>(threads);
  if (cache != nullptr) *cache = options.cache;
  if (lines != nullptr) options.log = [lines](std::string_view line) { lines->emplace_back(line); };
  std::vector<Variant> variants;
  for (const SymbolRanges& guard : guards) {
    variants.push_back({guard, [graph, guard] { return lir::BuildPlan(*graph, guard, {}); }});
  }
  StatusOr<std::unique_ptr<Executable>> executable =
      Executable::Create(SignatureOf(*graph), std::move(variants), std::move(options));
  EXPECT_TRUE(executable.ok()) << executable.status();
  return executable.ok() ? *std::move(executable) : nullptr;
}

ConstBytes In(const std::vector<float>& values) {
  return {values.data(), static_cast<int64_t>(values.size() * sizeof(float))};
}
MutableBytes Out(std::vector<float>& values) {
  return {values.data(), static_cast<int64_t>(values.size() * sizeof(float))};
}

std::vector<float> Ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i) * 0.7f);
  return values;
}

// y = exp(w * x) rowwise, then the last L rows negated.
constexpr std::string_view kRows = R"(graph g sym L in 1..40, S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 13]
  %1 = Param() {name = "w"} : f32[13]
  %2 = Region(%0, %1) {family = "map"} : f32[S, 13] body graph body sym S in 1..40 {
    %0 = Input() {name = "a"} : f32[S, 13]
    %1 = Input() {name = "w"} : f32[13]
    %2 = Mul(%0, %1) : f32[S, 13]
    %3 = Exp(%2) : f32[S, 13]
    return %3
  }
  %3 = Narrow(%2) {axis = 0, length = <L>, start = <S - L>} : f32[L, 13]
  %4 = Region(%3) {family = "map"} : f32[L, 13] body graph body sym L in 1..40 {
    %0 = Input() {name = "a"} : f32[L, 13]
    %1 = Neg(%0) : f32[L, 13]
    return %1
  }
  return %4
})";
const std::vector<SymbolRanges>& RowGuards() {
  static const auto* guards =
      new std::vector<SymbolRanges>{{{"S", {1, 1}}, {"L", {1, 1}}}, {{"S", {2, 40}}, {"L", {1, 40}}}};
  return *guards;
}

void CheckRows(Executable& executable, const std::vector<float>& w, int64_t s, int64_t l) {
  const std::vector<float> x = Ramp(s * 13);
  std::vector<float> y(l * 13, -7);
  const ConstBytes in = In(x);
  const MutableBytes out = Out(y);
  const Status status = executable.Run({&in, 1}, {&out, 1}, {{"S", s}, {"L", l}});
  ASSERT_TRUE(status.ok()) << status;
  for (int64_t i = 0; i < l * 13; ++i) {
    const double want = -std::exp(static_cast<double>(w[i % 13]) * x[(s - l) * 13 + i]);
    EXPECT_NEAR(y[i], want, 1e-5 * std::abs(want)) << "element " << i << " at S " << s << ", L " << l;
  }
}

TEST(Executable, FollowsSymbolsAndPointers) {
  std::vector<std::string> lines;
  const auto executable = Make(kRows, RowGuards(), 2, &lines);
  ASSERT_NE(executable, nullptr);
  const std::vector<float> w = Ramp(14);
  // Not aligned to 32 bytes for one of the two starts: such parameters are copied.
  const std::span<const uint8_t> bytes{reinterpret_cast<const uint8_t*>(w.data() + 1), 13 * sizeof(float)};
  ASSERT_TRUE(executable->BindParam("w", bytes).ok());
  const std::vector<float> used(w.begin() + 1, w.end());
  for (const auto& [s, l] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 2}, {5, 5}, {37, 3}, {1, 1}, {40, 40}, {5, 2}}) {
    CheckRows(*executable, used, s, l);
  }
  ASSERT_EQ(lines.size(), 2u);  // each variant once
  EXPECT_NE(lines[0].find("L == 1, S == 1"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("S in 2..40"), std::string::npos) << lines[1];
}

TEST(Executable, NewParametersHaveEffect) {
  const auto executable = Make(kRows, RowGuards());
  ASSERT_NE(executable, nullptr);
  for (const float scale : {1.0f, -2.0f}) {
    std::vector<float> w = Ramp(13);
    for (float& v : w) v *= scale;
    ASSERT_TRUE(
        executable->BindParam("w", {reinterpret_cast<const uint8_t*>(w.data()), w.size() * sizeof(float)}).ok());
    CheckRows(*executable, w, 3, 2);
  }
}

// The diagnostic inside an error, and its sentence.
void ExpectError(const Status& status, const Diagnostic& want, std::string_view sentence) {
  const std::optional<Diagnostic> got = DiagnosticOf(status);
  ASSERT_TRUE(got.has_value()) << status;
  EXPECT_EQ(static_cast<int>(got->code), static_cast<int>(want.code)) << status;
  EXPECT_EQ(got->operand, want.operand);
  EXPECT_EQ(got->expected, want.expected);
  EXPECT_EQ(got->got, want.got);
  EXPECT_EQ(got->provenance, "g");
  EXPECT_EQ(std::string(status.message()), sentence);
}

TEST(Executable, SaysWhatIsWrong) {
  using enum DiagnosticCode;
  const auto executable = Make(kRows, RowGuards());
  ASSERT_NE(executable, nullptr);
  const std::vector<float> w = Ramp(13), x = Ramp(26);
  std::vector<float> y(13, -7);
  const ConstBytes in = In(x);
  const MutableBytes out = Out(y);
  const auto* bytes = reinterpret_cast<const uint8_t*>(w.data());
  ExpectError(executable->Run({&in, 1}, {&out, 1}, {{"S", 2}, {"L", 1}}), {kMissing, "", "parameter w", "", "", ""},
              "parameter w was not given (in g)");
  ExpectError(executable->Prepare({{"S", 2}, {"L", 1}}), {kMissing, "", "parameter w", "", "", ""},
              "parameter w was not given (in g)");
  ExpectError(executable->BindParam("v", {}), {kUnknownName, "", "parameter v", "w", "", ""},
              "there is no parameter v; there is: w (in g)");
  ExpectError(executable->BindParam("w", {bytes, 12}),
              {kShapeMismatch, "", "parameter w", "52 bytes of f32[13]", "12 bytes", ""},
              "parameter w is 12 bytes, 52 bytes of f32[13] expected (in g)");
  ASSERT_TRUE(executable->BindParam("w", {bytes, 52}).ok());
  const auto run = [&](const Binding& symbols) { return executable->Run({&in, 1}, {&out, 1}, symbols); };
  ExpectError(run({{"S", 2}}), {kMissing, "", "symbol L", "", "", ""}, "symbol L was not given (in g)");
  ExpectError(run({{"S", 41}, {"L", 1}}), {kOutOfRange, "", "symbol S", "1..40", "41", ""},
              "symbol S is 41, outside 1..40 (in g)");
  ExpectError(run({{"S", 0}, {"L", 1}}), {kOutOfRange, "", "symbol S", "1..40", "0", ""},
              "symbol S is 0, outside 1..40 (in g)");
  ExpectError(run({{"S", 2}, {"L", 1}, {"Q", 1}}), {kUnknownName, "", "symbol Q", "L, S", "", ""},
              "there is no symbol Q; there is: L, S (in g)");
  ExpectError(run({{"S", 3}, {"L", 1}}), {kShapeMismatch, "", "input x", "156 bytes of f32[S, 13]", "104 bytes", ""},
              "input x is 104 bytes, 156 bytes of f32[S, 13] expected (in g)");
  ExpectError(run({{"S", 2}, {"L", 2}}), {kShapeMismatch, "", "output 0", "104 bytes of f32[L, 13]", "52 bytes", ""},
              "output 0 is 52 bytes, 104 bytes of f32[L, 13] expected (in g)");
  ExpectError(executable->Run({&in, 1}, {}, {{"S", 2}, {"L", 1}}), {kMissing, "", "one of the 1 outputs", "", "", ""},
              "one of the 1 outputs was not given (in g)");
  ExpectError(executable->Run({}, {&out, 1}, {{"S", 2}, {"L", 1}}),
              {kMissing, "", "one of the 1 inputs (x)", "", "", ""}, "one of the 1 inputs (x) was not given (in g)");
  const ConstBytes null{nullptr, 104};
  ExpectError(executable->Run({&null, 1}, {&out, 1}, {{"S", 2}, {"L", 1}}), {kMissing, "", "input x", "", "", ""},
              "input x was not given (in g)");
  std::vector<float> three(39, -7);
  const MutableBytes large = Out(three);
  // The view would start before the first row.
  ExpectError(executable->Run({&in, 1}, {&large, 1}, {{"S", 2}, {"L", 3}}),
              {kSizeConflict, "", "", "S >= L", "L = 3, S = 2", ""}, "S >= L does not hold for L = 3, S = 2 (in g)");
  ExpectError(executable->InputIndex("z").status(), {kUnknownName, "", "input z", "x", "", ""},
              "there is no input z; there is: x (in g)");
  ExpectError(executable->State("z").status(), {kUnknownName, "", "state z", "none", "", ""},
              "there is no state z; there is: none (in g)");
  // None of them wrote anything, and the executable still works.
  EXPECT_EQ(y, std::vector<float>(13, -7));
  EXPECT_EQ(three, std::vector<float>(39, -7));
  EXPECT_EQ(*executable->InputIndex("x"), 0);
  CheckRows(*executable, w, 2, 1);
}

TEST(Executable, SizesWithoutAVariant) {
  const auto executable = Make(kRows, {RowGuards()[0]});
  ASSERT_NE(executable, nullptr);
  ExpectError(executable->Prepare({{"S", 2}, {"L", 1}}),
              {DiagnosticCode::kSizeConflict, "", "", "a guard of some variant", "L = 1, S = 2", ""},
              "a guard of some variant does not hold for L = 1, S = 2 (in g)");
}

TEST(Executable, AnErrorOfThePlanIsTheErrorOfTheRun) {
  StatusOr<ir::Graph> graph = ir::Parse(kRows);
  ASSERT_TRUE(graph.ok());
  StatusOr<std::shared_ptr<jit::Engine>> engine = jit::Engine::Create({.threads = 1});
  ASSERT_TRUE(engine.ok());
  int calls = 0;
  const auto plan = [&]() -> StatusOr<lir::Plan> { return ++calls, absl::UnimplementedError("no such family"); };
  StatusOr<std::unique_ptr<Executable>> executable =
      Executable::Create(SignatureOf(*graph), {{{}, plan}},
                         {std::make_shared<KernelCache>(*std::move(engine)), std::make_shared<ThreadPool>(1), {}});
  ASSERT_TRUE(executable.ok());
  const std::vector<float> w = Ramp(13);
  ASSERT_TRUE((*executable)->BindParam("w", {reinterpret_cast<const uint8_t*>(w.data()), 52}).ok());
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ((*executable)->Prepare({{"S", 2}, {"L", 1}}), absl::UnimplementedError("no such family"));
    EXPECT_EQ(calls, i);
  }
  EXPECT_EQ((*executable)->report().variants, 0);
}

TEST(Executable, StateLivesAcrossRuns) {
  const auto executable = Make(R"(graph g sym P in 0..49 {
  %0 = Input() {name = "x"} : f32[1, 16]
  %1 = Input() {name = "cache"} : f32[50, 16]
  %2 = Region(%1, %0) {family = "update"} : f32[50, 16] body graph body sym P in 0..49 {
    %0 = Input() {name = "c"} : f32[50, 16]
    %1 = Input() {name = "u"} : f32[1, 16]
    %2 = Update(%0, %1) {axis = 0, start = <P>} : f32[50, 16]
    return %2
  }
  %3 = Region(%2) {family = "lines"} : f32[16] body graph body {
    %0 = Input() {name = "a"} : f32[50, 16]
    %1 = Reduce(%0) {axes = [0], keep_dim = false, op = "sum"} : f32[16]
    return %1
  }
  return %3, %2
  donate "cache" -> 1
})",
                               {{}});
  ASSERT_NE(executable, nullptr);
  std::vector<float> x(16), sum(16);
  const ConstBytes in = In(x);
  const MutableBytes out = Out(sum);
  for (int64_t p = 0; p < 7; ++p) {
    std::fill(x.begin(), x.end(), static_cast<float>(p + 1));
    ASSERT_TRUE(executable->Run({&in, 1}, {&out, 1}, {{"P", p}}).ok());
    EXPECT_EQ(sum[3], static_cast<float>((p + 1) * (p + 2) / 2));
  }
  const StatusOr<std::span<uint8_t>> cache = executable->State("cache");
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ(cache->size(), 50u * 16 * 4);
  EXPECT_EQ(reinterpret_cast<const float*>(cache->data())[6 * 16], 7.0f);
  executable->ResetState();
  ASSERT_TRUE(executable->Run({&in, 1}, {&out, 1}, {{"P", 3}}).ok());
  EXPECT_EQ(sum[0], 7.0f);
}

// A donated input whose output is computed anew: x' = -x, read and replaced in one run.
TEST(Executable, DonationWithoutAnUpdate) {
  const auto executable = Make(R"(graph g {
  %0 = Input() {name = "s"} : f32[21]
  %1 = Input() {name = "x"} : f32[21]
  %2 = Region(%0, %1) {family = "map"} : f32[21] body graph body {
    %0 = Input() {name = "a"} : f32[21]
    %1 = Input() {name = "b"} : f32[21]
    %2 = Sub(%1, %0) : f32[21]
    return %2
  }
  return %2
  donate "s" -> 0
})",
                               {{}});
  ASSERT_NE(executable, nullptr);
  const std::vector<float> x(21, 3);
  const ConstBytes in = In(x);
  for (const float want : {3.0f, 0.0f, 3.0f}) {
    ASSERT_TRUE(executable->Run({&in, 1}, {}, {}).ok());
    EXPECT_EQ(reinterpret_cast<const float*>(executable->State("s")->data())[20], want);
  }
}

// Each state becomes the other: both are read before either is overwritten.
TEST(Executable, StatesThatChangePlaces) {
  const auto executable = Make(R"(graph g {
  %0 = Input() {name = "a"} : f32[19]
  %1 = Input() {name = "b"} : f32[19]
  return %1, %0
  donate "a" -> 0
  donate "b" -> 1
})",
                               {{}});
  ASSERT_NE(executable, nullptr);
  auto state = [&](const char* name) { return reinterpret_cast<float*>(executable->State(name)->data()); };
  std::fill_n(state("a"), 19, 3.0f);
  std::fill_n(state("b"), 19, 5.0f);
  for (int run = 1; run < 4; ++run) {
    ASSERT_TRUE(executable->Run({}, {}, {}).ok());
    for (const int i : {0, 18}) {
      EXPECT_EQ(state("a")[i], run % 2 == 0 ? 3.0f : 5.0f);
      EXPECT_EQ(state("b")[i], run % 2 == 0 ? 5.0f : 3.0f);
    }
  }
}

// 200 launches of one kernel: compiled once, bound in microseconds, the same bits on any number of threads.
TEST(Executable, ManyLaunchesOfOneKernel) {
  std::string text = "graph g sym P in 0..1000 {\n  %0 = Input() {name = \"x\"} : f32[3, 1031]\n";
  for (int n = 1; n <= 200; ++n) {
    text += "  %" + std::to_string(n) + " = Region(%" + std::to_string(n - 1) +
            ") {family = \"map\"} : f32[3, 1031] body graph body {\n"
            "    %0 = Input() {name = \"a\"} : f32[3, 1031]\n    %1 = Sin(%0) : f32[3, 1031]\n    return %1\n  }\n";
  }
  text += "  return %200\n}";
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    std::shared_ptr<KernelCache> cache;
    const auto executable = Make(text, {{}}, threads, nullptr, &cache);
    ASSERT_NE(executable, nullptr);
    const std::vector<float> x = Ramp(3 * 1031);
    std::vector<float> y(x.size());
    const ConstBytes in = In(x);
    const MutableBytes out = Out(y);
    int64_t best = INT64_MAX;
    for (int64_t p = 0; p < 20; ++p) {
      ASSERT_TRUE(executable->Run({&in, 1}, {&out, 1}, {{"P", p}}).ok());
      best = std::min(best, executable->report().bind_ns);
    }
    EXPECT_LE(cache->report().compiled, 3);
    EXPECT_EQ(executable->last()->plan().launches.size(), 200u);
    EXPECT_LT(best, 20'000) << "nanoseconds to follow a symbol over 200 launches";
    results.push_back(y);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// y[b, i] = sum over s of x[b, s, i] * p[i]: two free sizes, a large intermediate whose size is their product.
constexpr std::string_view kBatches = R"(graph g sym B in 1..64, S in 1..512 {
  %0 = Input() {name = "x"} : f32[B, S, 17]
  %1 = Param() {name = "p"} : f32[17]
  %2 = Region(%0, %1) {family = "map"} : f32[B, S, 17] body graph body sym B in 1..64, S in 1..512 {
    %0 = Input() {name = "a"} : f32[B, S, 17]
    %1 = Input() {name = "p"} : f32[17]
    %2 = Mul(%0, %1) : f32[B, S, 17]
    return %2
  }
  %3 = Region(%2) {family = "lines"} : f32[B, 17] body graph body sym B in 1..64, S in 1..512 {
    %0 = Input() {name = "a"} : f32[B, S, 17]
    %1 = Reduce(%0) {axes = [1], keep_dim = false, op = "sum"} : f32[B, 17]
    return %1
  }
  return %3
})";

TEST(Executable, BatchesOfManySizes) {
  std::vector<std::vector<float>> by_threads;
  for (const int threads : {1, 2}) {
    std::vector<std::string> lines;
    std::shared_ptr<KernelCache> cache;
    const auto executable = Make(kBatches, {{}}, threads, &lines, &cache);
    ASSERT_NE(executable, nullptr);
    const std::vector<float> p = Ramp(17);
    ASSERT_TRUE(executable->BindParam("p", {reinterpret_cast<const uint8_t*>(p.data()), 17 * sizeof(float)}).ok());
    std::vector<float> all;
    for (const auto& [b, s] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 3}, {64, 512}, {7, 129}, {64, 1}, {1, 512}, {2, 3}}) {
      const std::vector<float> x = Ramp(b * s * 17);
      std::vector<float> y(b * 17, -7);
      const ConstBytes in = In(x);
      const MutableBytes out = Out(y);
      ASSERT_TRUE(executable->Run({&in, 1}, {&out, 1}, {{"B", b}, {"S", s}}).ok());
      for (int64_t i = 0; i < b * 17; ++i) {
        double want = 0, size = 0;
        for (int64_t j = 0; j < s; ++j) {
          const double term = static_cast<double>(x[(i / 17 * s + j) * 17 + i % 17]) * p[i % 17];
          want += term;
          size += std::abs(term);
        }
        EXPECT_NEAR(y[i], want, 1e-5 * size + 1e-6) << "element " << i << " of batch " << b << " and length " << s;
      }
      EXPECT_GE(executable->report().arena_bytes, b * s * 17 * 4);
      all.insert(all.end(), y.begin(), y.end());
    }
    EXPECT_EQ(lines.size(), 1u) << "one variant for all sizes";
    by_threads.push_back(std::move(all));
  }
  EXPECT_EQ(by_threads[0], by_threads[1]);
}

TEST(Executable, UnloadingGivesMemoryBack) {
  StatusOr<std::shared_ptr<jit::Engine>> engine = jit::Engine::Create({.threads = 1});
  ASSERT_TRUE(engine.ok());
  const std::vector<float> p = Ramp(17), x = Ramp(64 * 512 * 17);
  std::vector<float> y(64 * 17);
  const auto graph = std::make_shared<const ir::Graph>(*ir::Parse(kBatches));
  int64_t first = 0;
  // The first rounds fill the allocator's own pools.
  for (int round = 0; round < 40; ++round) {
    {
      ExecutableOptions options;
      options.cache = std::make_shared<KernelCache>(*engine);
      options.pool = std::make_shared<ThreadPool>(2);
      StatusOr<std::unique_ptr<Executable>> executable = Executable::Create(
          SignatureOf(*graph), {{{}, [&] { return lir::BuildPlan(*graph, {}, {}); }}}, std::move(options));
      ASSERT_TRUE(executable.ok());
      ASSERT_TRUE((*executable)->BindParam("p", {reinterpret_cast<const uint8_t*>(p.data()), 17 * sizeof(float)}).ok());
      const ConstBytes in = In(x);
      const MutableBytes out = Out(y);
      ASSERT_TRUE((*executable)->Run({&in, 1}, {&out, 1}, {{"B", 64}, {"S", 512}}).ok());
      EXPECT_GT((*engine)->live_bytes(), 0);
      EXPECT_GE((*executable)->report().arena_bytes, 64 * 512 * 17 * 4);
    }
    EXPECT_EQ((*engine)->live_bytes(), 0) << "round " << round;
    if (round == 9) first = testing::ResidentBytes();
  }
  // Thirty more programs of two megabytes of arena each, and their code and threads.
  EXPECT_LT(testing::ResidentBytes() - first, int64_t{8} << 20);
}

// Memory that a larger variant does not get leaves the smaller one as it was, and the larger one to be tried again.
TEST(Executable, GoesOnAfterScratchWasRefused) {
  if (!testing::kLimitsMemory) GTEST_SKIP() << "address space has no meaning under a sanitizer";
  constexpr std::string_view kSums = R"(graph g sym S in 1..100000 {
  %0 = Input() {name = "x"} : f32[64, S]
  %1 = Region(%0) {family = "lines"} : f32[64, S] body graph body sym S in 1..100000 {
    %0 = Input() {name = "i0"} : f32[64, S]
    %1 = Exp(%0) : f32[64, S]
    %2 = Reduce(%1) {axes = [1], keep_dim = true, op = "sum"} : f32[64, 1]
    %3 = Div(%1, %2) : f32[64, S]
    return %3
  }
  return %1
})";
  constexpr int kThreads = 32;
  std::shared_ptr<KernelCache> cache;
  // The kernels are there before memory is short.
  const std::unique_ptr<Executable> first = Make(kSums, {{{"S", {1, 8}}}, {}}, 1, nullptr, &cache);
  ASSERT_TRUE(first->Prepare({{"S", 8}}).ok() && first->Prepare({{"S", 100000}}).ok());
  const auto graph = std::make_shared<const ir::Graph>(*ir::Parse(kSums));
  std::vector<Variant> variants;
  for (const SymbolRanges& guard : {SymbolRanges{{"S", {1, 8}}}, SymbolRanges{}})
    variants.push_back({guard, [graph, guard] { return lir::BuildPlan(*graph, guard, {}); }});
  const auto executable =
      Executable::Create(SignatureOf(*graph), std::move(variants), {cache, std::make_shared<ThreadPool>(kThreads), {}});
  ASSERT_TRUE(executable.ok()) << executable.status();
  const auto run = [&](int64_t columns) {
    const std::vector<float> x = Ramp(64 * columns);
    std::vector<float> y(x.size());
    const ConstBytes in = In(x);
    const MutableBytes out = Out(y);
    const Status status = (*executable)->Run({&in, 1}, {&out, 1}, {{"S", columns}});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0), 64, 0.01);
  };
  run(8);
  {
    const testing::MemoryLimit limit(int64_t{1} << 20);
    const Status refused = (*executable)->Prepare({{"S", 100000}});
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  }
  run(8);
  run(30);
}

// A second run of one executable at a time is refused, whatever the moment; different executables run side by side.
TEST(Executable, OneRunAtATime) {
  StatusOr<std::shared_ptr<jit::Engine>> engine = jit::Engine::Create({.threads = 1});
  ASSERT_TRUE(engine.ok());
  const auto cache = std::make_shared<KernelCache>(*std::move(engine));  // shared: it is thread-safe
  const auto graph = std::make_shared<const ir::Graph>(*ir::Parse(kBatches));
  const std::vector<float> p = Ramp(17), x = Ramp(64 * 512 * 17);
  const auto make = [&] {
    StatusOr<std::unique_ptr<Executable>> executable =
        Executable::Create(SignatureOf(*graph), {{{}, [&] { return lir::BuildPlan(*graph, {}, {}); }}},
                           {cache, std::make_shared<ThreadPool>(1), {}});
    EXPECT_TRUE(executable.ok() &&
                (*executable)->BindParam("p", {reinterpret_cast<const uint8_t*>(p.data()), 17 * sizeof(float)}).ok());
    return *std::move(executable);
  };
  const auto run = [&](Executable& executable, std::vector<float>& y) {
    const ConstBytes in = In(x);
    const MutableBytes out = Out(y);
    return executable.Run({&in, 1}, {&out, 1}, {{"B", 64}, {"S", 512}});
  };
  const auto shared = make();
  std::vector<float> want(64 * 17);
  ASSERT_TRUE(run(*shared, want).ok());
  std::atomic<int> ran{0}, busy{0}, other{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const auto own = make();
      for (int i = 0; i < 50; ++i) {
        std::vector<float> y(64 * 17);
        const Status status = run(*shared, y);
        const std::optional<Diagnostic> diagnostic = DiagnosticOf(status);
        if (status.ok() && y == want)
          ++ran;
        else if (diagnostic && diagnostic->code == DiagnosticCode::kBusy)
          ++busy;
        else
          ++other;
        std::vector<float> z(64 * 17);
        if (!run(*own, z).ok() || z != want) ++other;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(other, 0);
  EXPECT_GT(ran, 0);
  EXPECT_EQ(ran + busy, 150);
  EXPECT_TRUE(run(*shared, want).ok());
}

}  // namespace
}  // namespace quern
