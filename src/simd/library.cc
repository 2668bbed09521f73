// Tables made by the build from the SIMD sources (simd_symbols.inc, simd_levels.inc) and look-up over them.
#include "simd/library.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/cpu_features.h"

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

}  // namespace

std::span<const Level> Levels() { return kLevels; }

const Level* FindLevel(std::string_view name) {
  const size_t index = LevelIndex(name);
  return index == kLevelCount ? nullptr : &kLevels[index];
}

bool HostSupports(const Level& level) {
  return level.has_objects && MissingCpuFeatures(CpuFeaturesOf(level.name)).empty();
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
