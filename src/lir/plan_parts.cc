#include "lir/plan_parts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kir/symbols.h"
#include "lir/arena.h"
#include "lir/kernel_symbols.h"
#include "lir/lifetimes.h"
#include "lir/once.h"

namespace quern::lir {

StatusOr<Extent> BytesOf(const kir::BufferType& type, const SymbolRanges& ranges, const kir::Kernel* kernel) {
  Extent bytes = kir::LayoutBytes(type.layout, type.dtype, type.dims);
  for (const std::string& symbol : bytes.Symbols()) {
    if (ranges.contains(symbol)) continue;
    const SymbolRanges derived = kernel == nullptr ? SymbolRanges{} : kir::RangesOf(*kernel);
    const auto range = derived.find(symbol);
    if (range == derived.end() || range->second.high == INT64_MAX) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the size of %s has no bound: symbol %s", kir::Print(type), symbol));
    }
    bytes = bytes.Substitute(symbol, range->second.high);
  }
  return bytes;
}

int PlanParts::AddBuffer(Buffer buffer) {
  buffer.bytes = ir::AtMost(buffer.bytes, counted);
  if (buffer.name.empty()) buffer.name = absl::StrCat("b", plan.buffers.size());
  plan.buffers.push_back(std::move(buffer));
  versions.push_back(0);
  return static_cast<int>(plan.buffers.size()) - 1;
}

StatusOr<int> PlanParts::AddBuffer(Home home, const ir::TensorType& type, int index) {
  Buffer buffer;
  buffer.home = home;
  buffer.index = index;
  buffer.type = codegen::BufferTypeOf(type, false);
  QUERN_ASSIGN(buffer.bytes, BytesOf(buffer.type, plan.ranges, nullptr));
  return AddBuffer(std::move(buffer));
}

const std::vector<family::Memory>& PlanParts::MemoryOf(const ir::Graph& graph) {
  const auto known = memory_.find(&graph);
  return known != memory_.end() ? known->second : memory_.emplace(&graph, family::MemoryOf(graph)).first->second;
}

StatusOr<LoweredOnce*> PlanParts::Lower(const ir::Graph& graph, int node) {
  const std::vector<family::Memory>& memory = MemoryOf(graph);
  for (LoweredOnce& known : lowered_) {
    if (codegen::LowerAlike(MemoryOf(*known.graph), known.graph->node(known.node), memory, graph.node(node)))
      return &known;
  }
  QUERN_ASSIGN(family::LoweredRegion region, codegen::LowerRegion(memory, graph.node(node), plan.ranges, facts));
  return &lowered_.emplace_back(LoweredOnce{&graph, node, std::move(region), {}});
}

int PlanParts::Intern(kir::Kernel kernel, const ir::CustomDef* call) {
  const Hash128 identity = HashBytes(KernelIdentity(kernel, call));
  const auto [it, added] = kernels_.emplace(identity, static_cast<int>(plan.kernels.size()));
  if (added && call != nullptr) plan.calls[it->second] = call;
  if (added) plan.kernels.push_back(std::move(kernel));
  return it->second;
}

void PlanParts::Require(const ir::ExtentConstraint& constraint) {
  if (constraint.Always(plan.ranges)) return;
  Requirement requirement{constraint.difference(), constraint.relation == ir::SizeRelation::kEqual,
                          constraint.ToString()};
  for (const Requirement& known : plan.requirements) {
    if (known.value == requirement.value && known.exact == requirement.exact) return;
  }
  plan.requirements.push_back(std::move(requirement));
}

std::vector<Requirement> PlanParts::TakeRequirements(const std::string& symbol) {
  std::vector<Requirement> taken, left;
  for (Requirement& requirement : plan.requirements) {
    const std::vector<std::string> symbols = requirement.value.Symbols();
    const bool names = std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
    const bool known = std::all_of(symbols.begin(), symbols.end(), [&](const std::string& name) {
      return name == symbol || found.contains(name) || !counted.contains(name);
    });
    (names && known ? taken : left).push_back(std::move(requirement));
  }
  plan.requirements = std::move(left);
  return taken;
}

int64_t PlanParts::AlignmentOf(const Argument& argument) const {
  return lir::AlignmentOf(argument.offset, lir::AlignmentOf(plan.buffers[argument.buffer]));
}

bool PlanParts::MayBeState(int buffer) const {
  if (plan.buffers[buffer].home == Home::kState) return true;
  const auto carried = initial_.find(buffer);
  return carried != initial_.end() && MayBeState(carried->second);
}

void PlanParts::PlaceMemory() {
  const std::map<int, Lifetime> live = Lifetimes(plan);
  std::vector<Lifetime> lifetimes;
  for (const auto& [buffer, lifetime] : live) lifetimes.push_back(lifetime);
  const ArenaLayout layout = PlaceArena(lifetimes, plan.ranges);
  size_t i = 0;
  for (const auto& [buffer, lifetime] : live) plan.buffers[buffer].offset = layout.offsets[i++];
  plan.arena_bytes = layout.bytes;
  PlaceOnce(plan);
}

}  // namespace quern::lir
