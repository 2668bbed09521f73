// Why is this kernel slow? The same arithmetic on a matrix that has to be transposed, and on one that lies as it is
// needed.
//
//   slow_kernel          profiles both
//   slow_kernel STAGE    prints both at that stage: mir, kir, llvm or asm
//
// docs/slow-kernel.md walks through what it prints.
#include <cstdio>
#include <numeric>

#include "quern/graph.h"
#include "quern/profile.h"

namespace {

constexpr int kRows = 1536, kColumns = 1024;

// y = |x|, where x is transposed first, or not. Of integers: floats are transposed in registers.
quern::Graph Build(bool transposed) {
  quern::Graph g(transposed ? "transposed" : "as_it_lies");
  quern::Value value = g.Input("x", "i32[1536, 1024]");
  if (transposed) value = g.Op("Transpose", {value}, {{"perm", std::vector<int64_t>{1, 0}}});
  g.Output("y", g.Op("Abs", {value}, {}, "magnitude"));
  return g;
}

quern::Result<std::string> Profiled(bool transposed) {
  std::vector<int32_t> x(kRows * kColumns), y(x.size());
  std::iota(x.begin(), x.end(), -1000);
  quern::Graph g = Build(transposed);
  quern::Options options;
  options.threads = 1;
  quern::Result<quern::Program> program = g.Compile(options);
  if (!program.ok()) return quern::Result<std::string>::Failed(program.details());
  quern::Result<quern::Profiler> profiler = quern::Profiler::Attach(*program);
  if (!profiler.ok()) return quern::Result<std::string>::Failed(profiler.details());
  const std::vector<int64_t> shape =
      transposed ? std::vector<int64_t>{kColumns, kRows} : std::vector<int64_t>{kRows, kColumns};
  for (int step = 0; step < 22; ++step) {
    if (step == 0) profiler->Phase("warm-up", true);
    if (step == 2) profiler->Phase("steady");
    const quern::Result<void> ran = program->Run({quern::In("x", x, {kRows, kColumns})}, {quern::Out("y", y, shape)});
    if (!ran.ok()) return quern::Result<std::string>::Failed(ran.details());
  }
  return profiler->Table();
}

}  // namespace

int main(int argc, char** argv) {
  for (const bool transposed : {true, false}) {
    quern::Result<std::string> text = argc > 1 ? Build(transposed).Dump({.stage = argv[1]}) : Profiled(transposed);
    if (!text.ok()) return std::fprintf(stderr, "%s\n", text.error().c_str()), 1;
    std::printf("%s\n", text->c_str());
  }
  return 0;
}
