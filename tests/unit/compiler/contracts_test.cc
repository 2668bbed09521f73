// Every elementwise function of one float keeps its contract where that is hard: beside 0, in its tails, at the ends of
// f32 and f64. The contract is relative, so a small result is held to its own size.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <map>

#include "ir/interpret.h"
#include "quern/graph.h"

namespace quern {
namespace {

// Both signs of sizes from the smallest normal number to far beyond every threshold.
template <typename T>
std::vector<T> Samples() {
  std::vector<T> all = {0, -T{0}};
  auto add = [&](double x) {
    for (const double value : {x, -x}) all.push_back(static_cast<T>(value));
  };
  for (double power = sizeof(T) == 4 ? 1e-37 : 1e-300; power < (sizeof(T) == 4 ? 1e37 : 1e300); power *= 10) {
    for (const double digit : {1.0, 2.7, 4.3}) add(digit * power);
  }
  for (double x = 0.0625; x < 24; x *= 1.03) add(x);
  for (double x = 24; x < (sizeof(T) == 4 ? 120 : 800); x += 0.61) add(x);
  for (const double x : {1.0, 3.0, 2.9999, 3.0001, 0.5, 16.6, 16.7, 17.0, 40.0, 87.0, 87.4, 88.0, 89.0, 90.5, 91.5})
    add(x);
  return all;
}

bool IsFunction(const ir::OpDef& op) { return ir::IsActivation(op.name); }

// Results of every function over `x`, by name.
template <typename T>
std::map<std::string, std::vector<T>> RunAll(const std::vector<T>& x, const char* cpu) {
  const int64_t count = static_cast<int64_t>(x.size());
  const std::string type = std::string(DTypeName<T>()) + "[" + std::to_string(count) + "]";
  std::map<std::string, std::vector<T>> results;
  Graph graph;
  const Value input = graph.Input("x", type);
  std::vector<MutableTensor> outputs;
  for (const ir::OpDef* op : ir::Ops()) {
    if (!IsFunction(*op)) continue;
    std::vector<T>& y = results[op->name];
    y.resize(x.size());
    outputs.push_back(Out(op->name, y, {count}));
    graph.Output(op->name, graph.Op(op->name, {input}));
  }
  Result<Program> program = graph.Compile({.cpu = cpu, .threads = 1});
  EXPECT_TRUE(program.ok()) << program.error();
  if (!program.ok()) return results;
  const Result<void> ran = program->Run({In("x", x, {count})}, outputs);
  EXPECT_TRUE(ran.ok()) << ran.error();
  return results;
}

template <typename T>
void ExpectContracts(DType dtype, const char* cpu) {
  const double largest = sizeof(T) == 4 ? static_cast<double>(FLT_MAX) : DBL_MAX,
               smallest = sizeof(T) == 4 ? static_cast<double>(FLT_MIN) : DBL_MIN;
  const std::vector<T> x = Samples<T>();
  const auto results = RunAll(x, cpu);
  EXPECT_GT(results.size(), 25u);
  for (const auto& [name, y] : results) {
    const ir::OpDef& op = *ir::FindOp(name);
    const ir::Contract contract = ir::ContractOf(op, dtype);
    ir::Node node;
    node.op = &op;
    ASSERT_TRUE(ir::CheckAttributes(op.name, op.attributes, node.attributes, /*fill_defaults=*/true).ok());
    const ir::RefTensor operand{dtype, {static_cast<int64_t>(x.size())}, std::vector<double>(x.begin(), x.end())};
    std::vector<const ir::RefTensor*> operands = {&operand};
    std::vector<ir::RefTensor> wanted = {{dtype, operand.dims, {}}};
    wanted[0].Allocate();
    const Binding none;
    ir::RefContext context{node, operands, none, wanted};
    ASSERT_TRUE(op.reference(context).ok());
    int64_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double want = wanted[0].data[i];
      if (std::fabs(want) > largest) want = std::copysign(INFINITY, want);
      const double got = static_cast<double>(y[i]);
      const bool right = std::isnan(want) ? std::isnan(got)
                         : std::isinf(want)
                             ? got == want
                             : std::fabs(got - want) <= contract.rtol * std::fabs(want) + contract.atol + smallest;
      if (!right && wrong++ < 3)
        ADD_FAILURE() << name << " of " << x[i] << " in " << Name(dtype) << " on " << cpu << " is " << got << ", not "
                      << want;
    }
    EXPECT_EQ(wrong, 0) << name << " of " << x.size();
  }
}

TEST(Contracts, FunctionsOfF32) {
  ExpectContracts<float>(DType::kF32, "native");
  ExpectContracts<float>(DType::kF32, "x86-64-v2");
}
TEST(Contracts, FunctionsOfF64) { ExpectContracts<double>(DType::kF64, "native"); }

// An absolute part hides what is small: only functions that lose places by cancelling have one.
TEST(Contracts, FewAreAbsolute) {
  std::vector<std::string> absolute;
  for (const ir::OpDef* op : ir::Ops()) {
    if (op->atol != 0) absolute.emplace_back(op->name);
    EXPECT_LE(op->atol, 1e-6) << op->name;
    EXPECT_LE(op->rtol, std::string_view(op->name) == "Quantize" ? 1e-2 : 2e-5) << op->name;
  }
  EXPECT_EQ(absolute, (std::vector<std::string>{"Gelu", "GeluApprox", "HardSigmoid", "HardSwish"}));
}

// Levels that only convert halves have no choice between them as an instruction.
TEST(Contracts, HalvesBesideLiterals) {
  const std::vector<uint16_t> x = {0x3c00, 0x4000, 0x4200, 0xc000, 0x7c00, 0xfc00, 0x7e00},
                              least = {0x3c00, 0x4000, 0x4000, 0xc000, 0x4000, 0xfc00, 0x7e00},
                              most = {0x4000, 0x4000, 0x4200, 0x4000, 0x7c00, 0x4000, 0x7e00};
  for (const char* cpu : {"x86-64-v2", "x86-64-v3", "native"}) {
    Result<Graph> graph = Graph::Parse(
        "graph g {\n  %0 = Input() {name = \"x\"} : f16[7]\n  %1 = Constant() hex 0040 : f16[]\n"
        "  %2 = Min(%1, %0) : f16[7]\n  %3 = Max(%1, %0) : f16[7]\n  return %2, %3\n}");
    ASSERT_TRUE(graph.ok()) << graph.error();
    Result<Program> program = graph->Compile({.cpu = cpu, .threads = 1, .cache = "off"});
    ASSERT_TRUE(program.ok()) << cpu << ": " << program.error();
    std::vector<uint16_t> low(7), high(7);
    const auto& outputs = program->outputs();
    const Result<void> ran = program->Run(
        {{"x", x.data(), 14, nullptr, {7}}},
        {{outputs[0].name, low.data(), 14, nullptr, {7}}, {outputs[1].name, high.data(), 14, nullptr, {7}}});
    ASSERT_TRUE(ran.ok()) << ran.error();
    EXPECT_EQ(low, least) << cpu;
    EXPECT_EQ(high, most) << cpu;
  }
}

// Values that were lost once: by 1 + e^x, by e^x - 1, and by powers that are subnormal before they are multiplied.
TEST(Contracts, SmallResultsAreThere) {
  struct Case {
    const char* op;
    double x, y;
  };
  const std::vector<Case> singles = {{"LogSigmoid", 17, -4.1399376331e-08}, {"Softplus", -17, 4.1399376331e-08},
                                     {"Elu", -1e-4, -9.9995e-05},           {"Elu", -1e-20, -1e-20},
                                     {"Silu", -88, -5.3280497e-37},         {"Silu", -91, -2.7431120e-38},
                                     {"Mish", -88, -5.3280497e-37},         {"Mish", -30, -2.80728689e-12},
                                     {"Sigmoid", -80, 1.804851388e-35}};
  for (const auto& [op, x, y] : singles) {
    const float got = RunAll<float>({static_cast<float>(x)}, "native").at(op)[0];
    EXPECT_NEAR(got, y, std::fabs(y) * 1e-5) << op << " of " << x;
  }
  const std::vector<Case> doubles = {{"LogSigmoid", 40, -4.248354255291589e-18},
                                     {"Softplus", -40, 4.248354255291589e-18},
                                     {"Elu", -1e-9, -9.999999995e-10},
                                     {"Silu", -710, -3.17816322e-306},
                                     {"Mish", -710, -3.17816322e-306}};
  for (const auto& [op, x, y] : doubles) {
    const double got = RunAll<double>({x}, "native").at(op)[0];
    EXPECT_NEAR(got, y, std::fabs(y) * 1e-6) << op << " of " << x;
  }
}

}  // namespace
}  // namespace quern
