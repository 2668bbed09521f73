// What PlanOf found, as JSON and as text for people.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "quern/plan.h"

namespace quern {
namespace {

using Json = nlohmann::ordered_json;

Json PortsJson(const std::vector<BindingPort>& ports) {
  Json rows = Json::array();
  for (const BindingPort& port : ports) {
    rows.push_back({{"name", port.name},
                    {"dtype", port.dtype},
                    {"dims", port.dims},
                    {"bytes", port.bytes},
                    {"home", port.home},
                    {"offset", port.offset}});
  }
  return rows;
}

Json VariantJson(const VariantPlan& variant) {
  Json phases = Json::array();
  for (const PlanPhase& phase : variant.phases) phases.push_back({{"name", phase.name}, {"launches", phase.launches}});
  return {{"guard", variant.guard},
          {"step", variant.step},
          {"key", absl::StrFormat("%016x", variant.key)},
          {"kernels", variant.kernels},
          {"launches", variant.launches()},
          {"phases", std::move(phases)},
          {"ops", variant.ops},
          {"arena_bytes", variant.arena_bytes},
          {"arena_most", variant.arena_most},
          {"packed_bytes", variant.packed_bytes},
          {"constant_bytes", variant.constant_bytes},
          {"scratch_bytes", variant.scratch_bytes},
          {"sizes", variant.sizes},
          {"arena", variant.arena},
          {"operations", variant.operations},
          {"read", variant.read},
          {"written", variant.written},
          {"operations_known", variant.operations_known}};
}

std::string SizesText(const std::map<std::string, int64_t>& sizes) {
  return sizes.empty() ? "" : absl::StrCat(" at ", absl::StrJoin(sizes, ", ", absl::PairFormatter("=")));
}

void AddPorts(const char* kind, const std::vector<BindingPort>& ports, std::string& text) {
  for (const BindingPort& port : ports) {
    absl::StrAppendFormat(&text, "%-9s %s  %s[%s]  %s bytes\n", kind, port.name, port.dtype,
                          absl::StrJoin(port.dims, ", "), port.bytes);
  }
}

}  // namespace

int VariantPlan::launches() const {
  size_t count = 0;
  for (const PlanPhase& phase : phases) count += phase.name == "prologue" ? 0 : phase.launches.size();
  return static_cast<int>(count);
}

MemoryEstimate BindingManifest::Memory(int threads) const {
  constexpr int64_t kLeastScratch = 64;
  MemoryEstimate memory{.params = param_bytes, .states = state_bytes, .packed = packed_bytes};
  int64_t scratch = kLeastScratch;
  for (const VariantPlan& variant : variants) {
    memory.arena = std::max(memory.arena, variant.arena);
    memory.constants += variant.constant_bytes;
    scratch = std::max(scratch, variant.scratch_bytes);
  }
  memory.scratch = scratch * threads;
  return memory;
}

std::string BindingManifest::Json() const {
  nlohmann::ordered_json json = {{"graph", graph}, {"fingerprint", fingerprint}, {"program", program}};
  json["inputs"] = PortsJson(inputs);
  json["outputs"] = PortsJson(outputs);
  json["params"] = PortsJson(params);
  json["states"] = PortsJson(states);
  json["donations"] = nlohmann::ordered_json::array();
  for (const auto& [state, output] : donations) json["donations"].push_back({{"state", state}, {"output", output}});
  json["weight_blocks"] = nlohmann::ordered_json::array();
  for (const WeightBlock& block : weight_blocks)
    json["weight_blocks"].push_back({{"prefix", block.prefix}, {"params", block.params}, {"bytes", block.bytes}});
  json["param_bytes"] = param_bytes;
  json["state_bytes"] = state_bytes;
  json["packed_bytes"] = packed_bytes;
  json["variants"] = nlohmann::ordered_json::array();
  for (const VariantPlan& variant : variants) json["variants"].push_back(VariantJson(variant));
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string BindingManifest::Text() const {
  std::string text =
      absl::StrCat("graph     ", graph, "\nfingerprint of the graph ", fingerprint, ", of the program ", program, "\n");
  AddPorts("input", inputs, text);
  AddPorts("output", outputs, text);
  AddPorts("state", states, text);
  for (const auto& [state, output] : donations)
    absl::StrAppendFormat(&text, "%-9s %s, by output %d of the graph\n", "carried", state, output);
  for (const WeightBlock& block : weight_blocks) {
    absl::StrAppendFormat(&text, "%-9s %s  %d bytes in %u parameters\n", "weights", block.prefix, block.bytes,
                          block.params.size());
  }
  const MemoryEstimate memory = Memory();
  absl::StrAppendFormat(&text,
                        "memory    parameters %d, states %d, packed %d, arena %d, constants %d, scratch of a thread %d "
                        "bytes\n",
                        memory.params, memory.states, memory.packed, memory.arena, memory.constants, memory.scratch);
  for (const VariantPlan& variant : variants) {
    absl::StrAppendFormat(&text, "\nvariant   %s  %s, key %016x: %d launches of %d kernels\n",
                          variant.guard.empty() ? "all other sizes" : variant.guard, variant.step, variant.key,
                          variant.launches(), variant.kernels);
    absl::StrAppendFormat(&text, "  arena   %s bytes, packed %d, constants %d, scratch %d\n", variant.arena_bytes,
                          variant.packed_bytes, variant.constant_bytes, variant.scratch_bytes);
    absl::StrAppendFormat(&text, "  run     %s%.4g operations, %.4g bytes read, %.4g written, arena %d bytes%s\n",
                          variant.operations_known ? "" : "at most ", variant.operations, variant.read, variant.written,
                          variant.arena, SizesText(variant.sizes));
    absl::StrAppend(&text, "  ops     ", absl::StrJoin(variant.ops, ", ", absl::PairFormatter(" ")), "\n");
    for (const PlanPhase& phase : variant.phases) {
      absl::StrAppendFormat(&text, "  %s, %u launches\n", phase.name, phase.launches.size());
      for (const std::string& launch : phase.launches) absl::StrAppend(&text, "    ", launch, "\n");
    }
  }
  return text;
}

}  // namespace quern
