// Drawing the next token from logits: temperature, top-k, top-p, a seed.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quern {

struct SampleOptions {
  double temperature = 0;  // 0: the most likely token
  int top_k = 0;           // keep tokens at least as likely as the k-th; 0: all
  double top_p = 1;        // then keep the smallest set whose probability reaches this; 1: all
  uint64_t seed = 0;
};

// Of equal logits the smaller id comes first, also for the greedy choice. NaN logits are never chosen; when all are, the
// result is 0. Not thread-safe: the counter of draws moves on with each call.
class TokenSampler {
 public:
  explicit TokenSampler(const SampleOptions& options) : options_(options) {}
  // Precondition: logits are not empty.
  int32_t Next(std::span<const float> logits);

 private:
  double Uniform();  // in [0, 1)

  SampleOptions options_;
  uint64_t draws_ = 0;
  std::vector<std::pair<float, int32_t>> candidates_;
};

}  // namespace quern
