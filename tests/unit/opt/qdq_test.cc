// Pairs of QuantizeLinear and DequantizeLinear: where insert_qdq puts them and what it refuses, that propagate_qdq
// moves them without changing a bit, and that products of them are sums of integers.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/interpret.h"
#include "ir/linear_quantise.h"
#include "ir/value_names.h"
#include "opt/insert_qdq.h"
#include "opt/passes.h"
#include "support/random_graph.h"

namespace quern::opt {
namespace {

ir::Graph Parsed(std::string_view text) {
  StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : ir::Graph();
}

StatusOr<ir::Graph> Inserted(ir::Graph graph, const ir::QuantisationMap& map, const ParamBytes& params = {}) {
  graph.quantisation = map;
  return InsertQdq(graph, params);
}

int Count(const std::string& text, const std::string& of) {
  int count = 0;
  for (size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++count;
  return count;
}

// The graph after the pass, which verifies.
ir::Graph Good(StatusOr<ir::Graph> made) {
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return ir::Graph();
  const Status verified = ir::Verify(*made);
  EXPECT_TRUE(verified.ok()) << verified << "\n" << ir::Print(*made);
  return *std::move(made);
}

// The largest difference of the outputs of two graphs, of the largest element; NaNs are alike.
double Off(const ir::Graph& a, const ir::Graph& b, const Binding& binding, const ir::Feeds& feeds) {
  const StatusOr<std::vector<ir::RefTensor>> x = ir::Interpret(a, binding, feeds), y = ir::Interpret(b, binding, feeds);
  EXPECT_TRUE(x.ok() && y.ok()) << x.status() << y.status();
  if (!x.ok() || !y.ok()) return INFINITY;
  double off = 0, size = 0;
  for (size_t o = 0; o < x->size(); ++o) {
    EXPECT_EQ((*x)[o].elements(), (*y)[o].elements());
    for (int64_t i = 0; i < (*x)[o].elements(); ++i) {
      const double was = (*x)[o].Real(i), now = (*y)[o].Real(i);
      if (std::isnan(was) && std::isnan(now)) continue;
      off = std::max(off, was == now ? 0 : std::fabs(was - now));
      if (std::isnan(was) != std::isnan(now)) off = INFINITY;
      size = std::max(size, std::fabs(was));
    }
  }
  return size == 0 ? off : off / size;
}

constexpr const char* kGraph = R"(graph g sym B in 1.. {
  %0 = Input() {name = "x"} : f32[B, 3, 7, 5]
  %1 = Param() {name = "k"} : f32[4, 3, 3, 2]
  %2 = Conv(%0, %1) {pads = [1, 0, 1, 1]} : f32[B, 4, 7, 5]  @"conv"
  %3 = Relu(%2) : f32[B, 4, 7, 5]  @"act"
  %4 = Reshape(%3) {shape = <B, 140>} : f32[B, 140]
  %5 = Param() {name = "w"} : f32[11, 140]
  %6 = MatMul(%4, %5) {transpose_b = true} : f32[B, 11]  @"up"
  %7 = MatMul(%6, %6) {transpose_b = true} : f32[B, B]  @"scores"
  return %6, %7
}
)";
const ir::ValueRanges kRanges = {{"x", {-2, 2}}, {"%4", {0, 6}}, {"up", {-5, 7}}};

TEST(QuantisationMap, OfOperandsOfProducts) {
  const ir::Graph graph = Parsed(kGraph);
  const StatusOr<ir::QuantisationMap> map = QuantisationMapOf(graph, kRanges);
  ASSERT_TRUE(map.ok()) << map.status();
  const ir::QuantisationMap expected = {{"x", {DType::kU8, false, {}, ir::ValueRange{-2, 2}}},
                                        {"k", {DType::kI8, true, 0, {}}},
                                        {"%4", {DType::kU8, false, {}, ir::ValueRange{0, 6}}},
                                        {"w", {DType::kI8, true, 0, {}}},
                                        {"up", {DType::kU8, false, {}, ir::ValueRange{-5, 7}}}};
  EXPECT_TRUE(*map == expected);
  // Both operands or none: without the range of the image, the weights stay as well.
  EXPECT_EQ(QuantisationMapOf(graph, {{"%4", {0, 6}}})->size(), 2u);
  EXPECT_EQ(QuantisationMapOf(graph, {{"x", {-INFINITY, INFINITY}}})->size(), 0u);
  EXPECT_EQ(QuantisationMapOf(graph, kRanges, {.ops = {"Conv"}})->size(), 2u);
  EXPECT_EQ(QuantisationMapOf(graph, kRanges, {.keep = {"up", "scores"}})->size(), 2u);
  EXPECT_FALSE(QuantisationMapOf(graph, kRanges, {.per_channel = false})->at("w").axis.has_value());
}

TEST(QuantisationMap, NamesAreLabels) {
  const ir::Graph graph = Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[3]
  %1 = Exp(%0) : f32[3]  @"a"
  %2 = Exp(%1) : f32[3]  @"a"
  %3 = Exp(%2) : f32[3]  @"x"
  %4 = Exp(%3) : f32[3]
  return %4
}
)");
  std::vector<std::string> names;
  for (const auto& [value, name] : ir::ValueNames(graph)) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "a", "a#2", "%3", "%4"}));
}

// Whatever labels there are, each name is of one value.
TEST(QuantisationMap, NamesAreOfOneValue) {
  const ir::Graph graph = Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[3]
  %1 = Exp(%0) : f32[3]  @"%2"
  %2 = Exp(%1) : f32[3]
  %3:2 = TopK(%2) {axis = 0, k = 2} : f32[2], i64[2]  @"a"
  %4 = Exp(%2) : f32[3]  @"a.1"
  %5 = Exp(%2) : f32[3]  @"x"
  %6 = Exp(%2) : f32[3]  @"%5"
  return %4
}
)");
  std::vector<std::string> names;
  for (const auto& [value, name] : ir::ValueNames(graph)) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "%2", "%2#2", "a", "a.1", "%4", "%5", "%6"}));
}

TEST(QuantisationMap, RefusesWhatIsNone) {
  const ir::Graph graph = Parsed(kGraph);
  const auto error = [&](const ir::ValueRanges& ranges) {
    return std::string(QuantisationMapOf(graph, ranges).status().message());
  };
  EXPECT_NE(error({{"uq", {0, 1}}}).find("value uq"), std::string::npos) << error({{"uq", {0, 1}}});
  EXPECT_NE(error({{"x", {1, 0}}}).find("the range of x"), std::string::npos) << error({{"x", {1, 0}}});
  EXPECT_NE(error({{"x", {0, NAN}}}).find("the range of x"), std::string::npos);
}

TEST(InsertQdq, RefusesSchemesThatAreNone) {
  const ir::Graph graph = Parsed(kGraph);
  const ir::ValueRange range{-1, 1};
  const std::vector<std::pair<ir::QuantisationMap, const char*>> rows = {
      {{{"nothing", {}}}, "value nothing"},
      {{{"x", {DType::kF16, false, {}, range}}}, "the scheme of x: the attribute dtype"},
      {{{"x", {DType::kI8, true, {}, {}}}}, "the scheme of x: the attribute range"},
      {{{"x", {DType::kU8, false, {}, {}}}}, "the scheme of x: the attribute dtype"},
      {{{"x", {DType::kU8, false, 1, range}}}, "the scheme of x: the attribute range"},
      {{{"x", {DType::kU8, false, {}, ir::ValueRange{2, 1}}}}, "the scheme of x: the attribute range"},
      {{{"w", {DType::kI8, true, 2, {}}}}, "the scheme of w: the attribute axis"},
      {{{"w", {DType::kI8, false, 0, {}}}}, "the scheme of w: the attribute symmetric"},
      {{{"w", {DType::kU8, true, 0, {}}}}, "the scheme of w: the attribute dtype"},
  };
  for (const auto& [map, what] : rows) {
    const StatusOr<ir::Graph> made = Inserted(graph, map);
    ASSERT_FALSE(made.ok()) << what;
    EXPECT_NE(std::string(made.status().message()).find(what), std::string::npos) << made.status();
  }
}

TEST(InsertQdq, OnePairOfAValueAndWeightsAsBytes) {
  const ir::Graph graph = Parsed(kGraph);
  const ir::QuantisationMap map = *QuantisationMapOf(graph, kRanges);
  const std::string bound_later = ir::Print(Good(Inserted(graph, map)));
  EXPECT_EQ(Count(bound_later, "DequantizeLinear("), 5) << bound_later;  // one of %6, which is read twice
  EXPECT_EQ(Count(bound_later, " QuantizeLinear("), 5);
  EXPECT_EQ(Count(bound_later, "Param("), 2);
  const std::vector<float> weights(11 * 140, 0.5f);
  const ParamBytes params = {{"w", {reinterpret_cast<const uint8_t*>(weights.data()), weights.size() * 4}}};
  const std::string bound = ir::Print(Good(Inserted(graph, map, params)));
  EXPECT_EQ(Count(bound, "Param("), 1) << bound;
  EXPECT_EQ(Count(bound, " : i8[11, 140]"), 1);
  std::string most;  // the greatest of each row is 127
  for (int i = 0; i < 11 * 140; ++i) most += "7f";
  EXPECT_EQ(Count(bound, " hex " + most + " : "), 1) << bound;
}

TEST(InsertQdq, LeavesNoMap) {
  ir::Graph graph = Parsed(kGraph);
  EXPECT_EQ(ir::Print(Good(InsertQdq(graph))), ir::Print(graph));
  graph.quantisation = *QuantisationMapOf(graph, kRanges);
  const ir::Graph pairs = Good(InsertQdq(graph));
  EXPECT_TRUE(pairs.quantisation.empty());
  EXPECT_EQ(ir::Print(Good(InsertQdq(pairs))), ir::Print(pairs));
}

// A Constant is called by its label, which another node may have.
TEST(EmbedParams, KeepsSchemesWithTheirValues) {
  ir::Graph graph = Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[3, 7]
  %1 = Param() {name = "w"} : f32[7, 5]  @"w"
  %2 = Exp(%0) : f32[3, 7]  @"w"
  %3 = Param() {name = "v"} : f32[7, 5]
  %4 = MatMul(%2, %1) : f32[3, 5]
  %5 = MatMul(%0, %3) : f32[3, 5]
  return %4, %5
}
)");
  const ir::Scheme by_column{DType::kI8, true, 1, {}}, whole{DType::kI8, true, {}, {}};
  graph.quantisation = {{"w", by_column}, {"v", whole}, {"%2", {DType::kU8, false, {}, ir::ValueRange{0, 3}}}};
  const std::map<ir::Value, ir::Scheme> before = ir::SchemesOf(graph);
  const std::vector<float> weights(7 * 5, 0.5f);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(weights.data()), weights.size() * 4);
  const ir::Graph embedded = Good(EmbedParams(graph, {{"w", bytes}, {"v", bytes}}));
  EXPECT_TRUE(embedded.Params().empty());
  EXPECT_TRUE(ir::SchemesOf(embedded) == before);
  EXPECT_EQ(embedded.quantisation.count("w#2"), 1u) << ir::Print(embedded);
}

TEST(InsertQdq, RefusesWeightsThatAreNoNumbers) {
  const ir::Graph graph = Parsed(kGraph);
  for (const float wrong : {NAN, INFINITY}) {
    std::vector<float> weights(11 * 140, 0.5f);
    weights[300] = wrong;
    const ParamBytes params = {{"w", {reinterpret_cast<const uint8_t*>(weights.data()), weights.size() * 4}}};
    const StatusOr<ir::Graph> made = Inserted(graph, *QuantisationMapOf(graph, kRanges), params);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(std::string(made.status().message()).find("the weights of w"), std::string::npos) << made.status();
  }
}

// By the interpreter: the error of an operand is half a step of it.
TEST(InsertQdq, IsNearTheFloats) {
  const ir::Graph graph = Parsed(kGraph);
  for (const DType activations : {DType::kU8, DType::kI8}) {
    for (const bool symmetric : {false, true}) {
      ir::Feeds feeds = testing::RandomFeeds(graph, {{"B", 3}}, 5);
      const ir::ValueRanges ranges = {{"x", {-2, 2}}, {"%4", {0, 40}}};
      const ir::QuantisationMap map =
          *QuantisationMapOf(graph, ranges, {.activations = activations, .symmetric = symmetric, .keep = {"scores"}});
      const ir::Graph pairs = Good(Inserted(graph, map));
      const double off = Off(graph, pairs, {{"B", 3}}, feeds);
      EXPECT_LT(off, 0.03);
      EXPECT_GT(off, 0);
      // The same sums in integers, which the floats round.
      const ir::Graph integers = Good(IntegerProducts(pairs));
      EXPECT_EQ(Count(ir::Print(integers), "] : i32["), 0);
      EXPECT_GE(Count(ir::Print(integers), ": i32[B, "), 2);
      EXPECT_LT(Off(pairs, integers, {{"B", 3}}, feeds), 2e-2);
    }
  }
}

// Values, zero points of both operands, rows and columns of K, batches, and groups with padding: exact but for the
// rounding of two scales.
TEST(IntegerProducts, AreThoseOfTheFloats) {
  for (const char* product : {R"(MatMul(%6, %7) {transpose_b = false} : f32[2, 5, 5])",
                              R"(MatMul(%6, %8) {transpose_b = true} : f32[2, 5, 5])"}) {
    const ir::Graph graph = Parsed(absl::StrCat(R"(graph g {
  %0 = Input() {name = "a"} : u8[2, 5, 7]
  %1 = Input() {name = "b"} : i8[7, 5]
  %2 = Constant() hex cdcc4c3d : f32[]
  %3 = Constant() hex 11 : u8[]
  %4 = Input() {name = "s"} : f32[5]
  %5 = Constant() hex 01fe03fc05 : i8[5]
  %6 = DequantizeLinear(%0, %2, %3) : f32[2, 5, 7]
  %7 = DequantizeLinear(%1, %4, %5) {axis = 1} : f32[7, 5]
  %8 = Transpose(%7) {perm = [1, 0]} : f32[5, 7]
  %9 = )",
                                                product, "\n  return %9\n}\n"));
    const ir::Graph moved = Good(PropagateQdq(graph)), integers = Good(IntegerProducts(moved));
    EXPECT_GE(Count(ir::Print(integers), " : i32[2, 5, 5]"), 4) << ir::Print(integers);  // with what zero points add
    EXPECT_LT(Off(graph, integers, {}, testing::RandomFeeds(graph, {}, 3)), 1e-6);
  }
  // Of a zero point that the run brings, too: then padding has no number.
  for (const char* zero : {"Constant() hex 11", "Input() {name = \"z\"}"}) {
    const ir::Graph graph = Parsed(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : u8[2, 6, 7, 5]
  %1 = Input() {name = "w"} : i8[4, 3, 2, 3]
  %2 = Constant() hex cdcc4c3d : f32[]
  %3 = $z : u8[]
  %4 = Input() {name = "s"} : f32[4]
  %5 = Constant() hex 01fe03fc : i8[4]
  %6 = DequantizeLinear(%0, %2, %3) : f32[2, 6, 7, 5]
  %7 = DequantizeLinear(%1, %4, %5) {axis = 0} : f32[4, 3, 2, 3]
  %8 = Input() {name = "bias"} : f32[4]
  %9 = Conv(%6, %7, %8) {groups = 2, pads = [1, 0, 0, 2], strides = [2, 1]} : f32[2, 4, 4, 5]
  return %9
}
)",
                                                       {{"$z", zero}}));
    const ir::Graph integers = Good(IntegerProducts(graph));
    EXPECT_GE(Count(ir::Print(integers), ": i32[2, 4, 4, 5]"), 1);
    EXPECT_LT(Off(graph, integers, {}, testing::RandomFeeds(graph, {}, 3)), 1e-6);
  }
}

TEST(IntegerProducts, LeaveWhatHasNoOneScale) {
  // A scale for each row of K, and a block: no sum over K can be multiplied by it.
  for (const char* form : {"(%1, %4) {axis = 0, block = 0}", "(%1, %5) {axis = 0, block = 4}"}) {
    const ir::Graph graph =
        Parsed(absl::StrCat(R"(graph g {
  %0 = Input() {name = "a"} : u8[5, 7]
  %1 = Input() {name = "b"} : i8[7, 3]
  %2 = Constant() hex cdcc4c3d : f32[]
  %3 = DequantizeLinear(%0, %2) : f32[5, 7]
  %4 = Input() {name = "s"} : f32[7]
  %5 = Input() {name = "t"} : f32[2, 3]
  %6 = DequantizeLinear)",
                            form, " : f32[7, 3]\n  %7 = MatMul(%3, %6) : f32[5, 3]\n  return %7\n}\n"));
    EXPECT_EQ(Count(ir::Print(Good(IntegerProducts(graph))), "i32["), 0);
  }
}

constexpr const char* kMoves = R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 3, 8, 6]
  %1 = Constant() hex cdcc4c3d : f32[]
  %2 = Constant() hex 80 : u8[]
  %3 = QuantizeLinear(%0, %1, %2) : u8[2, 3, 8, 6]
  %4 = DequantizeLinear(%3, %1, %2) : f32[2, 3, 8, 6]
  %5 = Relu(%4) : f32[2, 3, 8, 6]
  %6 = Pool(%5) {kernel = [2, 3], kind = "max", pads = [1, 0, 0, 1]} : f32[2, 3, 8, 5]
  %7 = Transpose(%6) {perm = [0, 2, 3, 1]} : f32[2, 8, 5, 3]
  %8 = Concat(%7, %7) {axis = 1} : f32[2, 16, 5, 3]
  %9 = Narrow(%8) {axis = 1, length = <9>, start = <2>} : f32[2, 9, 5, 3]
  %10 = QuantizeLinear(%9, %1, %2) : u8[2, 9, 5, 3]
  return %10
}
)";

TEST(PropagateQdq, NothingButBytesIsLeft) {
  const ir::Graph graph = Parsed(kMoves), moved = Good(Dce(*PropagateQdq(graph)));
  const std::string text = ir::Print(moved);
  EXPECT_EQ(Count(text, "DequantizeLinear("), 0) << text;
  EXPECT_EQ(Count(text, " QuantizeLinear("), 1) << text;
  EXPECT_EQ(Count(text, "Relu("), 0) << text;
  EXPECT_EQ(Off(graph, moved, {}, testing::RandomFeeds(graph, {}, 7)), 0);
}

// Above a pool the rounding is not that of what may be a NaN: it would be the zero point, and here it is the largest.
TEST(PropagateQdq, DoesNotMoveUpAcrossPoolsOfAnyFloats) {
  const ir::Graph graph = Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 3, 8]
  %1 = Constant() hex cdcc4c3d : f32[]
  %2 = Constant() hex 80 : u8[]
  %3 = Pool(%0) {kernel = [2], kind = "max"} : f32[2, 3, 7]
  %4 = Reshape(%3) {shape = <6, 7>} : f32[6, 7]
  %5 = QuantizeLinear(%4, %1, %2) : u8[6, 7]
  return %5
}
)");
  const ir::Graph moved = Good(PropagateQdq(graph));
  const std::string text = ir::Print(moved);
  EXPECT_EQ(Count(text, ": f32[2, 3, 7]"), 1) << text;
  EXPECT_EQ(Count(text, ": f32[6, 7]"), 0) << text;
  ir::Feeds feeds = testing::RandomFeeds(graph, {}, 7);
  feeds["x"].data[4] = NAN;
  EXPECT_EQ(Off(graph, moved, {}, feeds), 0);
}

// Chains of what it moves across and what it does not, over forms that are alike and others. The interpreter does not
// round to f32, in which a bound of a Clamp is a byte times a scale.
TEST(PropagateQdq, RandomChains) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    ir::Graph graph;
    ir::Value x = *graph.AddInput("x", {DType::kF32, {Extent(2), Extent(3), Extent(8), Extent(6)}});
    const auto number = [&](float value) {
      std::vector<uint8_t> bytes(4);
      std::memcpy(bytes.data(), &value, 4);
      return *graph.AddConstant({DType::kF32, {}}, std::move(bytes));
    };
    const auto add = [&](std::string_view op, std::vector<ir::Value> inputs, ir::Attributes attributes = {}) {
      StatusOr<ir::Value> made = graph.Add(op, std::move(inputs), std::move(attributes));
      EXPECT_TRUE(made.ok()) << made.status();
      return made.value_or(ir::Value{});
    };
    std::vector<ir::Value> outputs;
    for (int step = 0; step < 14; ++step) {
      const std::vector<Extent> dims = graph.type(x).dims;
      const auto last = [&](int d) { return dims[d].constant(); };
      switch (pick(8)) {
        case 0:
        case 1: {
          const bool is_signed = pick(3) == 0;
          const ir::Value scale = number(pick(4) == 0 ? 0.031f : 0.017f);
          const ir::Value zero = *graph.AddConstant({is_signed ? DType::kI8 : DType::kU8, {}},
                                                    {static_cast<uint8_t>(pick(3) == 0 ? 0 : 77)});
          x = add("DequantizeLinear", {add("QuantizeLinear", {x, scale, zero}), scale, zero});
          break;
        }
        case 2: x = add("Relu", {x}); break;
        case 3: {
          const float low = pick(2) == 0 ? -0.3f : -17 * 0.017f, high = pick(2) == 0 ? 0.9f : 30 * 0.017f;
          x = add("Clamp", {x, number(low), number(high)});
          break;
        }
        case 4: {
          const std::vector<std::vector<int64_t>> perms = {{1, 0, 2, 3}, {0, 1, 3, 2}, {2, 3, 0, 1}};
          x = add("Transpose", {x}, {{"perm", perms[pick(3)]}});
          break;
        }
        case 5: {
          if (last(2) < 2 || last(3) < 3) break;
          x = add("Pool", {x},
                  {{"kind", std::string("max")},
                   {"kernel", std::vector<int64_t>{2, 3}},
                   {"pads", std::vector<int64_t>{1, 0, 0, 1}},
                   {"strides", std::vector<int64_t>{1, 1}}});
          break;
        }
        case 6: {
          const int64_t axis = pick(4);
          x = last(axis) < 8 ? add("Concat", {x, x}, {{"axis", axis}})
                             : add("Narrow", {x},
                                   {{"axis", axis},
                                    {"start", std::vector<Extent>{Extent(1)}},
                                    {"length", std::vector<Extent>{Extent(2)}}});
          break;
        }
        default: x = add("Reshape", {x}, {{"shape", std::vector<Extent>{dims[1], dims[0], dims[2], dims[3]}}}); break;
      }
      if (pick(5) == 0) outputs.push_back(x);
    }
    outputs.push_back(x);
    graph.outputs = outputs;
    ir::Feeds feeds = testing::RandomFeeds(graph, {}, seed);
    if (seed % 3 == 0) feeds["x"].data[7] = NAN;
    const ir::Graph moved = Good(PropagateQdq(graph));
    EXPECT_LT(Off(graph, moved, {}, feeds), 1e-7) << "seed " << seed << "\n" << ir::Print(graph) << ir::Print(moved);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace quern::opt
