// Flush-to-zero and denormals-are-zero for the lifetime of the object: a denormal scale halves the speed of a kernel,
// and no model depends on one. The caller's mode comes back afterwards.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern {

class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#else
  FlushDenormals() {}
#endif
 public:
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
};

}  // namespace quern
