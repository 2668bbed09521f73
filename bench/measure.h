// What the benchmark programs share: clocks, medians of interleaved runs, and the read loop that memory-bound figures
// are held against.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <vector>

namespace quern::bench {

// Results that must be computed go here.
inline volatile uint64_t sink;

inline double Seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
// Of this thread's processor, so that a neighbour's time slices do not count.
inline double ThreadTime(const std::function<void()>& run) {
  const double start = Seconds(CLOCK_THREAD_CPUTIME_ID);
  run();
  return Seconds(CLOCK_THREAD_CPUTIME_ID) - start;
}
inline double WallTime(const std::function<void()>& run) {
  const double start = Seconds(CLOCK_MONOTONIC);
  run();
  return Seconds(CLOCK_MONOTONIC) - start;
}

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Median seconds of each body on this thread, run in turn.
inline std::vector<double> InTurn(int rounds, const std::vector<std::function<void()>>& bodies) {
  std::vector<std::vector<double>> times(bodies.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < bodies.size(); ++i) times[i].push_back(ThreadTime(bodies[i]));
  }
  std::vector<double> medians;
  for (const std::vector<double>& t : times) medians.push_back(Median(t));
  return medians;
}

// Reads every byte (a multiple of 256) once, with eight sums and the next lines asked for: as fast as one thread reads.
__attribute__((target("avx2"))) inline void ReadLoop(const void* data, int64_t bytes) {
  const char* p = static_cast<const char*>(data);
  __m256i sum[8] = {};
  for (int64_t at = 0; at + 256 <= bytes; at += 256) {
    for (int i = 0; i < 8; ++i) {
      if (i % 2 == 0) _mm_prefetch(p + at + 8192 + 32 * i, _MM_HINT_T0);
      sum[i] = _mm256_add_epi64(sum[i], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + at + 32 * i)));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm256_add_epi64(sum[0], sum[i]);
  sink = sink + static_cast<uint64_t>(_mm256_extract_epi64(sum[0], 0));
}

}  // namespace quern::bench
