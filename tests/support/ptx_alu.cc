#include "support/ptx_alu.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string_view>
#include <type_traits>

#include "base/half.h"

namespace quern::ptx {
namespace {

using Table = std::map<std::string, Alu>;

struct Half {};  // whose values are floats

template <typename T>
auto As(uint64_t bits) {
  if constexpr (std::is_same_v<T, Half>)
    return HalfToFloat(static_cast<uint16_t>(bits));
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return static_cast<T>(bits);
}
template <typename T>
uint64_t Bits(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else
    return static_cast<std::make_unsigned_t<T>>(value);
}

// An expression of a, b and c of type T.
#define QUERN_ALU(expression)                                                            \
  [](uint64_t x, [[maybe_unused]] uint64_t y, [[maybe_unused]] uint64_t z) -> uint64_t { \
    [[maybe_unused]] const T a = As<T>(x), b = As<T>(y), c = As<T>(z);                   \
    return Bits<T>(static_cast<T>(expression));                                          \
  }
#define QUERN_TEST(expression)                                        \
  [](uint64_t x, [[maybe_unused]] uint64_t y, uint64_t) -> uint64_t { \
    const auto a = As<T>(x), b = As<T>(y);                            \
    return (expression) ? 1 : 0;                                      \
  }

template <typename T>
void AddInteger(Table& table, const std::string& type) {
  using U = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  constexpr int kBits = 8 * sizeof(T);
  table["add." + type] = QUERN_ALU(static_cast<U>(a) + static_cast<U>(b));
  table["sub." + type] = QUERN_ALU(static_cast<U>(a) - static_cast<U>(b));
  table["mul.lo." + type] = QUERN_ALU(static_cast<Wide>(a) * b);
  table["mul.hi." + type] = QUERN_ALU((static_cast<Wide>(a) * b) >> kBits);
  table["mad.lo." + type] = QUERN_ALU(static_cast<unsigned __int128>(static_cast<Wide>(a) * b) + static_cast<U>(c));
  table["mul.wide." + type] = [](uint64_t x, uint64_t y, uint64_t) -> uint64_t {
    return static_cast<uint64_t>(static_cast<Wide>(As<T>(x)) * As<T>(y)) & (kBits == 16 ? 0xffffffff : ~uint64_t{0});
  };
  table["and." + type] = QUERN_ALU(a & b);
  table["or." + type] = QUERN_ALU(a | b);
  table["xor." + type] = QUERN_ALU(a ^ b);
  table["not." + type] = QUERN_ALU(~a);
  table["neg." + type] = QUERN_ALU(U{0} - static_cast<U>(a));
  table["abs." + type] = QUERN_ALU(a < 0 ? U{0} - static_cast<U>(a) : static_cast<U>(a));
  table["shl." + type] =
      QUERN_ALU(static_cast<uint32_t>(y) >= kBits ? 0 : static_cast<U>(a) << static_cast<uint32_t>(y));
  table["shr." + type] = QUERN_ALU(a >> std::min<uint32_t>(static_cast<uint32_t>(y), kBits - 1) >>
                                   (static_cast<uint32_t>(y) >= kBits ? 1 : 0));
  table["min." + type] = QUERN_ALU(std::min(a, b));
  table["max." + type] = QUERN_ALU(std::max(a, b));
  // What the machine gives for division by zero is not said: a pattern that shows.
  table["div." + type] = QUERN_ALU(b == 0 ? T{0x55} : static_cast<Wide>(a) / b);
  table["rem." + type] = QUERN_ALU(b == 0 ? T{0x55} : static_cast<Wide>(a) % b);
  table["bfe." + type] = [](uint64_t x, uint64_t y, uint64_t z) -> uint64_t {
    const uint64_t from = y & 0xff, length = z & 0xff;
    const U field = from >= kBits ? 0 : static_cast<U>(static_cast<U>(x) >> from);
    if (length == 0) return 0;
    if (length >= kBits) return Bits<T>(static_cast<T>(field));
    const uint64_t bits = field & ((uint64_t{1} << length) - 1);
    const bool negative =
        std::is_signed_v<T> && ((static_cast<U>(x) >> std::min<uint64_t>(from + length - 1, kBits - 1)) & 1) != 0;
    return Bits<T>(static_cast<T>(negative ? bits | ~uint64_t{0} << length : bits));
  };
}

template <typename T>
T Least(T a, T b, bool propagate) {
  if (std::isnan(a) || std::isnan(b))
    return propagate || (std::isnan(a) && std::isnan(b)) ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? b : a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <typename T>
void AddFloat(Table& table, const std::string& type) {
  table["add.rn." + type] = table["add." + type] = QUERN_ALU(a + b);
  table["sub.rn." + type] = table["sub." + type] = QUERN_ALU(a - b);
  table["mul.rn." + type] = table["mul." + type] = QUERN_ALU(a * b);
  table["fma.rn." + type] = QUERN_ALU(std::fma(a, b, c));
  table["div.rn." + type] = QUERN_ALU(a / b);
  table["rcp.rn." + type] = QUERN_ALU(1 / a);
  table["sqrt.rn." + type] = QUERN_ALU(std::sqrt(a));
  table["neg." + type] = QUERN_ALU(-a);
  table["abs." + type] = QUERN_ALU(std::fabs(a));
  table["min." + type] = QUERN_ALU(Least(a, b, false));
  table["max." + type] = QUERN_ALU(-Least(-a, -b, false));
  table["min.NaN." + type] = QUERN_ALU(Least(a, b, true));
  table["max.NaN." + type] = QUERN_ALU(-Least(-a, -b, true));
  table["ex2.approx." + type] = QUERN_ALU(std::exp2(a));
  table["copysign." + type] = QUERN_ALU(std::copysign(b, a));
  for (const char* rounding : {"rni", "rzi", "rmi", "rpi"}) {
    const std::string opcode = "cvt." + std::string(rounding) + "." + type + "." + type;
    if (rounding[1] == 'n') table[opcode] = QUERN_ALU(std::nearbyint(a));
    if (rounding[1] == 'z') table[opcode] = QUERN_ALU(std::trunc(a));
    if (rounding[1] == 'm') table[opcode] = QUERN_ALU(std::floor(a));
    if (rounding[1] == 'p') table[opcode] = QUERN_ALU(std::ceil(a));
  }
}

// Halves, through f32: rounding twice is rounding once, as f32 has more than twice the bits.
#define QUERN_HALF(expression)                                                                                         \
  [](uint64_t x, [[maybe_unused]] uint64_t y, [[maybe_unused]] uint64_t z) -> uint64_t {                               \
    [[maybe_unused]] const float a = HalfToFloat(static_cast<uint16_t>(x)), b = HalfToFloat(static_cast<uint16_t>(y)), \
                                 c = HalfToFloat(static_cast<uint16_t>(z));                                            \
    return FloatToHalf(expression);                                                                                    \
  }
void AddHalves(Table& table) {
  table["add.rn.f16"] = table["add.f16"] = QUERN_HALF(a + b);
  table["sub.rn.f16"] = table["sub.f16"] = QUERN_HALF(a - b);
  table["mul.rn.f16"] = table["mul.f16"] = QUERN_HALF(a * b);
  table["fma.rn.f16"] = QUERN_HALF(std::fma(a, b, c));
  table["neg.f16"] = QUERN_HALF(-a);
  table["abs.f16"] = QUERN_HALF(std::fabs(a));
  table["min.f16"] = QUERN_HALF(Least(a, b, false));
  table["max.f16"] = QUERN_HALF(-Least(-a, -b, false));
  table["min.NaN.f16"] = QUERN_HALF(Least(a, b, true));
  table["max.NaN.f16"] = QUERN_HALF(-Least(-a, -b, true));
  table["cvt.rni.f16.f16"] = QUERN_HALF(std::nearbyint(a));
  table["cvt.rzi.f16.f16"] = QUERN_HALF(std::trunc(a));
  table["cvt.rmi.f16.f16"] = QUERN_HALF(std::floor(a));
  table["cvt.rpi.f16.f16"] = QUERN_HALF(std::ceil(a));
}

template <typename T>
void AddComparisons(Table& table, const std::string& type) {
  table["setp.eq." + type] = QUERN_TEST(a == b);
  table["setp.lt." + type] = QUERN_TEST(a < b);
  table["setp.le." + type] = QUERN_TEST(a <= b);
  table["setp.gt." + type] = QUERN_TEST(a > b);
  table["setp.ge." + type] = QUERN_TEST(a >= b);
  if constexpr (!std::is_integral_v<T>) {
    table["setp.ne." + type] = QUERN_TEST(a < b || a > b);
    table["setp.equ." + type] = QUERN_TEST(!(a < b || a > b));
    table["setp.neu." + type] = QUERN_TEST(a != b);
    table["setp.ltu." + type] = QUERN_TEST(!(a >= b));
    table["setp.leu." + type] = QUERN_TEST(!(a > b));
    table["setp.gtu." + type] = QUERN_TEST(!(a <= b));
    table["setp.geu." + type] = QUERN_TEST(!(a < b));
    table["setp.num." + type] = QUERN_TEST(!std::isnan(a) && !std::isnan(b));
    table["setp.nan." + type] = QUERN_TEST(std::isnan(a) || std::isnan(b));
  } else {
    table["setp.ne." + type] = QUERN_TEST(a != b);
  }
}

template <typename To, typename From>
uint64_t Rounded(uint64_t x, bool nearest) {
  using Real = decltype(As<From>(x));
  const Real value = nearest ? std::nearbyint(As<From>(x)) : std::trunc(As<From>(x));
  if (std::isnan(value)) return 0;
  if (value >= std::ldexp(Real{1}, std::numeric_limits<To>::digits)) return Bits<To>(std::numeric_limits<To>::max());
  if (value <= static_cast<Real>(std::numeric_limits<To>::min())) return Bits<To>(std::numeric_limits<To>::min());
  return Bits<To>(static_cast<To>(value));
}

template <typename T>
void AddConversions(Table& table, const std::string& type) {
  auto from = [&]<typename From>(const std::string& source) {
    // The smallest registers have 16 bits: what is narrower is extended, by its sign where it has one.
    table["cvt." + type + "." + source] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
      using Register = std::conditional_t<std::is_same_v<T, int8_t>, int16_t, T>;
      return Bits<Register>(static_cast<T>(As<From>(x)));
    };
  };
  from.template operator()<uint8_t>("u8"), from.template operator()<int8_t>("s8"),
      from.template operator()<uint16_t>("u16");
  from.template operator()<int16_t>("s16"), from.template operator()<uint32_t>("u32"),
      from.template operator()<int32_t>("s32");
  from.template operator()<uint64_t>("u64"), from.template operator()<int64_t>("s64");
  table["cvt.rn.f32." + type] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Bits<float>(static_cast<float>(As<T>(x)));
  };
  table["cvt.rn.f64." + type] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Bits<double>(static_cast<double>(As<T>(x)));
  };
  table["cvt.rzi." + type + ".f32"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Rounded<T, float>(x, false);
  };
  if constexpr (sizeof(T) <= 2) {
    table["cvt.rn.f16." + type] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
      return FloatToHalf(static_cast<float>(As<T>(x)));
    };
  }
  table["cvt.rzi." + type + ".f16"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Rounded<T, Half>(x, false);
  };
  table["cvt.rzi." + type + ".f64"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Rounded<T, double>(x, false);
  };
  table["cvt.rni." + type + ".f32"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Rounded<T, float>(x, true);
  };
  table["cvt.rni." + type + ".f64"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Rounded<T, double>(x, true);
  };
}

Table MakeTable() {
  Table table;
  AddInteger<uint16_t>(table, "u16"), AddInteger<int16_t>(table, "s16"), AddInteger<uint16_t>(table, "b16");
  AddInteger<uint32_t>(table, "u32"), AddInteger<int32_t>(table, "s32"), AddInteger<uint32_t>(table, "b32");
  AddInteger<uint64_t>(table, "u64"), AddInteger<int64_t>(table, "s64"), AddInteger<uint64_t>(table, "b64");
  AddHalves(table);
  AddFloat<float>(table, "f32"), AddFloat<double>(table, "f64");
  AddComparisons<uint16_t>(table, "u16"), AddComparisons<int16_t>(table, "s16"), AddComparisons<uint16_t>(table, "b16");
  AddComparisons<uint32_t>(table, "u32"), AddComparisons<int32_t>(table, "s32"), AddComparisons<uint32_t>(table, "b32");
  AddComparisons<uint64_t>(table, "u64"), AddComparisons<int64_t>(table, "s64"), AddComparisons<uint64_t>(table, "b64");
  AddComparisons<Half>(table, "f16"), AddComparisons<float>(table, "f32"), AddComparisons<double>(table, "f64");
  AddConversions<uint8_t>(table, "u8"), AddConversions<int8_t>(table, "s8"), AddConversions<uint16_t>(table, "u16");
  AddConversions<int16_t>(table, "s16"), AddConversions<uint32_t>(table, "u32"), AddConversions<int32_t>(table, "s32");
  AddConversions<uint64_t>(table, "u64"), AddConversions<int64_t>(table, "s64");
  const Alu same = [](uint64_t x, uint64_t, uint64_t) -> uint64_t { return x; };
  const Alu chosen = [](uint64_t x, uint64_t y, uint64_t z) -> uint64_t { return z != 0 ? x : y; };
  for (const char* type : {"u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64", "f32", "f64", "pred"}) {
    table["mov." + std::string(type)] = same;
    table["selp." + std::string(type)] = chosen;
  }
  table["mov.pred"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t { return x & 1; };  // true is written -1, too
  table["and.pred"] = [](uint64_t x, uint64_t y, uint64_t) -> uint64_t { return x & y; };
  table["or.pred"] = [](uint64_t x, uint64_t y, uint64_t) -> uint64_t { return x | y; };
  table["xor.pred"] = [](uint64_t x, uint64_t y, uint64_t) -> uint64_t { return x ^ y; };
  table["not.pred"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t { return x ^ 1; };
  table["cvt.f32.f16"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Bits<float>(HalfToFloat(static_cast<uint16_t>(x)));
  };
  table["cvt.rn.f16.f32"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t { return FloatToHalf(As<float>(x)); };
  table["cvt.rn.bf16.f32"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t { return FloatToBFloat16(As<float>(x)); };
  table["cvt.rn.f16x2.f32"] = [](uint64_t x, uint64_t y, uint64_t) -> uint64_t {
    return static_cast<uint64_t>(FloatToHalf(As<float>(x))) << 16 | FloatToHalf(As<float>(y));
  };
  table["cvt.rn.bf16x2.f32"] = [](uint64_t x, uint64_t y, uint64_t) -> uint64_t {
    return static_cast<uint64_t>(FloatToBFloat16(As<float>(x))) << 16 | FloatToBFloat16(As<float>(y));
  };
  table["cvt.f64.f16"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Bits<double>(HalfToFloat(static_cast<uint16_t>(x)));
  };
  table["cvt.f64.f32"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t { return Bits<double>(As<float>(x)); };
  table["cvt.rn.f32.f64"] = [](uint64_t x, uint64_t, uint64_t) -> uint64_t {
    return Bits<float>(static_cast<float>(As<double>(x)));
  };
  return table;
}

}  // namespace

Alu FindAlu(const std::string& opcode) {
  static const Table table = MakeTable();
  const auto found = table.find(opcode);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace quern::ptx
