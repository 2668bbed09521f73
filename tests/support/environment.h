// Numbers that a user sets for a run of tests: QUERN_RANDOM_SEED, QUERN_LONG_TESTS.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace quern::testing {

// The variable's number, or `otherwise` where it is not set, 0 or no number.
inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  const uint64_t number = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return number == 0 ? otherwise : number;
}

}  // namespace quern::testing
