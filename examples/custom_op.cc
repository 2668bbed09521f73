// An op of one's own in a graph: median_filter, a C function (median.c), between two of Quern's.
//   custom_op                      runs it in this process, held to its reference
//   custom_op --compile FOLDER     writes smooth.o, .h and .json there, for custom_op_main.c
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "median.h"
#include "quern/compile.h"
#include "quern/custom.h"
#include "quern/graph.h"

namespace {

using Types = std::vector<std::string>;

constexpr int32_t kWidth = 5;
constexpr int64_t kRows = 3, kLength = 40;

int Fail(const std::string& why) { return std::fprintf(stderr, "%s\n", why.c_str()), 1; }

quern::Result<void> Reference(const std::vector<quern::CustomTensor>& operands, std::string_view attrs,
                              std::vector<quern::CustomTensor>& results) {
  int32_t width = 0;
  std::memcpy(&width, attrs.data(), sizeof(width));
  const int64_t n = operands[0].shape[1];
  for (int64_t e = 0; e < operands[0].shape[0] * n; ++e) {
    const int64_t from = std::max<int64_t>(e % n - width / 2, 0), to = std::min<int64_t>(e % n + width / 2, n - 1);
    const auto row = operands[0].elements.begin() + e / n * n;
    std::vector<double> window(row + from, row + to + 1);
    std::sort(window.begin(), window.end());
    results[0].elements[e] = window[window.size() / 2];
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const quern::Result<void> known = quern::RegisterCustomOp({
      .name = "median_filter",
      .kernel = median_filter,
      .parts = 8,
      .infer = [](const Types& operands, std::string_view attrs) -> quern::Result<Types> {
        if (operands.size() == 1 && operands[0].starts_with("f32[") && attrs.size() == sizeof(int32_t)) return operands;
        quern::Error error;
        error.code = quern::ErrorCode::kInvalid;
        error.message = "rows of f32 and the width of a window expected";
        return quern::Result<Types>::Failed(error);
      },
      .reference = Reference,
  });
  if (!known.ok()) return Fail(known.error());

  quern::Graph g("smooth");
  g.Symbol("ROWS", 1, 64);
  const quern::Value x = g.Op("Exp", {g.Input("x", "f32[ROWS, 40]")});
  const std::string attrs(reinterpret_cast<const char*>(&kWidth), sizeof(kWidth));
  const quern::Value smooth = g.Op("Custom", {x}, {{"name", "median_filter"}, {"attrs", attrs}}, "median");
  g.Output("y", g.Op("Mul", {smooth, g.Scalar(0.5f)}));
  if (argc == 3 && std::strcmp(argv[1], "--compile") == 0) {
    const quern::Result<quern::CompiledFiles> files = quern::CompileGraph(g, {}, {.folder = argv[2]});
    return files.ok() ? 0 : Fail(files.error());
  }

  std::vector<float> in(kRows * kLength), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 37 % 101) / 101;
  for (const char* check : {"", "ref"}) {
    quern::Options options;
    options.check = check;
    quern::Result<quern::Program> program = g.Compile(options);
    if (!program.ok()) return Fail(program.error());
    const quern::Result<void> ran =
        program->Run({quern::In("x", in, {kRows, kLength})}, {quern::Out("y", out, {kRows, kLength})});
    if (!ran.ok()) return Fail(ran.error());
  }
  double sum = 0;
  for (const float y : out) sum += y;
  std::printf("%.4f %.4f %.4f\n", out[0], out[57], sum);
  return 0;
}
