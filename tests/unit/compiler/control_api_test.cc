// Branches and loops through the public interface: what runs, what an error leaves as it was, and what stops on
// request.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "quern/graph.h"

namespace quern {
namespace {

Value Int(Graph& g, int64_t value) { return g.Constant("i64[]", std::as_bytes(std::span(&value, 1))); }

// `count` products of x with itself one after the other, each a kernel of its own.
Graph Products(const char* name, int count) {
  Graph g(name);
  Value x = g.Input("x", "f32[5, 5]");
  for (int i = 0; i < count; ++i) x = g.Op("MatMul", {x, x});
  g.Output("y", x);
  return g;
}

TEST(ControlApi, RunsOneBranch) {
  const Graph then = Products("then", 1), otherwise = Products("else", 3);
  Graph g;
  const Value p = g.Input("p", "bool[]"), x = g.Input("x", "f32[5, 5]");
  g.Output("y", g.Ops("If", {p, x}, {}, "", {&then, &otherwise})[0]);
  Result<Program> program = g.Compile();
  ASSERT_TRUE(program.ok()) << program.error();
  int launches[2] = {};
  for (const bool which : {false, true}) {
    std::vector<float> in(25), out(25);
    for (int i = 0; i < 5; ++i) in[i * 6] = 2;
    const Result<void> ran =
        program->Run({ConstTensor{"p", &which, 1, "bool", {}}, In("x", in, {5, 5})}, {Out("y", out, {5, 5})});
    ASSERT_TRUE(ran.ok()) << ran.error();
    EXPECT_EQ(out[0], which ? 4 : 256);
    EXPECT_EQ(out[1], 0);
    launches[which] = program->counters().launches;
  }
  EXPECT_EQ(launches[true], 1);
  EXPECT_EQ(launches[false], 3);
}

// A loop that adds 1 to the state `trips` times.
Graph Counting(int64_t max) {
  Graph cond("cond"), body("body");
  {
    const Value i = cond.Input("i", "i64[]");
    cond.Input("state", "f32[3]");
    cond.Output("more", cond.Op("Lt", {i, cond.Input("trips", "i64[]")}));
  }
  {
    const Value i = body.Input("i", "i64[]"), state = body.Input("state", "f32[3]");
    body.Input("trips", "i64[]");
    body.Output("i", body.Op("Add", {i, Int(body, 1)}));
    body.Output("state", body.Op("Add", {state, body.Scalar(1)}));
  }
  Graph g("counting");
  const Value state = g.Input("state", "f32[3]"), trips = g.Input("trips", "i64[]");
  const std::vector<Value> last =
      g.Ops("While", {Int(g, 0), state, trips}, {{"carries", int64_t{2}}, {"max", max}}, "the loop", {&cond, &body});
  g.Output("i", last[0]);
  g.Carry("state", last[1]);
  return g;
}

Result<void> Count(Program& program, int64_t trips) {
  int64_t i = 0;
  return program.Run({{"trips", &trips, 8, "i64", {}}}, {{"i", &i, 8, "i64", {}}});
}

float First(Program& program) { return *reinterpret_cast<const float*>((*program.State("state")).data()); }

TEST(ControlApi, TooManyTripsLeaveTheStateAsItWas) {
  Result<Program> program = Counting(5).Compile();
  ASSERT_TRUE(program.ok()) << program.error();
  EXPECT_TRUE(Count(*program, 4).ok());
  const Result<void> ran = Count(*program, 6);
  EXPECT_EQ(ran.code(), ErrorCode::kOutOfRange) << ran.error();
  EXPECT_NE(ran.error().find("the loop"), std::string::npos) << ran.error();
  EXPECT_TRUE(Count(*program, 5).ok());
  EXPECT_EQ(First(*program), 9);
}

TEST(ControlApi, StopsBetweenTripsWhenAsked) {
  CancelToken token;
  Result<Program> program = Counting(0).Compile({.cancel = &token});
  ASSERT_TRUE(program.ok()) << program.error();
  token.Cancel();
  EXPECT_EQ(Count(*program, 1).code(), ErrorCode::kCancelled);
  token.Reset();
  program->ResetState();
  EXPECT_TRUE(Count(*program, 3).ok());
  EXPECT_EQ(First(*program), 3);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    token.Cancel();
  });
  const Result<void> ran = Count(*program, int64_t{1} << 50);
  other.join();
  EXPECT_EQ(ran.code(), ErrorCode::kCancelled) << ran.error();
}

TEST(ControlApi, ASessionGoesOnWhereItWasStopped) {
  CancelToken token;
  Result<Session> session = Session::Open(QUERN_SOURCE_DIR "/models/addition.gguf", {.cancel = &token});
  Result<Session> other = Session::Open(QUERN_SOURCE_DIR "/models/addition.gguf");
  ASSERT_TRUE(session.ok() && other.ok()) << session.error() << other.error();
  const std::vector<int32_t> ids = *session->Tokenize("27+58=");
  token.Cancel();
  EXPECT_EQ(session->Step(ids).code(), ErrorCode::kCancelled);
  EXPECT_EQ(session->position(), 0);
  token.Reset();
  const Result<std::vector<float>> logits = session->Step(ids), expected = other->Step(ids);
  ASSERT_TRUE(logits.ok() && expected.ok()) << logits.error() << expected.error();
  Result<std::vector<float>> a = logits, b = expected;
  EXPECT_TRUE(*a == *b);
}

// What is wrong with a body is said with its code, its place and what was expected.
TEST(ControlApi, BodiesThatDoNotFit) {
  const auto body = [](std::vector<std::string> inputs, std::vector<int> outputs) {
    Graph g("body");
    std::vector<Value> values;
    for (size_t i = 0; i < inputs.size(); ++i) values.push_back(g.Input("i" + std::to_string(i), inputs[i]));
    for (const int output : outputs) g.Output("o" + std::to_string(g.Text().size()), values[output]);
    return g;
  };
  const auto error = [](std::string_view op, std::vector<Attribute> attributes, std::vector<const Graph*> bodies) {
    Graph g;
    g.Symbol("N", 1, 8);
    g.Ops(op, {g.Input("p", "bool[]"), g.Input("x", "f32[3]")}, attributes, "here", bodies);
    return g.status().details();
  };
  const Graph same = body({"f32[3]"}, {0}), half = body({"f16[3]"}, {0}), longer = body({"f32[4]"}, {0}),
              none = body({"f32[3]"}, {}), more = body({"f32[3]", "f32[3]"}, {0, 1}),
              both = body({"bool[]", "f32[3]"}, {0, 1}), cond = body({"bool[]", "f32[3]"}, {0}),
              number = body({"bool[]", "f32[3]"}, {1});
  struct Case {
    const char* op;
    std::vector<Attribute> attributes;
    std::vector<const Graph*> bodies;
    ErrorCode code;
    std::string message;
  };
  const Case cases[] = {
      {"If", {}, {&same}, ErrorCode::kShapeMismatch, "If: the number of bodies is 1, 2 expected (in here)"},
      {"If", {}, {&same, &more}, ErrorCode::kInputCount, "If: else takes 1 inputs, got 2 (in here)"},
      {"If",
       {},
       {&half, &same},
       ErrorCode::kDTypeMismatch,
       "If: input 0 (i0) of then is f16[3], f32[3] expected (in here)"},
      {"If",
       {},
       {&same, &longer},
       ErrorCode::kShapeMismatch,
       "If: input 0 (i0) of else is f32[4], f32[3] expected (in here)"},
      {"If", {}, {&same, &none}, ErrorCode::kShapeMismatch, "If: else's number of outputs is 0, 1 expected (in here)"},
      {"While",
       {{"carries", int64_t{3}}},
       {&cond, &both},
       ErrorCode::kBadAttribute,
       "While: the attribute carries is 3, 1 to 2, or -1 expected (in here)"},
      {"While",
       {{"max", int64_t{-1}}},
       {&cond, &both},
       ErrorCode::kBadAttribute,
       "While: the attribute max is -1, 0 or more expected (in here)"},
      {"While",
       {},
       {&number, &both},
       ErrorCode::kDTypeMismatch,
       "While: output 0 of cond is f32[3], bool[] expected (in here)"},
      {"While",
       {},
       {&cond, &cond},
       ErrorCode::kShapeMismatch,
       "While: body's number of outputs is 1, 2 expected (in here)"},
      {"While",
       {{"carries", int64_t{1}}},
       {&cond, &number},
       ErrorCode::kDTypeMismatch,
       "While: output 0 of body is f32[3], bool[] expected (in here)"},
      {"Scan",
       {{"length", int64_t{4}}, {"carries", int64_t{1}}, {"xs", int64_t{1}}},
       {&both},
       ErrorCode::kShapeMismatch,
       "Scan: carries, xs and captures[1] is f32[3], [4, ..] expected (in here)"},
      {"Scan",
       {{"length", int64_t{-4}}},
       {&both},
       ErrorCode::kBadAttribute,
       "Scan: the attribute length is <-4>, 0 or more expected (in here)"},
  };
  for (const Case& c : cases) {
    const Error got = error(c.op, c.attributes, c.bodies);
    EXPECT_EQ(got.message, c.message);
    EXPECT_EQ(got.code, c.code) << got.message;
    EXPECT_EQ(got.where, "here") << got.message;
  }
}

// Bodies name a parameter of blocks; it is no operand of theirs.
TEST(ControlApi, OperandsOfBlocksAreRefused) {
  Graph body("body"), names("names");
  body.Output("y", body.Input("w", "q4_0[2, 32]"));
  names.Output("y", names.Op("MatMul", {names.Input("x", "f32[1, 32]"), names.Param("w", "q4_0[32, 32]")},
                             {{"transpose_b", true}}));
  Graph g;
  g.Ops("Scan", {g.Param("w", "q4_0[2, 32]")}, {{"length", int64_t{1}}, {"carries", int64_t{1}}}, "", {&body});
  EXPECT_EQ(g.status().code(), ErrorCode::kUnsupported) << g.status().error();
  Graph named;
  named.Output("y", named.Ops("Scan", {named.Input("x", "f32[1, 32]")},
                              {{"length", int64_t{2}}, {"carries", int64_t{1}}}, "", {&names})[0]);
  const std::vector<std::byte> weights(32 * 18);
  ASSERT_TRUE(named.Bind("w", weights).ok()) << named.status().error();
  Result<Program> program = named.Compile();
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> x(32, 1);
  std::vector<float> y(32, 7);
  ASSERT_TRUE(program->Run({In("x", x, {1, 32})}, {Out("y", y, {1, 32})}).ok());
  EXPECT_EQ(y, std::vector<float>(32, 0));
}

TEST(ControlApi, BytesOfParametersOfBodiesAreBound) {
  Graph body("body");
  body.Output("y", body.Op("Mul", {body.Input("x", "f32[3]"), body.Param("w", "f32[3]")}));
  Graph g;
  g.Output("y",
           g.Ops("Scan", {g.Input("x", "f32[3]")}, {{"length", int64_t{2}}, {"carries", int64_t{1}}}, "", {&body})[0]);
  const std::vector<float> w = {2, 3, 4}, x = {1, 1, 1};
  const auto bytes = std::as_bytes(std::span(w));
  EXPECT_EQ(g.Bind("v", bytes).code(), ErrorCode::kUnknownName);
  EXPECT_EQ(g.Bind("w", bytes.first(8)).code(), ErrorCode::kShapeMismatch);
  ASSERT_TRUE(g.Bind("w", bytes).ok());
  Result<Program> program = g.Compile();
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<float> y(3);
  ASSERT_TRUE(program->Run({In("x", x, {3})}, {Out("y", y, {3})}).ok());
  EXPECT_EQ(y, (std::vector<float>{4, 9, 16}));
}

}  // namespace
}  // namespace quern
