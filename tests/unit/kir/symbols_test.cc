// Symbols, chunks, and the layout of scratch.
#include "kir/symbols.h"

#include <string>

#include "gtest/gtest.h"
#include "kernel_files.h"
#include "kir/build.h"
#include "kir/declare_sizes.h"
#include "kir/scratch.h"
#include "kir/tile_op.h"

namespace quern::kir {
namespace {

Kernel WithBody(const std::string& body) {
  return KernelText(
      "kernel k ( x : f32[M, 64] in\n y : f32[M, 64] out ) sym M in 1..100, S = ceil(M / 8) { grid r in 0..M { " +
      body + " } }");
}

TEST(SymbolsTest, BindsDerivedSymbols) {
  const Kernel kernel = WithBody("");
  for (const auto& [m, s] : {std::pair<int64_t, int64_t>{1, 1}, {7, 1}, {8, 1}, {9, 2}, {100, 13}}) {
    const auto bound = BindSymbols(kernel, {{"M", m}});
    ASSERT_TRUE(bound.ok());
    EXPECT_EQ(bound->at("S"), s) << m;
  }
  EXPECT_EQ(BindSymbols(kernel, {}).status().message(), "kernel k: symbol M is not bound");
  EXPECT_EQ(BindSymbols(kernel, {{"M", 0}}).status().message(), "kernel k: symbol M is 0, outside 1..100");
  EXPECT_EQ(BindSymbols(kernel, {{"M", 101}}).status().message(), "kernel k: symbol M is 101, outside 1..100");
  EXPECT_EQ(RangesOf(kernel).at("S"), (SymbolRange{1, 13}));
}

// What is known of sizes that a kernel does not name makes proofs long: all of it, or what is of its own quotients.
TEST(SymbolsTest, DeclaresWhatIsKnownOfSizes) {
  const Extent s = Extent::Symbol("S"), half = s.CeilDividedBy(2), quarter = half.CeilDividedBy(2);
  const std::vector<SizeFact> facts = {half - quarter * Extent(2), (s - half) * Extent(3), (half - 2) * Extent(5)};
  for (const bool own : {false, true}) {
    Kernel kernel;
    Param& param = kernel.params.emplace_back();
    param.name = "x";
    param.type = {DType::kF32, {half, Extent(37)}, Layout::kRow};
    DeclareSizes(kernel, {{"S", {1, 1000}}}, facts, own);
    const Extent ceil0 = Extent::Symbol("ceil0"), ceil1 = Extent::Symbol("ceil1");
    std::vector<SizeFact> expected = {s - ceil0, ceil0 - 2};
    if (!own) expected.insert(expected.begin(), ceil0 - ceil1 * Extent(2));
    EXPECT_EQ(kernel.facts, expected) << own;
    EXPECT_EQ(kernel.symbols.size(), own ? 2 : 3);
  }
}

TEST(SymbolsTest, CountsChunks) {
  EXPECT_EQ(*GridChunks(KernelFile("gate_up_silu"), {{"M", 9}}), 22);
  EXPECT_EQ(*GridChunks(KernelFile("rms_norm_q8"), {{"M", 17}}), 17);
  EXPECT_EQ(*GridChunks(KernelFile("attn_decode"), {{"n", 513}, {"P", 8192}}), 8);
  EXPECT_EQ(*GridChunks(KernelFile("attn_decode"), {{"n", 512}, {"P", 8192}}), 4);
  Kernel kernel = WithBody("");
  kernel.grid[0].step = 7;
  EXPECT_EQ(*GridChunks(kernel, {{"M", 14}}), 2);
  EXPECT_EQ(*GridChunks(kernel, {{"M", 15}}), 3);
  kernel.grid[0].low = build::Int(20);
  EXPECT_EQ(*GridChunks(kernel, {{"M", 15}}), 0);
  kernel.grid[0].step = 0;
  EXPECT_EQ(GridChunks(kernel, {{"M", 15}}).status().message(), "kernel k: grid r has step 0");
}

TEST(SymbolsTest, EvaluatesIndices) {
  const ExprRef m = build::Ref("M");
  EXPECT_EQ(
      *EvaluateIndex(build::Call(Op::kMin, {build::Call(Op::kMul, {m, build::Int(3)}), build::Int(10)}), {{"M", 2}}),
      6);
  EXPECT_EQ(EvaluateIndex(m, {}).status().message(), "M is not bound");
  EXPECT_EQ(EvaluateIndex(build::At("b", DType::kI64, {m}), {{"M", 2}}).status().message(),
            "b[M] is not an expression of symbols");
}

TEST(ScratchTest, NestsAndShares) {
  const ScratchLayout layout = LayoutScratch(
      WithBody("alloc a : f32[100] scratch for i in 0..2 { tile t : f32[3, 5] = 0 alloc b : i8[M, 64] scratch alloc c "
               ": f32[1] scratch } "
               "for i in 0..2 { alloc d : f32[64] scratch } alloc e : f32[M] scratch alloc f : f32[1] scratch"));
  EXPECT_EQ(layout.offset.at("a"), Extent(0));
  EXPECT_EQ(layout.offset.at("t"), Extent(448));
  EXPECT_EQ(layout.offset.at("b"), Extent(512));
  EXPECT_EQ(layout.offset.at("c"), Extent::Symbol("M") * 64 + 512);
  EXPECT_EQ(layout.offset.at("d"), Extent(448));
  EXPECT_EQ(layout.offset.at("e"), Extent(448));
  EXPECT_EQ(layout.offset.at("f"), Extent(448 + 448));  // 4 M is no multiple of 64: its bound, 400, rounded up
  EXPECT_EQ(layout.workspace, 0);
}

TEST(ScratchTest, BytesFollowTheBinding) {
  const Kernel kernel = WithBody("alloc a : f32[M, 64] scratch for i in 0..2 { alloc b : f32[700] scratch }");
  EXPECT_EQ(*ScratchBytes(kernel, {{"M", 1}}), 256 + 2816);
  EXPECT_EQ(*ScratchBytes(kernel, {{"M", 3}}), 3 * 256 + 2816);
  EXPECT_EQ(*ScratchBytes(kernel, {}), 100 * 256 + 2816);
  EXPECT_EQ(*ScratchBytes(WithBody(""), {}), 0);
  Kernel open = WithBody("alloc a : f32[M, 64] scratch");
  open.symbols[0].range.high = INT64_MAX;
  EXPECT_EQ(*ScratchBytes(open, {{"M", 5}}), 5 * 256);
  EXPECT_EQ(ScratchBytes(open, {}).status().message(), "kernel k: scratch of 256*M bytes has no upper bound");
}

TEST(ScratchTest, WorkspacesOfTileCallsShareTheStart) {
  const Kernel kernel = KernelFile("attn_decode");
  const ScratchLayout layout = LayoutScratch(kernel);
  const TileOp& op = *FindTileOp("flash_step_f16");
  const int64_t sizes[] = {2, 256, 64};
  EXPECT_GE(layout.workspace, op.workspace_bytes(sizes));
  EXPECT_LT(layout.workspace, op.workspace_bytes(sizes) + 64);
  EXPECT_EQ(layout.offset.at("o"), Extent(layout.workspace));
}

}  // namespace
}  // namespace quern::kir
