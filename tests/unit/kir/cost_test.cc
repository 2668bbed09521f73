// The cost of kernels against figures worked out by hand from their text, with sizes from distinct primes.
#include "kir/cost.h"

#include <gtest/gtest.h>

#include "base/dtype.h"
#include "kir/region.h"
#include "kir/tile_op.h"

namespace quern::kir {
namespace {

KernelCost Cost(const std::string& text, const Binding& binding = {}) {
  const StatusOr<Kernel> kernel = ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return {};
  EXPECT_TRUE(Verify(*kernel).ok()) << Verify(*kernel);
  const StatusOr<KernelCost> cost = CostOf(*kernel, binding);
  EXPECT_TRUE(cost.ok()) << cost.status();
  return cost.ok() ? *cost : KernelCost{};
}

TEST(Cost, BoxesThatOverlapCountOnce) {
  EXPECT_EQ(CoveredElements(std::vector<Box>{}), 0);
  EXPECT_EQ(CoveredElements(std::vector<Box>{{}, {}}), 1);
  EXPECT_EQ(CoveredElements(std::vector<Box>{{{0, 3}, {0, 64}}, {{2, 5}, {0, 64}}}), 5 * 64);
  EXPECT_EQ(CoveredElements(std::vector<Box>{{{0, 3}, {0, 5}}, {{7, 9}, {1, 4}}, {{1, 2}, {2, 11}}}),
            3 * 5 + 2 * 3 + 6);
  EXPECT_EQ(CoveredElements(std::vector<Box>{{{0, 3}, {5, 5}}}), 0);
}

TEST(Cost, Map) {
  const KernelCost cost = Cost(R"(
    kernel map (
      x : f32[M, 37] in
      h : f16[37] in
      y : f32[M, 37] out
    ) sym M in 1..512 {
      grid r in 0..M by 1 {
        vec c in 0..37 { y[r, c] = exp(x[r, c] * 0.5 + cast<f32>(h[c])) }
      }
    })",
                               {{"M", 11}});
  EXPECT_EQ(cost.flops, 3 * 11 * 37);  // multiply, add, exp
  EXPECT_EQ(cost.int8_ops, 0);
  EXPECT_EQ(cost.params[0].read, 11 * 37 * 4);
  EXPECT_EQ(cost.params[1].read, 37 * 2);
  EXPECT_EQ(cost.params[2].written, 11 * 37 * 4);
  EXPECT_EQ(cost.params[2].read, 0);
  EXPECT_EQ(cost.read(), 11 * 37 * 4 + 37 * 2);
  EXPECT_EQ(cost.written(), 11 * 37 * 4);
  EXPECT_FALSE(cost.estimate);
}

TEST(Cost, FlatMapWithAModulus) {
  const KernelCost cost = Cost(R"(
    kernel flat (
      x : f32[7, 13] in
      b : f32[13] in
      y : f32[91] out
    ) {
      grid e in 0..91 by 91 { vec i in 0..91 { y[i] = x[i / 13, i % 13] + b[i % 13] } }
    })");
  EXPECT_EQ(cost.flops, 91);
  EXPECT_EQ(cost.params[0].read, 91 * 4);
  EXPECT_EQ(cost.params[1].read, 13 * 4);
  EXPECT_EQ(cost.params[2].written, 91 * 4);
}

// Every third row, and every fortieth element of a row: what lies between is not touched, but for the rest of a line.
TEST(Cost, StridesLeaveOutRowsAndLines) {
  const KernelCost cost = Cost(R"(
    kernel strided (
      x : f32[33, 37] in
      o : f32[11, 37] out
    ) {
      grid r in 0..11 by 1 { vec c in 0..37 { o[r, c] = x[r * 3, c] } }
    })");
  EXPECT_EQ(cost.params[0].read, 11 * 37 * 4);
  const KernelCost lines = Cost(R"(
    kernel strided (
      y : f32[7, 400] in
      z : f32[7, 40] in
      p : f32[7, 10] out
    ) {
      grid r in 0..7 by 1 { vec c in 0..10 { p[r, c] = y[r, c * 40 + 3] + z[r, c * 4] } }
    })");
  EXPECT_EQ(lines.params[0].read, 7 * 10 * 64);
  EXPECT_EQ(lines.params[1].read, 7 * 37 * 4);  // less than a line apart
  // Two steps that share 2, rows of both parities, and one that a window fills.
  const KernelCost shared = Cost(R"(
    kernel strided (
      x : f32[60, 37] in
      y : f32[60, 37] in
      z : f32[60, 37] in
      o : f32[10, 37] out
    ) {
      grid r in 0..10 by 1 {
        vec c in 0..37 {
          o[r, c] = x[r * 4, c] + x[r * 6, c] + y[r * 2, c] + y[r * 2 + 1, c]
              + (sum for k in 0..3 { z[r * 6 + k * 2, c] })
        }
      }
    })");
  EXPECT_EQ(shared.params[0].read, 28 * 37 * 4);  // 0, 2, .. 54
  EXPECT_EQ(shared.params[1].read, 20 * 37 * 4);
  EXPECT_EQ(shared.params[2].read, 30 * 37 * 4);
}

TEST(Cost, Reduce) {
  const KernelCost cost = Cost(R"(
    kernel rms (
      x : f32[M, 53] in
      g : f32[53] in
      y : f32[M, 53] out
    ) sym M in 1..512 {
      grid r in 0..M by 1 {
        let ss = sum accs 4 vec c in 0..53 { x[r, c] * x[r, c] }
        let scale = 1 / sqrt(ss / 53 + 1e-5)
        vec c in 0..53 { y[r, c] = x[r, c] * scale * g[c] }
      }
    })",
                               {{"M", 5}});
  EXPECT_EQ(cost.flops, 5 * (2 * 53 + 4 + 2 * 53));
  EXPECT_EQ(cost.params[0].read, 5 * 53 * 4);  // twice over, but the same bytes
  EXPECT_EQ(cost.params[1].read, 53 * 4);
  EXPECT_EQ(cost.written(), 5 * 53 * 4);
}

TEST(Cost, LetsOfReductionsCountOnce) {
  const KernelCost cost = Cost(R"(
    kernel let (
      x : f32[M, 53] in
      n : f32[M, 53] in
      y : f32[M] out
    ) sym M in 1..512 {
      grid r in 0..M by 1 {
        y[r] = sum accs 4 vec c in 0..53 {
          let t = x[r, c] - 1.0  let last = c / 2  let u = t * t
          u * u + (sum for k in 0..last { n[r, k] })
        }
      }
    })",
                               {{"M", 5}});
  // c / 2 is 0, 0, 1, 1, .., 25, 25, 26
  EXPECT_EQ(cost.flops, 5 * (5 * 53 + 26 * 26));
  EXPECT_EQ(cost.params[0].read, 5 * 53 * 4);
  EXPECT_EQ(cost.params[1].read, 5 * 26 * 4);
  EXPECT_FALSE(cost.estimate);
}

// Panels of f32, one behind the other.
TEST(Cost, SomeOfManyPanels) {
  const KernelCost cost = Cost(R"(
    kernel panels (
      x : f32[6, 64] in
      w : f32[32, 448] @kn32 in
      y : f32[6, 224] out
    ) {
      grid n in 32..160 by 32 {
        tile t : f32[6, 32] = 0.0
        mma_f32 t += x[0 : +6, :], w[:, n / 32 * 64 : +64]
        map (i, j) in t [6, 32] { y[i, n + j] = t }
      }
    })");
  EXPECT_EQ(cost.flops, 2 * 6 * 64 * 128);
  EXPECT_EQ(cost.params[1].read, 4 * 64 * 32 * 4);
}

struct Format {
  const char* weight;
  const char* activation;  // of the integer product
};
constexpr Format kFormats[] = {{"q4_0", "q8_0"},  {"q8_0", "q8_0"}, {"q4_K", "q8_K"},   {"q5_K", "q8_K"},
                               {"q6_K", "q8_K"},  {"q5_0", "q8_0"}, {"q4_1", "q8_0"},   {"mxfp4", "q8_0"},
                               {"q2_K", "q8_K"},  {"q3_K", "q8_K"}, {"iq4_xs", "q8_K"}, {"iq2_xs", "q8_K"},
                               {"iq3_s", "q8_K"}, {"iq1_m", "q8_K"}};

TEST(Cost, ProductOfOneRowInEachFormat) {
  constexpr int64_t kN = 67, kK = 768;
  for (const Format& format : kFormats) {
    for (const bool exact : {false, true}) {
      const std::string text = absl::StrFormat(
          R"(
        kernel dot (
          w : %s[67, 768] @blocks in align 32
          x : %s in
          y : f32[1, 67] out
        ) {
          grid n in 0..67 by 32 {
            tile t : f32[1, 32] = 0.0
            dot_%s%s t += w[n : +32, :], x[:, :] ahead 8192
            map (i, j) in t [1, min(67 - n, 32)] { y[i, n + j] = t * 2.0 }
          }
        })",
          format.weight, exact ? std::string("f32[1, 768]") : absl::StrFormat("%s[1, 768] @planar", format.activation),
          format.weight, exact ? "_x" : "");
      const KernelCost cost = Cost(text);
      EXPECT_EQ(exact ? cost.flops - kN : cost.int8_ops, 2.0 * kN * kK) << text;
      EXPECT_EQ(exact ? cost.int8_ops : cost.flops - kN, 0) << text;  // the epilogue's multiplications
      EXPECT_EQ(cost.params[0].read, kN * RowBytes(*DTypeFromName(format.weight), kK)) << text;
      const int64_t row = exact ? kK * 4 : LayoutRowBytes(Layout::kPlanar, *DTypeFromName(format.activation), kK);
      EXPECT_EQ(cost.params[1].read, row) << text;
      EXPECT_EQ(cost.params[2].written, kN * 4) << text;
    }
  }
}

TEST(Cost, ProductOfManyRowsInEachFormat) {
  constexpr int64_t kM = 29, kN = 67, kK = 768;
  for (const Format& format : kFormats) {
    const std::string text = absl::StrFormat(R"(
      kernel mma (
        w : %1$s[67, 768] @blocks in align 32
        x : %2$s[M, 768] @planar in
        y : f32[M, 67] out
      ) sym M in 9..256 {
        grid n in 0..67 by 16 {
          alloc p : %1$s[16, 768] @panel16 scratch
          pack p = w[n : +16, :]
          prefetch w[n + 16 : +16, :]
          for m in 0..M by 12 {
            tile t : f32[12, 16] = 0.0
            mma_%1$s t += x[m : +12, :], p[: , :]
            map (i, j) in t [min(M - m, 12), min(67 - n, 16)] { y[m + i, n + j] = t }
          }
        }
      })",
                                             format.weight, format.activation);
    const KernelCost cost = Cost(text, {{"M", kM}});
    // A panel has 16 rows, missing ones too: five panels for 67 rows.
    EXPECT_EQ(cost.int8_ops, 2.0 * kM * 80 * kK) << text;
    EXPECT_EQ(cost.flops, 0);
    EXPECT_EQ(cost.params[0].read, kN * RowBytes(*DTypeFromName(format.weight), kK)) << text;
    EXPECT_EQ(cost.params[1].read, kM * LayoutRowBytes(Layout::kPlanar, *DTypeFromName(format.activation), kK)) << text;
    EXPECT_EQ(cost.params[2].written, kM * kN * 4) << text;
  }
}

// One query row against PAST + 1 keys of a cache of 127, 2 heads of keys for 4 of queries.
constexpr const char* kAttention = R"(
  kernel attention (
    q : f32[4, 64] in
    k : f16[127, 2, 64] in
    v : f16[127, 2, 64] in
    o : f32[4, 64] out
  ) sym PAST in 0..126 {
    grid kv in 0..2 {
      alloc lo : i32[2] scratch
      alloc hi : i32[2] scratch
      tile acc : f32[2, 64] = 0.0
      tile m : f32[2] = -inf
      tile l : f32[2] = 0.0
      for t in 0..PAST + 1 by 64 {
        for i in 0..2 {
          lo[i] = cast<i32>(0)
          hi[i] = cast<i32>(min(PAST + 1 - t, 64))
        }
        flash_step_f16 acc, m, l += q[kv * 2 : +2, :], k[t : +min(64, PAST + 1 - t), kv, :],
            v[t : +min(64, PAST + 1 - t), kv, :], lo[0 : +2], hi[0 : +2]
      }
      map (i, c) in acc [2, 64] { o[kv * 2 + i, c] = acc / l[i] }
    }
  })";

TEST(Cost, AttentionReadsTheRowsThatAreThere) {
  for (const int64_t past : {0, 3, 63, 64, 100, 126}) {
    const KernelCost cost = Cost(kAttention, {{"PAST", past}});
    const auto keys = static_cast<double>(past + 1);
    EXPECT_EQ(cost.flops, 4 * keys * (4 * 64 + 5) + 4 * 64) << past;
    EXPECT_EQ(cost.params[0].read, 4 * 64 * 4);
    EXPECT_EQ(cost.params[1].read, (past + 1) * 2 * 64 * 2) << past;
    EXPECT_EQ(cost.params[2].read, (past + 1) * 2 * 64 * 2) << past;
    EXPECT_EQ(cost.params[3].written, 4 * 64 * 4);
  }
}

TEST(Cost, GatherReadsTheRowsThatAreNamed) {
  const std::string text = R"(
    kernel gather (
      ids : i32[M] in align 4
      w   : q8_0[101, 96] @blocks in align 32
      y   : f32[M, 96] out
    ) sym M in 1..512 {
      grid b in 0..M by 8 {
        for r in b .. min(b + 8, M) {
          vec c in 0..96 { y[r, c] = decode(w, max(0, min(cast<i64>(ids[r]), 100)), c) }
        }
      }
    })";
  KernelCost cost = Cost(text, {{"M", 19}});
  EXPECT_EQ(cost.params[0].read, 19 * 4);
  EXPECT_EQ(cost.params[1].read, 19 * RowBytes(DType::kQ8_0, 96));
  EXPECT_EQ(cost.params[2].written, 19 * 96 * 4);
  EXPECT_EQ(cost.flops, 0);
  EXPECT_TRUE(cost.estimate);
  cost = Cost(text, {{"M", 211}});
  EXPECT_EQ(cost.params[1].read, 101 * RowBytes(DType::kQ8_0, 96));  // no more than there are
}

TEST(Cost, UpdateWritesTheRowsOfThisStep) {
  const KernelCost cost = Cost(R"(
    kernel update (
      x : f32[SEQ, 23] in
      s : f16[127, 23] inout
    ) sym PAST in 0..63, SEQ in 1..64 {
      grid r in 0..SEQ {
        vec c in 0..23 { s[PAST + r, c] = cast<f16>(x[r, c]) }
      }
    })",
                               {{"PAST", 17}, {"SEQ", 7}});
  EXPECT_EQ(cost.params[0].read, 7 * 23 * 4);
  EXPECT_EQ(cost.params[1].written, 7 * 23 * 2);
  EXPECT_EQ(cost.params[1].read, 0);
}

TEST(Cost, BranchesByTheGridCountWhereTheyRun) {
  const KernelCost cost = Cost(R"(
    kernel two (
      a : f32[3, 31] in
      b : f32[5, 31] in
      y : f32[8, 31] out
    ) {
      grid g in 0..8 {
        if g < 3 {
          vec c in 0..31 { y[g, c] = a[g, c] + 1.0 }
        } else {
          vec c in 0..31 { y[g, c] = b[g - 3, c] * 2.0 - 1.0 }
        }
      }
    })");
  EXPECT_EQ(cost.flops, 3 * 31 + 5 * 31 * 2);
  EXPECT_EQ(cost.params[0].read, 3 * 31 * 4);
  EXPECT_EQ(cost.params[1].read, 5 * 31 * 4);
  EXPECT_EQ(cost.params[2].written, 8 * 31 * 4);
}

TEST(Cost, OperationsBelongToTheirOrigin) {
  const KernelCost cost = Cost(R"(
    kernel add (
      x : f32[41] in
      y : f32[41] out
    ) {
      grid b in 0..1 by 1 {
        for i in 0..41 {   @[ffn: Add]
          let a = x[i] + 1.0
          let b2 = a * a * 3.0   @[ffn/norm: Mul]
          y[i] = b2
        }
      }
    })");
  ASSERT_EQ(cost.origins.size(), 2u);
  EXPECT_EQ(cost.origins[0], 41);
  EXPECT_EQ(cost.origins[1], 2 * 41);
}

TEST(Cost, EveryTileOpHasWork) {
  for (const TileOp* op : TileOps()) {
    ASSERT_NE(op->work, nullptr) << op->name;
    const std::vector<int64_t> sizes(op->sizes.size(), 3);
    const TileWork work = op->work(sizes);
    EXPECT_GT(work.flops + work.bf16_ops + work.int8_ops, 0) << op->name;
  }
}

TEST(Cost, SymbolsThatAreNotBoundAreAnError) {
  const StatusOr<Kernel> kernel = ParseKernel(kAttention);
  ASSERT_TRUE(kernel.ok());
  EXPECT_FALSE(CostOf(*kernel, {}).ok());
  EXPECT_FALSE(CostOf(*kernel, {{"PAST", 127}}).ok());
  EXPECT_TRUE(CostOf(*kernel, {{"PAST", 1}, {"OTHER", 1}}).ok());
}

}  // namespace
}  // namespace quern::kir
