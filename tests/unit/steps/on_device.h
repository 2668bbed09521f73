// A graph with branches or loops as a program for devices, written down and read again, on the emulated device.
#pragma once

#include "device/emulated/emulated_device.h"
#include "device/manifest.h"
#include "unit/device/device_run.h"

namespace quern::testing {

inline StatusOr<std::vector<std::vector<uint8_t>>> RunWrittenDown(const ir::Graph& graph, bool fuse,
                                                                  const Binding& binding, const BytesByName& bytes) {
  compiler::PipelineOptions options;
  options.fuse = fuse;
  options.verify_steps = true;
  options.facts.blocks.emplace();
  options.facts.blocks->half_products = false;  // whose error is another one
  QUERN_ASSIGN(const CompiledGraph compiled, PlanGraph(graph, {}, options));
  QUERN_ASSIGN(const std::shared_ptr<const device::LoadableProgram> made,
               MakeLoadable(SignatureOf(compiled.prepared), {{compiled.guard, compiled.plan}}, nullptr));
  const device::ManifestFiles files{.text = "graph.txt", .weight_header_hash = ""};
  const std::string text = device::WriteManifest(made->program, files);
  QUERN_ASSIGN(device::Manifest read, device::ReadManifest(text));
  if (device::WriteManifest(read.program, read.files) != text)
    return absl::InternalError("a manifest reads as another");
  auto program = std::make_shared<device::LoadableProgram>(*made);
  program->program = std::move(read.program);
  return RunProgram(program, compiled, device::emulated::MakeDevice(1), binding, bytes);
}

}  // namespace quern::testing
