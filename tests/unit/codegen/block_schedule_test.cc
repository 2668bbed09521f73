// Schedules for blocks of threads: before equals after, by the interpreter, on kernels as the families write them and
// on sizes from distinct primes.
#include "codegen/block_schedule.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "gtest/gtest.h"
#include "kir/interpret.h"

namespace quern::codegen {
namespace {

constexpr uint32_t kSeed = 4451;

kir::Kernel Parsed(const std::string& text) {
  const StatusOr<kir::Kernel> kernel = kir::ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status() << "\n" << text;
  return kernel.ok() ? *kernel : kir::Kernel{};
}

// Runs both on the same random inputs (f32 and f16 in 0.1..1, integers in -9..9) and compares every output.
void ExpectSame(const kir::Kernel& before, const kir::Kernel& after, const Binding& binding, double rtol) {
  std::mt19937 random(kSeed);
  std::vector<std::vector<uint8_t>> memory[2];
  for (const kir::Param& param : before.params) {
    const StatusOr<int64_t> bytes =
        kir::LayoutBytes(param.type.layout, param.type.dtype, param.type.dims).Evaluate(binding);
    ASSERT_TRUE(bytes.ok());
    std::vector<uint8_t> data(*bytes);
    for (int64_t i = 0; i < *bytes / ScalarBytes(param.type.dtype); ++i) {
      const float value = std::uniform_real_distribution<float>(0.1f, 1.0f)(random);
      if (param.type.dtype == DType::kF32)
        reinterpret_cast<float*>(data.data())[i] = value;
      else if (param.type.dtype == DType::kF16)
        reinterpret_cast<uint16_t*>(data.data())[i] = FloatToHalf(value);
      else if (param.type.dtype == DType::kI32)
        reinterpret_cast<int32_t*>(data.data())[i] = static_cast<int>(random() % 19) - 9;
      else
        FAIL() << "another dtype";
    }
    memory[0].push_back(data);
    memory[1].push_back(std::move(data));
  }
  for (int which = 0; which < 2; ++which) {
    std::vector<kir::BufferBytes> buffers(memory[which].begin(), memory[which].end());
    ASSERT_EQ(kir::Interpret(which == 0 ? before : after, binding, buffers), absl::OkStatus()) << kir::Print(after);
  }
  for (size_t p = 0; p < before.params.size(); ++p) {
    if (before.params[p].mode == kir::Mode::kIn) continue;
    if (before.params[p].type.dtype == DType::kI32) {
      EXPECT_EQ(memory[0][p], memory[1][p]);
      continue;
    }
    const auto* expected = reinterpret_cast<const float*>(memory[0][p].data());
    const auto* got = reinterpret_cast<const float*>(memory[1][p].data());
    for (size_t i = 0; i < memory[0][p].size() / 4; ++i) {
      ASSERT_NEAR(got[i], expected[i], rtol * std::fabs(expected[i])) << before.params[p].name << " " << i;
    }
  }
}

void Check(const std::string& text, const std::vector<Binding>& bindings, double rtol = 0,
           const family::BlockFacts& facts = {}) {
  const kir::Kernel before = Parsed(text);
  const StatusOr<kir::Kernel> after = ScheduleBlocks(before, facts);
  ASSERT_TRUE(after.ok()) << after.status() << "\n" << text;
  EXPECT_EQ(kir::Print(Parsed(kir::Print(*after))), kir::Print(*after));
  EXPECT_GT(kir::ShapeOfBlock(*after)->threads, 0);
  for (const Binding& binding : bindings) {
    SCOPED_TRACE(binding.begin()->second);
    ExpectSame(before, *after, binding, rtol);
  }
}

TEST(BlockSchedule, FlatMap) {
  Check(R"(kernel map (x : f32[S] in
    w : f32[1] in
    y : f32[S] out
  ) sym S in 1..100000 {
    grid c0 in 0..S by 8192 { vec i in c0..min(c0 + 8192, S) { let v = x[i] * w[0] y[i] = v * sigmoid(v) } }
  })",
        {{{"S", 1}}, {{"S", 255}}, {{"S", 1024}}, {{"S", 2311}}});
}

TEST(BlockSchedule, MapOfRows) {
  Check(R"(kernel map (x : f32[M, 37] in
    w : f32[37] in
    y : f32[M, 37] out
  ) sym M in 1..512 {
    grid b0 in 0..M by 221 { for i0 in b0..min(b0 + 221, M) { vec c in 0..37 { y[i0, c] = x[i0, 36 - c] + w[c] } } }
  })",
        {{{"M", 1}}, {{"M", 7}}, {{"M", 11}}});
}

TEST(BlockSchedule, Norm) {
  Check(R"(kernel rows (x : f32[M, C] in
    g : f32[C] in
    y : f32[M, C] out
  ) sym M in 1..512, C in 1..5000 {
    grid i0 in 0..M {
      let r0 = (sum accs 4 vec c0 in 0..C { contract(x[i0, c0] * x[i0, c0]) }) / cast<f32>(C)
      let s0 = rsqrt(r0 + 1e-5)
      vec c in 0..C { y[i0, c] = x[i0, c] * s0 * g[c] }
    }
  })",
        {{{"M", 3}, {"C", 1}}, {{"M", 2}, {"C", 31}}, {{"M", 2}, {"C", 257}}, {{"M", 2}, {"C", 1031}}}, 1e-6);
}

// What a reduction lets is each thread's own.
TEST(BlockSchedule, LetsOfReductions) {
  Check(R"(kernel spread (x : f32[M, C] in
    y : f32[M, C] out
  ) sym M in 1..512, C in 1..5000 {
    grid i in 0..M {
      let m0 = sum accs 4 vec c0 in 0..C { let d = x[i, c0] - 0.5; let q = d * d;
        q * (sum vec k in 0..3 { let d3 = q; d3 * d3 })
      }
      vec c in 0..C { y[i, c] = m0 * sum for k in 1..4 { let d = x[i, c] * cast<f32>(k); d * d + 1.0 } }
    }
  })",
        {{{"M", 3}, {"C", 1}}, {{"M", 2}, {"C", 31}}, {{"M", 2}, {"C", 257}}, {{"M", 2}, {"C", 1031}}}, 1e-6);
  // The product of a matrix with itself is recognised by its body alone.
  const StatusOr<kir::Kernel> product = ScheduleBlocks(Parsed(R"(kernel product (a : f32[M, 8] in
    b : f32[N, 8] in
    c : f32[M, N] out
  ) sym M in 1..4096, N in 1..4096 {
    grid i in 0..M, j in 0..N { c[i, j] = sum for k in 0..8 { let l = 0; a[i, k] * b[j, k] } }
  })"),
                                                       {});
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(kir::Print(*product).find("bm"), std::string::npos);
}

// Scratch becomes shared memory, and two reductions share the block.
TEST(BlockSchedule, Softmax) {
  Check(R"(kernel rows (x : f32[M, 131] in
    y : f32[M, 131] out
  ) sym M in 1..512 {
    grid b0 in 0..M by 62 {
      for i0 in b0..min(b0 + 62, M) {
        let r0 = max accs 4 vec c0 in 0..131 { x[i0, c0] }
        alloc row2 : f32[131] scratch
        vec c2 in 0..131 { row2[c2] = exp(x[i0, c2] - r0) }
        let r1 = sum accs 4 vec c1 in 0..131 { row2[c1] }
        vec c in 0..131 { y[i0, c] = row2[130 - c] / r1 }
      }
    }
  })",
        {{{"M", 1}}, {{"M", 5}}}, 1e-6);
}

// Rows in a loop that stays: the parts and the scratch are used again.
TEST(BlockSchedule, LoopOfRows) {
  Check(R"(kernel rows (x : f32[M, 3, 71] in
    n : i32[M, 3] out
    y : f32[M, 3, 71] out
    z : i32[M, 3, 71] in
  ) sym M in 1..512 {
    grid i0 in 0..M {
      for i1 in 0..3 {
        n[i0, i1] = (max vec c in 0..71 { z[i0, i1, c] }) - (min vec c in 0..71 { z[i0, i1, c] })
        alloc row : f32[71] scratch
        vec c2 in 0..71 { row[c2] = exp(x[i0, i1, c2]) }
        let s = sum vec c1 in 0..71 { row[70 - c1] }
        vec c in 0..71 { y[i0, i1, c] = row[70 - c] / s }
      }
    }
  })",
        {{{"M", 1}}, {{"M", 5}}}, 1e-6);
}

// One reduction in a loop that stays, and nothing else that the threads wait for: its parts are read before the next
// iteration writes them.
TEST(BlockSchedule, ReductionInALoop) {
  Check(R"(kernel rows (x : f32[M, 5, 131] in
    y : f32[M, 5] out
  ) sym M in 1..512 {
    grid i0 in 0..M { for i1 in 0..5 { y[i0, i1] = sum vec c in 0..131 { x[i0, i1, c] } } }
  })",
        {{{"M", 1}}, {{"M", 3}}}, 1e-6);
}

// Reductions inside a vec loop are each thread's own.
TEST(BlockSchedule, ColumnSums) {
  Check(R"(kernel points (x : f32[K, N] in
    y : f32[N] out
  ) sym K in 1..512, N in 1..512 {
    grid one in 0..1 { vec c in 0..N { y[c] = sum for k in 0..K { x[k, c] } } }
  })",
        {{{"K", 7}, {"N", 131}}, {{"K", 13}, {"N", 313}}});
}

TEST(BlockSchedule, ProductOfFloats) {
  Check(R"(kernel product (a : f32[M, K] in
    b : f32[N, K] in
    c : f32[M, N] out
  ) sym M in 1..4096, N in 1..4096, K in 1..4096 {
    grid i in 0..M, j in 0..N { c[i, j] = sum accs 4 vec k in 0..K { contract(a[i, k] * b[j, k]) } }
  })",
        {{{"M", 1}, {"N", 1}, {"K", 1}}, {{"M", 67}, {"N", 5}, {"K", 17}}, {{"M", 13}, {"N", 71}, {"K", 37}}}, 1e-5);
}

// What looks like a product and is none: the largest of products, and factors of different dtypes.
TEST(BlockSchedule, NoPlainProduct) {
  Check(R"(kernel largest (a : f32[M, 37] in
    b : f32[5, 37] in
    c : f32[M, 5] out
  ) sym M in 1..4096 {
    grid i in 0..M, j in 0..5 { c[i, j] = max for k in 0..37 { a[i, k] * b[j, k] } }
  })",
        {{{"M", 1}}, {{"M", 3}}});
  Check(R"(kernel mixed (a : f16[M, 37] in
    b : f32[5, 37] in
    c : f32[M, 5] out
  ) sym M in 1..4096 {
    grid i in 0..M, j in 0..5 { c[i, j] = sum for k in 0..37 { cast<f32>(a[i, k]) * b[j, k] } }
  })",
        {{{"M", 1}}, {{"M", 3}}}, 1e-6);
}

TEST(BlockSchedule, ProductOfHalves) {
  const std::string text = R"(kernel product (a : f16[M, K] in
    b : f16[N, K] in
    bias : f32[N] in
    c : f32[M, N] out
  ) sym M in 1..4096, N in 1..4096, K in 1..4096 {
    grid i in 0..M, j in 0..N {
      c[i, j] = tanh((sum for k in 0..K { cast<f32>(a[i, k]) * cast<f32>(b[j, k]) }) * 0.1 + bias[j])
    }
  })";
  const std::vector<Binding> sizes = {{{"M", 3}, {"N", 61}, {"K", 37}}, {{"M", 71}, {"N", 67}, {"K", 5}}};
  Check(text, sizes, 1e-5);
  const StatusOr<kir::Kernel> warps = ScheduleBlocks(Parsed(text), {});
  EXPECT_NE(kir::Print(*warps).find("mma_f16 acc += "), std::string::npos);
  // Large ones in squares of 128.
  std::string large = text;
  large.replace(large.find("i in 0..M, j in 0..N"), 20, "i in 0..131, j in 0..139");
  for (auto at = large.find("[M"); at != std::string::npos; at = large.find("[M")) large.replace(at, 2, "[131");
  for (auto at = large.find("[N"); at != std::string::npos; at = large.find("[N")) large.replace(at, 2, "[139");
  large.replace(large.find(", N]"), 4, ", 139]");
  large.replace(large.find("M in 1..4096, N in 1..4096, "), 28, "");
  family::BlockFacts facts;
  facts.large_product = 131;
  Check(large, {{{"K", 37}}}, 1e-5, facts);
  EXPECT_NE(kir::Print(*ScheduleBlocks(Parsed(large), facts)).find("tile acc : f32[64, 64]"), std::string::npos);
  // By groups of warps: one for 64 rows, two for 128.
  facts.group_products = true;
  Check(text, sizes, 1e-5, {.group_products = true});
  Check(large, {{{"K", 37}}}, 1e-5, facts);
  EXPECT_NE(kir::Print(*ScheduleBlocks(Parsed(large), facts)).find("thread g0 in 0..2 @ group"), std::string::npos);
  // Without the units of a warp: each thread adds up its own elements.
  Check(text, {{{"M", 2}, {"N", 3}, {"K", 7}}}, 1e-5, {.half_products = false});
}

// What a masked key holds does not matter, not even NaN: it counts as none, rather than with a weight of 0.
TEST(BlockSchedule, MaskedKeysCountAsNone) {
  const kir::Kernel before = Parsed(R"(kernel attention (q : f32[3, 8] in
    k : f32[64, 8] in
    v : f32[64, 8] in
    y : f32[3, 8] out
  ) {
    grid g in 0..1 {
      alloc lo : i32[3] scratch
      alloc hi : i32[3] scratch
      tile o : f32[3, 8] = 0
      tile m : f32[3] = -inf
      tile l : f32[3] = 0
      vec i in 0..3 {
        lo[i] = 2
        hi[i] = 41
      }
      flash_step_f32 o, m, l += q[0 : +3, :], k[0 : +64, :], v[0 : +64, :], lo[0 : +3], hi[0 : +3]
      map (i, c) in o [3, 8] { y[i, c] = o / l[i] }
    }
  })");
  const StatusOr<kir::Kernel> after = ScheduleBlocks(before, {});
  ASSERT_TRUE(after.ok()) << after.status();
  std::vector<float> q(24), k(512), v(512), expected(24), got(24);
  std::mt19937 random(kSeed);
  for (std::vector<float>* values : {&q, &k, &v}) {
    for (float& value : *values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  }
  for (size_t key = 0; key < 64; ++key) {
    if (key < 2 || key >= 41) k[key * 8] = v[key * 8 + key % 8] = NAN;
  }
  for (const bool scheduled : {false, true}) {
    std::vector<kir::BufferBytes> buffers;
    for (std::vector<float>* values : {&q, &k, &v, scheduled ? &got : &expected}) {
      buffers.emplace_back(reinterpret_cast<uint8_t*>(values->data()), values->size() * sizeof(float));
    }
    ASSERT_EQ(kir::Interpret(scheduled ? *after : before, {}, buffers), absl::OkStatus());
  }
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
}

TEST(BlockSchedule, SaysWhatItCannotTake) {
  const auto refused = [](const std::string& text) {
    return std::string(ScheduleBlocks(Parsed(text), {}).status().message());
  };
  EXPECT_EQ(refused(R"(kernel k (x : f32[256] in
    y : q8_K[1, 256] @planar out
  ) { grid g in 0..1 { pack y[0, :] = x } })"),
            "pack y[0, :] = x: not for blocks of threads");
  EXPECT_EQ(refused(R"(kernel k (y : f32[20000] out
  ) { grid g in 0..1 {
      alloc s : f32[20000] scratch vec i in 0..20000 { s[i] = 1 } vec i in 0..20000 { y[i] = s[i] } } })"),
            "kernel k: 80000 bytes of shared memory");
  EXPECT_EQ(refused(R"(kernel k (x : f32[256] in
    y : f32[256] out
  ) { grid g in 0..1 { var s : f32 = 0 vec i in 0..256 { s := s + x[i] y[i] = s } } })"),
            "s := s + x[i]: not for blocks of threads");
}

}  // namespace
}  // namespace quern::codegen
