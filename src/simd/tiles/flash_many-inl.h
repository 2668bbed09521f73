// An attention step for many query rows (prefill): two matrix products around a softmax by rows.
//
// The keys are transposed once to f32 [d][128], or to pairs of bf16 where the queries are bf16 too; the scores and the
// sums over the values are then register tiles like a GEMM's. A block of rows only computes the columns that one of its
// rows may see, which halves the work on the diagonal of a causal mask. Each sum goes through the keys, or the columns,
// in order, whatever rows are beside it and whatever keys they see, so that a row's bits are its own.
#pragma once

#include "simd/tiles/amx_words.h"
#include "simd/tiles/flash_step-inl.h"
#include "simd/tiles/pack_float-inl.h"

namespace {

constexpr int64_t kScoreRow = kMostKeys * sizeof(float);

HWY_INLINE VF LoadColumns(const char* b, int v) { return LoadFloat(reinterpret_cast<const float*>(b) + v * kLanes); }

HWY_INLINE VU LoadWords(const char* b, int v) {
  return hn::LoadU(kU32, reinterpret_cast<const uint32_t*>(b) + v * kLanes);
}

// scores[i][j] = scale q[i] . k[j] for R rows and the columns that hold `keys`.
template <typename Q, int R>
HWY_NOINLINE void ScoreBlock(const Step& s, int64_t first, Keys keys) {
  constexpr int kColumns = kTileVectors * kLanes;
  const VF scale = Const(s.scale);
  for (int64_t j = keys.lo / kColumns * kColumns; j < keys.hi; j += kColumns) {
    float* to = s.scores + first * kMostKeys + j;
    const char *q = s.q + first * s.q_stride, *k = reinterpret_cast<const char*>(s.wide + j);
    const auto store = [&](int i, int v, VF score) { hn::StoreU(score, kF32, to + i * kMostKeys + v * kLanes); };
    const auto scaled = [&](int i, int v, VF sum) { store(i, v, hn::Mul(sum, scale)); };
    if constexpr (__is_same(Q, BF16)) {
      const int64_t pairs = s.d / 2;
      const auto words = [](const char* b, int v) { return PairsOf(LoadWords(b, v)); };
      const auto rows_of_pairs = [&](const auto& finish) {
        MultiplyTile<R, kTileVectors, 1, PairTerm>(q, s.q_stride, sizeof(uint32_t), k, kScoreRow, pairs, words, finish);
      };
      if (s.d % 2 == 0) {
        rows_of_pairs(scaled);
        continue;
      }
      rows_of_pairs(store);
      MultiplyTile<R, kTileVectors, 1, SingleTerm>(
          q + pairs * sizeof(uint32_t), s.q_stride, 0, k + pairs * kScoreRow, kScoreRow, 1, words,
          [&](int i, int v, VF sum) { scaled(i, v, hn::Add(LoadFloat(to + i * kMostKeys + v * kLanes), sum)); });
    } else {
      MultiplyTile<R, kTileVectors, 1>(q, s.q_stride, sizeof(float), k, kScoreRow, s.d, LoadColumns, scaled);
    }
  }
}

// The same of all rows [first, first + rows), pairs of bf16 on tile registers.
#if defined(__AMX_BF16__)
HWY_NOINLINE void ScoresOnTiles(const Step& s, int64_t first, int64_t rows, Keys keys) {
  using namespace quern::simd;
  const int64_t j = keys.lo / 32 * 32, columns = (keys.hi - j + 31) / 32 * 32;
  float* const scores = s.scores + first * kMostKeys + j;
  RowsOnTiles<PairTiles, kScoreRow>(scores, kMostKeys, s.q + first * s.q_stride, s.q_stride, s.wide + j, rows, columns,
                                    s.d, /*from_zero=*/true);
  const VF scale = Const(s.scale);
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < rows; ++i) {
    float* const row = scores + i * kMostKeys;
#pragma clang loop unroll(disable)
    for (int64_t c = 0; c < columns; c += kLanes) hn::StoreU(hn::Mul(LoadFloat(row + c), scale), kF32, row + c);
  }
}
#endif

// Scaled scores of a row, capped and masked, over the vectors that hold `keys`. Returns the highest.
HWY_INLINE float MaskRow(const Step& s, int64_t row, Keys keys) {
  const Keys own = s.RowKeys(row);
  float* score = s.scores + row * kMostKeys;
  const VI first_key = hn::Set(kI32, static_cast<int32_t>(own.lo)),
           end_key = hn::Set(kI32, static_cast<int32_t>(own.hi));
  const VF nothing = Const(kMasked);
  VF highest = nothing;
  const bool all = own.lo == 0 && own.hi == kMostKeys;  // as most rows see of most steps
  if (all && s.bias == nullptr && s.softcap == 0) {
    for (int64_t j = 0; j < kMostKeys; j += kLanes) highest = hn::Max(highest, LoadFloat(score + j));
    return hn::GetLane(hn::MaxOfLanes(kF32, highest));
  }
  for (int64_t j = keys.lo / kLanes * kLanes; j < keys.hi; j += kLanes) {
    VF x = LoadFloat(score + j);
    if (s.softcap > 0) x = SoftCap(x, s.softcap);
    if (s.bias != nullptr) x = AddBias(x, LoadUpTo(s.BiasRow(row) + j, s.t - j));
    if (!all) {
      const VI index = hn::Iota(kI32, static_cast<int32_t>(j));
      const auto allowed = hn::And(hn::Not(hn::Gt(first_key, index)), hn::Lt(index, end_key));
      x = hn::IfThenElse(hn::RebindMask(kF32, allowed), x, nothing);
    }
    highest = hn::Max(highest, x);
    hn::StoreU(x, kF32, score + j);
  }
  return hn::GetLane(hn::MaxOfLanes(kF32, highest));
}

// Masked scores of a row to probabilities, zero outside the row's keys. Returns their sum.
HWY_INLINE float ExpRow(const Step& s, int64_t row, Keys keys, float subtract) {
  float* score = s.scores + row * kMostKeys;
  VF total = hn::Zero(kF32);
  for (int64_t j = keys.lo / kLanes * kLanes; j < keys.hi; j += kLanes) {
    const VF e = Exp(hn::Sub(LoadFloat(score + j), Const(subtract)));
    hn::StoreU(e, kF32, score + j);
    total = hn::Add(total, e);
  }
  return hn::GetLane(hn::SumOfLanes(kF32, total));
}

// Rows [first, first + rows) of scores to probabilities, with m and l; alpha[i]: the factor for row first + i's o.
// Row by row each step would wait for the one before it, so every step is a loop over rows, or a vector of rows.
HWY_NOINLINE void Softmax(const Step& s, int64_t first, int64_t rows, Keys keys, float* alpha) {
  HWY_ALIGN float highest[kTileRows + kLanes], subtract[kTileRows + kLanes];
  for (int64_t i = 0; i < rows; ++i) highest[i] = MaskRow(s, first + i, keys);
  for (int64_t i = 0; i < rows; i += kLanes) {
    float* m = s.m + first + i;
    const int64_t count = rows - i < kLanes ? rows - i : kLanes;
    const Maximum update = UpdateMaximum(LoadUpTo(m, count), LoadUpTo(highest + i, count));
    StorePart(update.value, m, count);
    StorePart(update.subtract, subtract + i, count);
    StorePart(update.alpha, alpha + i, count);
  }
  for (int64_t i = 0; i < rows; ++i) {
    s.l[first + i] = s.l[first + i] * alpha[i] + ExpRow(s, first + i, keys, subtract[i]);
  }
}

// o[i] = o[i] * alpha[i] + sum_j p[i][j] v[j] for R rows; v: f32 [t], v_stride bytes apart.
template <int R>
HWY_NOINLINE void ValueBlock(const Step& s, int64_t first, Keys keys, const char* v_base, int64_t v_stride,
                             const float* alpha) {
  const char* p = reinterpret_cast<const char*>(s.scores + first * kMostKeys + keys.lo);
  const char* v = v_base + keys.lo * v_stride;
  const int64_t count = keys.hi - keys.lo;
  float* o = s.o + first * s.o_ld;
  const bool hides = s.Hides(first, first + R, keys);
  const auto columns = [&]<int V>(int64_t c) {
    uint32_t spoilt = 0;
    const auto add = [&](int64_t i, int64_t column, VF sum) {
      float* to = o + i * s.o_ld + column;
      hn::StoreU(hn::MulAdd(LoadFloat(to), Const(alpha[i]), sum), kF32, to);
    };
    MultiplyTile<R, V, 1>(p, kScoreRow, sizeof(float), v + c * sizeof(float), v_stride, count, LoadColumns,
                          [&](int i, int part, VF sum) {
                            if (hides && HasNan(sum))
                              spoilt |= 1u << (i * V + part);
                            else
                              add(i, c + part * kLanes, sum);
                          });
    for (int at = 0; spoilt != 0; ++at, spoilt >>= 1) {
      if ((spoilt & 1) == 0) continue;
      const int64_t i = at / V, column = c + at % V * kLanes;
      add(i, column,
          VisibleSum<float, 1>(s, first + i, p + i * kScoreRow, sizeof(float), v + column * sizeof(float), v_stride,
                               keys, kLanes));
    }
  };
  int64_t c = 0;
  for (; c + kTileVectors * kLanes <= s.d; c += kTileVectors * kLanes) columns.template operator()<kTileVectors>(c);
  for (; c + kLanes <= s.d; c += kLanes) columns.template operator()<1>(c);
  for (int i = 0; i < R && c < s.d; ++i)
    AddValuesPart<float>(s, first + i, p + i * kScoreRow, sizeof(float), v, v_stride, keys, alpha[i]);
}

// The rows of T that hold `keys`, as f32 rows of d.
template <typename T>
HWY_NOINLINE void Widen(const Step& s, Keys keys) {
  for (int64_t j = keys.lo; j < keys.hi; ++j) {
    const T* from = reinterpret_cast<const T*>(s.v + j * s.v_stride);
    float* to = s.wide + j * s.d;
    int64_t c = 0;
    for (; c + kLanes <= s.d; c += kLanes) hn::StoreU(LoadFloat(from + c), kF32, to + c);
    if (c < s.d) StorePart(LoadPart(from + c, s.d - c), to + c, s.d - c);
  }
}

// The transposed keys, whose first is `all.lo` or before.
template <typename Q, typename K>
HWY_NOINLINE void TurnKeys(const Step& s, Keys all) {
  for (int64_t j = 0; j < all.hi; j += kPackRows) {
    if (j + kPackRows <= all.lo) continue;
    const int64_t here = s.t - j < kPackRows ? s.t - j : kPackRows;
    const K* from = reinterpret_cast<const K*>(s.k + j * s.k_stride);
    if constexpr (__is_same(Q, BF16))
      PackPairs(reinterpret_cast<uint32_t*>(s.wide) + j, kMostKeys, from, s.k_stride, here, s.d);
    else
      PackRows(s.wide + j, kMostKeys, from, s.k_stride, here, s.d);
  }
}

// Rows [first, first + rows), at least one of which has keys.
template <typename Q, typename K, typename V>
HWY_INLINE void ManyRows(const Step& s, int64_t first, int64_t rows) {
  const Keys all = s.UnionKeys(first, first + rows);
  TurnKeys<Q, K>(s, all);
  float alpha[kMostRows];
  const int64_t most = MostRows(s.q_stride);
#if defined(__AMX_BF16__)
  constexpr bool kOnTiles = __is_same(Q, BF16);
  if constexpr (kOnTiles) ScoresOnTiles(s, first, rows, all);
#else
  constexpr bool kOnTiles = false;
#endif
  const auto by_blocks = [&](const auto& block) {
    for (int64_t row = first, left = rows; left > 0;) {
      const int64_t now = NextRows(left, most);
      const Keys keys = s.UnionKeys(row, row + now);
      if (!keys.empty()) block(row, now, keys);
      row += now;
      left -= now;
    }
  };
  const auto weights = [&](int64_t row, int64_t now, Keys keys) __attribute__((always_inline)) {
    if constexpr (!kOnTiles) WithRows(now, [&]<int R>() { ScoreBlock<Q, R>(s, row, keys); });
    Softmax(s, row, now, keys, alpha + row);
  };
  const auto values = [&](int64_t row, int64_t now, Keys keys, const char* v, int64_t v_stride)
                          __attribute__((always_inline)) {
                            WithRows(now, [&]<int R>() { ValueBlock<R>(s, row, keys, v, v_stride, alpha + row); });
                          };
  if constexpr (sizeof(V) == sizeof(float)) {
    // While the weights of a block are in the first cache.
    by_blocks([&](int64_t row, int64_t now, Keys keys) {
      weights(row, now, keys);
      values(row, now, keys, s.v, s.v_stride);
    });
  } else {
    by_blocks(weights);
    // The transposed keys have been used: their room is for the values, converted once instead of once a block.
    Widen<V>(s, all);
    by_blocks([&](int64_t row, int64_t now, Keys keys) {
      values(row, now, keys, reinterpret_cast<const char*>(s.wide), s.d * static_cast<int64_t>(sizeof(float)));
    });
  }
}

}  // namespace
