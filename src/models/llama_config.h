// Hyper-parameters of a Llama model, checked.
#pragma once

#include <vector>

#include "base/memory.h"
#include "models/metadata.h"
#include "models/model_spec.h"

namespace quern::models {

struct LlamaConfig {
  int64_t width, layers, heads, kv_heads, head_dim, hidden, vocabulary, context;
  double eps;
  int64_t n_rot;
  double rope_base;
  double rope_factor;  // linear scaling: positions are divided by it
};

// Hostile files: every value is bounded before anything is computed from it.
StatusOr<LlamaConfig> ReadLlamaConfig(const GgufFile& file, const ModelOptions& options);

// The angle of every pair: cos and sin of (position / rope_factor) * rope_base^(-2i/n_rot) / factors[i], computed in
// double, rounded to f32: [positions][n_rot / 2]. `factors` (rope_freqs.weight) may be empty.
struct RopeTables {
  Memory cosine, sine;
};
// Error: ResourceExhausted.
StatusOr<RopeTables> MakeRopeTables(const LlamaConfig& config, const std::vector<float>& factors, int64_t positions);

}  // namespace quern::models
