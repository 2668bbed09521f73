// What the runtime itself costs in a decode step: a model of many small layers whose position moves by one every step,
// so that sizes, offsets and pointers are followed anew each time. One JSON object a sample on standard output:
//   bench_runtime [--layers 25] [--threads 1] [--samples 5]
//   {"engine":"quern","bench":"decode_step","launches":202,"threads":1,"bind_us":..,"check_us":..,"kernels_us":..,...}
// bind_us: following the symbols (median step); check_us: matching names, shapes and memory of the call; kernels_us:
// the dispatches; launch_us: kernels_us over launches, an upper bound of what one dispatch costs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "quern/graph.h"

namespace {

constexpr int64_t kContext = 512;

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// A deep, narrow decoder: its kernels are over in a microsecond or two.
struct Model {
  std::vector<float> gamma = std::vector<float>(64, 1), small = std::vector<float>(64 * 128, 0.01f),
                     angle = std::vector<float>(kContext * 16, 0.6f);
  quern::Graph graph{"decode_step"};

  explicit Model(int layers) {
    graph.Symbol("PAST_SEQ", 0, kContext - 1);
    const std::vector<std::string> here = {"PAST_SEQ"}, one = {"1"};
    const quern::Value angles = graph.Param("angles", "f32[512, 16]", angle);
    const quern::Value turn = graph.Op("Narrow", {angles}, {{"axis", 0}, {"start", here}, {"length", one}});
    quern::Value x = graph.Input("x", "f32[1, 64]");
    for (int l = 0; l < layers; ++l) {
      const std::string name = "layers." + std::to_string(l);
      const auto weight = [&](const char* what, const char* type, size_t count) {
        return graph.Param(name + what, type, std::span<const float>(small).first(count));
      };
      const auto norm = [&](const char* what) { return graph.Param(name + what, "f32[64]", gamma); };
      const std::string k_name = name + ".k_cache", v_name = name + ".v_cache";
      const quern::Value k_cache = graph.Input(k_name, "f16[512, 2, 32]"),
                         v_cache = graph.Input(v_name, "f16[512, 2, 32]");
      const std::vector<quern::Value> out =
          graph.Blocks("LlamaDecoderBlock",
                       {x,
                        norm(".norm1"),
                        {},
                        weight(".q", "f32[64, 64]", 4096),
                        weight(".k", "f32[64, 64]", 4096),
                        weight(".v", "f32[64, 64]", 4096),
                        weight(".o", "f32[64, 64]", 4096),
                        norm(".norm2"),
                        {},
                        weight(".gate", "f32[128, 64]", 8192),
                        weight(".up", "f32[128, 64]", 8192),
                        weight(".down", "f32[64, 128]", 8192),
                        turn,
                        turn,
                        {},
                        k_cache,
                        v_cache},
                       {{"heads", 2}, {"head_dim", 32}, {"mask", "causal"}, {"weight_layout", "nk"}}, name);
      x = out[0];
      graph.Carry(k_name, out[1]);
      graph.Carry(v_name, out[2]);
    }
    graph.Output("y", x);
  }
};

}  // namespace

int main(int argc, char** argv) {
  int layers = 25, samples = 5;
  quern::Options options = {.threads = 1};
  for (int i = 1; i + 1 < argc; i += 2) {
    const int value = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--layers") == 0)
      layers = std::max(1, value);
    else if (std::strcmp(argv[i], "--threads") == 0)
      options.threads = value;
    else if (std::strcmp(argv[i], "--samples") == 0)
      samples = std::max(1, value);
    else
      return std::fprintf(stderr, "bench_runtime: unknown option %s\n", argv[i]), 1;
  }
  Model model(layers);
  quern::Result<quern::Program> program = model.graph.Compile(options);
  if (!program.ok()) return std::fprintf(stderr, "bench_runtime: %s\n", program.error().c_str()), 1;
  const std::vector<float> x(64, 0.5f);
  std::vector<float> y(64);
  const std::vector<quern::ConstTensor> inputs = {quern::In("x", x, {1, 64})};
  const std::vector<quern::MutableTensor> outputs = {quern::Out("y", y, {1, 64})};
  for (int sample = 0; sample < samples; ++sample) {
    std::vector<double> bind, check, kernels;
    for (int64_t past = 0; past < 256; ++past) {
      const std::map<std::string, int64_t> symbols = {{"PAST_SEQ", past}};
      const auto start = std::chrono::steady_clock::now();
      const quern::Result<void> ran = program->Run(inputs, outputs, symbols);
      const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (!ran.ok()) return std::fprintf(stderr, "bench_runtime: %s\n", ran.error().c_str()), 1;
      const quern::Program::Counters counters = program->counters();
      bind.push_back(counters.bind * 1e6);
      kernels.push_back(counters.run * 1e6);
      check.push_back((wall - counters.bind - counters.run) * 1e6);
    }
    if (!std::isfinite(y[0])) return std::fprintf(stderr, "bench_runtime: the model computes no numbers\n"), 1;
    const int launches = program->counters().launches;
    std::printf(
        "{\"engine\":\"quern\",\"bench\":\"decode_step\",\"launches\":%d,\"threads\":%d,\"bind_us\":%.2f,\"bind_p99_"
        "us\":%.2f,"
        "\"check_us\":%.2f,\"kernels_us\":%.1f,\"launch_us\":%.3f}\n",
        launches, options.threads, Quantile(bind, 0.5), Quantile(bind, 0.99), Quantile(check, 0.5),
        Quantile(kernels, 0.5), Quantile(kernels, 0.5) / launches);
  }
  return 0;
}
