#include "codegen/cpu/target.h"

#include <algorithm>
#include <array>

#include "base/block_format.h"
#include "base/cpu_features.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace quern::cpu {
namespace {

constexpr Platform kX86 = {"x86_64-linux-gnu", "x86-64", "+sse2"};
constexpr Platform kArm = {"aarch64-linux-gnu", "generic", "+neon"};
constexpr std::array kPlatforms = {&kX86, &kArm};
constexpr PlainPanels kNone = PlainPanels::kNone, kOfBlocks32 = PlainPanels::kOfBlocks32, kAll = PlainPanels::kAll;
constexpr std::array<Target, 6> kTargets = {{
    {&kX86, "sse4", "x86-64-v2", 4, 16, false, false, false, false, false, true, 10, 12, kOfBlocks32, false,
     CpuFeaturesOf("sse4")},
    {&kX86, "avx2", "x86-64-v3", 8, 16, false, true, true, false, false, true, 10, 12, kOfBlocks32, true,
     CpuFeaturesOf("avx2")},
    {&kX86, "avx512", "x86-64-v4", 16, 32, true, true, true, false, false, true, 24, 12, kOfBlocks32, true,
     CpuFeaturesOf("avx512")},
    {&kX86, "avx512vnni", "", 16, 32, true, true, true, true, false, false, 24, 12, kAll, true,
     CpuFeaturesOf("avx512vnni")},
    {&kX86, "amx", "", 16, 32, true, true, true, true, true, true, 32, 64, kNone, false, CpuFeaturesOf("amx")},
    {&kArm, "neon", "armv8-a", 4, 32, false, true, true, false, false, true, 10, 12, kAll, false,
     CpuFeaturesOf("neon")},
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

bool HasPlainPanels(const Target& target, DType weight) {
  if (target.plain_panels != kOfBlocks32) return target.plain_panels == kAll;
  return FormatOf(weight).elements == 32;
}

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
  return MissingCpuFeatures(target.required);
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
