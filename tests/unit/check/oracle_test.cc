// What the oracle takes and what it does not: errors are measured by the magnitude that they belong to.

#include "check/oracle.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quern::check {
namespace {

using ir::RefTensor;

// A graph with one op over inputs x0, x1, ... and what it makes of these values.
struct OneOp {
  ir::Graph graph;
  Binding none;
  ir::Feeds feeds;

  OneOp(const char* op, const std::vector<RefTensor>& operands, ir::Attributes attributes = {}) {
    std::vector<ir::Value> inputs;
    for (const RefTensor& operand : operands) {
      const std::string name = "x" + std::to_string(inputs.size());
      inputs.push_back(*graph.AddInput(name, {operand.dtype, {operand.dims.begin(), operand.dims.end()}}));
      feeds[name] = operand;
    }
    graph.outputs = {*graph.Add(op, inputs, std::move(attributes))};
  }
  // Whether an answer passes whose element is off by `off`.
  bool Takes(double off) {
    GraphOracle oracle = *GraphOracle::Create(graph, none, feeds, 1);
    RefTensor got = oracle.expected()[0];
    got.data[0] += off;
    return !(*oracle.Worst(0, got)).has_value();
  }
};

RefTensor Floats(DType dtype, std::vector<int64_t> dims, std::vector<double> values) {
  return {dtype, std::move(dims), std::move(values)};
}

TEST(Oracle, ASmallResultIsHeldToItsOwnSize) {
  const double y = std::exp(-23);
  OneOp single("Exp", {Floats(DType::kF32, {1}, {-23})});
  EXPECT_TRUE(single.Takes(y * 1e-6));
  EXPECT_FALSE(single.Takes(y * 1e-4));
  EXPECT_FALSE(single.Takes(1e-7));
  OneOp wide("Exp", {Floats(DType::kF64, {1}, {-23})});
  EXPECT_TRUE(wide.Takes(y * 1e-15));
  EXPECT_FALSE(wide.Takes(y * 1e-12));
}

TEST(Oracle, ASumIsHeldToItsTerms) {
  const std::vector<double> x = {1000, -1000, 0.5, 0.25}, w = {1, 1, 1, 1};
  OneOp product("MatMul", {Floats(DType::kF32, {1, 4}, x), Floats(DType::kF32, {4, 1}, w)});
  EXPECT_TRUE(product.Takes(2e-3));
  EXPECT_FALSE(product.Takes(0.1));
  OneOp wide("MatMul", {Floats(DType::kF64, {1, 4}, x), Floats(DType::kF64, {4, 1}, w)});
  EXPECT_TRUE(wide.Takes(4e-12));
  EXPECT_FALSE(wide.Takes(1e-9));
  OneOp sum("Reduce", {Floats(DType::kF32, {4}, x)}, {{"op", std::string("sum")}, {"axes", std::vector<int64_t>{0}}});
  EXPECT_TRUE(sum.Takes(1e-2));
  EXPECT_FALSE(sum.Takes(0.5));
}

TEST(Oracle, SumsAndProductsOfTwoRoundOnce) {
  OneOp narrow("Add", {Floats(DType::kF32, {1}, {1}), Floats(DType::kF32, {1}, {1e-3})});
  EXPECT_TRUE(narrow.Takes(6e-8));
  EXPECT_FALSE(narrow.Takes(2e-6));
  OneOp wide("Add", {Floats(DType::kF64, {1}, {1}), Floats(DType::kF64, {1}, {1e-3})});
  EXPECT_TRUE(wide.Takes(1e-16));
  EXPECT_FALSE(wide.Takes(1e-14));
}

TEST(Oracle, IntegersAreExactAndShownWhole) {
  const int64_t large = (int64_t{1} << 53) + 1;
  RefTensor x{DType::kI64, {1}, {}, {large}};
  OneOp sum("Add", {x, x});
  GraphOracle oracle = *GraphOracle::Create(sum.graph, sum.none, sum.feeds, 1);
  EXPECT_EQ(oracle.WorstText(0, oracle.expected()[0]), "");
  RefTensor got = oracle.expected()[0];
  EXPECT_EQ(got.integers[0], 2 * large);
  got.integers[0] += 1;
  EXPECT_EQ(oracle.WorstText(0, got),
            "output 0 element [0] is 18014398509481987, not 18014398509481986 (1 off, 0 allowed; 1 wrong)");
}

}  // namespace
}  // namespace quern::check
