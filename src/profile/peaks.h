// Loops that do nothing but keep one kind of unit busy: what the processor gives at most at one level. Internal to
// profile.
#pragma once

#include <cstdint>
#include <string_view>

namespace quern::profile {

struct PeakLoops {
  std::string_view level;
  // Reads `bytes`, a multiple of 4096, and gives a sum so that it cannot be left out.
  uint64_t (*read)(const void* data, int64_t bytes);
  // Runs `steps` and returns the operations of one step; independent multiply-adds of f32, products of bf16, or byte
  // dot products.
  int64_t (*f32)(int64_t steps);
  int64_t (*bf16)(int64_t steps);  // of f32 too where the level has nothing else
  int64_t (*int8)(int64_t steps);
};

// Those of a level this machine runs.
const PeakLoops& PeaksOf(std::string_view level);

}  // namespace quern::profile
