// Flush-to-zero and denormals-are-zero for the lifetime of the object. The caller's mode comes back afterwards.
#pragma once

#include <cstdint>

#include "rt/float_mode.h"

namespace quern {

class FlushDenormals {
 public:
  FlushDenormals() : saved_(flush_denormals()) {}
  ~FlushDenormals() { restore_denormals(saved_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace quern
