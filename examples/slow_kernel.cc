// Why is this kernel slow? The same arithmetic on the columns of a matrix that a list picks, and on the matrix as it
// lies.
//
//   slow_kernel          profiles both
//   slow_kernel STAGE    prints both at that stage: mir, kir, llvm or asm
//
// docs/slow-kernel.md walks through what it prints.
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <vector>

#include "quern/graph.h"
#include "quern/profile.h"

namespace {

constexpr int kRows = 768, kColumns = 3072;

// y = |x|, of x as it lies or of the columns that `at` picks.
quern::Graph Build(bool picks) {
  quern::Graph g(picks ? "picked" : "as_it_lies");
  quern::Value value = g.Input("x", "f32[768, 3072]");
  if (picks) value = g.Op("Gather", {value, g.Input("at", "i32[3072]")}, {{"axis", 1}});
  g.Output("y", g.Op("Abs", {value}, {}, "magnitude"));
  return g;
}

quern::Result<std::string> Profiled(bool picks) {
  std::vector<float> x(kRows * kColumns), y(x.size());
  std::iota(x.begin(), x.end(), -1000.0f);
  std::vector<int32_t> at(kColumns);
  for (int c = 0; c < kColumns; ++c) at[c] = c * 1025 % kColumns;  // each once, no two neighbours
  quern::Graph g = Build(picks);
  quern::Options options;
  options.threads = 1;
  quern::Result<quern::Program> program = g.Compile(options);
  if (!program.ok()) return quern::Result<std::string>::Failed(program.details());
  quern::Result<quern::Profiler> profiler = quern::Profiler::Attach(*program);
  if (!profiler.ok()) return quern::Result<std::string>::Failed(profiler.details());
  const std::vector<int64_t> dims = {kRows, kColumns};
  std::vector<quern::ConstTensor> inputs = {quern::In("x", x, dims)};
  if (picks) inputs.push_back(quern::In("at", at, {kColumns}));
  for (int step = 0; step < 22; ++step) {
    if (step == 0) profiler->Phase("warm-up", true);
    if (step == 2) profiler->Phase("steady");
    const quern::Result<void> ran = program->Run(inputs, {quern::Out("y", y, dims)});
    if (!ran.ok()) return quern::Result<std::string>::Failed(ran.details());
  }
  return profiler->Table();
}

}  // namespace

int main(int argc, char** argv) {
  for (const bool picks : {true, false}) {
    quern::Result<std::string> text = argc > 1 ? Build(picks).Dump({.stage = argv[1]}) : Profiled(picks);
    if (!text.ok()) return std::fprintf(stderr, "%s\n", text.error().c_str()), 1;
    std::printf("%s\n", text->c_str());
  }
  return 0;
}
