// An attention step for few query rows (decode: the query heads that share a kv head), vectors along the head.
//
// Each key is read once for up to 8 rows; lane a of a vector of scores is row a % R of key a / R, so one reduction tree
// turns kLanes dot products into one vector, and softmax needs no horizontal steps until its end.
#pragma once

#include "simd/tiles/flash_step-inl.h"

namespace {

constexpr int kFewRows = kLanes < 8 ? 4 : 8;  // rows of one pass

// Lane a of the result: the sum of the lanes of x[a].
HWY_INLINE VF SumEach(const VF* x) {
  const hn::Repartition<double, F32> pairs;
  VF piece[kLanes / 4];  // in every 128-bit piece, lane a: the sum of that piece of x[4 g + a]
#pragma clang loop unroll(full)
  for (int g = 0; g < kLanes / 4; ++g) {
    const VF* a = x + 4 * g;
    const auto ab =
        hn::BitCast(pairs, hn::Add(hn::InterleaveLower(kF32, a[0], a[1]), hn::InterleaveUpper(kF32, a[0], a[1])));
    const auto cd =
        hn::BitCast(pairs, hn::Add(hn::InterleaveLower(kF32, a[2], a[3]), hn::InterleaveUpper(kF32, a[2], a[3])));
    piece[g] = hn::Add(hn::BitCast(kF32, hn::InterleaveLower(pairs, ab, cd)),
                       hn::BitCast(kF32, hn::InterleaveUpper(pairs, ab, cd)));
  }
#if HWY_MAX_BYTES == 16
  return piece[0];
#elif HWY_MAX_BYTES == 32
  return hn::Add(hn::ConcatLowerLower(kF32, piece[1], piece[0]), hn::ConcatUpperUpper(kF32, piece[1], piece[0]));
#else
  const VF even =
      hn::Add(hn::ConcatLowerLower(kF32, piece[2], piece[0]), hn::ConcatUpperUpper(kF32, piece[2], piece[0]));
  const VF odd =
      hn::Add(hn::ConcatLowerLower(kF32, piece[3], piece[1]), hn::ConcatUpperUpper(kF32, piece[3], piece[1]));
  return hn::Add(hn::OddEvenBlocks(odd, even), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(even, odd)));
#endif
}

// Scores of kLanes / R keys from `key` on against R rows; keys from `end` on repeat the last one, rows from `rows` on
// the last row.
template <typename Q, typename K, int R>
HWY_INLINE VF DotKeys(const Step& s, const char* const* q, int64_t key, int64_t end) {
  constexpr int kKeys = kLanes / R, kTogether = AlongRow<Q>::kElements;
  VF sum[kLanes];
#pragma clang loop unroll(full)
  for (int a = 0; a < kLanes; ++a) sum[a] = hn::Zero(kF32);
  const char* k[kKeys];
#pragma clang loop unroll(full)
  for (int j = 0; j < kKeys; ++j) k[j] = s.k + (key + j < end ? key + j : end - 1) * s.k_stride;
  const auto multiply = [&](int64_t at, const auto& load) {
    const auto of_row = [&](int i) { return load(reinterpret_cast<const Q*>(q[i]) + at); };
    decltype(of_row(0)) row[R];
    if constexpr (R <= kKeys) {  // the smaller side waits in registers
#pragma clang loop unroll(full)
      for (int i = 0; i < R; ++i) row[i] = of_row(i);
    }
#pragma clang loop unroll(full)
    for (int j = 0; j < kKeys; ++j) {
      const auto vk = load(reinterpret_cast<const K*>(k[j]) + at);
#pragma clang loop unroll(full)
      for (int i = 0; i < R; ++i) {
        sum[j * R + i] = AlongRow<Q>::Add(vk, R <= kKeys ? row[i] : of_row(i), sum[j * R + i]);
      }
    }
  };
  int64_t at = 0;
  for (; at + kTogether <= s.d; at += kTogether) multiply(at, [](auto* p) { return AlongRow<Q>::Load(p); });
  if (at < s.d) multiply(at, [&](auto* p) { return AlongRow<Q>::LoadPart(p, s.d - at); });
  return SumEach(sum);
}

// o[i] = o[i] * alpha[i] + sum_j p[j][i] v[j] for `rows` <= R rows from `first` on; p starts at key keys.lo.
template <typename T, int R>
HWY_NOINLINE void AddValues(const Step& s, int64_t first, const float* p, const float* alpha, int64_t rows, Keys keys) {
  float* o = s.o + first * s.o_ld;
  const char* v = s.v + keys.lo * s.v_stride;
  const int64_t count = keys.hi - keys.lo;
  const bool hides = s.Hides(first, first + rows, keys);
  // While this step's values arrive, ask for the keys of the next step, which usually lie right behind this one's;
  // where they have other rows than the values, for nothing new.
  const int64_t next = s.k_stride == s.v_stride ? s.k - s.v + s.t * s.k_stride : 0;
  const auto columns = [&]<int V>(int64_t c) {
    uint32_t spoilt = 0;
    MultiplyTile<R, V, ChainsFor(R, V)>(
        reinterpret_cast<const char*>(p), sizeof(float), R * sizeof(float), v + c * sizeof(T), s.v_stride, count,
        [&](const char* b, int i) {
          const T* at = reinterpret_cast<const T*>(b) + i * kLanes;
          if (i * kLanes * sizeof(T) % 64 == 0) {
            Prefetch2(reinterpret_cast<const char*>(reinterpret_cast<intptr_t>(at) + next));
          }
          return LoadFloat(at);
        },
        [&](int i, int part, VF sum) {
          if (i >= rows) return;
          if (hides && HasNan(sum)) {
            spoilt |= 1u << (i * V + part);
            return;
          }
          float* to = o + i * s.o_ld + c + part * kLanes;
          hn::StoreU(hn::MulAdd(LoadFloat(to), Const(alpha[i]), sum), kF32, to);
        });
    for (int at = 0; spoilt != 0; ++at, spoilt >>= 1) {
      if ((spoilt & 1) == 0) continue;
      const int64_t i = at / V, column = c + at % V * kLanes;
      const VF sum =
          VisibleSum<T, ChainsFor(R, V)>(s, first + i, reinterpret_cast<const char*>(p + i), R * sizeof(float),
                                         v + column * sizeof(T), s.v_stride, keys, kLanes);
      float* to = o + i * s.o_ld + column;
      hn::StoreU(hn::MulAdd(LoadFloat(to), Const(alpha[i]), sum), kF32, to);
    }
  };
  constexpr int kSums = kManyRegisters ? 16 : 8;
  constexpr int kMost = kSums / R < 8 ? kSums / R : 8;
  int64_t c = 0;
  for (; c + kMost * kLanes <= s.d; c += kMost * kLanes) columns.template operator()<kMost>(c);
  if constexpr (kMost > 4) {
    if (c + 4 * kLanes <= s.d) columns.template operator()<4>(c), c += 4 * kLanes;
  }
  if constexpr (kMost > 1) {
    for (; c + kLanes <= s.d; c += kLanes) columns.template operator()<1>(c);
  }
  for (int64_t i = 0; i < rows && c < s.d; ++i) {
    AddValuesPart<T>(s, first + i, reinterpret_cast<const char*>(p + i), R * sizeof(float), v, s.v_stride, keys,
                     alpha[i]);
  }
}

// Rows [first, first + rows), rows <= R, of which at least one has keys, which lie in `keys`: their weights, with m and
// l; alpha[i]: the factor for row first + i's o.
template <typename Q, typename K, int R>
HWY_NOINLINE void WeightsOfFew(const Step& s, int64_t first, int64_t rows, Keys keys, float* alpha) {
  constexpr int kKeys = kLanes / R;
  const char* q[R];
  HWY_ALIGN int32_t lo[kLanes], hi[kLanes], key_of[kLanes];
  for (int i = 0; i < R; ++i) {
    const int64_t row = first + (i < rows ? i : rows - 1);
    q[i] = s.q + row * s.q_stride;
    const Keys range = s.RowKeys(row);
    for (int j = 0; j < kKeys; ++j) {
      lo[j * R + i] = static_cast<int32_t>(range.lo);
      hi[j * R + i] = static_cast<int32_t>(range.hi);
      key_of[j * R + i] = j;
    }
  }
  const VI first_key = hn::Load(kI32, lo), end_key = hn::Load(kI32, hi), lane_key = hn::Load(kI32, key_of);
  const VF nothing = Const(kMasked);
  VF highest = nothing;
  float* score = s.scores;
  for (int64_t key = keys.lo; key < keys.hi; key += kKeys, score += kLanes) {
    for (int64_t j = key; j < key + kKeys && j < keys.hi; ++j) {  // the values are wanted next
      for (int64_t c = 0; c < s.v_bytes; c += 64) Prefetch2(s.v + j * s.v_stride + c);
    }
    VF dot = hn::Mul(DotKeys<Q, K, R>(s, q, key, keys.hi), Const(s.scale));
    if (s.softcap > 0) dot = SoftCap(dot, s.softcap);
    if (s.bias != nullptr) {
      HWY_ALIGN float bias[kLanes];
      for (int64_t a = 0; a < kLanes; ++a) {
        const int64_t row = a % R < rows ? a % R : rows - 1, j = key + a / R;
        bias[a] = s.BiasRow(first + row)[j < keys.hi ? j : keys.hi - 1];
      }
      dot = AddBias(dot, hn::Load(kF32, bias));
    }
    const VI index = hn::Add(lane_key, hn::Set(kI32, static_cast<int32_t>(key)));
    const auto allowed = hn::And(hn::Not(hn::Gt(first_key, index)), hn::Lt(index, end_key));
    dot = hn::IfThenElse(hn::RebindMask(kF32, allowed), dot, nothing);
    highest = hn::Max(highest, dot);
    hn::StoreU(dot, kF32, score);
  }
  // Fold the lanes of each row, update it, and spread the maximum to subtract over its lanes again.
  HWY_ALIGN float lanes[kLanes], highests[kLanes], olds[kLanes];
  hn::Store(highest, kF32, lanes);
  hn::Store(nothing, kF32, highests);
  hn::Store(nothing, kF32, olds);
  for (int i = 0; i < R && i < rows; ++i) {
    olds[i] = s.m[first + i];
    for (int j = 0; j < kKeys; ++j) highests[i] = lanes[j * R + i] > highests[i] ? lanes[j * R + i] : highests[i];
  }
  const Maximum update = UpdateMaximum(hn::Load(kF32, olds), hn::Load(kF32, highests));
  hn::Store(update.value, kF32, highests);
  hn::Store(update.alpha, kF32, alpha);
  hn::Store(update.subtract, kF32, olds);
  for (int i = 0; i < R && i < rows; ++i) s.m[first + i] = highests[i];
  for (int a = 0; a < kLanes; ++a) lanes[a] = olds[a % R < rows ? a % R : rows - 1];
  const VF subtract = hn::Load(kF32, lanes);
  VF total = hn::Zero(kF32);
  for (float* p = s.scores; p < score; p += kLanes) {
    const VF e = Exp(hn::Sub(LoadFloat(p), subtract));
    hn::StoreU(e, kF32, p);
    total = hn::Add(total, e);
  }
  hn::Store(total, kF32, lanes);
  for (int i = 0; i < R && i < rows; ++i) {
    float sum = s.l[first + i] * alpha[i];
    for (int j = 0; j < kKeys; ++j) sum += lanes[j * R + i];
    s.l[first + i] = sum;
  }
}

template <typename Q, typename K, typename V, int R>
HWY_INLINE void FewRows(const Step& s, int64_t first, int64_t rows) {
  const Keys keys = s.UnionKeys(first, first + rows);
  HWY_ALIGN float alpha[kLanes];
  WeightsOfFew<Q, K, R>(s, first, rows, keys, alpha);
  AddValues<V, R>(s, first, s.scores, alpha, rows, keys);
}

template <typename Q, typename K, typename V>
HWY_INLINE void FewRowsAny(const Step& s, int64_t first, int64_t rows) {
  while (rows > 0) {
    const int64_t now = rows < kFewRows ? rows : kFewRows;
    if (!s.UnionKeys(first, first + now).empty()) {
      if (now == 1) {
        FewRows<Q, K, V, 1>(s, first, now);
      } else if (now == 2) {
        FewRows<Q, K, V, 2>(s, first, now);
      } else if (now <= 4) {
        FewRows<Q, K, V, 4>(s, first, now);
      } else {
        FewRows<Q, K, V, kFewRows>(s, first, now);
      }
    }
    first += now;
    rows -= now;
  }
}

}  // namespace
