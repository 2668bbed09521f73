#include "compiler/device_targets.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/metal/emit_metal.h"
#include "codegen/ptx/emit_ptx.h"

namespace quern::compiler {
namespace {

std::vector<const codegen::DeviceTarget*> Join() {
  std::vector<const codegen::DeviceTarget*> rows;
  for (const std::span<const codegen::DeviceTarget> table : {ptx::Targets(), metal::Targets()}) {
    for (const codegen::DeviceTarget& row : table) rows.push_back(&row);
  }
  return rows;
}

template <typename Field>
const codegen::DeviceTarget* Find(Field field, std::string_view value) {
  for (const codegen::DeviceTarget* row : DeviceTargets()) {
    if (value == row->*field) return row;
  }
  return nullptr;
}

// Each once: equal ones stand together.
template <typename Field>
std::vector<std::string> Names(Field field) {
  std::vector<std::string> names;
  for (const codegen::DeviceTarget* row : DeviceTargets()) {
    if (names.empty() || names.back() != row->*field) names.emplace_back(row->*field);
  }
  return names;
}

}  // namespace

const std::vector<const codegen::DeviceTarget*>& DeviceTargets() {
  static const auto* const rows = new std::vector<const codegen::DeviceTarget*>(Join());
  return *rows;
}

std::string DeviceTargetNames() { return absl::StrJoin(Names(&codegen::DeviceTarget::name), ", "); }
std::vector<std::string> DeviceStages() { return Names(&codegen::DeviceTarget::extension); }
std::string DeviceStageNames() { return absl::StrJoin(DeviceStages(), ", "); }
bool IsDeviceTarget(std::string_view target) { return Find(&codegen::DeviceTarget::name, target) != nullptr; }
const codegen::DeviceTarget* FindDeviceCpu(std::string_view cpu) { return Find(&codegen::DeviceTarget::cpu, cpu); }
const codegen::DeviceTarget* FindDeviceStage(std::string_view extension) {
  return Find(&codegen::DeviceTarget::extension, extension);
}

StatusOr<const codegen::DeviceTarget*> ResolveDeviceTarget(std::string_view target, std::string_view cpu) {
  std::string known;
  for (const codegen::DeviceTarget* row : DeviceTargets()) {
    if (target != row->name) continue;
    if (cpu == "native" || cpu == row->cpu) return row;
    absl::StrAppend(&known, known.empty() ? "" : ", ", row->cpu);
  }
  if (known.empty())
    return absl::InvalidArgumentError(
        absl::StrFormat("unknown target \"%s\"; known: %s", std::string(target), DeviceTargetNames()));
  return absl::InvalidArgumentError(
      absl::StrFormat("%s has no cpu \"%s\"; known: %s", std::string(target), std::string(cpu), known));
}

}  // namespace quern::compiler
