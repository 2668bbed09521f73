// Which features of a processor each instruction-set level needs, which bits of CPUID these are, and what this machine
// lacks of them. The JIT's choice of a level, the addresses of SIMD functions and the check in front of models that are
// compiled ahead of time all follow from these two tables.
//
//   MissingCpuFeatures(CpuFeaturesOf("avx512"))   // {"avx512f", "avx512bw", ...} on a Haswell
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rt/cpu.h"

namespace quern {

struct CpuLevel {
  std::string_view name;
  const char* features;  // by the code generator's names, separated by spaces
};

#define QUERN_CPU_V2 "sse3 ssse3 sse4.1 sse4.2 popcnt cx16"
#define QUERN_CPU_V3 QUERN_CPU_V2 " avx avx2 fma f16c bmi bmi2 lzcnt movbe"
#define QUERN_CPU_V4 QUERN_CPU_V3 " avx512f avx512bw avx512cd avx512dq avx512vl"
// Beside the x86-64 levels: AES and the carry-less multiply, which Highway's levels count on and every such machine
// has.
#define QUERN_CPU_CRYPTO " aes pclmul"
#define QUERN_CPU_VNNI                                                             \
  QUERN_CPU_V4 QUERN_CPU_CRYPTO                                                    \
      " avx512vnni avx512bf16 avx512vbmi avx512vbmi2 avx512bitalg avx512vpopcntdq" \
      " gfni vaes vpclmulqdq"
inline constexpr CpuLevel kCpuLevels[] = {
    {"sse4", QUERN_CPU_V2 QUERN_CPU_CRYPTO},
    {"avx2", QUERN_CPU_V3 QUERN_CPU_CRYPTO},
    {"avx512", QUERN_CPU_V4 QUERN_CPU_CRYPTO},
    {"avx512vnni", QUERN_CPU_VNNI},
    {"amx", QUERN_CPU_VNNI " amx-tile amx-int8 amx-bf16"},
    {"neon", ""},  // all of it is in the architecture's base
};
#undef QUERN_CPU_V2
#undef QUERN_CPU_V3
#undef QUERN_CPU_V4
#undef QUERN_CPU_CRYPTO
#undef QUERN_CPU_VNNI

// Precondition: a level of the table.
constexpr const char* CpuFeaturesOf(std::string_view level) {
  size_t at = 0;
  while (kCpuLevels[at].name != level) ++at;
  return kCpuLevels[at].features;
}

struct CpuNeeds {
  cpu_words words{};
  bool permission = false;  // of the system, for the tile registers
};
// Of features separated by spaces. Error: Internal, one that has no bit in the table.
StatusOr<CpuNeeds> CpuNeedsOf(std::string_view features);

// Those of `features` that this machine lacks, or whose registers its system does not save, in their order, unknown
// ones among them; last, where all else is there and a permission was refused, "the system's permission". Asks for that
// once in a process: without it the first tile instruction would end it. Thread-safe.
std::vector<std::string> MissingCpuFeatures(std::string_view features);

}  // namespace quern
