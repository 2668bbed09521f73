// A small graph in text form, compiled, run on values that are drawn, and held to the double interpreter by the
// contracts of its ops, as `quern replay` does: fused and not, on one thread and on two, at this machine's level and
// the least one, with and without quantised activations; which of them, the text decides. What is wrong is written
// beside the input that libFuzzer keeps, as a reproduction: `quern replay` runs it, `quern reduce` makes it smaller.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "check/draw.h"
#include "check/evaluate.h"
#include "check/replay.h"
#include "check/reproduction.h"
#include "check/value.h"
#include "compiler/checking.h"
#include "compiler/model.h"
#include "fuzz/mutate_text.h"
#include "ir/counted.h"
#include "ir/op.h"
#include "runtime/kernel_cache.h"
#include "runtime/thread_pool.h"

namespace {

using namespace quern;

constexpr size_t kMostText = 4096;
constexpr int64_t kMostElements = 1 << 13;  // of all values together
constexpr int64_t kMostTrips = 64;
constexpr double kMostOfPeriodic = 1000;

#if defined(__x86_64__)
constexpr const char* kLevels[] = {"native", "x86-64-v2"};
#else
constexpr const char* kLevels[] = {"native", "native"};
#endif

std::string folder;  // where findings go: libFuzzer's prefix

// Whether a few values need to be computed to know what the graph is, and no loop goes on for ever.
bool IsSmall(const ir::Graph& graph, const Binding& sizes) {
  int64_t left = kMostElements;
  for (const ir::Node& node : graph.nodes()) {
    if (std::string_view(node.op->name) == "While") {
      const int64_t trips = node.attributes.Int("max");
      if (trips == 0 || trips > kMostTrips) return false;
    }
    for (const ir::TensorType& type : node.results) {
      const StatusOr<int64_t> elements = type.elements().Evaluate(sizes);
      if (!elements.ok() || *elements < 0 || *elements > left) return false;
      left -= *elements;
    }
    for (const auto& body : node.bodies) {
      if (!IsSmall(*body, sizes)) return false;
    }
  }
  return true;
}

// Whether errors of f32 are small beside the period of every periodic op: else what it makes is anybody's guess.
bool IsSteady(const ir::Graph& graph, const Binding& sizes, const ir::Feeds& feeds) {
  const StatusOr<check::Evaluation> values = check::Evaluate(graph, sizes, feeds);
  if (!values.ok()) return false;
  for (const ir::Node& node : graph.nodes()) {
    const std::string_view op = node.op->name;
    if (op != "Sin" && op != "Cos" && op != "Tan" && op != "Mod") continue;
    const ir::RefTensor& x = values->At(node.inputs[0]);
    if (std::any_of(x.data.begin(), x.data.end(), [](double value) { return std::fabs(value) > kMostOfPeriodic; }))
      return false;
  }
  return true;
}

[[noreturn]] void Report(const check::Reproduction& reproduction, const std::string& what) {
  const std::string path =
      absl::StrCat(folder, "finding-", std::hash<std::string>()(ir::Print(reproduction.graph)) % 1000000, ".qir");
  const Status written = check::Write(reproduction, path);
  std::fprintf(stderr, "%s\n%s\n%s\n", ir::Print(reproduction.graph).c_str(), what.c_str(),
               written.ok() ? absl::StrCat("quern replay ", path).c_str() : written.ToString().c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kPrefix = "-artifact_prefix=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(kPrefix)) folder = argument.substr(kPrefix.size());
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kMostText) return 0;
  StatusOr<ir::Graph> graph = ir::Parse({reinterpret_cast<const char*>(data), size});
  if (!graph.ok() || graph->outputs.empty()) return 0;
  check::Reproduction reproduction;
  uint64_t choice = std::hash<std::string>()(ir::Print(*graph));
  const auto choose = [&choice](uint64_t n) {
    const uint64_t chosen = choice % n;
    choice /= n;
    return static_cast<int64_t>(chosen);
  };
  reproduction.settings = {.cpu = kLevels[choose(2)],
                           .threads = static_cast<int>(1 + choose(2)),
                           .fuse = choose(4) != 0,
                           .exact = choose(2) == 0};
  for (const auto& [symbol, range] : ir::GivenSymbols(*graph)) {
    reproduction.sizes[symbol] =
        range.low + choose(static_cast<uint64_t>(std::min<int64_t>(range.high - range.low, 8)) + 1);
  }
  const StatusOr<Binding> most = check::MostSizes(*graph, reproduction.sizes);
  if (!most.ok() || !IsSmall(*graph, *most)) return 0;
  StatusOr<check::Bytes> bytes = check::DrawBytes(*graph, reproduction.sizes, 1);
  if (!bytes.ok()) return 0;
  reproduction.graph = *std::move(graph);
  reproduction.bytes = *std::move(bytes);
  if (!check::Check(reproduction).ok()) return 0;

  StatusOr<compiler::PipelineOptions> pipeline =
      compiler::PipelineOptionsOf({.cpu = reproduction.settings.cpu, .exact = reproduction.settings.exact});
  if (!pipeline.ok()) std::abort();
  pipeline->fuse = reproduction.settings.fuse;
  pipeline->verify_steps = true;
  const StatusOr<check::Planned> planned = compiler::PlanReproduction(reproduction, *pipeline);
  if (planned.status().code() == absl::StatusCode::kInternal) Report(reproduction, planned.status().ToString());
  if (!planned.ok()) return 0;

  jit::EngineOptions engine_options;
  engine_options.cpu = reproduction.settings.cpu;
  engine_options.threads = 1;
  StatusOr<std::shared_ptr<jit::Engine>> engine = jit::Engine::Create(engine_options);
  if (!engine.ok()) std::abort();
  static const std::array<std::shared_ptr<ThreadPool>, 2> pools = {std::make_shared<ThreadPool>(1),
                                                                   std::make_shared<ThreadPool>(2)};
  ExecutableOptions options;
  options.cache = std::make_shared<KernelCache>(*std::move(engine));
  options.pool = pools[reproduction.settings.threads - 1];
  const StatusOr<std::optional<check::Finding>> finding = check::Replay(reproduction, *planned, std::move(options));
  if (finding.status().code() == absl::StatusCode::kInternal) Report(reproduction, finding.status().ToString());
  if (!finding.ok() || !*finding) return 0;
  const StatusOr<ir::Feeds> feeds = check::FeedsOf(planned->meaning, reproduction.sizes, reproduction.bytes);
  if (feeds.ok() && IsSteady(planned->meaning, reproduction.sizes, *feeds))
    Report(reproduction, (*finding)->ToString());
  return 0;
}
