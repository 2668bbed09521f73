// The verifier: what it accepts, and one failing kernel with the exact text for each of its diagnostics.
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernel_files.h"
#include "kir/build.h"
#include "kir/kir.h"

namespace quern::kir {
namespace {

namespace kb = build;

// A kernel `k` over one buffer of each kind, with this body for each row r.
std::string Rows(const std::string& body, const std::string& more_params = "") {
  return R"(kernel k (
    x : f32[M, 2048] in
    y : f32[M, 2048] out
    z : f32[64] inout
    ids : i32[M] in
    w : q4_K[512, 512] @blocks in
    q : q8_K[M, 512] @planar in
    p : q8_K[M, 512] @planar out
    )" + more_params +
         R"(
  ) sym M in 1..512, H = ceil(M / 2) {
    grid r in 0..M {
      )" +
         body + R"(
    }
  })";
}

std::string ErrorOf(const Kernel& kernel) { return std::string(Verify(kernel).message()); }

// The kernel of Rows with statements that the text form cannot say.
std::string ErrorOfBody(Block body) {
  Kernel kernel = KernelText(Rows(""));
  kernel.body = std::move(body);
  return ErrorOf(kernel);
}

ExprRef Raw(Expr::Node node, DType dtype) { return std::make_shared<const Expr>(Expr{std::move(node), dtype}); }
StmtRef RawStmt(Stmt::Node node) { return std::make_shared<const Stmt>(Stmt{std::move(node)}); }

TEST(VerifyTest, AcceptsTheWorkedKernels) {
  for (const char* name : {"rms_norm_q8", "down_residual", "gate_up_silu", "attn_decode"}) {
    const Status status = Verify(KernelFile(name));
    EXPECT_TRUE(status.ok()) << name << ": " << status.message();
  }
}

// A fact that bounds no symbol is needed in one case of a limit and not in the other: the table has a row.
TEST(VerifyTest, FactsHoldInTheirCases) {
  const std::string text = R"(kernel gather (
    at : i64[33] in
    table : f32[16*B*P] in
    y : f32[33] out
  ) sym B in 1..4, P in 0..23 FACT {
    grid g in 0..33 by 8192 seq {
      vec c in g .. min(g + 8192, 33) { y[c] = table[max(0, min(at[c], B * P * 16 - 1))] }
    }
  })";
  const auto with = [&](const std::string& fact) {
    std::string changed = text;
    return ErrorOf(KernelText(changed.replace(changed.find("FACT"), 4, fact)));
  };
  EXPECT_EQ(with("where 16*B*P - 1 >= 0"), "");
  EXPECT_NE(with("").find("not proved to be below 16*B*P"), std::string::npos);
  EXPECT_NE(with("where 16*B*P + 1 >= 0").find("not proved to be below 16*B*P"), std::string::npos);
}

// What a kernel says of its symbols does not take bounds away: t / 32 of whole steps of 32 below 13 is 0.
TEST(VerifyTest, WholeStepsBesideFacts) {
  EXPECT_EQ(ErrorOf(KernelText(R"(kernel k (
    x : f32[32, 15] in
    y : f32[13, 15] out
  ) sym S in 1..32, T in 1..9 where 20 - S*T >= 0 {
    grid t in 0..13 by 32 seq {
      vec c in 0..15 { y[0, c] = x[0, t / 32 * 15 + c] }
    }
  })")),
            "");
}

// A square of rows that are fewer than it has: an index of a map is below the extent of its tile, too.
TEST(VerifyTest, SquaresOfFewerRows) {
  EXPECT_EQ(ErrorOf(KernelText(R"(kernel k (
    y : f32[S, 64] out
  ) sym S in 9..32 {
    grid m in 0..S by 64, n in 0..64 by 64 {
      thread w in 0..4 @ warp {
        tile t : f32[32, 32] = 0.0
        map (i, j) in t [min(32, S - (m + w / 2 * 32)), min(32, 64 - (n + w % 2 * 32))] {
          y[m + w / 2 * 32 + i, n + w % 2 * 32 + j] = t
        }
      }
    }
  })")),
            "");
}

TEST(VerifyTest, AcceptsWhatRangesAndGuardsProve) {
  const char* bodies[] = {
      // the partner of an element in the other half of its group of 32: quotients are whole
      "vec c in 0..2048 { y[r, c] = x[r, c / 32 * 32 + (c % 32 + 16) % 32] }",
      // ragged tiles of rows and columns
      "for c in 0..2048 by 31 { for j in 0..min(31, 2048 - c) { y[r, c + j] = x[r, c + j] } }",
      "vec c in 0..2047 { y[r, c + 1] = x[r, c] }",
      "if r + 1 < M { vec c in 0..2048 { y[r, c] = x[r + 1, c] } }",
      "if (r >= 1) & (r < M) { vec c in 0..2048 { y[r, c] = x[r - 1, c] } }",
      "if r == 0 { y[r, 0] = 1 } else { y[r, 0] = x[r - 1, 0] }",
      "if !(r < 5) { y[r, 0] = x[r - 5, 0] }",
      // clamps, division, masks, shifts
      "y[r, 0] = x[min(r + 7, M - 1), 2047]",
      "y[r, 0] = x[max(r - 7, 0), 0]",
      "y[r, 0] = x[r / 2, 0] + x[r % M, 0] + x[r >> 3, r & 255]",
      "y[r, 0] = cast<f32>(7 / select(r == 0, 1, r) + 7 % select(r - 3 == 0, -1, r - 3))",
      "vec c in 0..2048 { y[r, c] = x[r, c / 32 * 32 + c % 32] }",
      "vec c in 0..1024 { y[r, c << 1] = x[r, 2 * c + 1] }",
      "y[r, 0] = x[select(r < 3, 0, r), 0]",
      "y[r, 0] = x[H - 1, 0] + x[(M - 1) / 2, 0]",
      "y[r, 0] = sum for t in 0..M * H { x[t / H, t % H] }",
      // data
      "y[r, 0] = x[cast<i64>(ids[r]), 0] else 0",
      "y[r, 0] = x[max(min(cast<i64>(ids[r]), M - 1), 0), 0]",
      "let id = cast<i64>(ids[r]) if (0 <= id) & (id < M) { y[r, 3] = x[id, 3] }",
      // scratch
      "alloc n : f32[2048] scratch vec c in 0..2048 { n[c] = x[r, c] } y[r, 0] = sum vec c in 0..2048 { n[c] }",
      "alloc n : f32[4] scratch if r < 3 { n[0] = 1 } else { n[0] = 2 } y[r, 0] = n[0]",
      // lets of reductions: their values are known, and two may have one name
      "y[r, 0] = sum accs 4 vec c in 0..1024 { let d = 2 * c; let e = d + 1; x[r, d] * x[r, e] }",
      "y[r, 0] = (sum for c in 0..4 { let d = c; x[r, d] }) + sum for c in 0..4 { let d = 2 * c; x[r, d] }",
      "let id = sum for c in 0..4 { let d = c / 2; d } y[r, 0] = x[max(min(id, M - 1), 0), 0]",
      // writers apart by blocks, by columns, by guards
      "vec c in 0..1024 { y[r, 2 * c] = 1 y[r, 2 * c + 1] = 2 }",
      "vec c in 0..1024 { y[r, c] = 1 y[r, c + 1024] = 2 }",
      "vec c in 0..2048 { let t = x[r, c] y[r, c] = t * t }",
      "var s : f32 = 0 for c in 0..2048 { s := s + x[r, c] } y[r, 0] = s",
      // values that run along
      "var s : f32 = 0 vec c in 0..2048 { let t = s s := s + x[r, c] y[r, c] = s * t }",
      "var s : f32 = 0 vec c in 0..2048 { s := max(s, x[r, c]) y[r, c] = s }",
      "tile t : f32[4, 8] = 1 map (i, j) in t [4, 8] { y[r, 8 * i + j] = t + t[i, 7 - j] }",
      "unroll c in 0..64 { y[r, c] = 0 }",
      "prefetch x[r + 9, 5000 : +64]",
  };
  for (const char* body : bodies) EXPECT_EQ(ErrorOf(KernelText(Rows(body))), "") << body;
}

TEST(VerifyTest, AcceptsFlatAndBlockedGrids) {
  for (const char* text : {
           "kernel k ( y : f32[12, 35] out ) { grid i in 0..12 by 4, j in 0..35 { for a in 0..4 { y[i + a, j] = 1 } } "
           "}",
           "kernel k ( y : f32[420] out ) { grid i in 0..12, j in 0..35 { y[i * 35 + j] = 1 } }",
           "kernel k ( y : f32[420] out ) { grid j in 0..35, i in 0..12 { y[i * 35 + j] = 1 } }",
           "kernel k ( y : f32[N] out ) sym N in 1..1000000 { grid b in 0..N by 512 {\n"
           "  vec i in b..min(b + 512, N) { y[i] = 1 } } }",
           // Of two chunks that differ one is not the first, and writes nothing.
           "kernel k ( y : f32[3136] out ) { grid q0 in 0..56 by 46 { for q in q0..min(q0 + 46, 2) {\n"
           "  vec c in 0..16 { y[q * 56 + c] = 1 } vec c in 16..48 { y[q * 56 + c] = 2 } } } }",
           "kernel k ( y : f32[3136] out ) { grid q0 in 0..56 by 46 { for q in max(q0, 54)..min(q0 + 46, 56) {\n"
           "  vec c in 0..16 { y[q * 56 + c] = 1 } vec c in 16..48 { y[q * 56 + c] = 2 } } } }",
           "kernel k ( y : f32[3, 1] out ) { grid i in 0..3, j in 0..1 { y[i, 0] = 1 } }",
           "kernel k ( x : f32[M, 7] in\n y : f32[M, 7] out inplace x ) sym M in 1..9 {\n"
           "  grid r in 0..M { vec c in 0..7 { y[r, c] = x[r, c] * 2 } } }",
       }) {
    EXPECT_EQ(ErrorOf(KernelText(text)), "") << text;
  }
}

TEST(VerifyTest, RefusesTheLastTwoWriters) {
  for (const char* text : {"kernel k ( y : f32[8] out ) { grid i in 0..2 { y[0] = 1 } }",
                           "kernel k ( y : f32[8] out ) { grid i in 0..8 by 4 { y[i / 8] = 1 } }",
                           "kernel k ( y : f32[8] out ) { grid i in 0..7 { y[min(i, 5)] = 1 } }",
                           "kernel k ( y : f32[8] out ) { grid i in 0..7 { y[max(i, 1)] = 1 } }"}) {
    EXPECT_NE(ErrorOf(KernelText(text)).find("not proved to touch different elements"), std::string::npos) << text;
  }
}

struct Case {
  const char* body;
  const char* error;  // after "kernel k: "
};

TEST(VerifyTest, RefusesPartnersOutsideTheirGroup) {
  for (const char* body : {"vec c in 0..2048 { y[r, c] = x[r, c / 32 * 32 + (c % 32 + 16) % 33] }",
                           "vec c in 0..2048 { y[r, c] = x[r, c / 32 * 32 + (c % 32 + 16) % 32 - 1] }",
                           "vec c in 0..2048 { y[r, c] = x[r, (c + 32) / 32 * 32 + (c % 32 + 16) % 32] }",
                           // what a guard says of a quotient does not outlive the guard
                           "for c in 0..2048 { if c < 1024 { y[r, c / 32 * 64] = 1.0 } y[r, c / 32 * 64] = 0.0 }"}) {
    EXPECT_NE(ErrorOf(KernelText(Rows(body))).find("is not proved"), std::string::npos) << body;
  }
}

TEST(VerifyTest, RefusesStatements) {
  const Case cases[] = {
      // bounds
      {"y[r, 0] = x[r, 2048]", "y[r, 0] = x[r, 2048]: index 2048 of x is not proved to be below 2048"},
      {"y[r, 0] = x[r - 1, 0]", "y[r, 0] = x[r - 1, 0]: index r - 1 of x is not proved to be at least 0"},
      {"y[r + 1, 0] = 0", "y[r + 1, 0] = 0.0: index r + 1 of y is not proved to be below M"},
      {"for c in 0..2048 by 31 { for j in 0..31 { y[r, c + j] = 0 } }",
       "y[r, c + j] = 0.0: index c + j of y is not proved to be below 2048"},
      {"if r < M { y[r, 0] = x[r + 1, 0] }", "y[r, 0] = x[r + 1, 0]: index r + 1 of x is not proved to be below M"},
      {"y[r, 0] = x[cast<i64>(ids[r]), 0]",
       "y[r, 0] = x[cast<i64>(ids[r]), 0]: index cast<i64>(ids[r]) of x is not proved to be at least 0"},
      {"y[r, 0] = x[H, 0]", "y[r, 0] = x[H, 0]: index H of x is not proved to be below M"},
      {"y[r, 0] = x[(r - 8) / 8, 0]",
       "y[r, 0] = x[(r - 8) / 8, 0]: index (r - 8) / 8 of x is not proved to be at least 0"},
      {"tile t : f32[4] = 0 y[r, 0] = t[4]", "y[r, 0] = t[4]: index 4 of t is not proved to be below 4"},
      {"y[r, 0] = decode(w, 512, 0)", "y[r, 0] = decode(w, 512, 0): index 512 of w is not proved to be below 512"},
      {"y[r, 0] = sum for t in 0..M * H + 1 { x[t / H, 0] }",
       "y[r, 0] = sum for t in 0 .. M * H + 1 { x[t / H, 0] }: index t / H of x is not proved to be below M"},
      {"y[r, 0] = cast<f32>(7 / (r - 3))",
       "y[r, 0] = cast<f32>(7 / (r - 3)): divisor r - 3 is not proved to differ from 0"},
      {"y[r, 0] = cast<f32>(7 % r)", "y[r, 0] = cast<f32>(7 % r): divisor r is not proved to differ from 0"},
      {"y[r, 0] = cast<f32>(7 / select(r == 0, 0, r))",
       "y[r, 0] = cast<f32>(7 / select(r == 0, 0, r)): divisor select(r == 0, 0, r) is not proved to differ from 0"},
      {"y[r, 0] = cast<f32>(7 / select(r == 1, 1, r))",
       "y[r, 0] = cast<f32>(7 / select(r == 1, 1, r)): divisor select(r == 1, 1, r) is not proved to differ from 0"},
      {"y[r, 0] = cast<f32>(7 / select(r == 0, 1, r - 1))",
       "y[r, 0] = cast<f32>(7 / select(r == 0, 1, r - 1)): divisor select(r == 0, 1, r - 1) is not proved to differ "
       "from 0"},
      // written before read
      {"y[r, 0] = y[r, 1]", "y[r, 0] = y[r, 1]: y is read before anything is written to it"},
      {"alloc n : f32[4] scratch y[r, 0] = n[0]", "y[r, 0] = n[0]: n is read before anything is written to it"},
      {"alloc n : f32[4] scratch if r < 3 { n[0] = 1 } y[r, 0] = n[0]",
       "y[r, 0] = n[0]: n is read before anything is written to it"},
      {"alloc n : f32[4] scratch if r < 3 { y[r, 1] = 1 } else { n[0] = 1 } y[r, 0] = n[0]",
       "y[r, 0] = n[0]: n is read before anything is written to it"},
      {"alloc n : f32[512] scratch pack p[r, :] = n[:]",
       "pack p[r, :] = n: n is read before anything is written to it"},
      {"alloc n : f32[512] scratch vec c in 0..511 { n[c] = 1 } pack p[r, :] = n[:]",
       "pack p[r, :] = n: n is read from 0 to 511 in dimension 0, and written from 0 to 510 only"},
      {"alloc n : f32[4] scratch n[1] = 1 y[r, 0] = n[0]",
       "y[r, 0] = n[0]: n is read from 0 to 0 in dimension 0, and written from 1 to 1 only"},
      {"y[r, 0] = decode(p, r, 0)", "y[r, 0] = decode(p, r, 0): p is read before anything is written to it"},
      // one writer
      {"z[0] = 1", "z[0] = 1.0: two iterations of the grid are not proved to touch different elements of z"},
      {"z[r / 8] = 1", "z[r / 8] = 1.0: two iterations of the grid are not proved to touch different elements of z"},
      {"vec c in 0..2048 { y[r, 0] = x[r, c] }",
       "y[r, 0] = x[r, c]: two iterations of vec c in 0..2048 are not proved to touch different elements of y"},
      {"vec c in 0..2047 { y[r, c] = 1 y[r, c + 1] = 2 }",
       "y[r, c] = 1.0: an iteration of vec c in 0..2047 may write an element of y that another writes in y[r, c + 1] = "
       "2.0"},
      {"y[r, 5] = 0 vec c in 0..2047 { let t = y[r, c + 1] y[r, c] = t }",
       "y[r, c] = t: an iteration of vec c in 0..2047 may write an element of y that another reads in let t = y[r, c + "
       "1]"},
      {"tile t : f32[4, 8] = 0 map (i, j) in t [4, 8] { y[r, i + j] = t }",
       "y[r, i + j] = t: two iterations of map (i, j) in t [4, 8] are not proved to touch different elements of y"},
      {"var s : f32 = 0 vec c in 0..2048 { s := x[r, c] }",
       "s := x[r, c]: s is assigned in every iteration of vec c in 0..2048"},
      {"var s : f32 = 0 vec c in 0..2048 { s := s - x[r, c] }",
       "s := s - x[r, c]: s is assigned in every iteration of vec c in 0..2048"},
      {"var s : f32 = 0 vec c in 0..2048 { s := s + x[r, c] * s }",
       "s := s + x[r, c] * s: s is assigned in every iteration of vec c in 0..2048"},
      {"x[r, 0] = 1", "x[r, 0] = 1.0: x is an input"},
      // loops
      {"unroll c in 0..65 { y[r, c] = 0 }",
       "unroll c in 0..65: unroll needs a constant number of at most 64 iterations"},
      {"unroll c in 0..M { y[r, c] = 0 }", "unroll c in 0..M: unroll needs a constant number of at most 64 iterations"},
      {"vec c in 0..64 { vec d in 0..32 { y[r, c * 32 + d] = 0 } }",
       "vec d in 0..32: a vec loop inside vec c in 0..64"},
      {"vec c in 0..64 { y[r, c] = sum vec d in 0..32 { x[r, d] } }",
       "y[r, c] = sum vec d in 0..32 { x[r, d] }: a vec reduction inside vec c in 0..64"},
      {"vec c in 0..64 { for d in 0..c { y[r, c] = 0 } }",
       "for d in 0..c: a loop bound differs between iterations of vec c in 0..64"},
      {"vec c in 0..64 { if c < 3 { y[r, c] = 0 } }",
       "if c < 3: the condition differs between iterations of vec c in 0..64"},
      {"vec c in 0..64 { let e = c + 1 if e < 3 { y[r, c] = 0 } }",
       "if e < 3: the condition differs between iterations of vec c in 0..64"},
      {"vec c in 0..64 { prefetch x[c, 0 : +16] }",
       "prefetch x[c, 0 : +16]: the start of a slice differs between iterations of vec c in 0..64"},
      {"vec c in 0..64 { prefetch x[r, 0 : +c] }",
       "prefetch x[r, 0 : +c]: the extent of a slice differs between iterations of vec c in 0..64"},
      {"vec c in 0..64 { alloc n : f32[4] scratch }", "alloc n : f32[4]: an alloc inside vec c in 0..64"},
      {"vec c in 0..64 { tile t : f32[4] = 0 }", "tile t : f32[4] = 0.0: a tile inside vec c in 0..64"},
      {"tile t : f32[4] = 0 map (i) in t [4] { pack p[r, :] = x[r, 0 : +512] }",
       "pack p[r, :] = x[r, 0 : +512]: a pack inside map (i) in t [4]"},
      {"tile t : f32[4] = 0 vec c in 0..2 { map (i) in t [4] { y[r, i] = t } }",
       "map (i) in t [4]: a map inside vec c in 0..2"},
      {"tile t : f32[4] = 0 map (i) in t [5] { y[r, i] = t }",
       "map (i) in t [5]: extent 5 is not proved to be at most the 4 of tile t"},
      {"tile t : f32[4] = 0 map (i) in t [M - r] { y[r, i] = t }",
       "map (i) in t [M - r]: extent M - r is not proved to be at most the 4 of tile t"},
      // slices and packs
      {"pack p[r, :] = x[r, 0 : +256]", "pack p[r, :] = x[r, 0 : +256]: rows of 256 to rows of 512"},
      {"pack p[r, :] = x[r : +2, 0 : +512]", "pack p[r, :] = x[r : +2, 0 : +512]: at most 2 rows to 1"},
      {"pack p[r, 128 : +256] = x[r, 0 : +256]",
       "pack p[r, 128 : +256] = x[r, 0 : +256]: p[r, 128 : +256] is not proved to cut p between blocks of 256"},
      {"pack p[r, 0 : +128] = x[r, 0 : +128]",
       "pack p[r, 0 : +128] = x[r, 0 : +128]: p[r, 0 : +128] is not proved to cut p between blocks of 256"},
      {"pack p[r, :] = x[M, 0 : +512]", "pack p[r, :] = x[M, 0 : +512]: index M of x is not proved to be below M"},
      {"pack p[r, :] = q[r, :]", "pack p[r, :] = q[r, :]: no pack leads from q8_K @planar to q8_K @planar"},
      {"pack q[r, :] = x[r, 0 : +512]", "pack q[r, :] = x[r, 0 : +512]: q is an input"},
      {"pack p[r, :] = x[0 : +r, 0 : +512]",
       "pack p[r, :] = x[0 : +r, 0 : +512]: extent r is not proved to be at least 1"},
      {"alloc n : f32[512] scratch pack n = w[r % 512, :] pack p[:, r] = n",
       "pack p[:, r] = n: p[:, r] takes one element of a block"},
      {"pack p[r, :] = x[:, r]", "pack p[r, :] = x[:, r]: the last dimension of x[:, r] is not a range"},
      {"alloc g : q4_K[16, 512] @panel16 scratch pack g = w[0 : +17, :]", "pack g = w[0 : +17, :]: 17 rows to 16"},
      {"alloc g : q4_K[16, 512] @panel16 scratch pack g[0 : +8, :] = w[0 : +8, :]",
       "pack g[0 : +8, :] = w[0 : +8, :]: g[0 : +8, :] cuts a panel"},
      {"alloc g : f32[32, 512] @kn32 scratch pack g[0 : +32, 128 : +256] = x[r : +1, 0 : +256]",
       "pack g[0 : +32, 128 : +256] = x[r : +1, 0 : +256]: g[0 : +32, 128 : +256] cuts a panel"},
      {"alloc g : f32[32, 512] @kn32 scratch tile t : f32[1, 32] = 0 "
       "mma_f32 t += x[r : +1, 0 : +256], g[1 : +31, 256 : +256]",
       "mma_f32 t += x[r : +1, 0 : +256], g[1 : +31, 256 : +256]: g[1 : +31, 256 : +256] cuts a panel"},
      {"alloc n : f32[2, 2, 512] scratch n[0, 0, 0] = 0 alloc m : q8_K[2, 2, 512] @planar scratch pack m = n",
       "pack m = n: a pack takes a row or a rectangle"},
      {"alloc n : f32[512, 32] scratch pack n[:, 0 : +17] = x[r : +1, 0 : +512]",
       "pack n[:, 0 : +17] = x[r : +1, 0 : +512]: 1 rows to 17"},
      {"alloc n : f32[64, 512] scratch pack n[0 : +8, 0 : +1] = x[r : +1, :]",
       "pack n[0 : +8, 0 : +1] = x[r : +1, :]: rows of 2048 to columns of 8"},
      {"alloc n : f32[2048] scratch pack n = x[r, :]", "pack n = x[r, :]: a pack turns a rectangle"},
      {"alloc n : f32[8, 8] scratch for i in 0..8 { for j in 0..8 { n[i, j] = 0 } } pack n = n",
       "pack n = n: n is turned into itself"},
      // tile calls
      {"tile t : f32[1, 32] = 0 dot_q4_K t += w[0 : +32, :], q[r : +1, 0 : +256]",
       "dot_q4_K t += w[0 : +32, :], q[r : +1, 0 : +256]: q[r : +1, 0 : +256] cuts a planar row"},
      {"tile t : f32[1, 32] = 0 dot_q4_K t += w[0 : +32, 0 : +256], q[r : +1, :]",
       "dot_q4_K t += w[0 : +32, 0 : +256], q[r : +1, :]: size k of dot_q4_K is 256 in w and 512 in x"},
      {"tile t : f32[1, 32] = 0 dot_q4_K t += w[0 : +33, :], q[r : +1, :]",
       "dot_q4_K t += w[0 : +33, :], q[r : +1, :]: size n of dot_q4_K is 33 in w, more than the 32 of tile t"},
      {"tile t : f32[1, 32] = 0 dot_q4_K t += w[0 : +32, :], q[r, :]",
       "dot_q4_K t += w[0 : +32, :], q[r, :]: operand x of dot_q4_K has 2 ranged dimensions, not 1"},
      {"tile t : f32[1, 32] = 0 dot_q4_K t += q, w",
       "dot_q4_K t += q, w: operand w of dot_q4_K is q4_K @blocks, not q8_K @planar"},
      {"tile t : f32[32] = 0 dot_q4_K t += w[0 : +32, :], q[r : +1, :]",
       "dot_q4_K t += w[0 : +32, :], q[r : +1, :]: tile y of dot_q4_K is f32 of 2 dimensions, not f32 of 1"},
      {"tile o : f32[1, 64] = 0 tile m : f32[1] = 0 alloc h : i32[1] scratch h[0] = 0\n"
       "flash_step_f32 o, m, m += x[r : +1, 0 : +64], x[r : +8, 0 : +64], x[r : +8, 0 : +64], h, h",
       "flash_step_f32 o, m, m += x[r : +1, 0 : +64], x[r : +8, 0 : +64], x[r : +8, 0 : +64], h, h: tile m is used "
       "twice"},
      {"tile t : f32[2, 8] = 0 alloc n : f32[2, 64] scratch n[0, 0] = 0 dot_f32 t += x[r : +8, 0 : +64], x[r : +2, 0 : "
       "+60]",
       "dot_f32 t += x[r : +8, 0 : +64], x[r : +2, 0 : +60]: size k of dot_f32 is 64 in w and 60 in x"},
      {"alloc n : f32[2, 64] scratch n[0, 0] = 0 alloc s : f32[4, 64] scratch s[0, 0] = 0 tile o : f32[4, 64] = 0\n"
       "tile m, l : f32[4] = 0 alloc h : i32[2] scratch h[0] = 0 flash_step_f32 o, m, l += x[r : +2, 0 : +64], n, n, "
       "h, h",
       "flash_step_f32 o, m, l += x[r : +2, 0 : +64], n, n, h, h: size r of flash_step_f32 is at most 2 in q and 2 in "
       "lo"},
      // scratch
      {"alloc n : f32[2048, 1024] scratch", "needs up to 8388608 bytes of scratch, more than 4194304"},
      {"for i in 0..3 { alloc n : f32[M, 1024] scratch alloc m : f32[M, 1024] scratch alloc l : f32[4] scratch }",
       "needs up to 4194368 bytes of scratch, more than 4194304"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorOf(KernelText(Rows(c.body))), std::string("kernel k: ") + c.error) << c.body;
  }
}

TEST(VerifyTest, RefusesDeclarations) {
  const Case cases[] = {
      {"kernel k ( y : f32[M - 5, 3] out ) sym M in 1..9 { grid r in 0..1 { y[0, 0] = 1 } }",
       "y : f32[M - 5, 3]: the extent M - 5 may be negative"},
      {"kernel k ( y : q4_K[4, 300] @blocks in ) { grid r in 0..1 { } }",
       "y : q4_K[4, 300] @blocks: 300 is not a multiple of the block of 256"},
      {"kernel k ( y : q4_K[4, M] @blocks in ) sym M in 256..256 { grid r in 0..1 { } }",
       "y : q4_K[4, M] @blocks: rows of this layout have a constant number of elements"},
      {"kernel k ( y : f32[31, 8] @kn32 in ) { grid r in 0..1 { } }", "y : f32[31, 8] @kn32: a panel has 32 rows"},
      {"kernel k ( y : q8_0[32, 64] @panel16 in ) { grid r in 0..1 { } }",
       "y : q8_0[32, 64] @panel16: a panel has 16 rows"},
      {"kernel k ( y : f32[1000000, 1000000, 1000000, 1000000] in ) { grid r in 0..1 { } }",
       "y : f32[1000000, 1000000, 1000000, 1000000]: too large"},
      {"kernel k ( x : f32[4] in\n y : f32[5] out inplace x ) { grid r in 0..4 { y[r] = x[r] } }",
       "y may share memory with x only if one is an output and the other an input of its type"},
      {"kernel k ( x : f32[4] in\n y : f32[4] out inplace x\n z : f32[4] out inplace x ) { grid r in 0..4 { y[r] = "
       "x[r] } }",
       "two outputs share the memory of x"},
      {"kernel k ( x : f32[4] in\n y : f32[4] out inplace x ) { grid r in 0..4 { y[r] = x[3 - r] } }",
       "y[r] = x[3 - r]: y may share memory with x, but they are accessed at [3 - r] and [r]"},
      {"kernel k ( x : f32[4] in\n y : f32[4] out inplace x\n z : f32[4] out ) { grid r in 0..4 { y[r] = 1 z[r] = x[r] "
       "} }",
       "z[r] = x[r]: x is read after y, which may share its memory, was written"},
      {"kernel k ( y : f32[4] out ) { grid r in 0..4, s in 0..3 { y[r] = 1 } }",
       "y[r] = 1.0: two iterations of the grid are not proved to touch different elements of y"},
      {"kernel k ( y : f32[37] out ) { grid r in 0..4, s in 0..10 { y[9 * r + s] = 1 } }",
       "y[9 * r + s] = 1.0: two iterations of the grid are not proved to touch different elements of y"},
      {"kernel k ( y : f32[N] out ) sym N in 1..1000 { grid b in 0..N by 512 { vec i in b..min(b + 513, N) { y[i] = 1 "
       "} } }",
       "y[i] = 1.0: two iterations of the grid are not proved to touch different elements of y"},
  };
  for (const Case& c : cases) EXPECT_EQ(ErrorOf(KernelText(c.body)), std::string("kernel k: ") + c.error) << c.body;
}

// Kernels built in C++ that the parser would not let through.
TEST(VerifyTest, RefusesWhatTextCannotSay) {
  const ExprRef r = kb::Ref("r"), zero = kb::Int(0), four = kb::Int(4), one = kb::Num(1);
  const ExprRef ids = kb::At("ids", DType::kI32, {r});
  auto store = [&](ExprRef value) { return Block{RawStmt(Store{"y", {r, zero}, std::move(value)})}; };
  auto slice = [](std::string buffer) { return Slice{std::move(buffer), {}}; };
  const BufferType f32_4{DType::kF32, {4}, Layout::kRow};
  const std::vector<std::pair<std::string, Block>> cases = {
      {"y[r, 0] = a: a is not defined", store(kb::Ref("a", DType::kF32))},
      {"y[r, 0] = y: y is not a scalar", store(kb::Ref("y", DType::kF32))},
      {"y[r, 0] = r: r is i64, used as f32", store(kb::Ref("r", DType::kF32))},
      {"y[r, 0] = r: value r is i64, not f32", store(r)},
      {"y[r, 0] = ids[r]: ids is i32, used as f32", store(Raw(Load{"ids", {r}, nullptr}, DType::kF32))},
      {"y[r, 0] = r[0]: r is not a buffer", store(Raw(Load{"r", {zero}, nullptr}, DType::kF32))},
      {"y[r, 0] = x[r]: x has 2 dimensions, indexed by 1", store(Raw(Load{"x", {r}, nullptr}, DType::kF32))},
      {"y[r, 0] = x[ids[r], 0]: index ids[r] is i32, not i64",
       store(Raw(Load{"x", {ids, zero}, nullptr}, DType::kF32))},
      {"y[r, 0] = x[r, 9999] else 0: value after else 0 is i64, not f32",
       store(Raw(Load{"x", {r, kb::Int(9999)}, zero}, DType::kF32))},
      {"y[r, 0] = w[0, 0]: w has the format q4_K and is read by decode",
       store(Raw(Load{"w", {zero, zero}, nullptr}, DType::kF32))},
      {"y[r, 0] = decode(x, r, 0): decode of x, which is f32", store(Raw(Decode{"x", {r, zero}}, DType::kF32))},
      {"y[r, 0] = decode(w, 0, 0): decode gives f32, not f64", store(Raw(Decode{"w", {zero, zero}}, DType::kF64))},
      {"let a = 300i8: 300 is no i8", {RawStmt(Let{"a", Raw(Const{0, 300}, DType::kI8)})}},
      {"let a = 0q4_K: an expression of dtype q4_K", {RawStmt(Let{"a", Raw(Const{}, DType::kQ4_K)})}},
      {"let a = 1.0 + r: + needs operands of one dtype, got f32 and i64",
       {RawStmt(Let{"a", Raw(Apply{Op::kAdd, {one, r}}, DType::kF32)})}},
      {"let a = r + r: + gives i64, not f32", {RawStmt(Let{"a", Raw(Apply{Op::kAdd, {r, r}}, DType::kF32)})}},
      {"let a = bits<i32>(r): bits<i32> of i64, which has another size",
       {RawStmt(Let{"a", Raw(Bits{r}, DType::kI32)})}},
      {"let a = sum accs 17 vec i in 0..4 { 1.0 }: 17 accumulators, of 1 to 16",
       {RawStmt(Let{"a", Raw(Reduce{ReduceOp::kSum, true, 17, "i", zero, four, {}, one}, DType::kF32)})}},
      {"let a = max for i in 0..4 { r < 4 }: a reduction of bool",
       {RawStmt(Let{"a", Raw(Reduce{ReduceOp::kMax, false, 1, "i", zero, four, {}, kb::Call(Op::kLt, {r, four})},
                             DType::kBool)})}},
      {"let a = sum for i in 0..4 { 1.0 }: reduced value 1.0 is f32, not f64",
       {RawStmt(Let{"a", Raw(Reduce{ReduceOp::kSum, false, 1, "i", zero, four, {}, one}, DType::kF64)})}},
      {"let a = sum for i in 0..4 { let r = 0; 1.0 }: the name r is in use",
       {RawStmt(Let{"a", kb::ReduceFor(ReduceOp::kSum, "i", zero, four, one, {{"r", zero}})})}},
      {"let a = sum for i in 0..4 { let b = c; let c = 0; 1.0 }: c is not defined",
       {RawStmt(Let{"a", kb::ReduceFor(ReduceOp::kSum, "i", zero, four, one, {{"b", kb::Ref("c")}, {"c", zero}})})}},
      {"let b = t: t is not defined",  // what a reduction lets ends with it
       {RawStmt(Let{"a", kb::ReduceFor(ReduceOp::kSum, "i", zero, four, one, {{"t", zero}})}),
        RawStmt(Let{"b", kb::Ref("t")})}},
      {"let r = 0: the name r is in use", {RawStmt(Let{"r", zero})}},
      {"let  = 0: a name is empty", {RawStmt(Let{"", zero})}},
      {"a statement is missing", {nullptr}},
      {"r := 0: r is not a var", {RawStmt(Assign{"r", zero})}},
      {"a := 0: value 0 is i64, not f32", {RawStmt(Var{"a", one}), RawStmt(Assign{"a", zero})}},
      {"if 0: condition 0 is i64, not bool", {RawStmt(If{zero, {}, {}})}},
      {"for i in 0..4 by 0: the step is not positive",
       {RawStmt(Loop{LoopKind::kFor, "i", zero, four, 0, VecTail::kMask, {}})}},
      {"for i in 0..1.0: bound 1.0 is f32, not i64",
       {RawStmt(Loop{LoopKind::kFor, "i", zero, one, 1, VecTail::kMask, {}})}},
      {"w[0, 0] = 1.0: w has the format q4_K and is written by pack", {RawStmt(Store{"w", {zero, zero}, one})}},
      {"alloc x : f32[4]: the name x is used for two buffers", {RawStmt(Alloc{"x", f32_4})}},
      {"alloc a : f32[9, 9, 9, 9, 9, 9, 9, 9, 9]: a : f32[9, 9, 9, 9, 9, 9, 9, 9, 9]: more than 8 dimensions",
       {RawStmt(Alloc{"a", {DType::kF32, std::vector<Extent>(9, 9), Layout::kRow}})}},
      {"alloc a : f32[K]: a : f32[K]: K is not a symbol",
       {RawStmt(Alloc{"a", {DType::kF32, {Extent::Symbol("K")}, Layout::kRow}})}},
      {"tile t : f32[M] = 1.0: the extent M of a tile is not constant",
       {RawStmt(Tile{"t", {DType::kF32, {Extent::Symbol("M")}, Layout::kRow}, one})}},
      {"tile t : f32 = 1.0: a tile is dense and has dimensions",
       {RawStmt(Tile{"t", {DType::kF32, {}, Layout::kRow}, one})}},
      {"tile t : f32[4] = 0: initial value 0 is i64, not f32", {RawStmt(Tile{"t", f32_4, zero})}},
      {"map (i) in x [4]: x is not a tile", {RawStmt(Map{{"i"}, {"x"}, {four}, {}})}},
      {"map (i, j) in t [4, 4]: tile t has 1 dimensions, not 2",
       {RawStmt(Tile{"t", f32_4, one}), RawStmt(Map{{"i", "j"}, {"t"}, {four, four}, {}})}},
      {"map (i, j) in t [4]: 2 indices for 1 extents and 1 tiles",
       {RawStmt(Tile{"t", f32_4, one}), RawStmt(Map{{"i", "j"}, {"t"}, {four}, {}})}},
      {"map (i) in t [1.0]: extent 1.0 is f32, not i64",
       {RawStmt(Tile{"t", f32_4, one}), RawStmt(Map{{"i"}, {"t"}, {one}, {}})}},
      {"no_such_op t += x: no tile op is named no_such_op", {RawStmt(TileCall{"no_such_op", {"t"}, {slice("x")}, {}})}},
      {"dot_f32 z, z += x, x: dot_f32 takes 1 tiles, not 2",
       {RawStmt(TileCall{"dot_f32", {"z", "z"}, {slice("x"), slice("x")}, {}})}},
      {"dot_f32 z += x: dot_f32 takes 2 operands, not 1", {RawStmt(TileCall{"dot_f32", {"z"}, {slice("x")}, {}})}},
      {"dot_f32 z += x, x: z is not a tile", {RawStmt(TileCall{"dot_f32", {"z"}, {slice("x"), slice("x")}, {}})}},
      {"dot_f32 t += x[0 : +1, :], x[0 : +1, :] speed 4: dot_f32 has no attribute speed",
       {kb::Tile("t", {1, 1}), RawStmt(TileCall{"dot_f32",
                                                {"t"},
                                                {kb::SliceOf("x", {kb::Range(zero, kb::Int(1)), kb::All()}),
                                                 kb::SliceOf("x", {kb::Range(zero, kb::Int(1)), kb::All()})},
                                                {{"speed", four}}})}},
      {"dot_f32 t += x[0 : +1, :], x[0 : +1, :] ahead 4, ahead 4: attribute ahead is given twice",
       {kb::Tile("t", {1, 1}), RawStmt(TileCall{"dot_f32",
                                                {"t"},
                                                {kb::SliceOf("x", {kb::Range(zero, kb::Int(1)), kb::All()}),
                                                 kb::SliceOf("x", {kb::Range(zero, kb::Int(1)), kb::All()})},
                                                {{"ahead", four}, {"ahead", four}}})}},
      {"dot_f32 t += x[0 : +1, :], x[0 : +1, :] ahead 1.0: attribute 1.0 is f32, not i64",
       {kb::Tile("t", {1, 1}), RawStmt(TileCall{"dot_f32",
                                                {"t"},
                                                {kb::SliceOf("x", {kb::Range(zero, kb::Int(1)), kb::All()}),
                                                 kb::SliceOf("x", {kb::Range(zero, kb::Int(1)), kb::All()})},
                                                {{"ahead", one}}})}},
      {"prefetch x[r]: x has 2 dimensions, indexed by 1", {RawStmt(Prefetch{{"x", {{r, nullptr}}}})}},
      {"prefetch x: x has an extent without a start", {RawStmt(Prefetch{{"x", {{nullptr, four}, {}}}})}},
      {"prefetch x[1.0, :]: start 1.0 is f32, not i64", {RawStmt(Prefetch{{"x", {{one, nullptr}, {}}}})}},
  };
  for (const auto& [error, body] : cases) EXPECT_EQ(ErrorOfBody(body), "kernel k: " + error);

  const std::vector<std::pair<std::string, std::function<void(Kernel&)>>> kernels = {
      {"the grid has 0 dimensions, of 1 to 3", [](Kernel& k) { k.grid.clear(); }},
      {"the grid has 4 dimensions, of 1 to 3", [](Kernel& k) { k.grid.resize(4, k.grid[0]); }},
      {"grid r in 0..M by 0: the step is not positive", [](Kernel& k) { k.grid[0].step = 0; }},
      {"the name r is in use", [](Kernel& k) { k.grid.resize(2, k.grid[0]); }},
      {"bound 1.0 is f32, not i64", [](Kernel& k) { k.grid[0].high = kb::Num(1); }},
      {"an expression is missing", [](Kernel& k) { k.grid[0].high = nullptr; }},
      {"symbol M has the range 9..3", [](Kernel& k) { k.symbols[0].range = {9, 3}; }},
      {"symbol M has the range -1..3", [](Kernel& k) { k.symbols[0].range = {-1, 3}; }},
      {"symbol H has the divisor 0", [](Kernel& k) { k.symbols[1].derived->second = 0; }},
      {"symbol H needs H, which is not declared before it",
       [](Kernel& k) { k.symbols[1].derived->first = Extent::Symbol("H"); }},
      {"symbol H: 1000000000000000*M is too large",
       [](Kernel& k) { k.symbols[1].derived->first = Extent::Symbol("M") * 1000000000000000; }},
      {"x: the alignment 3 is not a power of two", [](Kernel& k) { k.params[0].align = 3; }},
      {"the name x is used for two buffers", [](Kernel& k) { k.params[1].name = "x"; }},
      {"the name M is in use", [](Kernel& k) { k.params[1].name = "M"; }},
      {"x : q4_K[4, 512] @planar: the dtype does not have this layout",
       [](Kernel& k) { k.params[0].type = {DType::kQ4_K, {4, 512}, Layout::kPlanar}; }},
      {"x : f32[R]: R is not a symbol", [](Kernel& k) { k.params[0].type.dims = {Extent::Symbol("R")}; }},
  };
  for (const auto& [error, change] : kernels) {
    Kernel kernel = KernelText(Rows(""));
    change(kernel);
    EXPECT_EQ(ErrorOf(kernel), "kernel k: " + error);
  }
}

}  // namespace
}  // namespace quern::kir
