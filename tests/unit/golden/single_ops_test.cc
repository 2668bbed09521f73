// What ONNX Runtime, numpy, scipy and PyTorch made of single ops (tests/golden/record_*.py say how), against kernels,
// which take turns at the levels of this machine, and against the interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "codegen/cpu/target.h"
#include "hir/block.h"
#include "ir/graph.h"
#include "ir/interpret.h"
#include "ir/op.h"
#include "quern/graph.h"

namespace quern {
namespace {

std::string ReadFile(const std::string& name) {
  std::ifstream file(std::filesystem::path(QUERN_SOURCE_DIR) / "tests" / "golden" / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Case {
  std::string name;
  double rtol = 0, atol = 0;
  std::vector<std::vector<int64_t>> dims;  // of the inputs, then of the output
  std::string text;
  ir::Graph graph;
  std::vector<ir::RefTensor> tensors;       // as dims
  std::vector<std::vector<uint8_t>> bytes;  // of the same
  Binding binding;
};

std::vector<Case> ReadCases(const std::string& stem) {
  const std::string text = ReadFile(stem + ".txt"), bytes = ReadFile(stem + ".bin");
  std::vector<Case> cases;
  size_t used = 0;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(text), "case ", absl::SkipEmpty())) {
    Case& read = cases.emplace_back();
    const std::vector<std::string> lines = absl::StrSplit(part, absl::MaxSplits('\n', 2));
    char name[64] = {};
    EXPECT_EQ(std::sscanf(lines[0].c_str(), "%63s rtol %lg atol %lg", name, &read.rtol, &read.atol), 3) << lines[0];
    read.name = name;
    for (const std::string& dims : std::vector<std::string>(absl::StrSplit(lines[1].substr(5), ';'))) {
      std::vector<int64_t>& sizes = read.dims.emplace_back();
      for (const std::string& size : std::vector<std::string>(absl::StrSplit(dims, ',', absl::SkipEmpty())))
        sizes.push_back(std::stoll(size));
    }
    read.text = lines[2];
    StatusOr<ir::Graph> graph = ir::Parse(read.text);
    EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << read.text;
    if (!graph.ok()) return {};
    read.graph = *std::move(graph);
    std::vector<ir::TensorType> types;
    for (const ir::Node& node : read.graph.nodes()) {
      if (ir::IsInput(node)) types.push_back(node.results[0]);
    }
    types.push_back(read.graph.type(read.graph.outputs[0]));
    EXPECT_EQ(types.size(), read.dims.size()) << read.text;
    for (size_t i = 0; i < types.size(); ++i) {
      size_t count = ScalarBytes(types[i].dtype);
      for (size_t d = 0; d < read.dims[i].size(); ++d) {
        count *= static_cast<size_t>(read.dims[i][d]);
        if (types[i].dims[d] == Extent::Symbol("S")) read.binding["S"] = read.dims[i][d];
      }
      EXPECT_LE(used + count, bytes.size());
      const auto* from = reinterpret_cast<const uint8_t*>(bytes.data()) + used;
      read.bytes.emplace_back(from, from + count);
      read.tensors.push_back(*ir::RefTensorFromBytes(types[i].dtype, read.dims[i], read.bytes.back()));
      used += count;
    }
  }
  EXPECT_EQ(used, bytes.size());
  return cases;
}

// The elements of `got` that are not those recorded: equal bits where there is nothing to round, zeros of one sign.
int64_t Wrong(const Case& golden, const ir::RefTensor& got) {
  const ir::RefTensor& want = golden.tensors.back();
  EXPECT_EQ(got.dims, want.dims);
  if (got.dims != want.dims || got.dtype != want.dtype) return -1;
  if (got.integers != want.integers) return -1;
  int64_t wrong = 0;
  for (size_t i = 0; i < want.data.size(); ++i) {
    const double a = got.data[i], b = want.data[i];
    bool right = std::isnan(b) ? std::isnan(a) : a == b;
    if (std::isfinite(a) && std::isfinite(b)) right = std::fabs(a - b) <= golden.rtol * std::fabs(b) + golden.atol;
    if (a == 0 && b == 0 && golden.atol == 0) right = std::signbit(a) == std::signbit(b);
    if (right) continue;
    ++wrong;
    ADD_FAILURE() << "element " << i << " is " << a << ", not " << b;
  }
  return wrong;
}

// The output of a kernel of that level.
std::vector<uint8_t> RunKernel(const Case& golden, const std::string& level) {
  Result<Graph> graph = Graph::Parse(golden.text);
  EXPECT_TRUE(graph.ok()) << graph.error();
  if (!graph.ok()) return {};
  Result<Program> program = graph->Compile({.cpu = level, .threads = 2, .compile_threads = 1, .cache = "off"});
  EXPECT_TRUE(program.ok()) << program.error();
  if (!program.ok()) return {};
  std::vector<ConstTensor> inputs;
  for (size_t i = 0; i < program->inputs().size(); ++i) {
    inputs.push_back(
        {program->inputs()[i].name, golden.bytes[i].data(), golden.bytes[i].size(), nullptr, golden.dims[i]});
  }
  std::vector<uint8_t> output(golden.bytes.back().size(), 0xaa);
  const Result<void> ran =
      program->Run(inputs, {{program->outputs()[0].name, output.data(), output.size(), nullptr, golden.dims.back()}});
  EXPECT_TRUE(ran.ok()) << ran.error();
  return output;
}

// Cases of `stem`, and how many ops they are of.
std::pair<size_t, size_t> RunCases(const std::string& stem) {
  const std::vector<Case> cases = ReadCases(stem);
  const std::vector<const cpu::Target*> levels = cpu::HostTargets();
  std::map<std::string, int> by_op;
  int failures = 0;
  for (size_t c = 0; c < cases.size() && failures < 8; ++c) {
    const Case& golden = cases[c];
    ++by_op[golden.name];
    const std::string level = levels[c % levels.size()]->name;
    SCOPED_TRACE(testing::Message() << "case " << c << " at level " << level << ":\n" << golden.text);
    ir::Feeds feeds;
    size_t input = 0;
    for (const ir::Node& node : golden.graph.nodes()) {
      if (ir::IsInput(node)) feeds[node.attributes.String("name")] = golden.tensors[input++];
    }
    const auto meaning = ir::Interpret(golden.graph, golden.binding, feeds);
    EXPECT_TRUE(meaning.ok()) << meaning.status();
    // f32 stays exact in the interpreter: rounded here as a store does.
    bool right = meaning.ok();
    if (right) {
      const ir::RefTensor& exact = (*meaning)[0];
      right = Wrong(golden, *ir::RefTensorFromBytes(exact.dtype, exact.dims, ir::BytesOf(exact))) == 0;
      EXPECT_TRUE(right) << "interpreted";
    }
    const ir::RefTensor& want = golden.tensors.back();
    const bool ran = Wrong(golden, *ir::RefTensorFromBytes(want.dtype, want.dims, RunKernel(golden, level))) == 0;
    EXPECT_TRUE(ran) << "run";
    failures += right && ran ? 0 : 1;
  }
  return {cases.size(), by_op.size()};
}

TEST(Golden, SingleOps) { EXPECT_EQ(RunCases("ops"), std::pair(size_t{2466}, size_t{74})); }

TEST(Golden, SizesThatDataDecide) { EXPECT_EQ(RunCases("kept"), std::pair(size_t{148}, size_t{5})); }
TEST(Golden, SmallFloats) { EXPECT_EQ(RunCases("small_floats"), std::pair(size_t{256}, size_t{3})); }
TEST(Golden, Tokens) { EXPECT_EQ(RunCases("tokens"), std::pair(size_t{111}, size_t{2})); }
TEST(Golden, PackedWeights) { EXPECT_EQ(RunCases("packed"), std::pair(size_t{62}, size_t{1})); }
TEST(Golden, PlainOpsAndGradients) { EXPECT_EQ(RunCases("plain"), std::pair(size_t{208}, size_t{77})); }
// No op without a result that others made: a new one is recorded, or said here why not.
TEST(Golden, EveryOpIsRecorded) {
  const std::map<std::string, const char*> elsewhere = {
      {"Region", "what fusion makes of recorded ops"},
      {"MatMulPanels", "a MatMul of a weight that was put in panels"},
      {"PickedMatMul", "what GroupedMatMul, which is recorded, becomes where there are many rows"},
      {"DeltaRule", "what GatedDeltaNet becomes"},
      {"SelectiveSteps", "what SelectiveScan becomes"},
      {"Quantize", "held to the bytes of ggml: block_formats_test, quantise_test"},
      {"Dequantise", "held to the bytes of ggml: block_formats_test, decode_test"},
      {"Custom", "what the caller says: custom_test"},
      {"CustomFn", "what its body of recorded ops is: custom_fn_test"},
      {"ScanBackward", "held to finite differences: scan_backward_test"},
      {"ScanBackwardXs", "held to finite differences: scan_backward_test"},
      {"Counted", "names a symbol: recorded by ONNX Runtime where what it cuts goes on, onnx_golden"},
      {"If", "control flow over recorded ops: control_api_test"},
      {"While", "control flow over recorded ops: control_api_test"},
      {"Scan", "control flow over recorded ops, and what Lstm, Gru and Rnn, which are recorded, become"},
  };
  std::string texts;
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(QUERN_SOURCE_DIR) / "tests" / "golden"))
    if (file.path().extension() == ".txt") texts += ReadFile(file.path().filename().string());
  for (const ir::OpDef* op : ir::Ops()) {
    if (op->kind == ir::OpKind::kLeaf) continue;
    const bool recorded = texts.find(absl::StrCat("= ", op->name, "(")) != std::string::npos;
    EXPECT_NE(recorded, elsewhere.contains(op->name)) << op->name;
    EXPECT_NE(std::string_view(op->doc), "") << op->name;
  }
}

// Every name of vocabulary.txt is an op with all that an op has, or a block.
TEST(Golden, TheVocabularyIsWhole) {
  std::string generator;
  const auto support = std::filesystem::path(QUERN_SOURCE_DIR) / "tests" / "support";
  for (const char* name : {"random_generator.h", "random_bodies.cc", "random_contractions.cc"}) {
    std::ifstream file(support / name);
    generator.append(std::istreambuf_iterator<char>(file), {});
  }
  std::istringstream lines(ReadFile("vocabulary.txt"));
  size_t names = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string kind, name, here;
    words >> kind >> name >> here;
    if (here.empty()) here = name;
    ++names;
    SCOPED_TRACE(line);
    if (kind == "block") {
      const hir::BlockDef* block = hir::FindBlock(here);
      ASSERT_NE(block, nullptr);
      EXPECT_NE(std::string_view(block->doc), "");
      continue;
    }
    ASSERT_EQ(kind, "op");
    const ir::OpDef* op = ir::FindOp(here);
    ASSERT_NE(op, nullptr);
    EXPECT_NE(op->infer, nullptr);
    EXPECT_NE(op->reference, nullptr);
    EXPECT_NE(std::string_view(op->doc), "");
    EXPECT_TRUE(op->map != nullptr || op->expand != nullptr || op->family != nullptr || op->pairs != nullptr ||
                op->kind == ir::OpKind::kControl);
    const bool drawn = op->kind == ir::OpKind::kElementwise || !op->examples.empty() || here == "Custom";
    EXPECT_TRUE(drawn || generator.find(absl::StrCat("\"", here, "\"")) != std::string::npos) << "nothing draws it";
  }
  EXPECT_GE(names, 190u);
}

TEST(Golden, Spectral) { EXPECT_EQ(RunCases("spectral"), std::pair(size_t{438}, size_t{44})); }

TEST(Golden, Sequences) { EXPECT_EQ(RunCases("sequence"), std::pair(size_t{466}, size_t{12})); }

}  // namespace
}  // namespace quern
