// What every SIMD source starts with: Highway for one fixed instruction-set level, and the export macros.
//
// Each source here is compiled once per level (cmake/simd.cmake: sse4, avx2, avx512, avx512vnni, amx, neon) with the
// level's -m flags and -DQUERN_LEVEL=<level>, in two forms: an object, called by address, and bitcode, inlined by the
// JIT; a level of another architecture, for code compiled ahead of time, is bitcode alone. Rules that make the bitcode
// link and the objects coexist: everything that is not exported is in an anonymous namespace or HWY_INLINE (an ordinary
// inline function compiled with AVX-512 flags could win over the baseline's copy at link time); no libc, no global
// state; vectors narrower than 128 bits never cross a function border by value.
#pragma once

#define HWY_COMPILE_ONLY_STATIC 1
#include <cstdint>

#include "hwy/base.h"
// The level's -m flags alone decide what may be emitted. Highway would add its own target attribute to each of its
// functions, and 1.0.3 asks there for avxvnni, with which they no longer inline into ours.
#undef HWY_PUSH_ATTRIBUTES
#undef HWY_POP_ATTRIBUTES
#define HWY_PUSH_ATTRIBUTES(targets_str)
#define HWY_POP_ATTRIBUTES
#include "hwy/highway.h"
#undef HWY_ATTR
#define HWY_ATTR

#if !defined(QUERN_LEVEL) || !defined(QUERN_LEVEL_TARGET)
#error "compile with -DQUERN_LEVEL=<level> -DQUERN_LEVEL_TARGET=<the Highway target it means>"
#endif
// Highway quietly picks a lesser target when one feature flag is missing; in its numbering a better target is smaller.
static_assert(HWY_TARGET <= QUERN_LEVEL_TARGET, "the level's flags do not select its Highway target");

#define QUERN_SIMD_CAT_(a, b) a##_##b
#define QUERN_SIMD_CAT(a, b) QUERN_SIMD_CAT_(a, b)
// The level's own name of an exported function: qk_dot_q4_K -> qk_dot_q4_K_avx2.
#define QUERN_NAME(name) QUERN_SIMD_CAT(name, QUERN_LEVEL)

// Starts the definition of an exported tile (object code, called by address). Must begin a line: CMake collects the
// names.
//   QUERN_TILE(qk_dot_f32)(float* y, ...) { ... }
#define QUERN_TILE(name) extern "C" void QUERN_NAME(name)

// Starts an exported inline primitive over raw vectors (bitcode first; the object form is for tests and ahead of time).
// Must begin a line, with a type that is one word.
//   QUERN_INLINE(Vec, q_exp_f32)(Vec x) { ... }
#define QUERN_INLINE(type, name) extern "C" __attribute__((always_inline)) type QUERN_NAME(name)
