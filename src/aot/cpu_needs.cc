#include "aot/cpu_needs.h"

#include <algorithm>
#include <string_view>

namespace quern::aot {
namespace {

struct Feature {
  std::string_view name;  // the code generator's
  int word, bit;
};
// Intel SDM volume 2, CPUID.
constexpr Feature kFeatures[] = {
    {"sse3", QUERN_CPUID_1_ECX, 0},          {"pclmul", QUERN_CPUID_1_ECX, 1},
    {"ssse3", QUERN_CPUID_1_ECX, 9},         {"fma", QUERN_CPUID_1_ECX, 12},
    {"cx16", QUERN_CPUID_1_ECX, 13},         {"sse4.1", QUERN_CPUID_1_ECX, 19},
    {"sse4.2", QUERN_CPUID_1_ECX, 20},       {"movbe", QUERN_CPUID_1_ECX, 22},
    {"popcnt", QUERN_CPUID_1_ECX, 23},       {"aes", QUERN_CPUID_1_ECX, 25},
    {"avx", QUERN_CPUID_1_ECX, 28},          {"f16c", QUERN_CPUID_1_ECX, 29},
    {"bmi", QUERN_CPUID_7_EBX, 3},           {"avx2", QUERN_CPUID_7_EBX, 5},
    {"bmi2", QUERN_CPUID_7_EBX, 8},          {"avx512f", QUERN_CPUID_7_EBX, 16},
    {"avx512dq", QUERN_CPUID_7_EBX, 17},     {"avx512cd", QUERN_CPUID_7_EBX, 28},
    {"avx512bw", QUERN_CPUID_7_EBX, 30},     {"avx512vl", QUERN_CPUID_7_EBX, 31},
    {"avx512vbmi", QUERN_CPUID_7_ECX, 1},    {"avx512vbmi2", QUERN_CPUID_7_ECX, 6},
    {"gfni", QUERN_CPUID_7_ECX, 8},          {"vaes", QUERN_CPUID_7_ECX, 9},
    {"vpclmulqdq", QUERN_CPUID_7_ECX, 10},   {"avx512vnni", QUERN_CPUID_7_ECX, 11},
    {"avx512bitalg", QUERN_CPUID_7_ECX, 12}, {"avx512vpopcntdq", QUERN_CPUID_7_ECX, 14},
    {"amx-tile", QUERN_CPUID_7_EDX, 24},     {"amx-int8", QUERN_CPUID_7_EDX, 25},
    {"avx512bf16", QUERN_CPUID_7_1_EAX, 5},  {"lzcnt", QUERN_CPUID_EXT_ECX, 5},
};
// Registers that the system must save, by the feature whose instructions use them.
constexpr uint32_t kVectorState = 0x6, kMaskState = 0xe0, kTileState = 0x60000;

}  // namespace

StatusOr<CpuNeeds> NeedsOf(const cpu::Target& target) {
  CpuNeeds needs;
  std::string_view rest = target.required;
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    const std::string_view name = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
    const auto* feature =
        std::find_if(std::begin(kFeatures), std::end(kFeatures), [&](const Feature& f) { return f.name == name; });
    if (feature == std::end(kFeatures)) {
      return absl::InternalError(
          absl::StrFormat("level %s needs %s, which has no bit in the table", target.name, std::string(name)));
    }
    needs.words[feature->word] |= 1u << feature->bit;
    if (name.starts_with("avx")) needs.state |= kVectorState;
    if (name.starts_with("avx512")) needs.state |= kMaskState;
    if (name.starts_with("amx")) {
      needs.state |= kTileState;
      needs.permission = true;
    }
  }
  return needs;
}

}  // namespace quern::aot
