#include "base/cpu_features.h"

#include <algorithm>
#include <iterator>

namespace quern {
namespace {

struct Feature {
  std::string_view name;  // the code generator's
  int word, bit;
};
// Intel SDM volume 2, CPUID.
constexpr Feature kFeatures[] = {
    {"sse3", CPU_1_ECX, 0},          {"pclmul", CPU_1_ECX, 1},
    {"ssse3", CPU_1_ECX, 9},         {"fma", CPU_1_ECX, 12},
    {"cx16", CPU_1_ECX, 13},         {"sse4.1", CPU_1_ECX, 19},
    {"sse4.2", CPU_1_ECX, 20},       {"movbe", CPU_1_ECX, 22},
    {"popcnt", CPU_1_ECX, 23},       {"aes", CPU_1_ECX, 25},
    {"avx", CPU_1_ECX, 28},          {"f16c", CPU_1_ECX, 29},
    {"bmi", CPU_7_EBX, 3},           {"avx2", CPU_7_EBX, 5},
    {"bmi2", CPU_7_EBX, 8},          {"avx512f", CPU_7_EBX, 16},
    {"avx512dq", CPU_7_EBX, 17},     {"avx512cd", CPU_7_EBX, 28},
    {"avx512bw", CPU_7_EBX, 30},     {"avx512vl", CPU_7_EBX, 31},
    {"avx512vbmi", CPU_7_ECX, 1},    {"avx512vbmi2", CPU_7_ECX, 6},
    {"gfni", CPU_7_ECX, 8},          {"vaes", CPU_7_ECX, 9},
    {"vpclmulqdq", CPU_7_ECX, 10},   {"avx512vnni", CPU_7_ECX, 11},
    {"avx512bitalg", CPU_7_ECX, 12}, {"avx512vpopcntdq", CPU_7_ECX, 14},
    {"amx-tile", CPU_7_EDX, 24},     {"amx-int8", CPU_7_EDX, 25},
    {"amx-bf16", CPU_7_EDX, 22},     {"avx512bf16", CPU_7_1_EAX, 5},
    {"lzcnt", CPU_EXT_ECX, 5},
};
// Registers that the system must save, by the feature whose instructions use them.
constexpr uint32_t kVectorState = 0x6, kMaskState = 0xe0, kTileState = 0x60000;

// Adds a feature; false: it has no bit.
bool Add(std::string_view name, CpuNeeds& needs) {
  const auto* feature =
      std::find_if(std::begin(kFeatures), std::end(kFeatures), [&](const Feature& f) { return f.name == name; });
  if (feature == std::end(kFeatures)) return false;
  needs.words.word[feature->word] |= 1u << feature->bit;
  // Whatever is encoded as AVX's instructions are.
  if (name.starts_with("avx") || name == "fma" || name == "f16c" || name.starts_with("v"))
    needs.words.state |= kVectorState;
  if (name.starts_with("avx512")) needs.words.state |= kMaskState;
  if (name.starts_with("amx")) {
    needs.words.state |= kTileState;
    needs.permission = true;
  }
  return true;
}

// Calls `each` for the names until it returns false.
template <typename Each>
void ForEachName(std::string_view names, Each each) {
  while (!names.empty()) {
    const size_t space = names.find(' ');
    if (!each(names.substr(0, space))) return;
    names = space == std::string_view::npos ? std::string_view() : names.substr(space + 1);
  }
}

const cpu_words& HostCpu() {
  static const cpu_words host = [] {
    cpu_words words;
    cpu_read(&words);
    return words;
  }();
  return host;
}

}  // namespace

StatusOr<CpuNeeds> CpuNeedsOf(std::string_view features) {
  CpuNeeds needs;
  Status status;
  ForEachName(features, [&](std::string_view name) {
    if (Add(name, needs)) return true;
    status = absl::InternalError(absl::StrFormat("the feature %s has no bit in the table", std::string(name)));
    return false;
  });
  QUERN_RETURN_IF_ERROR(status);
  return needs;
}

std::vector<std::string> MissingCpuFeatures(std::string_view features) {
  std::vector<std::string> missing;
  bool permission = false;
  ForEachName(features, [&](std::string_view name) {
    CpuNeeds needs;
    if (!Add(name, needs) || !cpu_has(&HostCpu(), &needs.words)) missing.emplace_back(name);
    permission |= needs.permission;
    return true;
  });
  if (!missing.empty() || !permission) return missing;
  static const bool permitted = cpu_permit_tiles() != 0;
  if (!permitted) missing.emplace_back("the system's permission");
  return missing;
}

}  // namespace quern
