// Tiles of bytes in quads along k, and the pack that makes their panels, against sums in 64 bits, at every level.
#include <algorithm>
#include <limits>

#include "float_support.h"
#include "gtest/gtest.h"

namespace quern::simd {
namespace {

constexpr uint32_t kSeed = 7919;

using QuadTile = void(int32_t*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                      int64_t, int64_t, int64_t);
using PackTile = void(void*, int64_t, const void*, int64_t, int64_t, int64_t);

enum class Values { kAny, kLeast, kGreatest };  // of a dtype

template <typename T>
T Value(Values values, Numbers& numbers) {
  if (values == Values::kAny) return static_cast<T>(numbers.Below(256));
  return values == Values::kLeast ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

// X: of the rows; W: of the panel.
template <typename X, typename W>
void CheckQuads(std::string_view level, int64_t m, int64_t n, int64_t k, int64_t gap, int64_t add, Values of_x,
                Values of_w, Numbers& numbers) {
  constexpr bool kSigned = std::is_signed_v<X>, kSignedPanel = std::is_signed_v<W>;
  auto* mma = Tile<QuadTile>(kSigned ? "qk_mma_i8_quads" : "qk_mma_u8_quads", level);
  const int64_t x_row = k + gap, words = (k + 3) / 4, c_ld = 32 + gap;
  Guarded<X> x((m - 1) * x_row + k);
  Guarded<W> panel(words * 128);  // beyond k and n anything
  Guarded<int32_t> c((m - 1) * c_ld + n);
  for (int64_t i = 0; i < x.size(); ++i) x[i] = Value<X>(of_x, numbers);
  for (int64_t i = 0; i < panel.size(); ++i) panel[i] = Value<W>(of_w, numbers);
  for (int64_t i = 0; i < c.size(); ++i) c[i] = static_cast<int32_t>(numbers.Below(int64_t{1} << 32));  // sums wrap
  const std::vector<int32_t> before(c.data(), c.data() + c.size());
  const bool from_zero = (m + n + k) % 2 == 0;
  mma(c.data(), c_ld, x.data(), x_row, panel.data(), 0, m, n, k, words, add, kSignedPanel, from_zero);
  for (int64_t i = 0; i < c.size(); ++i) {
    const int64_t r = i / c_ld, j = i % c_ld;
    int64_t sum = from_zero && j < n ? 0 : before[i];
    for (int64_t p = 0; p < k && j < n; ++p) sum += x[r * x_row + p] * (panel[p / 4 * 128 + j * 4 + p % 4] + add);
    ASSERT_EQ(c[i], static_cast<int32_t>(sum))
        << level << (kSigned ? " i8" : " u8") << (kSignedPanel ? " i8" : " u8") << " m " << m << " n " << n << " k "
        << k << " add " << add << " at " << r << "," << j << " seed " << kSeed;
  }
}

template <typename X, typename W>
void CheckAll() {
  const int64_t add = std::is_signed_v<W> ? 128 : -128;
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    const auto check = [&](int64_t m, int64_t n, int64_t k, int64_t gap, Values x = Values::kAny,
                           Values w = Values::kAny) {
      CheckQuads<X, W>(level, m, n, k, gap, 0, x, w, numbers);
      CheckQuads<X, W>(level, m, n, k, gap, add, x, w, numbers);
    };
    for (int64_t m = 1; m <= 33; ++m) {
      for (int64_t n : {1, 5, 8, 13, 16, 17, 31, 32}) check(m, n, 38, n % 3);
      for (int64_t k : {1, 2, 3, 4, 5, 7, 8, 16, 67, 130, 196}) check(m, 32, k, k % 4);
    }
    check(53, 29, 19, 4096 - 19);  // rows 4 KiB apart
    for (int64_t n : {13, 32}) check(70, n, 1031, 1);
    for (Values x : {Values::kLeast, Values::kGreatest}) {
      for (Values w : {Values::kLeast, Values::kGreatest}) check(5, 32, 1027, 0, x, w);
    }
  }
}

TEST(MmaQuads, AreExactOfAnySigns) {
  CheckAll<int8_t, uint8_t>();
  CheckAll<uint8_t, int8_t>();
  CheckAll<int8_t, int8_t>();
  CheckAll<uint8_t, uint8_t>();
}

// Words that are fewer than k needs end the sums; no row is read beyond.
TEST(MmaQuads, EndWithThePanel) {
  for (const std::string& level : HostLevels()) {
    const std::vector<uint8_t> x(11, 1);
    const std::vector<uint32_t> panel(32 * 2, 0x01010101);
    int32_t c[32] = {};
    Tile<QuadTile>("qk_mma_u8_quads", level)(c, 32, x.data(), 11, panel.data(), 0, 1, 32, 11, 2, 2, 1, 0);
    for (const int32_t sum : c) ASSERT_EQ(sum, 24) << level;
  }
}

TEST(PackQuads, MovesBytes) {
  Numbers numbers(kSeed);
  for (const std::string& level : HostLevels()) {
    for (int64_t k : {1, 2, 3, 4, 5, 7, 8, 15, 16, 37, 63, 64, 65, 130, 191}) {
      for (int64_t rows = 1; rows <= 32; ++rows) {
        const int64_t row = k + rows % 3;
        Guarded<uint8_t> src((rows - 1) * row + k), dst((k + 3) / 4 * 128);
        for (int64_t i = 0; i < src.size(); ++i) src[i] = static_cast<uint8_t>(numbers.Below(256));
        std::fill_n(dst.data(), dst.size(), 77);
        Tile<PackTile>("qk_pack_quads", level)(dst.data(), 0, src.data(), row, rows, k);
        for (int64_t i = 0; i < dst.size(); ++i) {
          const int64_t p = i / 128 * 4 + i % 4, j = i / 4 % 32;
          ASSERT_EQ(dst[i], j < rows && p < k ? src[j * row + p] : 0)
              << level << " rows " << rows << " k " << k << " at " << p << "," << j << " seed " << kSeed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::simd
