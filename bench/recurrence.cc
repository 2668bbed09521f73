// How long a graph with states takes beside a loop that updates as many bytes in place: what `quern bench` cannot say,
// as it sets states before every run. One JSON object a graph on standard output; medians of rounds in turn:
//   bench_recurrence GRAPH.qir.. [--threads 1] [--rounds 20]
//   {"engine":"quern","bench":"gdn.qir","threads":1,"run_us":..,"least_run_us":..,"loop_us":..,"least_loop_us":..,
//    "state_bytes":..}
// run_us: the dispatches of a run; loop_us: s = s * a + b over the states, by one thread, or 0 where there are none.
// The least of each is what a loaded machine says best.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "measure.h"
#include "quern/graph.h"

namespace {

// "f32[2, 3]" as sizes. Sizes of what is timed are constants.
std::vector<int64_t> Sizes(const std::string& type) {
  std::vector<int64_t> sizes;
  for (size_t at = type.find('[') + 1; at < type.size() && type[at] != ']';) {
    size_t used = 0;
    sizes.push_back(std::stoll(type.substr(at), &used));
    at += used;
    while (at < type.size() && (type[at] == ',' || type[at] == ' ')) ++at;
  }
  return sizes;
}

size_t Elements(const std::vector<int64_t>& sizes) {
  size_t count = 1;
  for (const int64_t size : sizes) count *= static_cast<size_t>(size);
  return count;
}

// Small numbers, below 0: decays stay below 1, and no state grows.
void Fill(std::span<float> values) {
  uint32_t state = 1;
  for (float& value : values)
    value = -0.1f * static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
}

void Update(std::span<float> values) {
  for (float& value : values) value = value * 0.999f + 0.001f;
}

int Time(const std::string& file, int threads, int rounds) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  quern::Result<quern::Graph> graph = quern::Graph::Parse(text);
  if (!graph.ok()) return std::fprintf(stderr, "%s: %s\n", file.c_str(), graph.error().c_str()), 1;
  quern::Result<quern::Program> program = graph->Compile({.threads = threads});
  if (!program.ok()) return std::fprintf(stderr, "%s: %s\n", file.c_str(), program.error().c_str()), 1;
  std::vector<std::vector<float>> memory;
  std::vector<quern::ConstTensor> inputs;
  std::vector<quern::MutableTensor> outputs;
  for (const quern::TensorInfo& input : program->inputs()) {
    memory.emplace_back(Elements(Sizes(input.type)));
    Fill(memory.back());
    inputs.push_back(quern::In(input.name, memory.back(), Sizes(input.type)));
  }
  for (const quern::TensorInfo& output : program->outputs()) {
    memory.emplace_back(Elements(Sizes(output.type)));
    outputs.push_back(quern::Out(output.name, memory.back(), Sizes(output.type)));
  }
  size_t state_bytes = 0;
  std::vector<std::span<float>> states;
  for (const quern::TensorInfo& state : program->states()) {
    const std::span<std::byte> bytes = *program->State(state.name);
    states.emplace_back(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
    Fill(states.back());
    state_bytes += bytes.size();
  }
  std::vector<double> run, loop;
  for (int round = 0; round < rounds + 2; ++round) {
    if (const quern::Result<void> ran = program->Run(inputs, outputs); !ran.ok())
      return std::fprintf(stderr, "%s: %s\n", file.c_str(), ran.error().c_str()), 1;
    if (round >= 2) run.push_back(program->counters().run * 1e6);
    const auto start = std::chrono::steady_clock::now();
    for (const std::span<float> state : states) Update(state);
    loop.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e6);
  }
  if (states.empty()) loop = {0};
  const auto least = [](const std::vector<double>& of) { return *std::min_element(of.begin(), of.end()); };
  std::printf(
      "{\"engine\":\"quern\",\"bench\":\"%s\",\"threads\":%d,\"run_us\":%.1f,\"least_run_us\":%.1f,"
      "\"loop_us\":%.1f,\"least_loop_us\":%.1f,\"state_bytes\":%zu}\n",
      file.substr(file.rfind('/') + 1).c_str(), threads, quern::bench::Median(run), least(run),
      quern::bench::Median(loop), least(loop), state_bytes);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 1, rounds = 20;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
      threads = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
      rounds = std::max(1, std::atoi(argv[++i]));
    else
      files.emplace_back(argv[i]);
  }
  int failed = 0;
  for (const std::string& file : files) failed |= Time(file, threads, rounds);
  return failed;
}
