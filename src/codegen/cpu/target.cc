#include "codegen/cpu/target.h"

#include <algorithm>
#include <array>

#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "simd/library.h"

namespace quern::cpu {
namespace {

#define QUERN_V2 "sse3 ssse3 sse4.1 sse4.2 popcnt cx16"
#define QUERN_V3 QUERN_V2 " avx avx2 fma f16c bmi bmi2 lzcnt movbe"
#define QUERN_V4 QUERN_V3 " avx512f avx512bw avx512cd avx512dq avx512vl"
// Beside the x86-64 levels: AES and the carry-less multiply, which Highway's levels count on and every such machine
// has.
#define QUERN_DL " aes pclmul avx512vnni avx512bf16 avx512vbmi avx512vbmi2 avx512bitalg avx512vpopcntdq"
#define QUERN_VNNI QUERN_V4 QUERN_DL " gfni vaes vpclmulqdq"
constexpr Platform kX86 = {"x86_64-linux-gnu", "x86-64", "+sse2"};
constexpr Platform kArm = {"aarch64-linux-gnu", "generic", "+neon"};
constexpr std::array kPlatforms = {&kX86, &kArm};
constexpr std::array<Target, 6> kTargets = {{
    {&kX86, "sse4", "x86-64-v2", 4, 16, false, false, false, false, 10, QUERN_V2 " aes pclmul"},
    {&kX86, "avx2", "x86-64-v3", 8, 16, false, true, true, false, 10, QUERN_V3 " aes pclmul"},
    {&kX86, "avx512", "x86-64-v4", 16, 32, true, true, true, false, 24, QUERN_V4 " aes pclmul"},
    {&kX86, "avx512vnni", "", 16, 32, true, true, true, true, 24, QUERN_VNNI},
    {&kX86, "amx", "", 16, 32, true, true, true, true, 32, QUERN_VNNI " amx-tile amx-int8"},
    // All of it is in the architecture's base.
    {&kArm, "neon", "armv8-a", 4, 32, false, true, true, false, 10, ""},
}};

std::string_view ArchitectureOf(const Platform& platform) {
  const std::string_view triple = platform.triple;
  return triple.substr(0, triple.find('-'));
}

const Platform& HostPlatform() {
  static const Platform* const host = [] {
    const llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
    for (const Platform* platform : kPlatforms) {
      if (llvm::Triple(platform->triple).getArch() == triple.getArch()) return platform;
    }
    return kPlatforms[0];
  }();
  return *host;
}

// Of one platform, or null: of any.
StatusOr<const Target*> Resolve(std::string_view name, const Platform* platform) {
  const bool host = platform == nullptr || platform == &HostPlatform();
  if (name == "native" && host) {
    const std::vector<const Target*> targets = HostTargets();
    if (targets.empty()) return CheckHost(kTargets.front());
    return targets.back();
  }
  std::string known = host ? "native" : "";
  for (const Target& target : kTargets) {
    if (platform != nullptr && target.platform != platform) continue;
    if (name == target.name || (*target.alias != 0 && name == target.alias)) return &target;
    known += std::string(known.empty() ? "" : ", ") + target.name;
    if (*target.alias != 0) known += std::string(" or ") + target.alias;
  }
  return absl::InvalidArgumentError(absl::StrFormat("unknown cpu level \"%s\"%s; known: %s", std::string(name),
                                                    platform == nullptr ? "" : std::string(" of ") + platform->triple,
                                                    known));
}

}  // namespace

std::span<const Target> Targets() { return kTargets; }

StatusOr<const Platform*> ResolvePlatform(std::string_view triple) {
  if (triple.empty()) return &HostPlatform();
  std::string known;
  for (const Platform* platform : kPlatforms) {
    if (triple == platform->triple) return platform;
    known += std::string(known.empty() ? "" : ", ") + platform->triple;
  }
  return absl::InvalidArgumentError(absl::StrFormat("unknown target \"%s\"; known: %s", std::string(triple), known));
}

const Target* LeastTarget(const Platform& platform) {
  return std::find_if(kTargets.begin(), kTargets.end(),
                      [&](const Target& target) { return target.platform == &platform; });
}

std::vector<std::string> MissingOnHost(const Target& target) {
  if (target.platform != &HostPlatform())
    return {absl::StrFormat("an %s processor", std::string(ArchitectureOf(*target.platform)))};
  // Asked once: the answer does not change while a program runs.
  static const llvm::StringMap<bool>* const host = new llvm::StringMap<bool>(llvm::sys::getHostCPUFeatures());
  std::vector<std::string> missing;
  std::string_view rest = target.required;
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    const std::string_view feature = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
    auto it = host->find(llvm::StringRef(feature.data(), feature.size()));
    if (it == host->end() || !it->second) missing.emplace_back(feature);
  }
  // Having the tile registers is not enough: the system must let this process use them.
  const simd::Level* level = simd::FindLevel(target.name);
  if (missing.empty() && level != nullptr && !simd::HostSupports(*level)) {
    missing.emplace_back("the system's permission");
  }
  return missing;
}

Status CheckHost(const Target& target) {
  const std::vector<std::string> missing = MissingOnHost(target);
  if (missing.empty()) return absl::OkStatus();
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
  return absl::FailedPreconditionError(
      absl::StrFormat("cpu level %s cannot run on this machine: it lacks %s", target.name, names));
}

std::vector<const Target*> HostTargets() {
  std::vector<const Target*> targets;
  for (const Target& target : kTargets) {
    if (MissingOnHost(target).empty()) targets.push_back(&target);
  }
  return targets;
}

StatusOr<const Target*> ResolveTarget(std::string_view name) { return Resolve(name, nullptr); }

StatusOr<const Target*> ResolveTarget(std::string_view name, const Platform& platform) {
  return Resolve(name, &platform);
}

}  // namespace quern::cpu
