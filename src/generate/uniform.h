// Numbers of a seed, each uniform in [0, 1), from Philox (philox.h): number n is a function of the seed and n alone.
#pragma once

#include <cstdint>

#include "generate/philox.h"

namespace quern {

// Not thread-safe. A copy goes on by itself.
class UniformStream {
 public:
  explicit UniformStream(uint64_t seed) : seed_(seed) {}

  double Next() {
    const PhiloxCounter counter = {static_cast<uint32_t>(drawn_), static_cast<uint32_t>(drawn_ >> 32), 0, 0};
    const PhiloxKey key = {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)};
    ++drawn_;
    const PhiloxCounter bits = Philox4x32(counter, key);
    // 53 bits: every double of that grid below 1 is equally likely.
    return static_cast<double>((uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
  }
  // How many there were: with the seed, the whole state.
  uint64_t drawn() const { return drawn_; }
  void set_drawn(uint64_t drawn) { drawn_ = drawn; }

 private:
  uint64_t seed_, drawn_ = 0;
};

}  // namespace quern
