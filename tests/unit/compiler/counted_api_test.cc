// Sizes that each run finds (Counted), through the public interface: memory for the most, and what there is.
#include <gtest/gtest.h>

#include <numeric>

#include "quern/compile.h"
#include "quern/graph.h"
#include "unit/compiler/expect_right.h"

namespace quern::testing {
namespace {

struct Numbers {
  Graph graph = Graph("numbers");
  Result<Program> program = Make();

  Result<Program> Make() {
    graph.Symbol("S", 1, 64);
    graph.Symbol("N", 0, 64);
    const Value x = graph.Input("x", "f32[S, 2]"), n = graph.Input("n", "i64[]");
    const Value some = graph.Op("Counted", {x, n}, {{"size", "N"}});
    graph.Output("some", some);
    graph.Output("all", graph.Op("Neg", {x}));
    return graph.Compile({.threads = 1});
  }
};

TEST(CountedApi, TheCallerGivesRoomForTheMostAndLearnsHowMuchItIs) {
  Numbers numbers;
  ASSERT_TRUE(numbers.program.ok()) << numbers.program.error();
  Program& program = *numbers.program;
  EXPECT_EQ(program.outputs()[0].type, "f32[N, 2]");
  EXPECT_EQ(program.LastShapes().code(), ErrorCode::kMissing);
  for (const int64_t size : {11, 1, 3}) {
    std::vector<float> x(size * 2), some(size * 2), all(size * 2);
    std::iota(x.begin(), x.end(), 1.0f);
    const std::vector<std::vector<int64_t>> rooms =
        *program.OutputShapes({In("x", x, {size, 2}), In("n", std::vector<int64_t>{0}, {})});
    EXPECT_EQ(rooms, (std::vector<std::vector<int64_t>>{{size, 2}, {size, 2}}));
    for (const int64_t count : {size, int64_t{0}, size - 1}) {
      std::fill(some.begin(), some.end(), -1.0f);
      const std::vector<int64_t> n = {count};
      const Result<void> ran = program.Run({In("x", x, {size, 2}), In("n", n, {})},
                                           {Out("some", some, {size, 2}), Out("all", all, {size, 2})});
      ASSERT_TRUE(ran.ok()) << ran.error();
      EXPECT_EQ((*program.LastShapes())[0], (std::vector<int64_t>{count, 2}));
      for (int64_t i = 0; i < size * 2; ++i) EXPECT_EQ(some[i], i < count * 2 ? x[i] : -1.0f);
    }
    for (const int64_t count : {size + 1, int64_t{-1}, int64_t{1000}}) {
      const std::vector<int64_t> n = {count};
      const Result<void> ran = program.Run({In("x", x, {size, 2}), In("n", n, {})},
                                           {Out("some", some, {size, 2}), Out("all", all, {size, 2})});
      // A variant of one size has a number in the place of S.
      const bool conflict = count == size + 1 && size > 1;
      EXPECT_EQ(ran.code(), conflict ? ErrorCode::kSizeConflict : ErrorCode::kOutOfRange) << ran.error();
      EXPECT_NE(ran.error().find(conflict ? "S >= N" : "symbol N"), std::string::npos) << ran.error();
      EXPECT_EQ((*program.LastShapes())[0], (std::vector<int64_t>{size - 1, 2}));
    }
  }
}

// A count that is none leaves states as they were.
TEST(CountedApi, StatesWaitForTheCount) {
  Graph graph("states");
  graph.Symbol("N", 0, 3);
  const Value x = graph.Input("x", "f32[1, 2]"), n = graph.Input("n", "i64[]");
  const Value cache = graph.Input("cache", "f32[3, 2]");
  const Value next = graph.Op("Update", {cache, x}, {{"axis", 0}, {"start", "1"}});
  graph.Carry("cache", next);
  graph.Output("some", graph.Op("Neg", {graph.Op("Counted", {next, n}, {{"size", "N"}})}));
  Result<Program> program = graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<float> some(6);
  const auto run = [&](float value, int64_t count) {
    const std::vector<float> row = {value, value};
    const std::vector<int64_t> number = {count};
    return program->Run({In("x", row, {1, 2}), In("n", number, {})}, {Out("some", some, {3, 2})}).ok();
  };
  const float* const state = reinterpret_cast<const float*>(program->State("cache")->data());
  ASSERT_TRUE(run(7, 2));
  EXPECT_EQ(some[2], -7);
  EXPECT_EQ(state[2], 7);
  EXPECT_FALSE(run(9, 4));
  EXPECT_EQ(state[2], 7);
  ASSERT_TRUE(run(5, 0));
  EXPECT_EQ(state[3], 5);
}

TEST(CountedApi, ACountThatSizesDoNotGoWithIsSaid) {
  Graph graph("conflict");
  graph.Symbol("S", 1, 64);
  graph.Symbol("N", 0, 64);
  const Value x = graph.Input("x", "f32[S]"), n = graph.Input("n", "i64[]");
  graph.Output("y", graph.Op("Add", {graph.Op("Counted", {x, n}, {{"size", "N"}}), x}));
  Result<Program> program = graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> values = {1, 2, 3};
  std::vector<float> y(3);
  const auto run = [&](int64_t count) {
    const std::vector<int64_t> number = {count};
    return program->Run({In("x", values, {3}), In("n", number, {})}, {Out("y", y, {3})});
  };
  EXPECT_TRUE(run(3).ok());
  EXPECT_EQ(y, (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(run(2).code(), ErrorCode::kSizeConflict);
}

// A loop of three trips, each of which cuts x to its row of n and m, which have to be one; a state behind it.
struct Trips {
  Graph graph = Graph("trips"), body = Graph("body");
  std::vector<float> y = std::vector<float>(6);
  Result<Program> program = Make();

  Result<Program> Make() {
    for (Graph* to : {&graph, &body}) {
      to->Symbol("S", 1, 64);
      to->Symbol("M", 0, 64);
      to->Symbol("N", 2, 64);
    }
    const Value h = body.Input("h", "f32[1, 2]"), n = body.Input("n", "i64[]"), m = body.Input("m", "i64[]");
    const Value x = body.Input("x", "f32[S, 2]");
    const Value left = body.Op("Counted", {x, m}, {{"size", "M"}}), right = body.Op("Counted", {x, n}, {{"size", "N"}});
    const Value sum = body.Op("Reduce", {body.Op("Add", {left, right})},
                              {{"op", "sum"}, {"axes", std::vector<int64_t>{0}}, {"keep_dim", true}});
    body.Output("h", body.Op("Add", {h, sum}));
    body.Output("y", body.Op("Reshape", {sum}, {{"shape", "2"}}));
    const Value whole = graph.Input("x", "f32[S, 2]"), cache = graph.Input("cache", "f32[1, 2]");
    const std::vector<Value> made =
        graph.Ops("Scan", {cache, graph.Input("n", "i64[3]"), graph.Input("m", "i64[3]"), whole},
                  {{"carries", 1}, {"xs", 2}, {"length", "3"}}, {}, {&body});
    graph.Carry("cache", made[0]);
    graph.Output("y", made[1]);
    return graph.Compile({.threads = 1});
  }
  Result<void> Run(const std::vector<int64_t>& n, const std::vector<int64_t>& m) {
    const std::vector<float> x = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50};
    return program->Run({In("x", x, {5, 2}), In("n", n, {3}), In("m", m, {3})}, {Out("y", y, {3, 2})});
  }
};

TEST(CountedApi, IsNotCompiledForDevices) {
  const Numbers numbers;
  for (const char* target : {"nvptx64", "metal"}) {
    const Result<CompiledFiles> files =
        CompileGraph(numbers.graph, {}, {.folder = ::testing::TempDir(), .target = target});
    EXPECT_EQ(files.code(), ErrorCode::kUnsupported) << target;
    EXPECT_NE(files.error().find("the size N is found by each run (Counted), which programs for devices cannot do"),
              std::string::npos)
        << files.error();
    const Result<CompiledFiles> loop =
        CompileGraph(Trips().graph, {}, {.folder = ::testing::TempDir(), .target = target});
    EXPECT_EQ(loop.code(), ErrorCode::kUnsupported) << target;
    EXPECT_NE(loop.error().find("is found by each run (Counted), which programs for devices cannot do"),
              std::string::npos)
        << loop.error();
  }
}

TEST(CountedApi, NoRunIsGivenTheSize) {
  Numbers numbers;
  ASSERT_TRUE(numbers.program.ok()) << numbers.program.error();
  std::vector<float> x(6), some(6), all(6);
  const Result<void> ran = numbers.program->Run({In("x", x, {3, 2}), In("n", std::vector<int64_t>{2}, {})},
                                                {Out("some", some, {3, 2}), Out("all", all, {3, 2})}, {{"N", 2}});
  EXPECT_EQ(ran.code(), ErrorCode::kUnknownName) << ran.error();
}

TEST(CountedApi, EachTripFindsItsSizes) {
  Trips trips;
  ASSERT_TRUE(trips.program.ok()) << trips.program.error();
  // Guards are of S, the one size that is given: 2..8 and all, as N is 2 or more.
  EXPECT_EQ(trips.program->Variants().size(), 2u);
  const float* const state = reinterpret_cast<const float*>(trips.program->State("cache")->data());
  const auto sum = [](int64_t n) { return static_cast<float>(n * (n + 1)); };
  const std::vector<int64_t> first = {3, 5, 2}, second = {2, 2, 5};
  Result<void> ran = trips.Run(first, first);
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_EQ(trips.y, (std::vector<float>{sum(3), 10 * sum(3), sum(5), 10 * sum(5), sum(2), 10 * sum(2)}));
  EXPECT_EQ(*trips.program->LastShapes(), (std::vector<std::vector<int64_t>>{{3, 2}}));
  const float before = sum(3) + sum(5) + sum(2);
  EXPECT_EQ(state[0], before);
  // Sizes of one trip that do not go together; a trip that says too few, or more than there are.
  ran = trips.Run({3, 4, 2}, first);
  EXPECT_EQ(ran.code(), ErrorCode::kSizeConflict) << ran.error();
  ran = trips.Run({3, 1, 2}, {3, 1, 2});
  EXPECT_EQ(ran.code(), ErrorCode::kOutOfRange) << ran.error();
  EXPECT_NE(ran.error().find("symbol N"), std::string::npos) << ran.error();
  ran = trips.Run({3, 6, 2}, {3, 6, 2});
  EXPECT_EQ(ran.code(), ErrorCode::kSizeConflict) << ran.error();
  EXPECT_EQ(state[0], before) << "a run that failed has left its state";
  ran = trips.Run(second, second);
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_EQ(trips.y, (std::vector<float>{sum(2), 10 * sum(2), sum(2), 10 * sum(2), sum(5), 10 * sum(5)}));
  EXPECT_EQ(state[1], 10 * (before + 2 * sum(2) + sum(5)));
}

TEST(CountedApi, NoRunIsGivenTheSizeOfATrip) {
  Trips trips;
  ASSERT_TRUE(trips.program.ok()) << trips.program.error();
  const std::vector<float> x(10);
  const std::vector<int64_t> n = {2, 2, 2};
  const Result<void> ran = trips.program->Run({In("x", x, {5, 2}), In("n", n, {3}), In("m", n, {3})},
                                              {Out("y", trips.y, {3, 2})}, {{"N", 2}});
  EXPECT_EQ(ran.code(), ErrorCode::kUnknownName) << ran.error();
  EXPECT_NE(ran.error().find("there is no symbol N"), std::string::npos) << ran.error();
  trips.graph.Specialise("N", 2, 8);
  EXPECT_EQ(trips.graph.Compile({.threads = 1}).code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace quern::testing
