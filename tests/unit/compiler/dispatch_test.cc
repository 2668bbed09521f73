// Which form logical kernels take, what becomes of every op on a target, and which ops a target takes.
#include "quern/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "ir/logical.h"
#include "ir/op.h"

namespace quern {
namespace {

using ::testing::HasSubstr;

// The first output of a graph on drawn values, with that policy.
std::vector<float> RunWith(const std::string& text, const std::string& kernels, size_t elements,
                           const std::vector<std::pair<std::string, std::vector<int64_t>>>& inputs) {
  Result<Graph> graph = Graph::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.error();
  if (!graph.ok()) return {};
  Result<Program> program = graph->Compile({.threads = 2, .kernels = kernels, .cache = "off"});
  EXPECT_TRUE(program.ok()) << program.error();
  if (!program.ok()) return {};
  std::vector<std::vector<float>> values;
  std::vector<std::vector<uint8_t>> flags;
  std::vector<ConstTensor> given;
  for (const auto& [name, shape] : inputs) {
    size_t count = 1;
    for (const int64_t size : shape) count *= size;
    std::vector<float>& value = values.emplace_back(count);
    for (size_t i = 0; i < count; ++i) value[i] = std::sin(static_cast<float>(i * (values.size() + 2)) * 0.7f);
    if (name == "seen") {
      std::vector<uint8_t>& flag = flags.emplace_back(count);
      for (size_t i = 0; i < count; ++i) flag[i] = i % 3 != 1;
      given.push_back({name, flag.data(), count, "bool", shape});
    } else {
      given.push_back({name, value.data(), count * sizeof(float), "f32", shape});
    }
  }
  std::vector<float> out(elements);
  const Result<void> ran = program->Run(given, {Out("0", out, {2, 6, 32})});
  EXPECT_TRUE(ran.ok()) << ran.error();
  return out;
}

// Every logical kernel, both ways: the table has Attention alone, whose forms these are.
TEST(LogicalKernels, MeanTheSameBothWays) {
  ASSERT_EQ(ir::LogicalKernels().size(), 1u) << "a new one is to be run here";
  ASSERT_EQ(ir::LogicalKernels()[0].op, ir::FindOp("Attention"));
  struct Case {
    const char *attributes, *mask;
    std::vector<int64_t> mask_shape;
  };
  const Case cases[] = {
      {R"(mask = "none")", "", {}},
      {R"(mask = "causal")", "", {}},
      {R"(mask = "causal", softcap = 2.5)", "", {}},
      {R"(mask = "sliding", window = 2, scale = 0.25)", "", {}},
      {R"(mask = "custom")", "f32", {2, 9}},
      {R"(mask = "bias")", "f32", {4, 6, 9}},
      {R"(mask = "bias", softcap = 1.0)", "f32", {6, 9}},
      {R"(mask = "bias")", "bool", {2, 1, 6, 9}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.attributes);
    std::vector<std::pair<std::string, std::vector<int64_t>>> inputs = {
        {"q", {2, 6, 32}}, {"k", {2, 9, 16}}, {"v", {2, 9, 16}}};
    std::string mask, operand;
    if (*one.mask != 0) {
      const bool flags = std::string(one.mask) == "bool";
      std::string dims;
      for (const int64_t size : one.mask_shape) absl::StrAppend(&dims, dims.empty() ? "" : ", ", size);
      const char* const name = flags ? "seen" : "mask";
      mask = absl::StrCat("  %3 = Input() {name = \"", name, "\"} : ", one.mask, "[", dims, "]\n");
      operand = ", %3";
      inputs.emplace_back(name, one.mask_shape);
    }
    const std::string number = mask.empty() ? "%3" : "%4";
    const std::string text = absl::StrCat(
        "graph g {\n  %0 = Input() {name = \"q\"} : f32[2, 6, 32]\n  %1 = Input() {name = \"k\"} : f32[2, 9, 16]\n",
        "  %2 = Input() {name = \"v\"} : f32[2, 9, 16]\n", mask, "  ", number, " = Attention(%0, %1, %2", operand,
        ") {heads = 4, kv_heads = 2, head_dim = 8, ", one.attributes, "} : f32[2, 6, 32]\n  return ", number, "\n}\n");
    const std::vector<float> native = RunWith(text, "only-native", 2 * 6 * 32, inputs);
    const std::vector<float> common = RunWith(text, "native,Attention=common", 2 * 6 * 32, inputs);
    ASSERT_EQ(native.size(), common.size());
    for (size_t i = 0; i < native.size(); ++i) ASSERT_NEAR(native[i], common[i], 2e-6) << "element " << i;
    Result<Graph> graph = Graph::Parse(text);
    EXPECT_EQ(Dispatch(*graph)->nodes[0].state, DispatchState::kNative);
    Result<DispatchReport> report = Dispatch(*graph, "cpu", {.kernels = "common"});
    EXPECT_EQ(report->nodes[0].state, DispatchState::kCommon);
    EXPECT_THAT(report->nodes[0].into, ::testing::Contains("MatMul"));
    // What was spelled out is not found again.
    EXPECT_THAT(report->nodes[0].into, ::testing::Not(::testing::Contains("Attention")));
  }
}

Graph Mixed() {
  Result<Graph> graph = Graph::Parse(R"(graph mixed sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 1031]
  %1 = Param() {name = "w"} : q8_0[64, 32]
  %2 = Softmax(%0) {axis = -1} : f32[S, 1031]  @"layers.0/weights"
  %3 = Exp(%2) : f32[S, 1031]
  %4 = Exp(%2) : f32[S, 1031]
  %5 = Add(%3, %4) : f32[S, 1031]
  %6:2 = TopK(%5) {axis = -1, k = 2, largest = true, sorted = true} : f32[S, 2], i64[S, 2]
  %7 = Input() {name = "h"} : f32[S, 32]
  %8 = MatMul(%7, %1) {transpose_b = true} : f32[S, 64]
  return %6.0, %8
}
)");
  EXPECT_TRUE(graph.ok()) << graph.error();
  return std::move(*graph);
}

TEST(Dispatch, SaysWhatBecomesOfEachOp) {
  const Graph graph = Mixed();
  Result<DispatchReport> report = Dispatch(graph);
  ASSERT_TRUE(report.ok()) << report.error();
  std::map<int, NodeDispatch> nodes;
  for (const NodeDispatch& node : report->nodes) nodes[node.node] = node;
  ASSERT_EQ(nodes.size(), 6u);  // leaves are none
  EXPECT_EQ(nodes[2].state, DispatchState::kCommon);
  EXPECT_EQ(nodes[2].label, "layers.0/weights");
  EXPECT_THAT(nodes[2].into, ::testing::Contains("Reduce"));
  EXPECT_EQ(nodes[5].state, DispatchState::kNative);
  EXPECT_EQ(nodes[4].state, DispatchState::kRewritten) << "the same as %3";
  EXPECT_TRUE(nodes[4].into.empty());
  EXPECT_EQ(nodes[6].state, DispatchState::kNative);
  EXPECT_EQ(nodes[6].family, "sort");
  EXPECT_EQ(nodes[8].state, DispatchState::kRewritten);
  EXPECT_EQ(nodes[8].by, "quantise_activations");
  report = Dispatch(graph, "cpu", {.exact = true});
  EXPECT_EQ(report->nodes.back().state, DispatchState::kNative);
  EXPECT_EQ(report->nodes.back().family, "matmul");
  report = Dispatch(graph);
  const auto json = nlohmann::json::parse(report->Json());
  EXPECT_EQ(json["target"], "cpu");
  EXPECT_EQ(json["nodes"][0]["op"], "Softmax");
  EXPECT_EQ(json["nodes"][0]["state"], "common");
  EXPECT_THAT(report->Text(), HasSubstr("%6    TopK                     native       sort"));
  // Where one op is refused, as blocks of threads refuse long lines, the others are asked by themselves.
  report = Dispatch(graph, "ptx");
  ASSERT_TRUE(report.ok()) << report.error();
  for (const NodeDispatch& node : report->nodes) {
    EXPECT_EQ(node.state == DispatchState::kUnsupported, node.op == "TopK") << node.op;
    EXPECT_EQ(node.reason.empty(), node.op != "TopK");
    EXPECT_EQ(node.reason.find("quern.dispatch"), std::string::npos) << node.reason;
  }
}

TEST(Dispatch, RefusesWhatThereIsNot) {
  const Graph graph = Mixed();
  Result<DispatchReport> report = Dispatch(graph, "tpu");
  EXPECT_EQ(report.code(), ErrorCode::kInvalid);
  EXPECT_EQ(report.error(), "there is no target tpu; there are cpu, aot, c, ptx, metal");
  EXPECT_EQ(Dispatch(graph, "cpu", {.kernels = "fast"}).code(), ErrorCode::kInvalid);
  EXPECT_EQ(Dispatch(graph, "cpu", {.kernels = "Atention=common"}).details().suggestion, "Attention");
  // Along another axis than the last there is no kernel of a sort.
  Graph sorted;
  sorted.Output("y", sorted.Ops("Sort", {sorted.Input("x", "f32[3, 4]")}, {{"axis", 0}}, "order")[0]);
  const Result<Program> program = sorted.Compile({.kernels = "native,Sort=only-native"});
  EXPECT_EQ(program.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(program.details().op, "Sort");
  EXPECT_EQ(program.details().where, "order");
  EXPECT_TRUE(sorted.Compile({.threads = 1, .kernels = "only-native,Sort=native"}).ok());
}

// Every op that has an example, on every target: taken, or refused with a reason.
TEST(Dispatch, OpsOnTargets) {
  for (const std::string& target : DispatchTargets()) {
    Result<std::vector<OpOnTarget>> ops = OpsOnTarget(target);
    ASSERT_TRUE(ops.ok()) << ops.error();
    EXPECT_GT(ops->size(), 150u);
    size_t taken = 0;
    for (const OpOnTarget& op : *ops) {
      taken += op.taken;
      EXPECT_EQ(op.taken, op.reason.empty()) << op.op << " on " << target << ": " << op.reason;
      if (target == "cpu" || target == "aot" || target == "c")
        EXPECT_TRUE(op.taken) << op.op << " on " << target << ": " << op.reason;
    }
    EXPECT_GT(taken, 130u) << target;
  }
  EXPECT_EQ(OpsOnTarget("tpu").code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace quern
