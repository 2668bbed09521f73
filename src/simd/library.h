// The compiled SIMD functions: which instruction-set levels exist, where each function's object form lies, and the
// bitcode from which the JIT inlines. Every name exists at every level; `<name>_<level>` is its symbol in both forms. A
// level of another architecture has the bitcode alone.
//
//   const simd::Level& level = simd::HostLevel();              // avx2 on a Haswell
//   const void* tile = simd::FindTile("qk_dot_f32_avx2");      // address of the object form, or nullptr
//   std::span<const uint8_t> bitcode = simd::Bitcode("avx2");  // one LLVM module, every math/ and tiles/ source
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quern::simd {

// One instruction-set level. The bitcode of a level may only be linked for a host that supports it: LLVM aborts the
// process when it must lower, say, a 512-bit intrinsic without AVX-512.
struct Level {
  std::string_view name;             // "avx2"
  int vector_bytes;                  // 32: the width of Vec in simd.h, thus of what QUERN_INLINE functions take
  std::string_view target_cpu;       // LLVM's name of the base: "x86-64-v3"
  std::string_view target_features;  // what the level adds to it: "+aes,+pclmul"
  bool has_objects;                  // false: of another architecture, bitcode alone, for code that runs elsewhere
};

// All levels built: first those of this architecture, each wider or richer than the one before.
std::span<const Level> Levels();

// The level of that name, or nullptr.
const Level* FindLevel(std::string_view name);

// Whether this processor (and its operating system) runs the level's code. Of `amx` this asks Linux for the process's
// use of the tile registers, once: without that grant the first tile instruction would kill it.
bool HostSupports(const Level& level);

// The last level that the host supports. The first level is the baseline that the project asks of every host.
const Level& HostLevel();

// The address of the object form of a function, tile or inline: FindTile("qk_dot_f32_avx2"). nullptr when there is
// none. The caller checks HostSupports before calling through it.
const void* FindTile(std::string_view symbol_with_level);
// Whether the level's bitcode has the function, also where it has no address: Exists("qk_dot_f32_neon").
bool Exists(std::string_view symbol_with_level);

// The level's LLVM bitcode module; empty for an unknown level. Lives as long as the program.
std::span<const uint8_t> Bitcode(std::string_view level);
// The inline functions of it alone (math/), which load in a tenth of the time.
std::span<const uint8_t> MathBitcode(std::string_view level);
// A hash of the bitcode of all levels.
std::string_view BitcodeHash();

// One exported function, its name without a level.
struct Function {
  std::string_view name;
  bool is_inline;  // QUERN_INLINE (raw vectors by value, meant to be inlined) rather than QUERN_TILE
};

// All exported functions, sorted by name in byte order.
std::span<const Function> Functions();

}  // namespace quern::simd
