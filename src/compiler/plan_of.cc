// PlanOf of the public interface: the border, the memory and the variants of a graph, from its plans.

#include <algorithm>
#include <cctype>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "compiler/graph_state.h"
#include "compiler/model.h"
#include "compiler/program_identity.h"
#include "ir/binary.h"
#include "kir/cost.h"
#include "kir/scratch.h"
#include "lir/arena.h"
#include "lir/once.h"
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

// Of a graph with the sizes that guards leave: what its runs are called.
std::string StepOf(const ir::Graph& graph, const SymbolRanges& ranges) {
  const auto tokens = ranges.find(kSeq);
  if (tokens == ranges.end()) return "inference";
  if (graph.donations.empty()) return "encoder";
  return tokens->second.high == 1 ? "decode" : "prefill";
}

// Where launches behind the last product begin.
size_t EpilogueOf(const ir::Graph& fused, const lir::Plan& plan) {
  size_t behind = 0;  // the last product
  for (size_t l = 0; l < plan.launches.size(); ++l) {
    const lir::Launch& launch = plan.launches[l];
    if (launch.region < 0) continue;
    const ir::Node& region = lir::GraphOf(fused, plan, launch.body).node(launch.region);
    const std::vector<ir::Node>& nodes = region.body().nodes();
    const bool product = std::any_of(nodes.begin(), nodes.end(), [](const ir::Node& node) {
      return ir::IsRoot(node, "matmul") || ir::IsRoot(node, "attention");
    });
    if (product) behind = l + 1;
  }
  if (behind == 0) return plan.launches.size();
  // What comes after it in the body of a loop is no end.
  while (behind < plan.launches.size() && plan.launches[behind].body != 0) ++behind;
  return behind;
}

void AddPhase(const char* name, const lir::Plan& plan, std::span<const lir::Launch> launches, VariantPlan& made) {
  if (launches.empty()) return;
  PlanPhase& phase = made.phases.emplace_back(PlanPhase{name, {}});
  for (const lir::Launch& launch : launches)
    phase.launches.push_back(absl::StrCat(plan.kernels[launch.kernel].name, "  ", launch.label));
}

// Sizes that are each as large as they may be need not go together: lowers those that nobody asked for until what the
// plan requires of them holds, as far as that is a matter of one being smaller.
void Reconcile(const lir::Plan& plan, const SymbolRanges& ranges, const std::map<std::string, int64_t>& asked,
               Binding& sizes) {
  for (const lir::Requirement& requirement : plan.requirements) {
    if (requirement.exact) continue;
    for (const Extent::Term& term : requirement.value.terms()) {
      const int64_t lacks = -requirement.value.Evaluate(sizes).value_or(0);
      if (lacks <= 0) break;
      if (term.symbols.size() != 1 || term.coefficient >= 0 || asked.contains(term.symbols[0])) continue;
      const auto size = sizes.find(term.symbols[0]);
      if (size == sizes.end()) continue;
      const int64_t less = CeilDiv(lacks, -term.coefficient);
      size->second = std::max(ranges.find(size->first)->second.low, size->second - less);
    }
  }
}

// Operations and bytes of a run of these sizes.
void AddCosts(const lir::Plan& plan, const Binding& sizes, VariantPlan& made) {
  std::vector<std::optional<kir::KernelCost>> costs(plan.kernels.size());
  for (const lir::Launch& launch : plan.launches) {
    const kir::Kernel& kernel = plan.kernels[launch.kernel];
    if (plan.calls.contains(launch.kernel)) {
      made.operations_known = false;
      continue;
    }
    std::optional<kir::KernelCost>& cost = costs[launch.kernel];
    if (!cost) {
      Binding own;
      for (const kir::SymbolDecl& symbol : kernel.symbols) {
        const auto value = sizes.find(symbol.name);
        if (!symbol.derived && value != sizes.end()) own[symbol.name] = value->second;
      }
      StatusOr<kir::KernelCost> counted = kir::CostOf(kernel, own);
      if (!counted.ok()) {  // sizes that no run has
        made.operations_known = false;
        continue;
      }
      cost = *std::move(counted);
    }
    made.operations += cost->operations();
    made.read += static_cast<double>(cost->read());
    made.written += static_cast<double>(cost->written());
    made.operations_known = made.operations_known && !cost->estimate;
  }
}

// `packed`: takes what plans keep of parameters alone, by its key.
StatusOr<VariantPlan> VariantOf(const ir::Graph& prepared, const SymbolRanges& guard,
                                const compiler::PipelineOptions& pipeline, const std::string& identity,
                                const std::map<std::string, int64_t>& asked, std::map<Hash128, int64_t>& packed) {
  QUERN_ASSIGN(const compiler::PlannedVariant planned, compiler::PlanVariant(prepared, guard, pipeline));
  const lir::Plan& plan = planned.plan;
  VariantPlan made;
  made.guard = compiler::TextOfGuard(guard);
  made.key = compiler::VariantKey(identity, guard);
  SymbolRanges ranges = prepared.symbols;
  for (const auto& [symbol, range] : guard) ranges[symbol] = range;
  made.step = StepOf(prepared, ranges);
  Binding sizes;
  for (const auto& [symbol, range] : ranges) {
    const auto given = asked.find(symbol);
    sizes[symbol] = given == asked.end() ? range.high : std::clamp(given->second, range.low, range.high);
  }
  Reconcile(plan, ranges, asked, sizes);
  made.sizes.insert(sizes.begin(), sizes.end());
  made.kernels = static_cast<int>(plan.kernels.size());
  const std::span<const lir::Launch> launches(plan.launches);
  const size_t epilogue = EpilogueOf(planned.graph, plan);
  AddPhase("prologue", plan, plan.once, made);
  AddPhase("steady", plan, launches.first(epilogue), made);
  AddPhase("epilogue", plan, launches.subspan(epilogue), made);
  Count(planned.graph, made.ops);
  AddCosts(plan, sizes, made);
  made.arena_bytes = plan.arena_bytes.ToString();
  made.arena_most = plan.arena_bytes.UpperBound(plan.ranges).value_or(-1);
  made.arena = plan.arena_bytes.Evaluate(sizes).value_or(-1);
  std::set<Hash128> own;
  for (const auto& [buffer, value] : lir::KeptOnce(plan)) {
    if (!own.insert(value.key).second) continue;
    packed[value.key] = lir::RoundUp64(plan.buffers[buffer].bytes).constant();
    made.packed_bytes += packed[value.key];
  }
  for (const lir::Buffer& buffer : plan.buffers) {
    if (buffer.data != nullptr) made.constant_bytes += static_cast<int64_t>(buffer.data->size());
  }
  for (const kir::Kernel& kernel : plan.kernels) {
    QUERN_ASSIGN(const int64_t bytes, kir::ScratchBytes(kernel, {}));
    made.scratch_bytes = std::max(made.scratch_bytes, bytes);
  }
  return made;
}

StatusOr<BindingManifest> Make(const hir::Module& module, const Options& options,
                               const std::function<std::vector<SymbolRanges>(const ir::Graph& prepared)>& guards_of,
                               const std::map<std::string, int64_t>& sizes) {
  QUERN_ASSIGN(const compiler::PipelineOptions pipeline, compiler::PipelineOptionsOf(options));
  QUERN_ASSIGN(const ir::Graph graph, hir::Lower(module));
  for (const auto& [symbol, size] : sizes) {
    if (graph.symbols.contains(symbol)) continue;
    std::vector<std::string_view> known;
    for (const auto& [name, range] : graph.symbols) known.emplace_back(name);
    return UnknownName("symbol", symbol, known, graph.name);
  }
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
  QUERN_ASSIGN(const ir::Graph prepared, compiler::PrepareGraph(module, pipeline));
  QUERN_ASSIGN(const std::vector<SymbolRanges> guards, compiler::PossibleGuards(prepared, guards_of(prepared)));
  QUERN_ASSIGN(const Hash128 program, compiler::ProgramFingerprint(graph, guards, options));
  made.program = program.ToHex();
  const std::string identity = compiler::IdentityOf(graph, options);
  std::map<Hash128, int64_t> packed;
  for (const SymbolRanges& guard : guards) {
    QUERN_ASSIGN(made.variants.emplace_back(), VariantOf(prepared, guard, pipeline, identity, sizes, packed));
  }
  for (const auto& [key, held] : packed) made.packed_bytes += held;
  return made;
}

}  // namespace

Result<BindingManifest> PlanOf(const Graph& graph, const Options& options,
                               const std::map<std::string, int64_t>& sizes) {
  const compiler::GraphAccess::State& state = compiler::GraphAccess::Of(graph);
  if (!state.ok()) return Result<BindingManifest>::Failed(state.error);
  const auto guards = [&](const ir::Graph&) {
    std::vector<SymbolRanges> all = state.Guards();
    all.push_back({});
    return all;
  };
  return compiler::ToResult(Make(state.module, options, guards, sizes), state.module.name);
}

Result<BindingManifest> PlanOfModel(const std::string& path, const Options& options,
                                    const std::map<std::string, int64_t>& sizes) {
  const auto made = [&]() -> StatusOr<BindingManifest> {
    QUERN_ASSIGN(const compiler::OpenedModel opened, compiler::OpenModel(path, options));
    const auto guards = [&](const ir::Graph& graph) { return compiler::StepGuardsOf(graph, options.invariant); };
    return Make(opened.spec.module, options, guards, sizes);
  };
  return compiler::ToResult(made(), path);
}

}  // namespace quern
