// qk_turn_1, qk_turn_2, qk_turn_4, qk_turn_8: a transposed rectangle of elements of so many bytes, moved as bits.
//
//   src: `rows` rows of k elements, src_stride bytes apart.  dst: k rows of `rows` elements: dst[p][j] = src[j][p].
//
// Squares go through registers. One of 4 or 8 bytes is read and written in whole vectors, so that a line of the cache
// is met once on either side (rows 4 KiB apart share a set of the first cache, which keeps eight): transposed inside
// the 128-bit pieces of groups of rows, then the pieces among the groups. Narrower elements, and where one side has too
// few, are loaded or stored as pieces, such that the first step is all. What is left at an edge is a square that
// overlaps the one before. Sides of fewer elements than a piece are turn_few-inl.h's.
//
// qk_pack_f64_kn32: up to 32 rows of k doubles to a panel for qk_mma_f64, f64 [k][32]; zero for the missing rows.
#include "simd/tiles/turn_few-inl.h"

namespace {

typedef uint8_t Bytes __attribute__((vector_size(HWY_MAX_BYTES)));
typedef uint64_t Words __attribute__((vector_size(HWY_MAX_BYTES)));
constexpr int kPieces = HWY_MAX_BYTES / 16;

// What a square reads and writes at once: vectors of rows and of columns; or, of few columns, pieces of rows, and of
// few rows pieces of columns. Narrow elements have no whole ones.
enum class Form { kWhole, kFewColumns, kFewRows };

template <int kBytes, Form kForm>
struct Square {
  static constexpr int kGroup = 16 / kBytes;  // elements of a piece
  static constexpr int kRows = kForm == Form::kFewRows ? kGroup : kGroup * kPieces;
  static constexpr int kColumns = kForm == Form::kFewColumns ? kGroup : kGroup * kPieces;
  static constexpr int kVectors = kForm == Form::kWhole ? kRows : kGroup;
};

HWY_INLINE Bytes LoadBytes(const char* p) {
  Bytes v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

// The 16 bytes at p, p + step, ...
HWY_INLINE Bytes LoadPieces(const char* p, int64_t step) {
  typedef uint8_t Piece __attribute__((vector_size(16)));
  union {
    Bytes all;
    Piece pieces[kPieces];
  } v;
#pragma clang loop unroll(full)
  for (int i = 0; i < kPieces; ++i) __builtin_memcpy(&v.pieces[i], p + i * step, 16);
  return v.all;
}

// In each piece the elements of the lower, or upper, halves of a and b in turns.
template <int kBytes>
HWY_INLINE Bytes Interleave(Bytes a, Bytes b, bool upper) {
  const hn::ScalableTag<uint8_t> bytes;
  using T = hwy::UnsignedFromSize<kBytes>;
  const hn::ScalableTag<T> d;
  const auto x = hn::BitCast(d, __builtin_bit_cast(hn::Vec<decltype(bytes)>, a));
  const auto y = hn::BitCast(d, __builtin_bit_cast(hn::Vec<decltype(bytes)>, b));
  return __builtin_bit_cast(Bytes, upper ? hn::InterleaveUpper(d, x, y) : hn::InterleaveLower(d, x, y));
}

// The even, or odd, pieces of a, then of b.
HWY_INLINE Bytes EveryOther(Bytes a, Bytes b, bool odd) {
#if HWY_MAX_BYTES == 64
  const Words x = (Words)a, y = (Words)b;
  return odd ? (Bytes)__builtin_shufflevector(x, y, 2, 3, 6, 7, 10, 11, 14, 15)
             : (Bytes)__builtin_shufflevector(x, y, 0, 1, 4, 5, 8, 9, 12, 13);
#elif HWY_MAX_BYTES == 32
  const Words x = (Words)a, y = (Words)b;
  return odd ? (Bytes)__builtin_shufflevector(x, y, 2, 3, 6, 7) : (Bytes)__builtin_shufflevector(x, y, 0, 1, 4, 5);
#else
  return odd ? b : a;
#endif
}

// `live`: of the few rows or columns there are. Where that is less than a piece, what is read and written beyond them
// is what follows in memory, and goes to nothing or is written again after that.
template <int kBytes, Form kForm>
HWY_INLINE void TurnSquare(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t live) {
  using S = Square<kBytes, kForm>;
  Bytes v[S::kVectors], w[S::kVectors];
#pragma clang loop unroll(full)
  for (int i = 0; i < S::kVectors; ++i) {
    const char* row = src + (kForm == Form::kFewRows && i >= live ? live - 1 : i) * src_stride;
    v[i] = kForm == Form::kFewColumns ? LoadPieces(row, S::kGroup * src_stride) : LoadBytes(row);
  }
  // Groups of rows: log2(kGroup) times the two halves of a group in turns.
#pragma clang loop unroll(full)
  for (int step = 1; step < S::kGroup; step *= 2) {
#pragma clang loop unroll(full)
    for (int g = 0; g < S::kVectors; g += S::kGroup) {
#pragma clang loop unroll(full)
      for (int i = 0; i < S::kGroup / 2; ++i) {
        w[g + 2 * i] = Interleave<kBytes>(v[g + i], v[g + i + S::kGroup / 2], false);
        w[g + 2 * i + 1] = Interleave<kBytes>(v[g + i], v[g + i + S::kGroup / 2], true);
      }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < S::kVectors; ++i) v[i] = w[i];
  }
  // Piece b of v[g * kGroup + c] is column b * kGroup + c of the rows of group g.
#pragma clang loop unroll(full)
  for (int step = 1; kForm == Form::kWhole && step < kPieces; step *= 2) {
#pragma clang loop unroll(full)
    for (int c = 0; c < S::kGroup; ++c) {
#pragma clang loop unroll(full)
      for (int g = 0; g < kPieces / 2; ++g) {
        const Bytes a = v[2 * g * S::kGroup + c], b = v[(2 * g + 1) * S::kGroup + c];
        w[g * S::kGroup + c] = EveryOther(a, b, false);
        w[(g + kPieces / 2) * S::kGroup + c] = EveryOther(a, b, true);
      }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < S::kVectors; ++i) v[i] = w[i];
  }
  if constexpr (kForm == Form::kFewRows) {
#pragma clang loop unroll(full)
    for (int i = 0; i < S::kColumns; ++i) {
      const char* piece = reinterpret_cast<const char*>(&v[i % S::kGroup]) + i / S::kGroup * 16;
      __builtin_memcpy(dst + i * dst_stride, piece, 16);
    }
  } else {
#pragma clang loop unroll(full)
    for (int i = 0; i < S::kVectors; ++i) {
      if (kForm == Form::kFewColumns && i >= live) break;
      __builtin_memcpy(dst + i * dst_stride, &v[i], sizeof(Bytes));
    }
  }
}

template <int kBytes, Form kForm>
HWY_INLINE void TurnSquares(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows,
                            int64_t k) {
  using S = Square<kBytes, kForm>;
  const int64_t live = kForm == Form::kFewRows ? rows : k;
  for (int64_t j = 0; j < rows; j = rows < S::kRows ? rows : NextBlock(j, S::kRows, rows)) {
#pragma clang loop unroll(disable)
    for (int64_t p = 0; p < k; p = k < S::kColumns ? k : NextBlock(p, S::kColumns, k))
      TurnSquare<kBytes, kForm>(dst + p * dst_stride + j * kBytes, dst_stride, src + j * src_stride + p * kBytes,
                                src_stride, live);
  }
}

template <int kBytes>
HWY_INLINE void TurnElements(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows,
                             int64_t k) {
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < rows; ++j) {
      hwy::UnsignedFromSize<kBytes> element;
      __builtin_memcpy(&element, src + j * src_stride + p * kBytes, kBytes);
      __builtin_memcpy(dst + p * dst_stride + j * kBytes, &element, kBytes);
    }
  }
}

// The most elements of a row for which there are Split and Join: fewer than a piece has, at least two.
template <int kBytes>
constexpr int64_t kMostFew = 16 / kBytes > 4 ? 4 : 16 / kBytes - 1;

// Calls move.operator()<few>(), for 1 to N.
template <int N>
HWY_INLINE void WithFew(int64_t few, const auto& move) {
  if constexpr (N > 1) {
    if (few != N) return WithFew<N - 1>(few, move);
  }
  move.template operator()<N>();
}

template <int kBytes>
HWY_INLINE void Turn(void* to, int64_t dst_stride, const void* from, int64_t src_stride, int64_t rows, int64_t k) {
  char* dst = static_cast<char*>(to);
  const char* src = static_cast<const char*>(from);
  constexpr int64_t kPiece = 16 / kBytes, kVector = kPiece * kPieces;
  // Rows that lie behind each other: how many of the last ones a piece of more than a row would reach behind.
  const bool rows_touch = src_stride == k * kBytes, columns_touch = dst_stride == rows * kBytes;
  const int64_t last_rows = k >= kPiece ? 0 : (kPiece - 1) / k, last_columns = rows >= kPiece ? 0 : (kPiece - 1) / rows;
  if (kBytes >= 4 && rows >= kVector && k >= kVector) {
    TurnSquares<kBytes, Form::kWhole>(dst, dst_stride, src, src_stride, rows, k);
  } else if (rows_touch && rows >= kVector && k <= kMostFew<kBytes>) {
    WithFew<kMostFew<kBytes>>(k, [&]<int N>() { Split<kBytes, N>(dst, dst_stride, src, rows); });
  } else if (columns_touch && k >= kVector && rows <= kMostFew<kBytes>) {
    WithFew<kMostFew<kBytes>>(rows, [&]<int N>() { Join<kBytes, N>(dst, src, src_stride, k); });
  } else if (rows - last_rows >= kVector && (k >= kPiece || rows_touch)) {
    const int64_t done = rows - last_rows;
    TurnSquares<kBytes, Form::kFewColumns>(dst, dst_stride, src, src_stride, done, k);
    TurnElements<kBytes>(dst + done * kBytes, dst_stride, src + done * src_stride, src_stride, last_rows, k);
  } else if (k - last_columns >= kVector && (rows >= kPiece || columns_touch)) {
    const int64_t done = k - last_columns;
    TurnSquares<kBytes, Form::kFewRows>(dst, dst_stride, src, src_stride, rows, done);
    TurnElements<kBytes>(dst + done * dst_stride, dst_stride, src + done * kBytes, src_stride, rows, last_columns);
  } else {
    TurnElements<kBytes>(dst, dst_stride, src, src_stride, rows, k);
  }
}

}  // namespace

QUERN_TILE(qk_turn_1)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  Turn<1>(dst, dst_stride, src, src_stride, rows, k);
}

QUERN_TILE(qk_turn_2)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  Turn<2>(dst, dst_stride, src, src_stride, rows, k);
}

QUERN_TILE(qk_turn_4)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  Turn<4>(dst, dst_stride, src, src_stride, rows, k);
}

QUERN_TILE(qk_turn_8)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  Turn<8>(dst, dst_stride, src, src_stride, rows, k);
}

QUERN_TILE(qk_pack_f64_kn32)(void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  constexpr int64_t kRows = 32;
  if (k < 1) return;
  double* to = static_cast<double*>(dst);
  for (int64_t p = 0; p < k && rows < kRows; ++p, to += kRows) {
    asm("" : "+r"(to));  // or it becomes memset
    for (int64_t j = 0; j < kRows; j += HWY_MAX_BYTES / 8) hn::StoreU(hn::Zero(kF64), kF64, to + j);
  }
  if (rows > 0) Turn<8>(dst, kRows * 8, src, src_stride, rows, k);
}
