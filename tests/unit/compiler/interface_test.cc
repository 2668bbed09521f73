// What other languages need of the interface: shapes before a run, graphs that go on after an error, sessions as bytes,
// the tables of blocks and ops.

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quern/graph.h"
#include "quern/ops.h"
#include "quern/quern.h"
#include "quern/sequences.h"

namespace quern {
namespace {

const std::string kModel = std::string(QUERN_SOURCE_DIR) + "/models/addition.gguf";

TEST(ProgramApi, SaysTheShapesOfOutputs) {
  Graph g("shapes");
  g.Symbol("N", 1, 64);
  g.Symbol("M", 1, 64);
  const Value x = g.Input("x", "f32[2*N + 1, 5]"), y = g.Input("y", "f32[M]");
  g.Output("left", g.Op("Neg", {x}));
  g.Output("right", g.Op("Exp", {y}));
  Result<Program> program = g.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const ConstTensor in_x = {"x", nullptr, 0, "f32", {7, 5}}, in_y = {"y", nullptr, 0, nullptr, {11}};
  Result<std::vector<std::vector<int64_t>>> shapes = program->OutputShapes({in_y, in_x});
  ASSERT_TRUE(shapes.ok()) << shapes.error();
  EXPECT_THAT(*shapes, testing::ElementsAre(testing::ElementsAre(7, 5), testing::ElementsAre(11)));
  EXPECT_EQ(program->OutputShapes({in_x}).code(), ErrorCode::kMissing);
  EXPECT_EQ(program->OutputShapes({in_x, in_y}, {{"M", 12}}).code(), ErrorCode::kShapeMismatch);
  const ConstTensor even = {"x", nullptr, 0, "f32", {8, 5}}, wide = {"y", nullptr, 0, nullptr, {65}};
  EXPECT_FALSE(program->OutputShapes({even, in_y}).ok());
  EXPECT_EQ(program->OutputShapes({in_x, wide}).code(), ErrorCode::kOutOfRange);
}

TEST(GraphApi, GoesOnAfterAnErrorThatWasTaken) {
  Graph g("again");
  const Value x = g.Input("x", "f32[3, 5]");
  EXPECT_TRUE(g.Recover().ok());
  g.Op("MatMul", {x, x});
  EXPECT_EQ(g.status().code(), ErrorCode::kShapeMismatch);
  EXPECT_EQ(g.Recover().code(), ErrorCode::kShapeMismatch);
  EXPECT_TRUE(g.status().ok());
  g.Output("y", g.Op("Neg", {x}));
  EXPECT_TRUE(g.status().ok()) << g.status().error();
  EXPECT_TRUE(g.Compile({.threads = 1}).ok());
}

TEST(SessionApi, IsSavedAndLoaded) {
  Result<Session> one = Session::Open(kModel, {.threads = 1, .context = 64});
  Result<Session> two = Session::Open(kModel, {.threads = 1, .context = 32});
  Result<Sequences> many = Sequences::Open(kModel, {.threads = 1, .context = 64}, {.most = 2});
  ASSERT_TRUE(one.ok() && two.ok() && many.ok());
  const std::vector<int32_t> ids = *one->Tokenize("27+58="), more = *one->Tokenize("1+1=", {.begin = false});
  ASSERT_TRUE(one->Step(ids).ok());
  Result<std::vector<uint8_t>> saved = one->Save();
  ASSERT_TRUE(saved.ok()) << saved.error();
  const std::vector<float> expected = *one->Step(more);
  ASSERT_TRUE(two->Step(more).ok());  // something else is there before
  std::vector<uint8_t> damaged(saved->begin(), saved->end() - 1);
  EXPECT_EQ(two->Load(damaged).code(), ErrorCode::kInvalid);
  damaged = *saved;
  damaged[8] ^= 1;  // how many states
  EXPECT_EQ(two->Load(damaged).code(), ErrorCode::kInvalid);
  EXPECT_EQ(two->position(), static_cast<int64_t>(more.size()));
  ASSERT_TRUE(two->Load(*saved).ok());
  EXPECT_EQ(two->position(), static_cast<int64_t>(ids.size()));
  EXPECT_EQ(*two->Step(more), expected);
  // A sequence of the model takes the same bytes, and more tokens than the context are refused.
  Result<int> sequence = many->Load(*saved);
  ASSERT_TRUE(sequence.ok()) << sequence.error();
  EXPECT_EQ(*many->Save(*sequence), *saved);
  while (one->position() <= 32) ASSERT_TRUE(one->Step(std::span(ids).first(1)).ok());
  EXPECT_EQ(two->Load(*one->Save()).code(), ErrorCode::kInvalid);
}

TEST(OpTable, HasWhatOneAddsByName) {
  const auto named = [](const std::vector<OpInfo>& table, const char* name) {
    return std::find_if(table.begin(), table.end(), [&](const OpInfo& op) { return op.name == name; });
  };
  const std::vector<OpInfo> ops = OpTable(), blocks = BlockTable();
  for (const char* leaf : {"Input", "Param", "Constant", "Region", "Mir"}) {
    EXPECT_EQ(named(ops, leaf), ops.end()) << leaf;
    EXPECT_EQ(named(blocks, leaf), blocks.end()) << leaf;
  }
  const auto branch = named(ops, "If"), softmax = named(ops, "Softmax"), linear = named(blocks, "Linear");
  ASSERT_TRUE(branch != ops.end() && softmax != ops.end() && linear != blocks.end());
  EXPECT_THAT(branch->bodies, testing::ElementsAre("then", "else"));
  EXPECT_EQ(softmax->attributes[0].kind, "int");
  EXPECT_EQ(softmax->attributes[0].default_value, "-1");
  EXPECT_FALSE(softmax->attributes[0].required);
  EXPECT_TRUE(linear->operands[2].optional);
}

}  // namespace
}  // namespace quern
