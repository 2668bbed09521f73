// Kernels of threads: the worked ones against the same kernels in plain form, and broken ones by their messages.
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/half.h"
#include "gtest/gtest.h"
#include "kernel_files.h"
#include "kir/canonical.h"
#include "kir/interpret.h"

namespace quern::kir {
namespace {

constexpr uint32_t kSeed = 6151;

template <typename T>
BufferBytes BytesOf(std::vector<T>& values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T)};
}

std::vector<float> Random(std::mt19937& random, int64_t count) {
  std::uniform_real_distribution<float> uniform(0.1f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

Kernel Parsed(const std::string& text) {
  const StatusOr<Kernel> kernel = ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status() << "\n" << text;
  return kernel.ok() ? *kernel : Kernel{};
}

std::string Verified(const std::string& text) { return std::string(Verify(Parsed(text)).message()); }

// What running says, with every buffer zero; N is 64.
std::string Ran(const std::string& text) {
  const Kernel kernel = Parsed(text);
  std::vector<std::vector<uint8_t>> memory;
  std::vector<BufferBytes> buffers;
  Binding binding;
  for (const SymbolDecl& symbol : kernel.symbols) binding[symbol.name] = 64;
  for (const Param& param : kernel.params) {
    memory.emplace_back(*LayoutBytes(param.type.layout, param.type.dtype, param.type.dims).Evaluate(binding));
  }
  for (auto& bytes : memory) buffers.emplace_back(bytes);
  return std::string(Interpret(kernel, binding, buffers).message());
}

// A kernel of 64 threads, `before` the thread loop and `body` in it.
std::string Block64(const std::string& body, const std::string& before = "alloc s : f32[64] shared") {
  return "kernel k (x : f32[64] in\n y : f32[64] out\n) { grid g in 0..1 { " + before +
         "\n thread t in 0..64 @ block {\n" + body + "\n} } }";
}

TEST(Block, TextRoundTrip) {
  for (const char* name : {"blocks/map", "blocks/reduce", "blocks/matmul", "blocks/matmul_groups"}) {
    const Kernel kernel = KernelFile(name);
    const Kernel again = Parsed(Print(kernel));
    EXPECT_TRUE(Same(kernel, again)) << Print(kernel) << Print(again);
    EXPECT_EQ(Print(again), Print(kernel));
    EXPECT_EQ(Print(Parsed(Print(kernel, {.normalise_names = true})), {.normalise_names = true}),
              Print(kernel, {.normalise_names = true}));
    EXPECT_EQ(Verify(kernel), absl::OkStatus()) << name;
  }
}

// Words that only begin statements of kernels of threads stay free.
TEST(Block, WordsAreNames) {
  EXPECT_EQ(
      Verified(Block64("var barrier : f32 = x[t] var copy : f32 = 1 barrier := barrier + copy barrier y[t] = barrier",
                       "alloc thread, pipeline : f32[64] shared")),
      "");
}

TEST(Block, Shape) {
  const auto shape = [](const char* name) { return *ShapeOfBlock(KernelFile(name)); };
  EXPECT_EQ(shape("blocks/map").threads, 128);
  EXPECT_EQ(shape("blocks/map").shared_bytes, 0);
  EXPECT_EQ(shape("blocks/reduce").threads, 128);
  EXPECT_EQ(shape("blocks/reduce").shared_bytes, 128);
  EXPECT_EQ(shape("blocks/matmul").threads, 128);
  EXPECT_EQ(shape("blocks/matmul").shared_bytes, 3 * 2 * 64 * 40 * 2);
  EXPECT_EQ(shape("rms_norm_q8").threads, 0);
}

TEST(Block, MapIsThePlainMap) {
  const Kernel plain =
      Parsed("kernel p (x : f32[N] in\n y : f32[N] out\n) sym N { grid i in 0..N { y[i] = x[i] * sigmoid(x[i]) } }");
  std::mt19937 random(kSeed);
  for (const int64_t n : {1, 127, 128, 129, 1023, 1024, 1025, 2311}) {
    SCOPED_TRACE(n);
    std::vector<float> x = Random(random, n), expected(n), got(n);
    const std::vector<BufferBytes> a = {BytesOf(x), BytesOf(expected)}, b = {BytesOf(x), BytesOf(got)};
    ASSERT_EQ(Interpret(plain, {{"N", n}}, a), absl::OkStatus());
    ASSERT_EQ(Interpret(KernelFile("blocks/map"), {{"N", n}}, b), absl::OkStatus());
    EXPECT_EQ(got, expected);
  }
}

TEST(Block, ReductionIsThePlainReduction) {
  const Kernel plain = Parsed(R"(kernel p (x : f32[M, C] in
    y : f32[M, C] out
  ) sym M, C { grid r in 0..M { let s = sum for c in 0..C { x[r, c] } for c in 0..C { y[r, c] = x[r, c] / s } } })");
  std::mt19937 random(kSeed);
  for (const int64_t columns : {1, 31, 127, 131, 257}) {
    SCOPED_TRACE(columns);
    const Binding binding = {{"M", 3}, {"C", columns}};
    std::vector<float> x = Random(random, 3 * columns), expected(3 * columns), got(3 * columns);
    const std::vector<BufferBytes> a = {BytesOf(x), BytesOf(expected)}, b = {BytesOf(x), BytesOf(got)};
    ASSERT_EQ(Interpret(plain, binding, a), absl::OkStatus());
    ASSERT_EQ(Interpret(KernelFile("blocks/reduce"), binding, b), absl::OkStatus());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6 * std::fabs(expected[i])) << i;
  }
}

TEST(Block, MatmulIsThePlainMatmul) {
  const Kernel plain = Parsed(R"(kernel p (a : f16[M, K] in
    b : f16[N, K] in
    c : f32[M, N] out
  ) sym M, N, K { grid i in 0..M, j in 0..N {
    c[i, j] = sum for k in 0..K { cast<f32>(a[i, k]) * cast<f32>(b[j, k]) } } })");
  std::mt19937 random(kSeed);
  for (const auto& [m, n, k] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {61, 67, 31}, {71, 3, 67}, {64, 64, 64}}) {
    SCOPED_TRACE(testing::Message() << m << " " << n << " " << k);
    const Binding binding = {{"M", m}, {"N", n}, {"K", k}};
    auto halves = [&](int64_t count) {
      std::vector<uint16_t> values;
      for (const float value : Random(random, count)) values.push_back(FloatToHalf(value));
      return values;
    };
    std::vector<uint16_t> a = halves(m * k), b = halves(n * k);
    std::vector<float> expected(m * n), got(m * n);
    const std::vector<BufferBytes> p = {BytesOf(a), BytesOf(b), BytesOf(expected)},
                                   q = {BytesOf(a), BytesOf(b), BytesOf(got)};
    ASSERT_EQ(Interpret(plain, binding, p), absl::OkStatus());
    // By warps, and by groups of four.
    for (const char* name : {"blocks/matmul", "blocks/matmul_groups"}) {
      ASSERT_EQ(Interpret(KernelFile(name), binding, q), absl::OkStatus());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], expected[i], 1e-5 * std::fabs(expected[i])) << name << " " << i;
    }
  }
}

TEST(Block, ShufflesMoveValues) {
  const Kernel kernel = Parsed(R"(kernel k (y : i64[3, 64] out
  ) { grid g in 0..1 { thread t in 0..64 @ block {
    let a = shuffle_xor(t, 5) let b = shuffle_down(t, 3) let c = shuffle(t, (t * 7) % 32)
    y[0, t] = a y[1, t] = b y[2, t] = c } } })");
  ASSERT_EQ(Verify(kernel), absl::OkStatus());
  std::vector<int64_t> y(3 * 64);
  const std::vector<BufferBytes> buffers = {BytesOf(y)};
  ASSERT_EQ(Interpret(kernel, {}, buffers), absl::OkStatus());
  for (int64_t t = 0; t < 64; ++t) {
    const int64_t lane = t % 32, warp = t - lane;
    EXPECT_EQ(y[t], warp + (lane ^ 5));
    EXPECT_EQ(y[64 + t], lane + 3 < 32 ? t + 3 : t);
    EXPECT_EQ(y[128 + t], warp + t * 7 % 32);
  }
}

TEST(Block, LanesOfAWarp) {
  const Kernel kernel = Parsed(R"(kernel k (x : f32[64] in
    y : f32[64] out
  ) { grid g in 0..1 { alloc s : f32[2, 32] shared
    thread w in 0..2 @ warp { thread l in 0..32 @ lane { s[w, l] = x[32 * w + l] } }
    barrier
    thread t in 0..64 @ block { y[t] = s[1 - t / 32, 31 - t % 32] } } })");
  ASSERT_EQ(Verify(kernel), absl::OkStatus());
  std::vector<float> x(64), y(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<BufferBytes> buffers = {BytesOf(x), BytesOf(y)};
  ASSERT_EQ(Interpret(kernel, {}, buffers), absl::OkStatus());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], x[63 - i]);
}

// A reversal through shared memory: right with a barrier, refused and caught without.
TEST(Block, MissingBarrier) {
  EXPECT_EQ(Verified(Block64("s[t] = x[t] barrier y[t] = s[63 - t]")), "");
  EXPECT_EQ(Ran(Block64("s[t] = x[t] barrier y[t] = s[63 - t]")), "");
  const std::string broken = Block64("s[t] = x[t] y[t] = s[63 - t]");
  EXPECT_EQ(Verified(broken),
            "kernel k: s[t] = x[t]: an iteration of thread t in 0..64 may write an element of s that "
            "another reads in y[t] = s[63 - t]");
  EXPECT_EQ(Ran(broken),
            "kernel k, chunk 0, thread 0: y[t] = s[63 - t]: s[63] is read, but thread 63 wrote it since the "
            "last barrier");
}

TEST(Block, MissingBarrierBetweenThreadLoops) {
  auto text = [](const char* between) {
    return Block64(absl::StrFormat("s[t] = x[t] } %s thread u in 0..64 @ block { y[u] = s[63 - u]", between));
  };
  EXPECT_EQ(Verified(text("barrier")), "");
  EXPECT_EQ(Ran(text("barrier")), "");
  EXPECT_EQ(Verified(text("")),
            "kernel k: y[u] = s[63 - u]: s may be read here and written in s[t] = x[t] without a "
            "barrier between");
  EXPECT_EQ(Ran(text("")),
            "kernel k, chunk 0, thread 0: y[u] = s[63 - u]: s[63] is read, but thread 63 wrote it since "
            "the last barrier");
}

// The second barrier of a loop keeps the next iteration's writes from this one's reads.
TEST(Block, LoopNeedsBothBarriers) {
  auto text = [](const char* last) {
    return Block64(
        absl::StrFormat("var v : f32 = 0 for k in 0..3 { s[t] = x[t] barrier v := v + s[63 - t] %s } y[t] = v", last));
  };
  EXPECT_EQ(Verified(text("barrier")), "");
  EXPECT_EQ(Ran(text("barrier")), "");
  EXPECT_EQ(Verified(text("")),
            "kernel k: s[t] = x[t]: an iteration of thread t in 0..64 may write an element of s that "
            "another reads in v := v + s[63 - t]");
  EXPECT_EQ(Ran(text("")),
            "kernel k, chunk 0, thread 0: s[t] = x[t]: s[0] is written, but thread 63 read it since the "
            "last barrier");
}

TEST(Block, LoopAroundThreads) {
  auto text = [](const char* last) {
    return "kernel k (x : f32[64] in\n y : f32[3, 64] out\n) { grid g in 0..1 { alloc s : f32[64] shared for k in 0..3 "
           "{ "
           "thread t in 0..64 @ block { s[t] = x[t] } barrier thread u in 0..64 @ block { y[k, u] = s[63 - u] } " +
           std::string(last) + " } } }";
  };
  EXPECT_EQ(Verified(text("barrier")), "");
  EXPECT_EQ(Ran(text("barrier")), "");
  EXPECT_EQ(Verified(text("")),
            "kernel k: y[k, u] = s[63 - u]: s may be read here and written in s[t] = x[t] without a barrier between");
  EXPECT_EQ(Ran(text("")),
            "kernel k, chunk 0, thread 0: s[t] = x[t]: s[0] is written, but thread 63 read it since the "
            "last barrier");
}

TEST(Block, DivergentBarrier) {
  const std::string broken = Block64("if t < 40 { barrier } y[t] = x[t]");
  EXPECT_EQ(Verified(broken), "kernel k: barrier: a barrier inside \"if t < 40\", which may differ between threads");
  EXPECT_EQ(Ran(broken), "kernel k, chunk 0, thread 0: barrier: the barrier is reached by 40 of 64 threads");
  const std::string loop = Block64("for i in t..64 { barrier } y[t] = x[t]");
  EXPECT_EQ(Verified(loop), "kernel k: barrier: a barrier inside \"for i in t..64\", which may differ between threads");
  EXPECT_EQ(Ran(loop), "kernel k, chunk 0, thread 0: barrier: the barrier is reached by 63 of 64 threads");
}

TEST(Block, SharedOutOfBounds) {
  const std::string broken = Block64("s[t + 1] = x[t] barrier y[t] = s[t]");
  EXPECT_EQ(Verified(broken), "kernel k: s[t + 1] = x[t]: index t + 1 of s is not proved to be below 64");
  EXPECT_EQ(Ran(broken), "kernel k, chunk 0, thread 63: s[t + 1] = x[t]: s[64] is outside s[64]");
}

TEST(Block, TwoWriters) {
  EXPECT_EQ(
      Verified(Block64("y[t / 2] = x[t]")),
      "kernel k: y[t / 2] = x[t]: two iterations of thread t in 0..64 are not proved to touch different elements of y");
  EXPECT_EQ(
      Ran(Block64("y[t / 2] = x[t]")),
      "kernel k, chunk 0, thread 1: y[t / 2] = x[t]: y[0] is written, but thread 0 wrote it since the last barrier");
  EXPECT_EQ(Verified(Block64("if t == 0 { y[5] = x[5] }")), "");
  EXPECT_EQ(Verified(Block64("if t < 2 { y[5] = x[5] }")),
            "kernel k: y[5] = x[5]: two iterations of thread t in 0..64 are "
            "not proved to touch different elements of y");
}

TEST(Block, ChunksAreNotOrdered) {
  const std::string text =
      "kernel k (y : f32[4] inout\n) { grid g in 0..3 { thread t in 0..32 @ block { if t == 0 { "
      "y[g + 1] = y[g] } } } }";
  EXPECT_NE(Verified(text), "");
  EXPECT_EQ(Ran(text), "kernel k, chunk 1, thread 0: y[g + 1] = y[g]: y[1] is read, but chunk 0 wrote it");
}

TEST(Block, ReadBeforeWritten) {
  EXPECT_EQ(Ran(Block64("if t < 3 { s[t] = x[t] } barrier y[t] = s[t]")),
            "kernel k, chunk 0, thread 3: y[t] = s[t]: s[3] is read before it is written");
}

TEST(Block, ShuffleOfThoseWhoAreThere) {
  const std::string text = Block64("if t % 32 < 31 { let a = shuffle_down(x[t], 1) y[t] = a }");
  EXPECT_EQ(Verified(text),
            "kernel k: let a = shuffle of x[t]: a shuffle inside \"if t % 32 < 31\", which may differ "
            "between threads");
  EXPECT_EQ(Ran(text),
            "kernel k, chunk 0, thread 30: let a = shuffle of x[t]: lane 30 asks lane 31, which is not there");
}

TEST(Block, Shapes) {
  EXPECT_EQ(Verified(Block64("y[t] = x[t]", "alloc s : f32[12289] shared")),
            "kernel k: needs 49280 bytes of shared memory, more than 49152");
  EXPECT_EQ(Verified(Block64("y[t] = x[t] } thread u in 0..32 @ block {")),
            "kernel k: thread u has 32 threads, an earlier thread loop 64");
  EXPECT_EQ(Verified("kernel k (y : f32[40] out\n) { grid g in 0..1 { thread t in 0..40 @ block { y[t] = 1 } } }"),
            "kernel k: thread t: 40 threads are no whole warps");
  EXPECT_EQ(Verified(Block64("y[t] = x[t] } thread u in 0..1 @ group {")),
            "kernel k: thread u has 128 threads, an earlier thread loop 64");
  EXPECT_EQ(Verified(Block64("thread l in 0..32 @ lane { y[l] = 1 }")),
            "kernel k: thread l @ lane is not inside a warp");
}

TEST(Block, PlacesOfStatements) {
  EXPECT_EQ(Verified(Block64("y[t] = x[t]", "alloc s : f32[64] scratch")),
            "kernel k: alloc s : f32[64]: scratch in a kernel of threads");
  EXPECT_EQ(Verified(Block64("vec i in 0..4 { y[i] = 1 }")),
            "kernel k: vec i in 0..4: a vec loop in a kernel of threads");
  EXPECT_EQ(Verified("kernel k (y : f32[1] out\n) { grid g in 0..1 { barrier y[0] = 1 } }"),
            "kernel k: barrier: a barrier in a kernel without threads");
  EXPECT_EQ(Verified("kernel k (y : f32[64] out\n) { grid g in 0..1 { y[0] = 1 thread t in 0..64 @ block { } } }"),
            "kernel k: y[0] = 1.0: a store outside the thread loops");
  EXPECT_EQ(Verified(Block64("copy s[0 : +t + 1] = x[0 : +t + 1]")),
            "kernel k: copy s[0 : +t + 1] = x[0 : +t + 1]: t + 1 differs between threads");
}

// A copy fills what its source does not have with 0, and is not seen before a barrier.
TEST(Block, Copy) {
  const char* const kText =
      "kernel k (x : f32[5] in\n y : f32[64] out\n) { grid g in 0..1 { alloc s : f32[64] shared "
      "copy s = x[0 : +64] %s thread t in 0..64 @ block { y[t] = s[t] } } }";
  std::string good = kText, bad = kText;
  good.replace(good.find("%s"), 2, "barrier");
  bad.replace(bad.find("%s"), 2, "");
  const Kernel kernel = Parsed(good);
  ASSERT_EQ(Verify(kernel), absl::OkStatus());
  std::vector<float> x = {1, 2, 3, 4, 5}, y(64, 9);
  const std::vector<BufferBytes> buffers = {BytesOf(x), BytesOf(y)};
  ASSERT_EQ(Interpret(kernel, {}, buffers), absl::OkStatus());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i < 5 ? x[i] : 0);
  EXPECT_EQ(Verified(bad),
            "kernel k: y[t] = s[t]: s may be read here and written in copy s = x[0 : +64] without a "
            "barrier between");
  EXPECT_EQ(Ran(bad),
            "kernel k, chunk 0, thread 0: y[t] = s[t]: s[0] is read, but the block wrote it since the last barrier");
}

// Floats become other floats, blocks of a format are decoded, and nothing else changes its dtype.
TEST(Block, ConvertingCopy) {
  const auto text = [](const std::string& from, const std::string& to) {
    return "kernel k (w : " + from + " in\n y : f32[64] out\n) { grid g in 0..1 { alloc s : " + to +
           "[2, 32] shared copy s = w[0 : +2, 32 : +32] barrier thread t in 0..64 @ block { y[t] = cast<f32>(s[t / 32, "
           "t % 32]) } } }";
  };
  EXPECT_EQ(Verified(text("i32[2, 64]", "i32")), "");
  EXPECT_EQ(Verified(text("i32[2, 64]", "f32")),
            "kernel k: copy s = w[0 : +2, 32 : +32]: a copy is of dense rows of one dtype, or to floats from others or "
            "from blocks");
  EXPECT_EQ(Verified(text("q8_0[2, 64] @blocks", "i32")), Verified(text("i32[2, 64]", "f32")));
  std::vector<float> y(64);
  std::vector<float> floats(128);
  for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i) + 1.0f / 4096;
  const Kernel halves = Parsed(text("f32[2, 64]", "f16"));
  ASSERT_EQ(Verify(halves), absl::OkStatus());
  const std::vector<BufferBytes> buffers = {BytesOf(floats), BytesOf(y)};
  ASSERT_EQ(Interpret(halves, {}, buffers), absl::OkStatus());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], HalfToFloat(FloatToHalf(floats[i / 32 * 64 + 32 + i % 32])));
  // Two rows of two blocks: d, then 32 codes.
  std::vector<uint8_t> blocks(4 * 34);
  for (int b = 0; b < 4; ++b) {
    const uint16_t d = FloatToHalf(0.5f + static_cast<float>(b));
    std::memcpy(&blocks[b * 34], &d, 2);
    for (int c = 0; c < 32; ++c) blocks[b * 34 + 2 + c] = static_cast<uint8_t>(c - 7);
  }
  const Kernel decoded = Parsed(text("q8_0[2, 64] @blocks", "bf16"));
  ASSERT_EQ(Verify(decoded), absl::OkStatus());
  const std::vector<BufferBytes> memory = {BytesOf(blocks), BytesOf(y)};
  ASSERT_EQ(Interpret(decoded, {}, memory), absl::OkStatus());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y[i], static_cast<float>(i % 32 - 7) * (i < 32 ? 1.5f : 3.5f)) << i;
}

// Of two branches a block takes one: what they do to one buffer needs no barrier between, what follows them does.
TEST(Block, BranchesOfABlock) {
  const auto text = [](const std::string& barrier) {
    return "kernel k (x : f32[64] in\n y : f32[2, 64] out\n) { grid g in 0..2 { alloc s : f32[64] shared "
           "if g < 1 { thread t in 0..64 @ block { s[t] = x[t] } } else { thread t in 0..64 @ block { s[63 - t] = x[t] "
           "} } " +
           barrier + " thread t in 0..64 @ block { y[g, t] = s[t] } } }";
  };
  EXPECT_EQ(Verified(text("barrier")), "");
  EXPECT_EQ(Ran(text("barrier")), "");
  EXPECT_EQ(Verified(text("")),
            "kernel k: y[g, t] = s[t]: s may be read here and written in s[t] = x[t] without a barrier between");
  // What follows meets the ends of both branches.
  EXPECT_EQ(Verified("kernel k (x : f32[64] in\n y : f32[2, 64] out\n) { grid g in 0..2 { alloc s : f32[64] shared "
                     "if g < 1 { barrier thread t in 0..64 @ block { s[t] = x[t] } } else { thread t in 0..64 @ block "
                     "{ s[t] = 0 } barrier } "
                     "thread t in 0..64 @ block { y[g, t] = s[63 - t] } } }"),
            "kernel k: y[g, t] = s[63 - t]: s may be read here and written in s[t] = x[t] without a barrier between");
  // A barrier in one branch alone is none after it.
  EXPECT_NE(Verified("kernel k (x : f32[64] in\n y : f32[2, 64] out\n) { grid g in 0..2 { alloc s : f32[64] shared "
                     "thread t in 0..64 @ block { s[t] = x[t] } if g < 1 { barrier } thread t in 0..64 @ block { y[g, "
                     "t] = s[63 - t] } } }"),
            "");
}

// Threads side by side in two dimensions, striding in both: four variables decide an element.
TEST(Block, StridesOfTwoDimensions) {
  const auto text = [](int across, int step) {
    return absl::StrFormat(
        "kernel k (y : f32[37, 101] out\n) { grid g in 0..1 { thread t in 0..256 @ block { for i in t / 32 .. 37 by %d "
        "{ "
        "for j in t %% 32 .. 101 by %d { y[i, j] = 1 } } } } }",
        step, across);
  };
  EXPECT_EQ(Verified(text(32, 8)), "");
  EXPECT_EQ(Ran(text(32, 8)), "");
  for (const auto& [across, step] : {std::pair(31, 8), {32, 7}}) {
    EXPECT_NE(Verified(text(across, step)), "");
    EXPECT_NE(Ran(text(across, step)), "");
  }
}

// Parts from the end, whose first element is a function of the part: the last part is shorter, and none meets another
// but where parts overlap.
TEST(Block, StridesThroughPartsFromTheEnd) {
  const auto text = [](int length) {
    return absl::StrFormat(
        "kernel k (y : f32[S] out\n) sym S in 1..5000 { grid g in 0..1 { thread t in 0..64 @ block { "
        "for p in 0..S by 512 { for c in max(0, S - (p + %d)) + t .. S - p by 64 { y[c] = 1 } } } } }",
        length);
  };
  EXPECT_EQ(Verified(text(512)), "");
  EXPECT_NE(Verified(text(513)), "");
}

// Two stores that meet only where one thread is an iteration ahead of the other.
TEST(Block, StridesThatMeetInOneDirection) {
  const auto text = [](int apart) {
    return absl::StrFormat(
        "kernel k (y : f32[448] out\n) { grid g in 0..1 { thread t in 0..64 @ block { for q in 0..4 { "
        "y[t + 64 * q] = 1 y[%d - t + 64 * q] = 2 } } } }",
        63 + apart);
  };
  for (const int apart : {64, 128}) {
    EXPECT_EQ(
        Verified(text(apart)),
        absl::StrFormat("kernel k: y[t + 64 * q] = 1.0: an iteration of thread t in 0..64 may write an element of y "
                        "that another writes in y[%d - t + 64 * q] = 2.0",
                        63 + apart));
    EXPECT_NE(Ran(text(apart)), "");
  }
}

// Each iteration has its own fetch in the buffer, nothing of others, and after the last nobody knows.
TEST(Block, PipelinesForget) {
  const auto text = [](const std::string& copy, const std::string& use, const std::string& after) {
    return "kernel k (x : f32[256] in\n y : f32[64] out\n) { grid g in 0..1 { alloc s : f32[64] shared thread t in "
           "0..64 @ block { "
           "var v : f32 = 0 pipeline k in 0..4 stages 2 { fetch { " +
           copy + " } use { v := v + " + use + " } } y[t] = v" + after + " } } }";
  };
  const std::string whole = "copy s = x[k * 64 : +64]";
  EXPECT_EQ(Verified(text(whole, "s[63 - t]", "")), "");
  EXPECT_EQ(Ran(text(whole, "s[63 - t]", "")), "");
  EXPECT_EQ(Verified(text(whole, "s[t]", " + s[t]")),
            "kernel k: y[t] = v + s[t]: s is read before anything is written to it");
  EXPECT_EQ(Ran(text(whole, "s[t]", " + s[t]")),
            "kernel k, chunk 0, thread 0: y[t] = v + s[t]: s[0] is read before it is written");
  EXPECT_EQ(Ran(text("copy s[k * 16 : +16] = x[k * 16 : +16]", "s[0]", "")),
            "kernel k, chunk 0, thread 0: v := v + s[0]: s[0] is read before it is written");
}

// Pipelines one after the other fetch into the same memory.
TEST(Block, PipelinesShareBuffers) {
  const auto text = [&](int first, int second) {
    return "kernel k (x : f32[256] in\n y : f32[64] out\n) { grid g in 0..1 { alloc s : f32[64] shared thread t in "
           "0..64 @ block { " +
           absl::StrCat("pipeline k in 0..4 stages ", first,
                        " { fetch { copy s = x[k * 64 : +64] } use { } } pipeline k in 0..4 stages ", second,
                        " { fetch { copy s = x[k * 64 : +64] } use { } } y[t] = x[t] } } }");
  };
  EXPECT_EQ(ShapeOfBlock(Parsed(text(3, 2)))->shared_bytes, 3 * 256);
  EXPECT_EQ(ShapeOfBlock(Parsed(text(1, 4)))->shared_bytes, 4 * 256);
  EXPECT_EQ(ShapeOfBlock(Parsed(text(2, 4)))->shared_bytes, 4 * 256);
}

}  // namespace
}  // namespace quern::kir
