// The targets with blocks of threads that there are: the tables of codegen/ptx and codegen/metal, joined. A target is
// what --target says ("nvptx64"); each of its rows is a cpu ("sm_80"), and no two targets share one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codegen/device_module.h"

namespace quern::compiler {

// Rows of one target stand together, the least first.
const std::vector<const codegen::DeviceTarget*>& DeviceTargets();

// "nvptx64, metal"
std::string DeviceTargetNames();
// "ptx", "metal"; and in one text.
std::vector<std::string> DeviceStages();
std::string DeviceStageNames();
bool IsDeviceTarget(std::string_view target);
// The row of this cpu, or null.
const codegen::DeviceTarget* FindDeviceCpu(std::string_view cpu);
// The least row whose text has this suffix, which is what a dump's stage is called ("ptx"); or null.
const codegen::DeviceTarget* FindDeviceStage(std::string_view extension);
// The row of `target` for `cpu`; "native": the least. Errors: an unknown target, or a cpu of another.
StatusOr<const codegen::DeviceTarget*> ResolveDeviceTarget(std::string_view target, std::string_view cpu);

}  // namespace quern::compiler
