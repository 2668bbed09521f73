// Functions in ops: what they compute is their body, as if it stood there; their derivatives are checked and kept.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/binary.h"
#include "quern/graph.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

constexpr const char* kBody = R"(body graph body sym S in 1..64 {
      %0 = Input() {name = "x"} : f32[S, 5]
      %1 = Param() {name = "w"} : f32[5, 7]
      %2 = MatMul(%0, %1) : f32[S, 7]
      %3 = Silu(%2) : f32[S, 7]
      %4 = ArgMax(%2) {axis = 1} : i64[S]
      return %3, %4, %0
    })";
// x, the three results, and the gradients of the two that are floats.
constexpr const char* kVjp = R"( vjp graph vjp sym S in 1..64 {
      %0 = Input() {name = "x"} : f32[S, 5]
      %1 = Input() {name = "y"} : f32[S, 7]
      %2 = Input() {name = "at"} : i64[S]
      %3 = Input() {name = "same"} : f32[S, 5]
      %4 = Input() {name = "dy"} : f32[S, 7]
      %5 = Input() {name = "dsame"} : f32[S, 5]
      return %5
    })";
constexpr const char* kJvp = R"( jvp graph jvp sym S in 1..64 {
      %0 = Input() {name = "x"} : f32[S, 5]
      %1 = Input() {name = "y"} : f32[S, 7]
      %2 = Input() {name = "at"} : i64[S]
      %3 = Input() {name = "same"} : f32[S, 5]
      %4 = Input() {name = "dx"} : f32[S, 5]
      return %1, %4
    })";

// The function once or twice, with a Param of its body in the graph before or behind it.
std::string Text(const std::string& bodies) {
  const std::string types = " : f32[S, 7], i64[S], f32[S, 5]  @\"f\" ";
  return "graph g sym S in 1..64 {\n  %0 = Input() {name = \"x\"} : f32[S, 5]\n  %1:3 = CustomFn(%0)" + types + bodies +
         "\n  %2 = Param() {name = \"w\"} : f32[5, 7]\n  %3 = MatMul(%0, %2) : f32[S, 7]\n  %4 = Add(%1.0, %3) : "
         "f32[S, 7]" +
         "\n  %5:3 = CustomFn(%1.2)" + types + bodies + "\n  return %4, %1.1, %5.0, %5.2\n}\n";
}

TEST(CustomFn, IsItsBody) {
  for (const std::string& bodies : {std::string(kBody), std::string(kBody) + kVjp, std::string(kBody) + kVjp + kJvp}) {
    testing::ExpectRight(Text(bodies), {{{"S", 1}}, {{"S", 7}}, {{"S", 33}}});
  }
}

// In a body, and a function in a function.
TEST(CustomFn, InBodies) {
  testing::ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[3, 5]
  %1:2 = Scan(%0) {carries = 0, xs = 1, length = <3>} : f32[3, 5], f32[3, 5] body graph body {
    %0 = Input() {name = "row"} : f32[5]
    %1 = CustomFn(%0) : f32[5] body graph outer {
      %0 = Input() {name = "a"} : f32[5]
      %1 = CustomFn(%0, %0) : f32[5] body graph inner {
        %0 = Input() {name = "a"} : f32[5]
        %1 = Input() {name = "b"} : f32[5]
        %2 = Mul(%0, %1) : f32[5]
        return %2
      }
      %2 = Neg(%1) : f32[5]
      return %2
    }
    return %1, %0
  }
  return %1.0, %1.1
}
)",
                       {{}});
}

TEST(CustomFn, TextAndBytesKeepItsDerivatives) {
  std::vector<std::string> prints;
  for (const std::string& bodies : {std::string(kBody), std::string(kBody) + kVjp, std::string(kBody) + kVjp + kJvp}) {
    const StatusOr<ir::Graph> graph = ir::Parse(Text(bodies));
    ASSERT_TRUE(graph.ok()) << graph.status();
    const StatusOr<ir::Graph> again = ir::Parse(ir::Print(*graph));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(ir::SameGraph(*graph, *again));
    const std::string bytes = ir::Encode(*graph);
    const StatusOr<ir::Graph> decoded =
        ir::Decode(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(ir::SameGraph(*graph, *decoded));
    prints.push_back(ir::Print(*decoded));
  }
  EXPECT_EQ(prints[0].find("vjp"), std::string::npos);
  EXPECT_NE(prints[1].find("vjp graph vjp"), std::string::npos);
  EXPECT_EQ(prints[1].find("jvp graph jvp"), std::string::npos);
  EXPECT_NE(prints[2].find("jvp graph jvp"), std::string::npos);
}

// A function of two floats, one of which is an index, by the public interface.
Graph Body() {
  Graph body("body");
  const Value x = body.Input("x", "f32[4]");
  body.Input("i", "i64[4]");
  body.Output("y", body.Op("Silu", {x}));
  return body;
}
// `types`: of the Inputs; it returns Input `result`.
Graph Derivative(const std::vector<std::string>& types, int result) {
  Graph graph("derivative");
  std::vector<Value> inputs;
  for (const std::string& type : types) inputs.push_back(graph.Input("x" + std::to_string(inputs.size()), type));
  if (result >= 0) graph.Output("dx", inputs[result]);
  return graph;
}
Result<void> StatusOf(const std::vector<const Graph*>& bodies) {
  Graph g;
  const Value x = g.Input("x", "f32[4]"), i = g.Input("i", "i64[4]");
  const std::vector<Value> made = g.Ops("CustomFn", {x, i}, {}, "f", bodies);
  if (g.status().ok()) g.Output("y", made[0]);
  return g.status();
}

TEST(CustomFn, DerivativesMustFit) {
  const Graph body = Body(), none("none"), vjp = Derivative({"f32[4]", "i64[4]", "f32[4]", "f32[4]"}, 3),
              few = Derivative({"f32[4]", "i64[4]", "f32[4]"}, 2),
              wrong = Derivative({"f32[4]", "i64[4]", "f32[4]", "f32[4]"}, 1),
              other = Derivative({"f32[4]", "i64[4]", "f32[4]", "f32[5]"}, 0);
  EXPECT_TRUE(StatusOf({&body}).ok());
  EXPECT_TRUE(StatusOf({&body, &vjp}).ok()) << StatusOf({&body, &vjp}).error();
  EXPECT_TRUE(StatusOf({&body, &vjp, &vjp}).ok());
  EXPECT_TRUE(StatusOf({&body, &none, &vjp}).ok()) << StatusOf({&body, &none, &vjp}).error();
  EXPECT_EQ(StatusOf({}).code(), ErrorCode::kShapeMismatch);
  EXPECT_EQ(StatusOf({&body, &vjp, &vjp, &vjp}).code(), ErrorCode::kShapeMismatch);
  EXPECT_EQ(StatusOf({&body, &few}).code(), ErrorCode::kInputCount);
  EXPECT_EQ(StatusOf({&body, &wrong}).code(), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(StatusOf({&body, &vjp, &other}).code(), ErrorCode::kShapeMismatch);
  EXPECT_NE(StatusOf({&body, &wrong}).error().find("output 0 of vjp"), std::string::npos)
      << StatusOf({&body, &wrong}).error();
  EXPECT_EQ(StatusOf({&few, &vjp}).code(), ErrorCode::kInputCount);
}

}  // namespace
}  // namespace quern
