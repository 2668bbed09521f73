// Seeded random graphs of many elementwise ops of one shape, whose values are used near and far: what is cut by the
// registers.
#pragma once

#include <cstdint>
#include <string>

namespace quern::testing {

struct WideGraphOptions {
  int nodes = 300;
  std::string symbols = "";   // "sym S in 1..64"
  std::string dims = "5000";  // of nearly all values
  std::string row = "1";      // dims of an operand that is broadcast to them
  std::string real = "f32";   // the dtype of most; "f64"
  bool mixed = true;          // integers, bools and halves beside it
};

// As text: outputs of `real`, i32, bool and f16 where they are mixed, else two of `real`. Values stay of moderate size;
// integers wrap.
std::string WideGraph(uint64_t seed, const WideGraphOptions& options);

}  // namespace quern::testing
