// What ONNX Runtime and PyTorch made of random contractions (tests/golden/record.py says how), against kernels. Cases
// take turns at the levels of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "codegen/cpu/target.h"
#include "ir/graph.h"
#include "opt/passes.h"
#include "quern/graph.h"

namespace quern {
namespace {

// Of a row's largest element, or of the usual one where all of a row are small: what kernels may be off by. The two
// systems differ by half of it at most.
constexpr double kTolerance = 2e-5;

struct Case {
  uint32_t seed = 0;
  size_t values = 0;
  std::string graph;
};

std::string ReadFile(const std::string& name) {
  std::ifstream file(std::filesystem::path(QUERN_SOURCE_DIR) / "tests" / "golden" / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Case> ReadCases(const std::string& name) {
  const std::string text = ReadFile(name);
  std::vector<Case> cases;
  for (size_t at = text.find("case "); at != std::string::npos;) {
    const size_t line = text.find('\n', at), next = text.find("\ncase ", line);
    Case& read = cases.emplace_back();
    EXPECT_EQ(std::sscanf(text.c_str() + at, "case seed %u values %zu", &read.seed, &read.values), 2);
    read.graph = text.substr(line + 1, next == std::string::npos ? next : next - line);
    at = next == std::string::npos ? next : next + 1;
  }
  return cases;
}

// Dims of "f32[2, 3]".
std::vector<int64_t> DimsOf(const TensorInfo& tensor) {
  EXPECT_EQ(tensor.type.rfind("f32[", 0), 0u) << tensor.type;
  std::vector<int64_t> dims;
  for (const char* at = tensor.type.c_str() + 4; *at >= '0' && *at <= '9';) {
    char* end = nullptr;
    dims.push_back(std::strtoll(at, &end, 10));
    at = *end == ',' ? end + 2 : end;
  }
  return dims;
}

size_t Elements(const std::vector<int64_t>& dims) {
  size_t elements = 1;
  for (const int64_t dim : dims) elements *= static_cast<size_t>(dim);
  return elements;
}

// As `value` of record.py.
std::vector<float> Values(uint32_t seed, char name, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    uint32_t x = static_cast<uint32_t>(i) * 2654435761u + (seed * 131 + static_cast<uint32_t>(name)) * 40503u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    values[i] = static_cast<float>(x >> 8) * 0x1p-23f - 1;
  }
  return values;
}

// The output of the case's graph, on the values that its leaves have by name.
std::vector<float> Run(const Case& golden, const std::string& level) {
  Result<Graph> graph = Graph::Parse(golden.graph);
  if (!graph.ok()) return ADD_FAILURE() << graph.error(), std::vector<float>();
  Options options;
  options.cpu = level;
  options.cache = "off";
  options.threads = 2;
  options.compile_threads = 1;
  Result<Program> program = graph->Compile(options);
  if (!program.ok()) return ADD_FAILURE() << program.error(), std::vector<float>();
  std::vector<std::vector<float>> memory;
  memory.reserve(program->params().size() + program->inputs().size());
  for (const TensorInfo& param : program->params()) {
    memory.push_back(Values(golden.seed, param.name[0], Elements(DimsOf(param))));
    const Result<void> bound = program->Bind(param.name, memory.back());
    EXPECT_TRUE(bound.ok()) << bound.error();
  }
  std::vector<ConstTensor> inputs;
  for (const TensorInfo& input : program->inputs()) {
    const std::vector<int64_t> dims = DimsOf(input);
    memory.push_back(Values(golden.seed, input.name[0], Elements(dims)));
    inputs.push_back(In(input.name, memory.back(), dims));
  }
  const std::vector<int64_t> dims = DimsOf(program->outputs()[0]);
  std::vector<float> output(Elements(dims), NAN);
  const Result<void> ran = program->Run(inputs, {Out(program->outputs()[0].name, output, dims)});
  EXPECT_TRUE(ran.ok()) << ran.error();
  return output;
}

// The last extent of the output's type in "  return %4" of the text before it.
size_t RowOf(const std::string& graph) {
  const size_t end = graph.rfind(']', graph.rfind("return"));
  const size_t start = graph.find_last_of("[ ", end);
  return std::strtoull(graph.c_str() + start + 1, nullptr, 10);
}

// How far the worst element is off, in units of what it may be off.
double Worst(const std::vector<float>& got, const float* expected, size_t row) {
  double squares = 0, worst = 0;
  for (size_t i = 0; i < got.size(); ++i) squares += static_cast<double>(expected[i]) * expected[i];
  const double usual = std::sqrt(squares / static_cast<double>(got.size()));
  for (size_t start = 0; start < got.size(); start += row) {
    double scale = usual;
    for (size_t i = start; i < start + row; ++i) scale = std::max(scale, std::fabs(static_cast<double>(expected[i])));
    for (size_t i = start; i < start + row; ++i) {
      const double off = std::fabs(static_cast<double>(got[i]) - expected[i]) / (scale * kTolerance);
      if (!(off <= worst)) worst = off;  // a NaN too
    }
  }
  return worst;
}

// The text of a graph with the attention in it recognised.
std::string WithAttention(const std::string& text) {
  StatusOr<ir::Graph> graph = ir::Parse(text);
  for (const auto pass : {opt::ExpandComposites, opt::Simplify, opt::FoldConstants}) {
    if (graph.ok()) graph = pass(*graph);
  }
  opt::FusionReport report;
  if (graph.ok()) graph = opt::RecogniseAttention(*graph, {.always = true}, &report);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(report.ToString().find("recognised: attention"), 0u) << report.ToString();
  return graph.ok() ? ir::Print(*graph) : "";
}

// The same with the image of its convolution or pool turned to channels last, and the result turned back; with another
// form it stays as it is.
std::string WithChannelsLast(const std::string& text) {
  StatusOr<ir::Graph> graph = ir::Parse(text);
  if (graph.ok()) graph = opt::ChannelsLast(*graph, {.always = true});
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? ir::Print(*graph) : "";
}

// `as`: the text that runs in place of each case's.
void ExpectFamily(const std::string& graphs, const std::string& outputs, size_t count,
                  std::string (*as)(const std::string& text) = nullptr) {
  const std::vector<Case> cases = ReadCases(graphs + ".txt");
  const std::string bytes = ReadFile(outputs + ".f32");
  std::vector<float> expected(bytes.size() / sizeof(float));
  std::memcpy(expected.data(), bytes.data(), expected.size() * sizeof(float));
  ASSERT_EQ(cases.size(), count);
  const std::vector<const cpu::Target*> levels = cpu::HostTargets();
  size_t at = 0;
  int failures = 0;
  for (size_t c = 0; c < cases.size() && failures < 5; ++c) {  // an op that is not there fails every one
    Case golden = cases[c];
    if (as != nullptr) golden.graph = as(golden.graph);
    const std::string level = levels[c % levels.size()]->name;
    SCOPED_TRACE(testing::Message() << "case " << c << " at level " << level << ":\n" << golden.graph);
    ASSERT_LE(at + golden.values, expected.size());
    const std::vector<float> got = Run(golden, level);
    const bool right = got.size() == golden.values;
    EXPECT_EQ(got.size(), golden.values);
    const double worst = right ? Worst(got, expected.data() + at, RowOf(golden.graph)) : 0;
    EXPECT_LE(worst, 1);
    failures += right && worst <= 1 ? 0 : 1;
    at += golden.values;
  }
  if (failures == 0) EXPECT_EQ(at, expected.size());
}

TEST(Golden, Attention) { ExpectFamily("attention", "attention", 100); }
TEST(Golden, AttentionInOps) { ExpectFamily("attention_ops", "attention", 100); }
TEST(Golden, AttentionRecognised) { ExpectFamily("attention_ops", "attention", 100, WithAttention); }
TEST(Golden, EinsumsAsProducts) { ExpectFamily("einsum_products", "einsum", 150); }
TEST(Golden, EinsumsAsDotGeneral) { ExpectFamily("einsum_dot_general", "einsum", 150); }
TEST(Golden, Convolutions) { ExpectFamily("conv", "conv", 150); }
TEST(Golden, ConvolutionsChannelsLast) { ExpectFamily("conv", "conv", 150, WithChannelsLast); }
TEST(Golden, TransposedConvolutions) { ExpectFamily("conv_transpose", "conv_transpose", 100); }
TEST(Golden, Pools) { ExpectFamily("pool", "pool", 100); }
TEST(Golden, PoolsChannelsLast) { ExpectFamily("pool", "pool", 100, WithChannelsLast); }

// That those are not what the others are already.
TEST(Golden, MostConvolutionsHaveAFormWithChannelsLast) {
  size_t turned = 0;
  for (const Case& golden : ReadCases("conv.txt"))
    turned += WithChannelsLast(golden.graph).find("channels_last = true") != std::string::npos ? 1 : 0;
  EXPECT_GE(turned, 50);
}

}  // namespace
}  // namespace quern
