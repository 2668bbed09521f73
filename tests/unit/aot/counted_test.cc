// Sizes that steps find, ahead of time: what a caller gives, learns and is told. unit/steps/counted_test.cc holds the
// results themselves to the JIT's.
#include <gtest/gtest.h>

#include <algorithm>

#include "quern/abi.h"
#include "unit/aot/compiled_model.h"

namespace quern::testing {
namespace {

using OneSize = int32_t(void*, const void* const*, void* const*, int64_t s, int64_t* n);

TEST(CountedAheadOfTime, OneModelFindsAnotherSizeInEachStep) {
  Graph graph("numbers");
  graph.Symbol("S", 1, 64);
  graph.Symbol("N", 0, 64);
  const Value x = graph.Input("x", "f32[S, 3]"), n = graph.Input("n", "i64[]");
  const Value some = graph.Op("Counted", {x, n}, {{"size", "N"}});
  graph.Output("some", graph.Op("Neg", {some}));
  graph.Output("sum", graph.Op("Reduce", {some}, {{"op", "sum"}, {"axes", std::vector<int64_t>{0}}}));
  graph.Output("all", graph.Op("Abs", {x}));
  const Compiled made(graph);
  ASSERT_NE(made.model(), nullptr);
  EXPECT_NE(made.header().find("output 0: some  f32[N, 3]\n"), std::string::npos) << made.header();
  EXPECT_NE(made.header().find(" * Sizes that every step finds:\n *   N at most S\n"), std::string::npos);
  EXPECT_NE(made.header().find("outputs, int64_t S, int64_t* N);\n"), std::string::npos);
  const auto bytes_of = made.Function<int64_t(int64_t, int64_t)>("output_bytes");
  const auto step = made.Function<OneSize>("step");
  for (const int64_t size : {11, 1, 37}) {
    EXPECT_EQ(bytes_of(0, size), size * 3 * 4);  // room for the most
    std::vector<float> in(size * 3), out(size * 3), all(size * 3), sum(3);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i + 1);
    int64_t count = 0, found = 0;
    const void* const inputs[] = {in.data(), &count};
    void* const outputs[] = {out.data(), sum.data(), all.data()};
    for (const int64_t most : {size, int64_t{0}, size - 1, size, size / 2}) {
      std::fill(out.begin(), out.end(), 7.0f);
      count = most;
      ASSERT_EQ(step(made.model(), inputs, outputs, size, &found), QUERN_OK) << size << ", " << count;
      EXPECT_EQ(found, count);
      float first = 0;
      for (int64_t i = 0; i < count; ++i) first += in[i * 3];
      EXPECT_EQ(sum[0], first);
      for (int64_t i = 0; i < size * 3; ++i) EXPECT_EQ(out[i], i < count * 3 ? -in[i] : 7.0f);
      found = -1;
      EXPECT_EQ(step(made.model(), inputs, outputs, size, nullptr), QUERN_OK);
    }
    for (const int64_t none : {size + 1, int64_t{65}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
      count = none;
      // A variant of one size has a number in the place of S.
      const bool in_range = none >= 0 && none <= (size == 1 ? 1 : 64);
      EXPECT_EQ(step(made.model(), inputs, outputs, size, &found),
                in_range ? QUERN_ERROR_SIZES : QUERN_ERROR_SYMBOL_RANGE)
          << size << ", " << none;
      EXPECT_EQ(found, -1) << "a size that is none";
    }
    EXPECT_EQ(step(made.model(), inputs, outputs, 65, &found), QUERN_ERROR_SYMBOL_RANGE);
  }
}

TEST(CountedAheadOfTime, StatesWaitForTheCount) {
  Graph graph("states");
  graph.Symbol("N", 0, 3);
  const Value x = graph.Input("x", "f32[1, 2]"), n = graph.Input("n", "i64[]");
  const Value cache = graph.Input("cache", "f32[3, 2]");
  const Value next = graph.Op("Update", {cache, x}, {{"axis", 0}, {"start", "1"}});
  graph.Carry("cache", next);
  graph.Output("some", graph.Op("Neg", {graph.Op("Counted", {next, n}, {{"size", "N"}})}));
  graph.Output("was", graph.Op("Abs", {cache}));
  const Compiled made(graph);
  ASSERT_NE(made.model(), nullptr);
  const auto step = made.Function<int32_t(void*, const void* const*, void* const*, int64_t*)>("step");
  std::vector<float> some(6), was(6);
  const auto run = [&](float value, int64_t count) {
    const float row[] = {value, value};
    const void* const inputs[] = {row, &count};
    void* const outputs[] = {some.data(), was.data()};
    return step(made.model(), inputs, outputs, nullptr);
  };
  ASSERT_EQ(run(7, 3), QUERN_OK);
  EXPECT_EQ(some[2], -7);
  EXPECT_EQ(run(9, 4), QUERN_ERROR_SYMBOL_RANGE);
  ASSERT_EQ(run(5, 2), QUERN_OK);
  EXPECT_EQ(some[2], -5);
  EXPECT_EQ(was[2], 7);
  ASSERT_EQ(run(3, 0), QUERN_OK);
  EXPECT_EQ(was[2], 5);
}

// Found sizes that have to be equal, or larger than another.
TEST(CountedAheadOfTime, ACountThatSizesDoNotGoWithIsSaid) {
  Graph graph("conflict");
  graph.Symbol("S", 1, 64);
  graph.Symbol("M", 0, 64);
  graph.Symbol("N", 0, 64);
  const Value x = graph.Input("x", "f32[S]"), m = graph.Input("m", "i64[]"), n = graph.Input("n", "i64[]");
  const Value left = graph.Op("Counted", {x, m}, {{"size", "M"}}), right = graph.Op("Counted", {x, n}, {{"size", "N"}});
  graph.Output("y", graph.Op("Add", {left, right}));
  const Compiled made(graph);
  ASSERT_NE(made.model(), nullptr);
  const auto step =
      made.Function<int32_t(void*, const void* const*, void* const*, int64_t, int64_t*, int64_t*)>("step");
  const std::vector<float> values = {1, 2, 3, 4, 5};
  std::vector<float> y(5);
  int64_t counts[2], first = 0, second = 0;
  const void* const inputs[] = {values.data(), &counts[0], &counts[1]};
  void* const outputs[] = {y.data()};
  for (counts[0] = 0; counts[0] <= 6; ++counts[0]) {
    for (counts[1] = 0; counts[1] <= 6; ++counts[1]) {
      const int32_t code = step(made.model(), inputs, outputs, 5, &first, &second);
      const bool right_sizes = counts[0] == counts[1] && counts[0] <= 5;
      EXPECT_EQ(code, right_sizes ? QUERN_OK : QUERN_ERROR_SIZES) << counts[0] << ", " << counts[1];
      if (!right_sizes) continue;
      EXPECT_EQ(first, counts[0]);
      EXPECT_EQ(second, counts[1]);
      for (int64_t i = 0; i < first; ++i) EXPECT_EQ(y[i], 2 * values[i]);
    }
  }
}

// What trips find is no argument; two found sizes of one trip have to be equal, and the state waits for all trips.
TEST(CountedAheadOfTime, EachTripFindsItsSizes) {
  Graph graph("trips"), body("body");
  for (Graph* to : {&graph, &body}) {
    to->Symbol("S", 1, 64);
    to->Symbol("M", 0, 64);
    to->Symbol("N", 2, 64);
  }
  const Value h = body.Input("h", "f32[1]"), n = body.Input("n", "i64[]"), m = body.Input("m", "i64[]");
  const Value x = body.Input("x", "f32[S]");
  const Value left = body.Op("Counted", {x, m}, {{"size", "M"}}), right = body.Op("Counted", {x, n}, {{"size", "N"}});
  const Value sum = body.Op("Reduce", {body.Op("Add", {left, right})},
                            {{"op", "sum"}, {"axes", std::vector<int64_t>{0}}, {"keep_dim", true}});
  body.Output("h", body.Op("Add", {h, sum}));
  body.Output("y", body.Op("Exp", {sum}));
  const Value whole = graph.Input("x", "f32[S]"), cache = graph.Input("cache", "f32[1]");
  const std::vector<Value> results =
      graph.Ops("Scan", {cache, graph.Input("n", "i64[3]"), graph.Input("m", "i64[3]"), whole},
                {{"carries", 1}, {"xs", 2}, {"length", "3"}}, {}, {&body});
  graph.Carry("cache", results[0]);
  graph.Output("y", results[1]);
  graph.Output("h", graph.Op("Neg", {results[0]}));
  const Compiled made(graph);
  ASSERT_NE(made.model(), nullptr);
  EXPECT_NE(made.header().find("outputs, int64_t S);\n"), std::string::npos) << made.header();
  EXPECT_EQ(made.header().find("Sizes that every step finds"), std::string::npos);
  const auto step = made.Function<int32_t(void*, const void* const*, void* const*, int64_t)>("step");
  const std::vector<float> values = {1, 2, 4, 8, 16};
  std::vector<float> y(3), h_out(1);
  const auto run = [&](const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
    const void* const inputs[] = {values.data(), first.data(), second.data()};
    void* const outputs[] = {y.data(), h_out.data()};
    return step(made.model(), inputs, outputs, 5);
  };
  const std::vector<int64_t> counts = {3, 5, 2};
  ASSERT_EQ(run(counts, counts), QUERN_OK);
  EXPECT_EQ(h_out[0], -2.0f * (7 + 31 + 3));
  EXPECT_EQ(run({3, 4, 2}, counts), QUERN_ERROR_SIZES);
  EXPECT_EQ(run({3, 1, 2}, {3, 1, 2}), QUERN_ERROR_SYMBOL_RANGE);
  EXPECT_EQ(run({3, 6, 2}, {3, 6, 2}), QUERN_ERROR_SIZES);
  ASSERT_EQ(run({2, 2, 4}, {2, 2, 4}), QUERN_OK);
  EXPECT_EQ(h_out[0], -2.0f * (7 + 31 + 3 + 3 + 3 + 15));
}

}  // namespace
}  // namespace quern::testing
