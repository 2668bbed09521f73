// Tables made by the build from the SIMD sources (simd_symbols.inc, simd_levels.inc) and look-up over them.
#include "simd/library.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstddef>
#include <iterator>

// Only addresses are taken here, so the declarations need not know the signatures.
#define QUERN_SIMD_ADDRESS_OF(name, level) extern "C" void name##_##level();
#if defined(__x86_64__)
#define QUERN_SIMD_EACH_LEVEL(X, name) X(name, sse4) X(name, avx2) X(name, avx512) X(name, avx512vnni) X(name, amx)
#endif
#define QUERN_SIMD_TILE(name) QUERN_SIMD_EACH_LEVEL(QUERN_SIMD_ADDRESS_OF, name)
#define QUERN_SIMD_INLINE(name) QUERN_SIMD_EACH_LEVEL(QUERN_SIMD_ADDRESS_OF, name)
#include "simd_symbols.inc"
#undef QUERN_SIMD_TILE
#undef QUERN_SIMD_INLINE
#undef QUERN_SIMD_ADDRESS_OF

#define QUERN_SIMD_LEVEL(level, bytes, cpu, features, has_objects) \
  extern "C" const uint8_t quern_simd_bitcode_##level[];           \
  extern "C" const uint8_t quern_simd_bitcode_end_##level[];       \
  extern "C" const uint8_t quern_simd_math_##level[];              \
  extern "C" const uint8_t quern_simd_math_end_##level[];
#include "simd_levels.inc"
#undef QUERN_SIMD_LEVEL

namespace quern::simd {
namespace {

constexpr Level kLevels[] = {
#define QUERN_SIMD_LEVEL(level, bytes, cpu, features, has_objects) {#level, bytes, cpu, features, has_objects},
#include "simd_levels.inc"
#undef QUERN_SIMD_LEVEL
};
constexpr size_t kLevelCount = std::size(kLevels);

// The sentinel at the end keeps both tables legal when no source exports anything; the spans leave it out.
constexpr Function kFunctions[] = {
#define QUERN_SIMD_TILE(name) {#name, false},
#define QUERN_SIMD_INLINE(name) {#name, true},
#include "simd_symbols.inc"
#undef QUERN_SIMD_TILE
#undef QUERN_SIMD_INLINE
    {"", false},
};
constexpr size_t kFunctionCount = std::size(kFunctions) - 1;

using Address = void (*)();
// Levels without objects come last and have null.
constexpr Address kAddresses[][kLevelCount] = {
#define QUERN_SIMD_ADDRESS(name, level) name##_##level,
#define QUERN_SIMD_TILE(name) {QUERN_SIMD_EACH_LEVEL(QUERN_SIMD_ADDRESS, name)},
#define QUERN_SIMD_INLINE(name) {QUERN_SIMD_EACH_LEVEL(QUERN_SIMD_ADDRESS, name)},
#include "simd_symbols.inc"
#undef QUERN_SIMD_TILE
#undef QUERN_SIMD_INLINE
#undef QUERN_SIMD_ADDRESS
    {},
};

size_t LevelIndex(std::string_view name) {
  return std::find_if(std::begin(kLevels), std::end(kLevels), [&](const Level& l) { return l.name == name; }) - kLevels;
}

// Where "qk_dot_f32_avx2" is in the tables; its level is kLevelCount where there is no such function.
struct Place {
  size_t function, level;
};
Place Find(std::string_view symbol_with_level) {
  constexpr Place kNowhere = {0, kLevelCount};
  const size_t cut = symbol_with_level.rfind('_');
  if (cut == std::string_view::npos) return kNowhere;
  const size_t level = LevelIndex(symbol_with_level.substr(cut + 1));
  const std::span<const Function> functions = {kFunctions, kFunctionCount};
  const std::string_view name = symbol_with_level.substr(0, cut);
  const auto found = std::lower_bound(functions.begin(), functions.end(), name,
                                      [](const Function& f, std::string_view n) { return f.name < n; });
  if (found == functions.end() || found->name != name) return kNowhere;
  return {static_cast<size_t>(found - functions.begin()), level};
}

#if defined(__x86_64__)
// Whether the processor has AMX with bytes and the system lets this process use it. Linux keeps the 8 KB of tile state
// from a process until it asks; the grant is for all its threads, also later ones.
bool AmxPermitted() {
#if defined(__linux__)
  static const bool permitted = [] {
    unsigned a, b, c, d;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
    constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;
    if ((d & kTile) == 0 || (d & kInt8) == 0) return false;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return permitted;
#else
  return false;
#endif
}
#endif

}  // namespace

std::span<const Level> Levels() { return kLevels; }

const Level* FindLevel(std::string_view name) {
  const size_t index = LevelIndex(name);
  return index == kLevelCount ? nullptr : &kLevels[index];
}

bool HostSupports(const Level& level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") &&
                    __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("aes") &&
                    __builtin_cpu_supports("pclmul");
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") &&
                    __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16") &&
                    __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
                    __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq") &&
                    __builtin_cpu_supports("gfni") && __builtin_cpu_supports("vaes") &&
                    __builtin_cpu_supports("vpclmulqdq");
  if (level.name == "sse4") return sse4;
  if (level.name == "avx2") return avx2;
  if (level.name == "avx512") return avx512;
  if (level.name == "avx512vnni") return vnni;
  if (level.name == "amx") return vnni && AmxPermitted();
#endif
  return false;
}

const Level& HostLevel() {
  size_t best = 0;
  for (size_t i = 1; i < kLevelCount; ++i) {
    if (HostSupports(kLevels[i])) best = i;
  }
  return kLevels[best];
}

const void* FindTile(std::string_view symbol_with_level) {
  const Place place = Find(symbol_with_level);
  return place.level == kLevelCount ? nullptr : reinterpret_cast<const void*>(kAddresses[place.function][place.level]);
}

bool Exists(std::string_view symbol_with_level) { return Find(symbol_with_level).level != kLevelCount; }

std::span<const uint8_t> Bitcode(std::string_view level) {
#define QUERN_SIMD_LEVEL(name, bytes, cpu, features, has_objects) \
  if (level == #name) return {quern_simd_bitcode_##name, quern_simd_bitcode_end_##name};
#include "simd_levels.inc"
#undef QUERN_SIMD_LEVEL
  return {};
}

std::span<const uint8_t> MathBitcode(std::string_view level) {
#define QUERN_SIMD_LEVEL(name, bytes, cpu, features, has_objects) \
  if (level == #name) return {quern_simd_math_##name, quern_simd_math_end_##name};
#include "simd_levels.inc"
#undef QUERN_SIMD_LEVEL
  return {};
}

std::string_view BitcodeHash() {
  return
#include "simd_hash.inc"
      ;
}

std::span<const Function> Functions() { return {kFunctions, kFunctionCount}; }

}  // namespace quern::simd
