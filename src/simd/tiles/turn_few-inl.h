// Rows of a few elements that lie behind each other to as many long rows, and back: the pixels of an image to planes.
//
//   Split: dst[p][j] = src[j * N + p]    Join: dst[p * N + j] = src[j][p]
//
// N vectors hold as many whole rows, and become N vectors of the other side. Each of these takes its elements from all
// of the N, one after the other: a shuffle of two vectors for each but the first, where the level has those of the
// element's width one instruction.
#pragma once

#include <utility>

#include "simd/math/vector.h"

namespace {

// Where the next block begins: whole ones, then one that ends at the end.
HWY_INLINE int64_t NextBlock(int64_t at, int64_t step, int64_t length) {
  return at + 2 * step <= length || at + step == length ? at + step : length - step;
}

template <int kBytes>
struct Lanes {
  typedef hwy::UnsignedFromSize<kBytes> Vector __attribute__((vector_size(HWY_MAX_BYTES)));
  static constexpr int kCount = HWY_MAX_BYTES / kBytes;
};

// Which element of the N vectors, as if they were one, is `lane` of output `out`.
template <int kBytes, int N, bool kJoin>
constexpr int SourceOf(int out, int lane) {
  constexpr int kCount = Lanes<kBytes>::kCount;
  const int at = out * kCount + lane;
  return kJoin ? at % N * kCount + at / N : lane * N + out;
}

// That lane of a shuffle of what vectors before `step` gave and of that vector; -1: a later one gives it.
template <int kBytes, int N, bool kJoin>
constexpr int ChoiceOf(int out, int step, int lane) {
  constexpr int kCount = Lanes<kBytes>::kCount;
  const int source = SourceOf<kBytes, N, kJoin>(out, lane), vector = source / kCount;
  if (vector > step) return -1;
  if (vector == step) return kCount + source % kCount;
  return step == 1 ? source : lane;
}

template <int kBytes, int N, bool kJoin, int kOut, int kStep, int... kLane>
HWY_INLINE typename Lanes<kBytes>::Vector Chosen(typename Lanes<kBytes>::Vector sum,
                                                 typename Lanes<kBytes>::Vector next,
                                                 std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(sum, next, ChoiceOf<kBytes, N, kJoin>(kOut, kStep, kLane)...);
}

template <int kBytes, int N, bool kJoin, int kOut, int kStep = 1>
HWY_INLINE typename Lanes<kBytes>::Vector Collected(typename Lanes<kBytes>::Vector sum,
                                                    const typename Lanes<kBytes>::Vector* v) {
  if constexpr (kStep < N) {
    constexpr auto kLanesOf = std::make_integer_sequence<int, Lanes<kBytes>::kCount>();
    return Collected<kBytes, N, kJoin, kOut, kStep + 1>(Chosen<kBytes, N, kJoin, kOut, kStep>(sum, v[kStep], kLanesOf),
                                                        v);
  } else {
    return sum;
  }
}

// From `src`, vectors that are src_step bytes apart, to `dst`.
template <int kBytes, int N, bool kJoin>
HWY_INLINE void MoveFew(char* dst, int64_t dst_step, const char* src, int64_t src_step) {
  typename Lanes<kBytes>::Vector v[N];
#pragma clang loop unroll(full)
  for (int i = 0; i < N; ++i) __builtin_memcpy(&v[i], src + i * src_step, HWY_MAX_BYTES);
  const auto store = [&]<int kOut>() {
    const auto out = Collected<kBytes, N, kJoin, kOut>(v[0], v);
    __builtin_memcpy(dst + kOut * dst_step, &out, HWY_MAX_BYTES);
  };
  [&]<int... kOut>(std::integer_sequence<int, kOut...>) {
    (store.template operator()<kOut>(), ...);
  }(std::make_integer_sequence<int, N>());
}

// `length` >= a vector's lanes: of the long rows, which are `stride` bytes apart.
template <int kBytes, int N>
HWY_NOINLINE void Split(char* dst, int64_t stride, const char* src, int64_t length) {
  for (int64_t j = 0; j < length; j = NextBlock(j, Lanes<kBytes>::kCount, length))
    MoveFew<kBytes, N, false>(dst + j * kBytes, stride, src + j * N * kBytes, HWY_MAX_BYTES);
}

template <int kBytes, int N>
HWY_NOINLINE void Join(char* dst, const char* src, int64_t stride, int64_t length) {
  for (int64_t p = 0; p < length; p = NextBlock(p, Lanes<kBytes>::kCount, length))
    MoveFew<kBytes, N, true>(dst + p * N * kBytes, HWY_MAX_BYTES, src + p * kBytes, stride);
}

}  // namespace
