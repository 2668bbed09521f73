// The CPU levels that kernels are generated for, and what the host has.
//
// A level is a fixed set of instructions: src/simd is built once per level, and a kernel is emitted for exactly one.
// It is chosen by the host's features before anything is linked, since the code generator aborts, rather than reports,
// when always-inline code meets a function with fewer features. Levels of a platform that is not the host's are for
// code that runs elsewhere.
//   QUERN_ASSIGN(const cpu::Target* target, cpu::ResolveTarget("native"));   // or "avx2", "x86-64-v3", ...
//   QUERN_ASSIGN(const cpu::Platform* platform, cpu::ResolvePlatform("aarch64-linux-gnu"));
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace quern::cpu {

// What the levels of one architecture and system have in common.
struct Platform {
  const char* triple;    // "x86_64-linux-gnu": what --target takes
  const char* base_cpu;  // of the code that runs before a level is chosen, by the code generator's names
  const char* base_features;
};

// The formats whose panels of 16 rows are as kir/layout.h has them; what others look like only their packs and tiles
// know.
enum class PlainPanels : uint8_t { kNone, kOfBlocks32, kAll };

struct Target {
  const Platform* platform;
  const char* name;   // "avx512": what --cpu takes, and the suffix of the level's symbols
  const char* alias;  // "x86-64-v4", or ""
  int lanes;          // f32 elements of a vector register
  int registers;      // vector registers
  bool masks;         // masked loads and stores of every element width at no cost
  bool fma;           // multiply-adds that round once as instructions
  bool f16c;          // conversions between f32 and f16 as instructions
  bool bf16_pairs;    // sums of two products of bf16 as an instruction
  bool bf16_tiles;    // of many on tile registers: several such products take less than one of f32
  bool any_signs;     // products of bytes take any signs; else one side has to have one and the other none
  int integer_rows;   // rows of a block of an integer matrix product: a multiple of what its registers hold
  int word_rows;      // the same of a product of words, pairs of bf16 or quads of bytes
  PlainPanels plain_panels;
  bool few_by_panels;  // the integer dots of a few rows pack weights as that product does (simd/tiles/quant_few.h)
  // Features the host must have, by the code generator's names, separated by spaces.
  const char* required;
};

bool HasPlainPanels(const Target& target, DType weight);

// All levels: those of a platform together, least first.
std::span<const Target> Targets();

// The platform of that triple; empty: the host's. An unknown one's error lists the known ones.
StatusOr<const Platform*> ResolvePlatform(std::string_view triple);

// The level called `name` (a name, an alias, or "native": the greatest the host has). Does not ask what the host has
// unless the name is "native"; an unknown name's error lists the known ones.
StatusOr<const Target*> ResolveTarget(std::string_view name);
// The same among the levels of `platform`; "native" is one of them only where it is the host's.
StatusOr<const Target*> ResolveTarget(std::string_view name, const Platform& platform);

// The level that every machine of the platform has.
const Target* LeastTarget(const Platform& platform);

// Names of the features that `target` needs and this machine lacks: of another platform, its processor.
std::vector<std::string> MissingOnHost(const Target& target);
// An error that names the missing features, or OK: code for `target` runs here.
Status CheckHost(const Target& target);
// The levels this machine can run, least first. Never empty on x86-64-v2 and above.
std::vector<const Target*> HostTargets();

}  // namespace quern::cpu
