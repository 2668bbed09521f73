// Walks over statements: what they find in bodies of every kind.
#include "kir/walk.h"

#include <gtest/gtest.h>

#include <string>

#include "kir/build.h"
#include "kir/multiple.h"

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
