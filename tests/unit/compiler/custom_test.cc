// Ops of the caller's own: C functions as launches of a plan, with any operands, sizes and alignments; refused where
// they are not known, and readable all the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "ir/graph.h"
#include "quern/call.h"
#include "quern/compile.h"
#include "quern/custom.h"
#include "quern/graph.h"

namespace quern {
namespace {

using Types = std::vector<std::string>;

Result<Types> SameType(const Types& operands, std::string_view) { return Types{operands[0]}; }

// a + b, element for element, and the sum of each row of a; wants 64-aligned memory.
void AddAndSum(const quern_args* args, void*, int64_t begin, int64_t end) {
  const int64_t parts = quern_call_parts(args);
  const int64_t rows = quern_operand_extents(args, 0)[0], columns = quern_operand_extents(args, 0)[1];
  const auto* a = static_cast<const float*>(quern_operand(args, 0));
  const auto* b = static_cast<const float*>(quern_operand(args, 1));
  auto* sum = static_cast<float*>(quern_result(args, 0));
  auto* of_row = static_cast<float*>(quern_result(args, 1));
  for (const void* at : {quern_operand(args, 0), quern_operand(args, 1), static_cast<const void*>(sum)})
    if (reinterpret_cast<uintptr_t>(at) % 64 != 0) return;  // the outputs stay as they are
  if (quern_operand_rank(args, 0) != 2 || quern_result_rank(args, 1) != 1 || quern_result_extents(args, 1)[0] != rows)
    return;
  for (int64_t r = rows * begin / parts; r < rows * end / parts; ++r) {
    float total = 0;
    for (int64_t c = 0; c < columns; ++c) {
      sum[r * columns + c] = a[r * columns + c] + b[r * columns + c];
      total += a[r * columns + c];
    }
    of_row[r] = total;
  }
}

// x times the scalar operand, plus the f32 of the attribute.
void Affine(const quern_args* args, void*, int64_t, int64_t) {
  const int64_t n = quern_operand_extents(args, 0)[0];
  float plus = 0;
  std::memcpy(&plus, quern_call_attributes(args), sizeof(plus));
  const auto* x = static_cast<const float*>(quern_operand(args, 0));
  for (int64_t i = 0; i < n; ++i)
    static_cast<float*>(quern_result(args, 0))[i] = x[i] * *static_cast<const float*>(quern_operand(args, 1)) + plus;
}

void Nothing(const quern_args*, void*, int64_t, int64_t) {}

Result<Types> AddAndSumTypes(const Types& operands, std::string_view) {
  const std::string rows = operands[0].substr(0, operands[0].find(','));
  return Types{operands[0], rows + "]"};
}

TEST(Custom, HasAnyOperandsResultsAndSizes) {
  ASSERT_TRUE(RegisterCustomOp({.name = "test/add_and_sum",
                                .kernel = AddAndSum,
                                .symbol = "test_add_and_sum",
                                .parts = 3,
                                .alignment = 64,
                                .infer = AddAndSumTypes})
                  .ok());
  std::vector<float> weights(7 * 5);
  std::iota(weights.begin(), weights.end(), 0.5f);
  for (const int threads : {1, 2}) {
    for (const bool unused : {false, true}) {
      Graph g;
      g.Symbol("N", 1, 64);
      const Value x = g.Input("x", "f32[N, 5]");
      const Value w =
          g.Op("Narrow", {g.Param("w", "f32[7, 5]", weights)},
               {{"axis", int64_t{0}}, {"start", std::vector<int64_t>{0}}, {"length", std::vector<int64_t>{1}}});
      const Value spread = g.Op("Add", {g.Op("Mul", {x, g.Scalar(0)}), w});
      const std::vector<Value> made = g.Ops("Custom", {x, spread}, {{"name", "test/add_and_sum"}});
      g.Output("sum", made[0]);
      if (!unused) g.Output("rows", g.Op("Neg", {made[1]}));
      ASSERT_TRUE(g.status().ok()) << g.status().error();
      EXPECT_EQ(g.TypeOf(made[1]), "f32[N]");
      Result<Program> program = g.Compile({.threads = threads});
      ASSERT_TRUE(program.ok()) << program.error();
      for (const int64_t n : {1, 2, 9}) {
        std::vector<float> in(n * 5 + 1), sum(n * 5), rows(n);
        std::iota(in.begin(), in.end(), 0.25f);
        const std::span<float> odd = std::span(in).subspan(1);  // aligned to 4 bytes at most
        std::vector<MutableTensor> outputs = {Out("sum", sum, {n, 5})};
        if (!unused) outputs.push_back(Out("rows", rows, {n}));
        const Result<void> ran = program->Run({In("x", odd, {n, 5})}, outputs);
        ASSERT_TRUE(ran.ok()) << ran.error();
        for (int64_t i = 0; i < n * 5; ++i) EXPECT_EQ(sum[i], odd[i] + weights[i % 5]) << i;
        for (int64_t r = 0; !unused && r < n; ++r)
          EXPECT_EQ(rows[r], -std::accumulate(odd.begin() + r * 5, odd.begin() + r * 5 + 5, 0.f));
      }
    }
  }
}

TEST(Custom, TakesConstantsAndAttributesAndRunsInLoops) {
  CustomOp op{.name = "test/affine", .kernel = Affine, .symbol = "test_affine", .infer = SameType};
  op.reference = [](const std::vector<CustomTensor>& operands, std::string_view attrs,
                    std::vector<CustomTensor>& results) {
    float plus = 0;
    std::memcpy(&plus, attrs.data(), sizeof(plus));
    for (size_t i = 0; i < operands[0].elements.size(); ++i)
      results[0].elements[i] = operands[0].elements[i] * operands[1].elements[0] + plus;
    return Result<void>();
  };
  ASSERT_TRUE(RegisterCustomOp(op).ok());
  const auto affine = [](Graph& g, Value x, float times, float plus) {
    return g.Op("Custom", {x, g.Scalar(times)},
                {{"name", "test/affine"}, {"attrs", std::string(reinterpret_cast<const char*>(&plus), sizeof(plus))}});
  };
  Graph body("body");
  const Value carry = body.Input("carry", "f32[6]");
  body.Output("next", affine(body, carry, 2, 1));
  Graph g("scan");
  const Value x = affine(g, g.Input("x", "f32[6]"), 3, -1);
  const std::vector<Value> last = g.Ops("Scan", {x}, {{"length", int64_t{3}}, {"carries", int64_t{1}}}, "", {&body});
  g.Output("y", last[0]);
  for (const char* check : {"", "ref"}) {
    Result<Program> program = g.Compile({.check = check});
    ASSERT_TRUE(program.ok()) << program.error();
    std::vector<float> in = {0, 1, 2, 3, 4, 5}, out(6);
    const Result<void> ran = program->Run({In("x", in, {6})}, {Out("y", out, {6})});
    ASSERT_TRUE(ran.ok()) << ran.error();
    for (int i = 0; i < 6; ++i) EXPECT_EQ(out[i], (in[i] * 3 - 1) * 8 + 7);
  }
}

// A function that does not do what its reference says is found, with its name.
TEST(Custom, IsHeldToItsReference) {
  CustomOp op{.name = "test/nothing", .kernel = Nothing, .symbol = "test_nothing", .infer = SameType};
  op.reference = [](const std::vector<CustomTensor>& operands, std::string_view, std::vector<CustomTensor>& results) {
    for (double& value : results[0].elements) value = 1 + operands[0].elements[0];
    return Result<void>();
  };
  ASSERT_TRUE(RegisterCustomOp(op).ok());
  Graph g;
  g.Output("y", g.Op("Custom", {g.Input("x", "f32[6]")}, {{"name", "test/nothing"}}, "the label"));
  Result<Program> program = g.Compile({.check = "ref", .check_folder = ::testing::TempDir()});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> in(6, 2);
  std::vector<float> out(6);
  const Result<void> ran = program->Run({In("x", in, {6})}, {Out("y", out, {6})});
  EXPECT_EQ(ran.code(), ErrorCode::kCheck);
  EXPECT_NE(ran.error().find("the label"), std::string::npos) << ran.error();
}

constexpr const char* kUnknown = R"(graph g sym N in 1..8 {
  %0 = Input() {name = "x"} : f32[N, 3]
  %1:2 = Custom(%0) {attrs = "\001\"a", name = "test/not_here", version = 2} : f32[N], i64[]
  %2 = Neg(%1.0) : f32[N]
  return %2, %1.1
}
)";

TEST(Custom, OfGraphsThatAreReadNeedNotBeKnown) {
  const StatusOr<ir::Graph> graph = ir::Parse(kUnknown);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<ir::Graph> again = ir::Parse(ir::Print(*graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(ir::SameGraph(*graph, *again));
  Result<Graph> read = Graph::Parse(kUnknown);
  ASSERT_TRUE(read.ok()) << read.error();
  const Result<Program> program = read->Compile();
  EXPECT_EQ(program.code(), ErrorCode::kUnknownOp) << program.error();
  EXPECT_NE(program.error().find("test/not_here"), std::string::npos) << program.error();
}

TEST(Custom, RefusesWhatIsNotAsSaid) {
  Graph unknown;
  unknown.Op("Custom", {unknown.Input("x", "f32[6]")}, {{"name", "test/nobody"}});
  EXPECT_EQ(unknown.status().code(), ErrorCode::kUnknownOp);
  CustomOp op{.name = "test/once", .kernel = Nothing, .symbol = "test_once", .infer = SameType};
  ASSERT_TRUE(RegisterCustomOp(op).ok());
  EXPECT_EQ(RegisterCustomOp(op).code(), ErrorCode::kDuplicateName);
  Graph other;
  other.Op("Custom", {other.Input("x", "f32[6]")}, {{"name", "test/once"}, {"version", int64_t{2}}});
  EXPECT_EQ(other.status().code(), ErrorCode::kBadAttribute) << other.status().error();
  const auto refused = [](auto change) {
    CustomOp op{.name = "test/refused", .kernel = Nothing, .symbol = "test_refused", .infer = SameType};
    change(op);
    return RegisterCustomOp(op).code();
  };
  EXPECT_EQ(refused([](CustomOp& o) { o.name = "a b"; }), ErrorCode::kInvalid);
  EXPECT_EQ(refused([](CustomOp& o) { o.kernel = nullptr; }), ErrorCode::kInvalid);
  EXPECT_EQ(refused([](CustomOp& o) { o.infer = nullptr; }), ErrorCode::kInvalid);
  EXPECT_EQ(refused([](CustomOp& o) { o.symbol = ""; }), ErrorCode::kInvalid);
  EXPECT_EQ(refused([](CustomOp& o) { o.parts = 0; }), ErrorCode::kInvalid);
  EXPECT_EQ(refused([](CustomOp& o) { o.alignment = 48; }), ErrorCode::kInvalid);
  EXPECT_EQ(refused([](CustomOp& o) { o.alignment = 128; }), ErrorCode::kInvalid);
  EXPECT_EQ(refused([](CustomOp& o) { o.rtol = NAN; }), ErrorCode::kInvalid);
  Graph blocks;
  blocks.Op("Custom", {blocks.Param("w", "q4_0[2, 32]")}, {{"name", "test/once"}});
  EXPECT_EQ(blocks.status().code(), ErrorCode::kUnsupported) << blocks.status().error();
  // On a device.
  Graph g;
  g.Output("y", g.Op("Custom", {g.Input("x", "f32[6]")}, {{"name", "test/once"}}));
  const Result<CompiledFiles> files = CompileGraph(g, {}, {.folder = ::testing::TempDir(), .target = "nvptx64"});
  EXPECT_EQ(files.code(), ErrorCode::kUnsupported) << files.error();
  EXPECT_NE(files.error().find("C function"), std::string::npos) << files.error();
}

}  // namespace
}  // namespace quern
