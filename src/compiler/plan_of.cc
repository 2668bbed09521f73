// PlanOf of the public interface: the border, the memory and the variants of a graph, from its plans.

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "compiler/graph_state.h"
#include "compiler/model.h"
#include "ir/binary.h"
#include "lir/signature.h"
#include "quern/plan.h"

namespace quern {
namespace {

constexpr int64_t kStateAlign = 64;

BindingPort PortOf(const Port& port, bool parameter, const char* home) {
  BindingPort made{port.name, std::string(Name(port.type.dtype)), {}, BytesOf(port, parameter).ToString(), home, 0};
  for (const Extent& dim : port.type.dims) made.dims.push_back(dim.ToString());
  return made;
}

// "layers.3" of "layers.3.ffn.up"; the name itself where no part of it is a number.
std::string PrefixOf(const std::string& name) {
  size_t start = 0;
  while (start <= name.size()) {
    const size_t end = std::min(name.find('.', start), name.size());
    const bool number =
        end > start && std::all_of(name.begin() + static_cast<int64_t>(start), name.begin() + static_cast<int64_t>(end),
                                   [](unsigned char c) { return std::isdigit(c) != 0; });
    if (number) return name.substr(0, end);
    start = end + 1;
  }
  return name;
}

// Names of parameters in the order in which nodes, those of bodies too, first use them.
void FirstUses(const ir::Graph& graph, std::vector<std::string>& names) {
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::Value& input : node.inputs) {
      const ir::Node& from = graph.node(input.node);
      if (!ir::IsParam(from)) continue;
      const std::string& name = from.attributes.String("name");
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    for (const auto& body : node.bodies) FirstUses(*body, names);
  }
}

std::string TextOfGuard(const SymbolRanges& guard) {
  std::string text;
  for (const auto& [symbol, range] : guard)
    absl::StrAppend(&text, text.empty() ? "" : ", ", symbol, " in ", range.low, "..", range.high);
  return text;
}

void Count(const ir::Graph& graph, std::map<std::string, int>& ops) {
  for (const ir::Node& node : graph.nodes()) {
    if (ir::IsRegion(node)) {
      Count(node.body(), ops);
    } else if (node.op->kind != ir::OpKind::kLeaf) {
      ++ops[node.op->name];
      for (const auto& body : node.bodies) Count(*body, ops);
    }
  }
}

StatusOr<VariantPlan> VariantOf(const ir::Graph& prepared, const SymbolRanges& guard,
                                const compiler::PipelineOptions& pipeline, const std::string& identity) {
  QUERN_ASSIGN(const compiler::PlannedVariant planned, compiler::PlanVariant(prepared, guard, pipeline));
  const lir::Plan& plan = planned.plan;
  VariantPlan made;
  made.guard = TextOfGuard(guard);
  made.phase = plan.once.empty() ? "steady" : "prologue, steady";
  made.key = HashBytes(absl::StrCat(identity, "\n", made.guard)).high;
  made.kernels = static_cast<int>(plan.kernels.size());
  made.launches = static_cast<int>(plan.launches.size());
  made.once = static_cast<int>(plan.once.size());
  Count(planned.graph, made.ops);
  made.arena_bytes = plan.arena_bytes.ToString();
  made.arena_most = plan.arena_bytes.UpperBound(plan.ranges).value_or(-1);
  made.packed_bytes = plan.once_kept_bytes.UpperBound({}).value_or(0);
  return made;
}

StatusOr<BindingManifest> Make(const compiler::GraphAccess::State& state, const Options& options) {
  QUERN_ASSIGN(const compiler::PipelineOptions pipeline, compiler::PipelineOptionsOf(options));
  QUERN_ASSIGN(const ir::Graph graph, hir::Lower(state.module));
  const Signature signature = SignatureOf(graph);
  BindingManifest made;
  made.graph = graph.name;
  made.fingerprint = ir::Fingerprint(graph).ToHex();
  for (const Port& port : signature.inputs) made.inputs.push_back(PortOf(port, false, "caller"));
  for (const Port& port : signature.outputs) made.outputs.push_back(PortOf(port, false, "caller"));
  std::map<std::string, int64_t> bytes;
  for (const Port& port : signature.params) {
    made.params.push_back(PortOf(port, true, "caller"));
    QUERN_ASSIGN(bytes[port.name], BytesOf(port, true).Evaluate({}));
    made.param_bytes += bytes[port.name];
  }
  for (const Port& port : signature.states) {
    BindingPort& at = made.states.emplace_back(PortOf(port, false, "state"));
    at.offset = made.state_bytes;
    const int64_t most = BytesOf(port, false).UpperBound(signature.symbols).value_or(0);
    made.state_bytes += (most + kStateAlign - 1) / kStateAlign * kStateAlign;
  }
  for (const ir::Donation& donation : graph.donations) made.donations.emplace_back(donation.input, donation.output);
  std::vector<std::string> names;
  FirstUses(graph, names);
  for (const std::string& name : names) {
    const std::string prefix = PrefixOf(name);
    const auto known = std::find_if(made.weight_blocks.begin(), made.weight_blocks.end(),
                                    [&](const WeightBlock& block) { return block.prefix == prefix; });
    WeightBlock& block = known != made.weight_blocks.end() ? *known : made.weight_blocks.emplace_back();
    block.prefix = prefix;
    block.params.push_back(name);
    block.bytes += bytes[name];
  }
  QUERN_ASSIGN(const ir::Graph prepared, compiler::PrepareGraph(state.module, pipeline));
  std::vector<SymbolRanges> guards = state.Guards();
  guards.push_back({});
  QUERN_ASSIGN(guards, compiler::PossibleGuards(prepared, guards));
  const std::string identity = absl::StrCat(made.fingerprint, "\n", options.cpu, "\n", options.exact ? "exact" : "",
                                            "\n", options.invariant ? "invariant" : "", "\n", options.kernels);
  for (const SymbolRanges& guard : guards) {
    QUERN_ASSIGN(made.variants.emplace_back(), VariantOf(prepared, guard, pipeline, identity));
  }
  return made;
}

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

}  // namespace

std::string BindingManifest::Json() const {
  nlohmann::ordered_json json = {{"graph", graph}, {"fingerprint", fingerprint}};
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
  json["variants"] = nlohmann::ordered_json::array();
  for (const VariantPlan& variant : variants) {
    json["variants"].push_back({{"guard", variant.guard},
                                {"phase", variant.phase},
                                {"key", absl::StrFormat("%016x", variant.key)},
                                {"kernels", variant.kernels},
                                {"launches", variant.launches},
                                {"once", variant.once},
                                {"ops", variant.ops},
                                {"arena_bytes", variant.arena_bytes},
                                {"arena_most", variant.arena_most},
                                {"packed_bytes", variant.packed_bytes}});
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<BindingManifest> PlanOf(const Graph& graph, const Options& options) {
  const compiler::GraphAccess::State& state = compiler::GraphAccess::Of(graph);
  if (!state.ok()) return Result<BindingManifest>::Failed(state.error);
  return compiler::ToResult(Make(state, options), state.module.name);
}

}  // namespace quern
