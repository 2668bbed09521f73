// Rotary position embeddings: which angle each pair of elements turns by at each position, as a file says it.
//
//   angle(p, i) = p * f(i),  f(i) = base^(-2i / n_rot) / factors[i]            i < n_rot / 2
//
//   linear     f(i) / factor: positions are closer together than in training
//   yarn       f(i) / factor for pairs that turn seldom within the trained length, f(i) for those that turn often, and
//              between the two in between (Peng et al., "YaRN", arXiv:2309.00071, section 3.2); both tables are times
//              0.1 ln(factor) + 1, or what the file says (3.4)
//   longrope   factors of their own for contexts above the trained length (rope_factors_long) and up to it
//              (rope_factors_short); both tables are times attn_factor (Ding et al., arXiv:2402.13753)
//   llama3     factors in the file (rope_freqs)
#pragma once

#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "models/hyperparameters.h"

namespace quern::models {

struct RotaryRule {
  int64_t n_rot = 0;    // elements of a head that turn; even
  double base = 10000;  // of the frequencies
  double factor = 1;    // linear and yarn: positions are divided by it
  bool yarn = false;
  double beta_fast = 32, beta_slow = 1;  // yarn: turns within the trained length, from and up to which pairs are mixed
  int64_t trained = 0;                   // yarn: that length
  double magnitude = 1;                  // of both tables
  std::vector<float> factors;            // of each pair; empty: 1
};

// The rule of a file for heads of head_dim elements and a context; without the factors, which are tensors.
RotaryRule ReadRotaryRule(Hyperparameters& numbers, int64_t head_dim, int64_t trained_context);

// cos and sin of every angle, times the magnitude, computed in double and rounded to f32: [positions][n_rot / 2].
struct RotaryTables {
  Memory cosine, sine;
};
// Error: ResourceExhausted.
StatusOr<RotaryTables> MakeRotaryTables(const RotaryRule& rule, int64_t positions);

}  // namespace quern::models
