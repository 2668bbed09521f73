// What the two ways of an attention step share: its arguments, the range of keys a row may see, and the soft cap.
#pragma once

#include "simd/math/exp.h"
#include "simd/tiles/bf16_pairs-inl.h"
#include "simd/tiles/mma_float-inl.h"

namespace {

constexpr int64_t kMostKeys = 128;  // keys of a step, and the row length of the tile of scores
constexpr int64_t kMostRows = 64;   // of queries

constexpr float kMasked = -__builtin_huge_valf();  // the score of a key that a row may not see

struct Keys {
  int64_t lo, hi;
  bool empty() const { return lo >= hi; }
};

struct Step {
  float* o;
  int64_t o_ld;
  float* m;
  float* l;
  const char* q;
  int64_t q_stride;
  const char* k;
  int64_t k_stride;
  const char* v;
  int64_t v_stride;
  const int32_t* lo;
  const int32_t* hi;
  const char* bias;
  int64_t bias_stride;
  int64_t d, t;
  int64_t v_bytes;  // of the d columns of a value
  float scale, softcap;
  float* wide;    // [128][d] or [d][128], or words of pairs: keys transposed, then values converted
  float* scores;  // [64][128]: scores, then probabilities

  HWY_INLINE Keys RowKeys(int64_t row) const {
    const int64_t first = lo[row], last = hi[row];
    return {first > 0 ? first : 0, last < t ? last : t};
  }

  // The smallest range that holds the keys of rows [begin, end); empty when no row has any.
  HWY_INLINE Keys UnionKeys(int64_t begin, int64_t end) const {
    Keys all = {t, 0};
    for (int64_t row = begin; row < end; ++row) {
      const Keys keys = RowKeys(row);
      if (keys.empty()) continue;
      if (keys.lo < all.lo) all.lo = keys.lo;
      if (keys.hi > all.hi) all.hi = keys.hi;
    }
    return all;
  }

  const float* BiasRow(int64_t row) const { return reinterpret_cast<const float*>(bias + row * bias_stride); }

  // Whether a key of `keys` may be hidden from one of the rows [begin, end): its weight is 0 then, but 0 times the NaN
  // or infinity that its value may be is a NaN.
  HWY_INLINE bool Hides(int64_t begin, int64_t end, Keys keys) const {
    bool hides = bias != nullptr;
    for (int64_t row = begin; row < end; ++row) {
      const Keys own = RowKeys(row);
      hides |= own.lo != keys.lo || own.hi != keys.hi;
    }
    return hides;
  }
};

// How rows of queries of Q meet rows of keys, some elements of a row in a vector: floats each as a float, bf16 in
// pairs.
template <typename Q>
struct AlongRow {
  static constexpr int kElements = kLanes;
  template <typename T>
  static HWY_INLINE VF Load(const T* p) {
    return LoadFloat(p);
  }
  template <typename T>
  static HWY_INLINE VF LoadPart(const T* p, int64_t count) {
    return ::LoadPart(p, count);
  }
  static HWY_INLINE VF Add(VF k, VF q, VF sum) { return hn::MulAdd(k, q, sum); }
};
template <>
struct AlongRow<BF16> {
  static constexpr int kElements = 2 * kLanes;
  static HWY_INLINE Pairs Load(const BF16* p) { return LoadPairs(p); }
  static HWY_INLINE Pairs LoadPart(const BF16* p, int64_t count) { return LoadPairsPart(p, count); }
  static HWY_INLINE VF Add(Pairs k, Pairs q, VF sum) { return AddPairs(k, q, sum); }
};

HWY_INLINE bool HasNan(VF x) { return !hn::AllFalse(kF32, hn::IsNaN(x)); }

// The score with the bias of its key: none where that is -inf.
HWY_INLINE VF AddBias(VF score, VF bias) {
  return hn::IfThenElse(hn::Eq(bias, Const(kMasked)), Const(kMasked), hn::Add(score, bias));
}

// sum_j p_j v_j over `keys`, those hidden from `row` left out, in the order of a tile with so many chains. v: the
// `columns` <= kLanes columns of the first key. For the few sums that hidden values spoilt.
template <typename T, int kChains>
HWY_NOINLINE VF VisibleSum(const Step& s, int64_t row, const char* p, int64_t p_step, const char* v, int64_t v_stride,
                           Keys keys, int64_t columns) {
  const Keys own = s.RowKeys(row);
  VF result = hn::Zero(kF32);
  MultiplyTile<1, 1, kChains>(
      p, 0, p_step, v, v_stride, keys.hi - keys.lo,
      [&](const char* b, int) {
        const int64_t key = keys.lo + (b - v) / v_stride;
        const bool hidden = key < own.lo || key >= own.hi || (s.bias != nullptr && s.BiasRow(row)[key] == kMasked);
        return hidden ? hn::Zero(kF32) : LoadUpTo(reinterpret_cast<const T*>(b), columns);
      },
      [&](int, int, VF sum) { result = sum; });
  return result;
}

// cap * tanh(s / cap). expm1 instead of exp keeps small scores, of which most are, exact to a few ULP.
HWY_INLINE VF SoftCap(VF s, float cap) {
  const VF x = hn::Mul(s, Const(1.0f / cap));
  const VF magnitude = hn::Abs(x);
  const VF square = hn::Mul(x, x);
  // tanh x = x - x^3 / 3 + ...: below 0.25 four terms leave 3e-8.
  const VF series = Poly(square, 1.0f, -0.333333333f, 0.133333333f, -0.0539682540f, 0.0218694885f);
  const VF e = Exp(hn::Add(magnitude, magnitude));
  const VF far = hn::CopySign(hn::Sub(Const(1.0f), hn::Div(Const(2.0f), hn::Add(e, Const(1.0f)))), x);
  return hn::Mul(Const(cap), hn::IfThenElse(hn::Lt(magnitude, Const(0.25f)), hn::Mul(x, series), far));
}

// m' = max(m, highest) for kLanes rows. A row that saw nothing so far keeps its -inf, of which nothing can be
// subtracted.
struct Maximum {
  VF value;     // m'
  VF subtract;  // from the scores
  VF alpha;     // exp(m - m'), by which the sums so far shrink
};
HWY_INLINE Maximum UpdateMaximum(VF old, VF highest) {
  const VF value = hn::Max(old, highest);
  const auto nothing = hn::Eq(value, Const(kMasked));
  const VF subtract = hn::IfThenZeroElse(nothing, value);
  return {value, subtract, hn::IfThenElse(nothing, Const(1.0f), Exp(hn::Sub(old, subtract)))};
}

// The last d % kLanes columns of one row: o = o alpha + sum_j p_j v_j, p_step bytes between the probabilities, p and v
// from key keys.lo on. Heads are rarely such, so this is small rather than fast.
template <typename T>
HWY_NOINLINE void AddValuesPart(const Step& s, int64_t row, const char* p, int64_t p_step, const char* v,
                                int64_t v_stride, Keys keys, float alpha) {
  const int64_t part = s.d % kLanes, c = s.d - part;
  float* o = s.o + row * s.o_ld + c;
  const VF sum = VisibleSum<T, 1>(s, row, p, p_step, v + c * sizeof(T), v_stride, keys, part);
  StorePart(hn::MulAdd(LoadPart(o, part), Const(alpha), sum), o, part);
}

}  // namespace
