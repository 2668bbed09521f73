// Walks over statements: what they find in bodies of every kind.
#include "kir/walk.h"

#include <gtest/gtest.h>

#include <string>

#include "kir/build.h"
#include "kir/canonical.h"
#include "kir/multiple.h"
#include "kir/rewrite.h"

namespace quern::kir {
namespace {

namespace kb = build;
using namespace build::operators;

TEST(Walk, FindsWritesOfEveryKindInEveryBody) {
  const ExprRef zero = kb::Int(0), one = kb::Int(1);
  const Slice from = kb::SliceOf("src", {kb::Range(zero, one)}), to = kb::SliceOf("dst", {kb::Range(zero, one)});
  const StmtRef writes[] = {
      kb::Store("dst", {zero}, kb::At("src", DType::kF32, {zero})),
      kb::Copy(to, from),
      kb::Pack(to, from),
      kb::CallTile("mma_f32", {"dst"}, {from, from}),
  };
  for (const StmtRef& write : writes) {
    const Block bodies[] = {
        {write},
        {kb::For("i", zero, one, {write})},
        {kb::Thread(ThreadLevel::kBlock, "t", 32, {write})},
        {kb::If(kb::Bool(true), {}, {write})},
        {kb::Map({"i"}, {"t"}, {one}, {write})},
        {kb::Pipeline("i", zero, one, 1, 2, {write}, {})},
        {kb::Pipeline("i", zero, one, 1, 2, {}, {kb::For("j", zero, one, {write})})},
    };
    for (const Block& body : bodies) {
      EXPECT_TRUE(Writes(body, "dst"));
      EXPECT_FALSE(Writes(body, "src"));
      int statements = 0;
      ForEach(body, [&](const Stmt&) { ++statements; });
      EXPECT_EQ(Any(body, [&](const Stmt&) { return --statements == 0; }), true)
          << "the last one counted is the last one asked";
    }
  }
}

// A chain of nodes that use their argument twice: 2^length nodes as a tree.
ExprRef Doubled(ExprRef value, int length) {
  for (int i = 0; i < length; ++i) value = value * value;
  return value;
}

TEST(Walk, LooksAtSharedExpressionsOnce) {
  const ExprRef x = kb::At("x", DType::kF32, {kb::Ref("i")}), chain = Doubled(x, 200);
  int nodes = 0, uses = 0;
  const auto count = [&](const ExprRef& node) { ++nodes, uses += std::holds_alternative<NameRef>(node->node); };
  ForEachExpr(chain, count);
  EXPECT_EQ(nodes, 202);
  EXPECT_EQ(uses, 1);
  // Of all statements, bounds and slices of a block, and what a reduction holds.
  const ExprRef sum = kb::ReduceFor(ReduceOp::kSum, "k", kb::Ref("a"), kb::Ref("b"), kb::Ref("t", DType::kF32) * chain,
                                    {{"t", kb::Ref("c", DType::kF32)}});
  nodes = uses = 0;
  ForEachExpr({kb::For("i", kb::Int(0), kb::Ref("n"), {kb::Store("y", {kb::Ref("i")}, sum), kb::Let("z", chain)}),
               kb::Prefetch(kb::SliceOf("w", {kb::Range(kb::Ref("d"), kb::Ref("e"))}))},
              count);
  EXPECT_EQ(uses, 9) << "i, i, n, a, b, c, t, d, e";
  EXPECT_TRUE(AnyExpr(sum, [&](const ExprRef& node) { return node == x; }));
  EXPECT_FALSE(AnyExpr(sum, [&](const ExprRef& node) { return node->dtype == DType::kF64; }));
}

TEST(Rewrite, KeepsWhatIsShared) {
  const ExprRef x = kb::At("x", DType::kF32, {kb::Ref("i")}), y = kb::Ref("y", DType::kF32), chain = Doubled(x, 200);
  int offered = 0;
  const ExprRef made = Rewrite(chain, [&](const ExprRef& node) { return ++offered, node == x ? y : nullptr; });
  EXPECT_EQ(offered, 201) << "what is replaced is not looked into";
  int nodes = 0;
  ForEachExpr(made, [&](const ExprRef&) { ++nodes; });
  EXPECT_EQ(nodes, 201);
  EXPECT_TRUE(Same(made, Doubled(y, 200)));
  // After its parts: each product by a sum of what were its factors.
  const ExprRef sums = Rewrite(chain, nullptr, [](const ExprRef& node) -> ExprRef {
    const auto* apply = std::get_if<Apply>(&node->node);
    return apply == nullptr ? nullptr : apply->args[0] + apply->args[1];
  });
  ExprRef expected = x;
  for (int i = 0; i < 200; ++i) expected = expected + expected;
  EXPECT_TRUE(Same(sums, expected));
  const ExprRef contracted = kb::Contract(chain);
  EXPECT_EQ(kb::Contract(contracted), contracted);
}

TEST(CanonicalNames, LookAtSharedExpressionsOnce) {
  const ExprRef i = kb::Ref("i"), chain = Doubled(kb::At("x", DType::kF32, {i}), 200);
  Kernel kernel;
  kernel.params.resize(2);
  kernel.params[0].name = "x", kernel.params[1].name = "y";
  kernel.body = {kb::For("i", kb::Int(0), kb::Int(4), {kb::Store("y", {i}, chain), kb::Store("y", {i}, chain)})};
  const Kernel renamed = NormaliseNames(kernel);
  int nodes = 0;
  ForEachExpr(renamed.body, [&](const ExprRef&) { ++nodes; });
  EXPECT_EQ(nodes, 204) << "two bounds, an index and the chain";
  EXPECT_TRUE(Same(std::get<Store>(std::get<Loop>(renamed.body[0]->node).body[1]->node).value,
                   Doubled(kb::At("b0", DType::kF32, {kb::Ref("i0")}), 200)));
}

TEST(Rewrite, KeepsWhatDoesNotChange) {
  const ExprRef x = kb::At("x", DType::kF32, {kb::Ref("i")}), other = kb::At("z", DType::kF32, {kb::Ref("i")});
  const StmtRef kept = kb::Store("y", {kb::Ref("i")}, other),
                loop =
                    kb::WithOrigin(kb::For("i", kb::Int(0), kb::Int(4), {kept, kb::Store("y", {kb::Ref("i")}, x)}), 3);
  const Block made = Rewrite(Block{kept, loop}, [&](const ExprRef& node) { return node == x ? kb::Num(1) : nullptr; });
  EXPECT_EQ(made[0], kept);
  EXPECT_EQ(std::get<Loop>(made[1]->node).body[0], kept);
  EXPECT_NE(made[1], loop);
  EXPECT_EQ(made[1]->origin, 3);
  EXPECT_EQ(Rewrite(x, [](const ExprRef&) { return nullptr; }), x);
}

TEST(Multiple, OfIndices) {
  const auto of = [](const std::string& name) -> int64_t { return name == "k" ? 4 : 1; };
  const ExprRef k = kb::Ref("k"), n = kb::Ref("n");
  EXPECT_EQ(MultipleOf(k * 16.0 + 32.0, of), 32);
  EXPECT_EQ(MultipleOf(k * k, of), 16);
  EXPECT_EQ(MultipleOf(k + n, of), 1);
  EXPECT_EQ(MultipleOf(kb::Min(k * 8.0, kb::Int(48)), of), 16);
  EXPECT_EQ(MultipleOf(k / 2.0, of), 1) << "of quotients nothing is known";
  EXPECT_EQ(MultipleOf(int64_t{0}), kMostMultiple);
  EXPECT_EQ(MultipleOf(int64_t{-24}), 8);
  EXPECT_EQ(MultipleOf(Extent::Symbol("M") * Extent(12) + Extent(40)), 4);
}

}  // namespace
}  // namespace quern::kir
