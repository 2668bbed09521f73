// Variables of the environment.
#pragma once

#include <cstdlib>
#include <string>

namespace quern {

// The value of the variable; empty where there is none.
inline std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace quern
