// What a program of many layers costs before its first run: compiling it, and putting its weights as kernels read them
// (once per binding) beside a copy of the same bytes, in interleaved rounds.
//
//   bench_binding [--layers 48] [--rounds 5] [--threads 1] [--compile 12,48,192]
//   {"bench":"binding","layout":"kn","layers":48,"threads":1,"weights_mb":1359.0,"bind_ms":..,"memcpy_ms":..,
//    "fresh_ms":..,"ratio":..}
//   {"bench":"compile","layers":12,"compile_ms":..,"kernels":..,"code_kb":..}
//
// A layer has the six products of BERT-base: four of 768 x 768, 768 x 3072 and back, for 128 rows. layout: kn, as ONNX
// has weights; nk, as PyTorch; mixed, by turns. bind: from Program::Bind of all weights to the end of a run, less a
// run. memcpy: the C library's, of all weights, to memory that was written before; fresh: to memory that was not.
// ratio: bind by memcpy. compile: without a cache, of layers 64 wide, whose weights take no time.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "quern/graph.h"

namespace {

constexpr int64_t kRows = 128, kWidth = 768, kSmallWidth = 64;

int Complain(const std::string& error) {
  std::fprintf(stderr, "bench_binding: %s\n", error.c_str());
  return 1;
}

struct Weight {
  std::string name;
  int64_t inputs, outputs;
  bool rows;  // of K: [outputs, inputs]
};

// The products of `layers` layers, in the order of the graph.
std::vector<Weight> WeightsOf(int layers, const std::string& layout, int64_t width) {
  std::vector<Weight> weights;
  for (int layer = 0; layer < layers; ++layer) {
    const auto add = [&](const char* part, int64_t inputs, int64_t outputs) {
      const bool rows = layout == "nk" || (layout == "mixed" && weights.size() % 2 == 1);
      weights.push_back({"layers." + std::to_string(layer) + "." + part, inputs, outputs, rows});
    };
    for (const char* const part : {"q", "k", "v", "o"}) add(part, width, width);
    add("up", width, 4 * width);
    add("down", 4 * width, width);
  }
  return weights;
}

// Copies every weight into one new piece of memory.
void CopyToNew(const std::vector<Weight>& weights, const std::vector<std::vector<float>>& values) {
  size_t elements = 0;
  for (size_t w = 0; w < weights.size(); ++w) elements += values[w % values.size()].size();
  float* const memory = static_cast<float*>(std::malloc(elements * sizeof(float)));
  float* to = memory;
  for (size_t w = 0; w < weights.size(); ++w) {
    const std::vector<float>& from = values[w % values.size()];
    to = static_cast<float*>(std::memcpy(to, from.data(), from.size() * sizeof(float))) + from.size();
  }
  quern::bench::sink = quern::bench::sink + static_cast<uint64_t>(memory[elements / 2]);
  std::free(memory);
}

quern::Graph Build(const std::vector<Weight>& weights, const std::vector<std::vector<float>>& values) {
  quern::Graph g("layers");
  quern::Value x = g.Input("x", "f32[128, " + std::to_string(weights[0].inputs) + "]");
  quern::Value parts[6];
  for (size_t w = 0; w < weights.size(); ++w) {
    const Weight& weight = weights[w];
    const std::string in = std::to_string(weight.inputs), out = std::to_string(weight.outputs);
    const std::string type = "f32[" + (weight.rows ? out + ", " + in : in + ", " + out) + "]";
    const quern::Value param = g.Param(weight.name, type, values[w % values.size()]);
    // q k v o up down: what each reads.
    const quern::Value from = w % 6 < 3 ? x : parts[w % 6 - 1];
    parts[w % 6] = g.Op("MatMul", {from, param}, {{"transpose_b", weight.rows}}, weight.name);
    if (w % 6 == 2) parts[2] = g.Op("Add", {g.Op("Mul", {parts[0], parts[1]}), parts[2]});
    if (w % 6 == 4) parts[4] = g.Op("Gelu", {parts[4]});
    if (w % 6 == 5) x = g.Op("Add", {x, parts[5]});
  }
  g.Output("y", x);
  return g;
}

}  // namespace

int main(int argc, char** argv) {
  int layers = 48, rounds = 5;
  quern::Options options;
  options.threads = 1;
  options.cache = "off";
  std::vector<int> compile = {12, 48, 192};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--layers") {
      layers = std::atoi(value.c_str());
    } else if (flag == "--rounds") {
      rounds = std::atoi(value.c_str());
    } else if (flag == "--threads") {
      options.threads = std::atoi(value.c_str());
    } else if (flag == "--compile") {
      compile.clear();
      for (size_t at = 0; at < value.size(); at = std::min(value.find(',', at), value.size() - 1) + 1)
        compile.push_back(std::atoi(value.c_str() + at));
    } else {
      return Complain("unknown flag " + flag);
    }
  }
  std::vector<float> x(kRows * kWidth, 0.01f), y(x.size());
  const std::vector<quern::ConstTensor> in = {quern::In("x", x, {kRows, kWidth})};
  const std::vector<quern::MutableTensor> out = {quern::Out("y", y, {kRows, kWidth})};

  for (const std::string layout : {"kn", "nk", "mixed"}) {
    const std::vector<Weight> weights = WeightsOf(layers, layout, kWidth);
    std::vector<std::vector<float>> values, copies;
    double bytes = 0;
    for (const Weight& weight : weights) {
      values.emplace_back(weight.inputs * weight.outputs, 0.001f);
      copies.push_back(values.back());
      bytes += static_cast<double>(values.back().size() * sizeof(float));
    }
    quern::Result<quern::Program> program = Build(weights, values).Compile(options);
    if (!program.ok()) return Complain(program.error());
    std::string error;
    const auto run = [&] {
      if (const quern::Result<void> ran = program->Run(in, out); !ran.ok()) error = ran.error();
    };
    std::vector<double> binds, copying, fresh;
    for (int round = 0; round <= rounds && error.empty(); ++round) {
      const double bound = quern::bench::WallTime([&] {
        for (size_t w = 0; w < weights.size(); ++w) {
          const quern::Result<void> given = program->Bind(weights[w].name, values[w]);
          if (!given.ok()) error = given.error();
        }
        run();
      });
      const double ran = quern::bench::WallTime(run);
      const double copied = quern::bench::WallTime([&] {
        for (size_t w = 0; w < weights.size(); ++w)
          std::memcpy(copies[w].data(), values[w].data(), values[w].size() * sizeof(float));
      });
      if (round == 0) continue;  // first touches of memory
      binds.push_back(bound - ran);
      copying.push_back(copied);
      fresh.push_back(quern::bench::WallTime([&] { CopyToNew(weights, values); }));
    }
    if (!error.empty()) return Complain(error);
    const double bind = quern::bench::Median(binds), copy = quern::bench::Median(copying);
    std::printf(
        "{\"bench\":\"binding\",\"layout\":\"%s\",\"layers\":%d,\"threads\":%d,\"weights_mb\":%.1f,\"bind_ms\":%.1f,"
        "\"memcpy_ms\":%.1f,\"fresh_ms\":%.1f,\"ratio\":%.2f}\n",
        layout.c_str(), layers, options.threads, bytes * 1e-6, bind * 1e3, copy * 1e3,
        quern::bench::Median(fresh) * 1e3, bind / copy);
  }
  for (const int count : compile) {
    const std::vector<Weight> weights = WeightsOf(count, "kn", kSmallWidth);
    std::vector<std::vector<float>> values;  // of one layer, for all
    for (size_t w = 0; w < 6; ++w) values.emplace_back(weights[w].inputs * weights[w].outputs, 0.001f);
    quern::Result<quern::Program> program = Build(weights, values).Compile(options);
    if (!program.ok()) return Complain(program.error());
    const quern::Program::Counters counters = program->counters();
    std::printf("{\"bench\":\"compile\",\"layers\":%d,\"compile_ms\":%.1f,\"kernels\":%d,\"code_kb\":%.1f}\n", count,
                counters.compile * 1e3, counters.kernels, static_cast<double>(counters.code_bytes) * 1e-3);
  }
  return 0;
}
