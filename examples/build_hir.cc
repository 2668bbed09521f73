// Builds a feed-forward block over a batch of any size, compiles it, runs it, and checks it against plain loops:
// build_hir
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "quern/graph.h"

int main() {
  constexpr int kWidth = 48, kHidden = 112, kBatch = 3;
  auto noise = [seed = 1u](size_t count) mutable {
    std::vector<float> values(count);
    for (float& v : values) v = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-24f - 0.5f;
    return values;
  };
  const std::vector<float> up = noise(kWidth * kHidden), gate = noise(kWidth * kHidden), down = noise(kHidden * kWidth);
  const std::vector<float> x = noise(kBatch * kWidth);
  std::vector<float> y(kBatch * kWidth);

  quern::Graph g("feed_forward");
  g.Symbol("BATCH", 1, 64);
  const quern::Value in = g.Input("x", "f32[BATCH, 48]");
  const quern::Value ffn =
      g.Block("SwiGLU", {in, g.Param("up", "f32[48, 112]", up), g.Param("gate", "f32[48, 112]", gate),
                         g.Param("down", "f32[112, 48]", down)});
  g.Output("y", g.Op("Add", {in, ffn}));
  quern::Result<quern::Program> program = g.Compile();
  if (!program.ok()) return std::fprintf(stderr, "%s\n", program.error().c_str()), 1;
  const quern::Result<void> ran =
      program->Run({quern::In("x", x, {kBatch, kWidth})}, {quern::Out("y", y, {kBatch, kWidth})});
  if (!ran.ok()) return std::fprintf(stderr, "%s\n", ran.error().c_str()), 1;

  double worst = 0;
  for (int b = 0; b < kBatch; ++b) {
    std::vector<double> want(x.begin() + b * kWidth, x.begin() + (b + 1) * kWidth);
    for (int h = 0; h < kHidden; ++h) {
      double u = 0, v = 0;
      for (int i = 0; i < kWidth; ++i)
        u += x[b * kWidth + i] * up[i * kHidden + h], v += x[b * kWidth + i] * gate[i * kHidden + h];
      for (int i = 0; i < kWidth; ++i) want[i] += u * v / (1 + std::exp(-v)) * down[h * kWidth + i];
    }
    for (int i = 0; i < kWidth; ++i) worst = std::max(worst, std::abs(want[i] - y[b * kWidth + i]));
  }
  std::printf("%d rows of %d, the largest difference is %.1e\n", kBatch, kWidth, worst);
  return worst < 1e-4 ? 0 : 1;
}
