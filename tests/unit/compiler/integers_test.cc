// Integers are exact in kernels, in literals inside of kernels and in what is folded, and these agree with each other
// and with the oracle: every op and cast, every dtype, where precision, sign and width end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "base/dtype.h"
#include "ir/op.h"
#include "quern/graph.h"

namespace quern {
namespace {

constexpr DType kIntegers[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                               DType::kU8, DType::kU16, DType::kU32, DType::kU64};

using Bytes = std::vector<std::byte>;

// Values of that dtype around the ends of every width and precision.
std::vector<uint64_t> Edges(DType dtype) {
  std::vector<uint64_t> edges = {
      0, 1, 2, 3, 7, static_cast<uint64_t>(-1), static_cast<uint64_t>(-2), static_cast<uint64_t>(-7)};
  const int bits = 8 * ScalarBytes(dtype);
  for (const int bit : {7, 8, 15, 16, 24, 31, 32, 53, 54, 63}) {
    if (bit >= bits) continue;
    const uint64_t power = uint64_t{1} << bit;
    edges.insert(edges.end(), {power - 1, power, power + 1});
  }
  edges.push_back(987654321);
  edges.push_back(0x123456789abcdef1);
  return edges;
}

Bytes Stored(DType dtype, const std::vector<uint64_t>& values) {
  Bytes bytes;
  for (const uint64_t value : values) {
    const auto* low = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), low, low + ScalarBytes(dtype));
  }
  return bytes;
}

std::string Type(DType dtype, size_t count) { return std::string(Name(dtype)) + "[" + std::to_string(count) + "]"; }

struct Tensor {
  DType dtype;
  size_t count;
  Bytes bytes;
  bool constant = false;  // part of the graph: folded, or one element a literal inside of a kernel
};
Tensor Of(DType dtype, const std::vector<uint64_t>& values, bool constant = false) {
  return {dtype, values.size(), Stored(dtype, values), constant};
}

struct Output {
  std::string name;
  DType dtype;
  size_t count;
};

// The bytes of what `build` makes of its operands, by name.
template <typename Build>
std::map<std::string, Bytes> Results(const std::vector<Tensor>& operands, const std::vector<Output>& outputs,
                                     const Build& build, const char* check = "", const char* cpu = "native") {
  Graph graph;
  std::vector<Value> values;
  std::vector<std::string> names;
  for (size_t i = 0; i < operands.size(); ++i) names.push_back("x" + std::to_string(i));
  std::vector<ConstTensor> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor& x = operands[i];
    if (x.constant) {
      values.push_back(graph.Constant(Type(x.dtype, x.count), x.bytes));
      continue;
    }
    values.push_back(graph.Input(names[i], Type(x.dtype, x.count)));
    inputs.push_back({names[i], x.bytes.data(), x.bytes.size(), nullptr, {static_cast<int64_t>(x.count)}});
  }
  std::map<std::string, Bytes> results;
  std::vector<MutableTensor> given;
  for (const Output& output : outputs) {
    graph.Output(output.name, build(graph, values, output));
    Bytes& bytes = results[output.name];
    bytes.resize(output.count * ScalarBytes(output.dtype));
    given.push_back({output.name, bytes.data(), bytes.size(), nullptr, {static_cast<int64_t>(output.count)}});
  }
  Result<Program> program = graph.Compile({.cpu = cpu, .threads = 1, .check = check, .check_folder = ""});
  EXPECT_TRUE(program.ok()) << program.error();
  if (!program.ok()) return results;
  const Result<void> ran = program->Run(inputs, given);
  EXPECT_TRUE(ran.ok()) << ran.error();
  return results;
}

void ExpectEqual(const std::map<std::string, Bytes>& a, const std::map<std::string, Bytes>& b, const char* what) {
  for (const auto& [name, bytes] : a) EXPECT_TRUE(bytes == b.at(name)) << name << " " << what;
}

Value AddOp(Graph& graph, std::vector<Value> values, const Output& output) {
  const ir::OpDef& op = *ir::FindOp(output.name);
  while (values.size() < op.operands.size()) values.push_back(values[0]);
  values.resize(op.operands.size());
  return graph.Op(op.name, values);
}

TEST(Integers, OpsOnEveryDType) {
  for (const DType dtype : kIntegers) {
    SCOPED_TRACE(std::string(Name(dtype)));
    const std::vector<uint64_t> edges = Edges(dtype);
    std::vector<uint64_t> left, right;
    for (const uint64_t b : edges) {
      for (const uint64_t a : edges) left.push_back(a), right.push_back(b);
    }
    auto outputs = [&](size_t count) {
      std::vector<Output> all;
      for (const ir::OpDef* op : ir::Ops()) {
        if (op->kind != ir::OpKind::kElementwise || !ir::Accepts(op->operands.back().kind, dtype)) continue;
        if (op->operands[0].own_dtype || !op->attributes.empty()) continue;  // Where and Cast
        const bool comparison = std::string_view("Eq Ge Gt Le Lt Ne").find(op->name) != std::string_view::npos;
        all.push_back({op->name, comparison ? DType::kBool : dtype, count});
      }
      return all;
    };
    EXPECT_GT(outputs(1).size(), 20u);
    const auto ran = Results({Of(dtype, left), Of(dtype, right)}, outputs(left.size()), AddOp, "ref");
    ExpectEqual(Results({Of(dtype, left, true), Of(dtype, right, true)}, outputs(left.size()), AddOp), ran, "folded");
    for (size_t e = 0; e < edges.size(); e += 4) {
      const auto literal = Results({Of(dtype, edges), Of(dtype, {edges[e]}, true)}, outputs(edges.size()), AddOp);
      for (const auto& [name, bytes] : literal) {
        const Bytes& whole = ran.at(name);
        const auto begin = whole.begin() + static_cast<int64_t>(e * bytes.size());
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), begin)) << name << " with the literal " << edges[e];
      }
    }
  }
}

Value AddCast(Graph& graph, const std::vector<Value>& values, const Output& output) {
  return graph.Op("Cast", values, {{"to", output.name}});
}

std::vector<Output> EveryScalar(size_t count) {
  std::vector<Output> all;
  for (int d = 0; d < kDTypeCount; ++d) {
    const DType dtype = static_cast<DType>(d);
    if (!IsBlock(dtype)) all.push_back({std::string(Name(dtype)), dtype, count});
  }
  return all;
}

// Quotients that are whole, and those of numbers beside them, which floats of their size would round to whole ones.
TEST(Integers, QuotientsBesideWholeOnes) {
  for (const DType dtype : kIntegers) {
    SCOPED_TRACE(std::string(Name(dtype)));
    const int bits = 8 * ScalarBytes(dtype);
    std::vector<uint64_t> left, right;
    uint64_t random = 7;
    for (int i = 0; i < 500; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const uint64_t divisor = 1 + ((random >> 8) >> (64 - bits + i % bits));
      const uint64_t most = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      for (const uint64_t off : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
        const uint64_t whole = most / divisor * divisor / (1 + i % 3) / divisor * divisor;
        left.insert(left.end(), {whole + off, 0 - whole + off});
        right.insert(right.end(), {divisor, divisor});
      }
    }
    Results({Of(dtype, left), Of(dtype, right)}, {{"Div", dtype, left.size()}, {"Mod", dtype, left.size()}}, AddOp,
            "ref");
  }
}

// Where integers have no masked vectors the ends of loops are scalars, whose lowest value is no power of two.
TEST(Integers, ModByTheLowestIsExactForScalars) {
  for (const DType dtype : kIntegers) {
    const std::vector<uint64_t> edges = Edges(dtype);
    for (const uint64_t lowest : {uint64_t{1} << (8 * ScalarBytes(dtype) - 1), uint64_t{64}}) {
      SCOPED_TRACE(std::string(Name(dtype)) + " mod " + std::to_string(lowest));
      Results({Of(dtype, edges), Of(dtype, {lowest}, true)}, {{"Mod", dtype, edges.size()}}, AddOp, "ref", "x86-64-v2");
    }
  }
}

TEST(Integers, CastsToEveryDType) {
  for (const DType from : kIntegers) {
    SCOPED_TRACE(std::string(Name(from)));
    const std::vector<uint64_t> edges = Edges(from);
    const auto ran = Results({Of(from, edges)}, EveryScalar(edges.size()), AddCast, "ref");
    ExpectEqual(Results({Of(from, edges, true)}, EveryScalar(edges.size()), AddCast), ran, "folded");
  }
}

template <typename T>
Tensor Floats(DType dtype, const std::vector<double>& values, bool constant) {
  const std::vector<T> narrow(values.begin(), values.end());
  const auto bytes = std::as_bytes(std::span(narrow));
  return {dtype, values.size(), Bytes(bytes.begin(), bytes.end()), constant};
}

TEST(Integers, CastsFromFloats) {
  const std::vector<double> values = {0,
                                      -0.5,
                                      1.5,
                                      255.5,
                                      256,
                                      65535.9,
                                      0x1p31,
                                      0x1p32,
                                      0x1p53,
                                      0x1p63,
                                      0x1p64,
                                      -0x1p63,
                                      -0x1p64,
                                      1e300,
                                      -1e300,
                                      INFINITY,
                                      -INFINITY,
                                      1 + 0x1p-11 + 0x1p-40,
                                      65519,
                                      65520,
                                      1e-7,
                                      -3.05e-5,
                                      1 + 0x1p-8 + 0x1p-40,
                                      0x1p54 + 4};
  const size_t count = values.size();
  ExpectEqual(Results({Floats<double>(DType::kF64, values, true)}, EveryScalar(count), AddCast),
              Results({Floats<double>(DType::kF64, values, false)}, EveryScalar(count), AddCast, "ref"),
              "folded from f64");
  ExpectEqual(Results({Floats<float>(DType::kF32, values, true)}, EveryScalar(count), AddCast),
              Results({Floats<float>(DType::kF32, values, false)}, EveryScalar(count), AddCast, "ref"),
              "folded from f32");
}

TEST(Integers, ReductionsAreFoldedAsTheyRun) {
  for (const DType dtype : kIntegers) {
    SCOPED_TRACE(std::string(Name(dtype)));
    const std::vector<uint64_t> edges = Edges(dtype);
    std::vector<Output> outputs;
    for (const char* op : {"sum", "prod", "max", "min"}) outputs.push_back({op, dtype, 1});
    const auto build = [](Graph& graph, const std::vector<Value>& values, const Output& output) {
      return graph.Op("Reduce", values, {{"op", output.name}, {"axes", std::vector<int64_t>{0}}, {"keep_dim", true}});
    };
    ExpectEqual(Results({Of(dtype, edges, true)}, outputs, build), Results({Of(dtype, edges)}, outputs, build, "ref"),
                "folded");
  }
}

}  // namespace
}  // namespace quern
