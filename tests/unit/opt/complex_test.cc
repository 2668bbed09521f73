// Complex numbers as pairs: what the pass makes of every place that a value of c64 may have in a graph, beside the
// interpreter's complex numbers; and what is refused before that.
#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "ir/interpret.h"
#include "opt/passes.h"
#include "support/random_graph.h"

namespace quern::opt {
namespace {

bool HasComplex(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::TensorType& type : node.results) {
      if (IsComplex(type.dtype)) return true;
    }
    for (const auto& body : node.bodies) {
      if (HasComplex(*body)) return true;
    }
  }
  return false;
}

// Both mean the same, and ports have the same bytes.
void Check(std::string_view text) {
  SCOPED_TRACE(text);
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<ir::Graph> pairs = ComplexAsPairs(*graph);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  ASSERT_TRUE(ir::Verify(*pairs).ok()) << ir::Verify(*pairs) << ir::Print(*pairs);
  EXPECT_FALSE(HasComplex(*pairs)) << ir::Print(*pairs);
  EXPECT_EQ(pairs->donations, graph->donations);
  const Binding binding = {{"S", 3}};
  const ir::Feeds feeds = testing::RandomFeeds(*graph, binding, 5);
  ir::Feeds parts = feeds;
  for (auto& [name, tensor] : parts) {
    if (!IsComplex(tensor.dtype)) continue;
    tensor.dtype = DType::kF32;
    tensor.dims.push_back(2);
  }
  const auto want = ir::Interpret(*graph, binding, feeds), got = ir::Interpret(*pairs, binding, parts);
  ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
  for (size_t o = 0; o < want->size(); ++o) {
    ASSERT_EQ((*want)[o].data.size(), (*got)[o].data.size());
    for (size_t i = 0; i < (*want)[o].data.size(); ++i)
      EXPECT_NEAR((*want)[o].data[i], (*got)[o].data[i], 1e-6) << "output " << o << " element " << i;
    EXPECT_EQ(ir::BytesOf((*want)[o]).size(), ir::BytesOf((*got)[o]).size());
  }
}

TEST(ComplexAsPairs, LeavesOutputsAndDonations) {
  Check(R"(graph g sym S in 1..8 {
  %0 = Input() {name = "x"} : c64[S, 2]
  %1 = Param() {name = "w"} : c64[2]
  %2 = Constant() hex 0000803f000000400000404000008040 : c64[2]
  %3 = Mul(%0, %1) : c64[S, 2]
  %4 = Add(%3, %2) : c64[S, 2]
  return %4, %0
  donate "x" -> 0
})");
}

TEST(ComplexAsPairs, Bodies) {
  Check(R"(graph g sym S in 1..8 {
  %0 = Input() {name = "z"} : c64[3]
  %1 = Input() {name = "xs"} : c64[S, 3]
  %2:2 = Scan(%0, %1) {carries = 1, length = <S>, reverse = false, xs = 1} : c64[3], c64[S, 3] body graph body {
    %0 = Input() {name = "a"} : c64[3]
    %1 = Input() {name = "b"} : c64[3]
    %2 = Mul(%0, %1) : c64[3]
    return %2, %2
  }
  return %2.0, %2.1
})");
}

TEST(ComplexAsPairs, LeavesOtherGraphsAlone) {
  const StatusOr<ir::Graph> graph = ir::Parse(R"(graph g {
  %0 = Input() {name = "x"} : f32[3]
  %1 = Exp(%0) : f32[3]
  return %1
})");
  ASSERT_TRUE(graph.ok());
  const StatusOr<ir::Graph> same = ComplexAsPairs(*graph);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(ir::Print(*same), ir::Print(*graph));
}

// `node` over z c64[3, 4] and x of another dtype, f64 where it is not given.
Diagnostic Refused(const char* op, ir::Attributes attributes = {}, bool both = false, DType other = DType::kF64) {
  ir::Graph graph;
  const ir::Value z = *graph.AddInput("z", {DType::kC64, {3, 4}}), x = *graph.AddInput("x", {other, {3, 4}});
  const auto made = graph.Add(op, both ? std::vector<ir::Value>{z, x} : std::vector<ir::Value>{z}, attributes);
  EXPECT_FALSE(made.ok()) << op;
  const std::optional<Diagnostic> why = DiagnosticOf(made.status());
  EXPECT_TRUE(why.has_value()) << made.status();
  return why.value_or(Diagnostic{});
}

TEST(ComplexAsPairs, WhatHasNoMeaningIsRefused) {
  const ir::Attributes last = {{"axes", std::vector<int64_t>{1}}, {"op", std::string("max")}};
  EXPECT_EQ(Refused("Lt", {}, true, DType::kC64).code, DiagnosticCode::kDTypeMismatch);
  EXPECT_EQ(Refused("Add", {}, true).code, DiagnosticCode::kDTypeMismatch);
  EXPECT_EQ(Refused("Add", {}, true, DType::kF32).code, DiagnosticCode::kDTypeMismatch);
  EXPECT_EQ(Refused("MatMul", {}, true, DType::kF32).code, DiagnosticCode::kDTypeMismatch);
  EXPECT_EQ(Refused("Cast", {{"to", DType::kF32}}).code, DiagnosticCode::kDTypeMismatch);
  EXPECT_EQ(Refused("Reduce", last).code, DiagnosticCode::kDTypeMismatch);
  EXPECT_EQ(Refused("Relu").code, DiagnosticCode::kDTypeMismatch);
  EXPECT_EQ(Refused("Tile", {{"repeats", std::vector<int64_t>{1, 2}}}).code, DiagnosticCode::kDTypeMismatch);
  EXPECT_EQ(Refused("Rfft").code, DiagnosticCode::kUnsupported);
}

TEST(ComplexAsPairs, PairsAreOneDimensionMore) {
  ir::Graph graph;
  const std::vector<Extent> seven(7, Extent(1)), eight(8, Extent(1));
  EXPECT_TRUE(graph.AddInput("x", {DType::kC64, seven}).ok());
  const StatusOr<ir::Value> made = graph.AddInput("y", {DType::kC64, eight});
  ASSERT_TRUE(DiagnosticOf(made.status()).has_value()) << made.status();
  EXPECT_EQ(DiagnosticOf(made.status())->code, DiagnosticCode::kUnsupported);
  const StatusOr<ir::Value> real = graph.AddInput("z", {DType::kF32, eight});
  ASSERT_TRUE(real.ok());
  const StatusOr<ir::Value> cast = graph.Add("Cast", {*real}, {{"to", DType::kC64}});
  ASSERT_TRUE(DiagnosticOf(cast.status()).has_value()) << cast.status();
  EXPECT_EQ(DiagnosticOf(cast.status())->code, DiagnosticCode::kUnsupported);
}

}  // namespace
}  // namespace quern::opt
