#include "codegen/region.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "codegen/block_schedule.h"
#include "kir/canonical.h"
#include "opt/substitute.h"

namespace quern::codegen {

std::string OriginText(const ir::Graph& body, int node) {
  const ir::Node& from = body.node(node);
  const std::string label = from.origin < 0 ? "" : body.origins()[from.origin].label;
  return label.empty() ? from.op->name : absl::StrCat(label, ": ", from.op->name);
}

bool LowerAlike(std::span<const family::Memory> memory_a, const ir::Node& a, std::span<const family::Memory> memory_b,
                const ir::Node& b) {
  if (a.inputs.size() != b.inputs.size() || a.results != b.results || !(a.attributes == b.attributes)) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (memory_a[a.inputs[i].node] != memory_b[b.inputs[i].node]) return false;
  }
  return ir::SameGraph(a.body(), b.body());
}

kir::BufferType BufferTypeOf(const ir::TensorType& type, bool parameter) {
  kir::Layout layout = kir::Layout::kRow;
  if (IsBlock(type.dtype)) layout = parameter ? kir::Layout::kBlocks : kir::Layout::kPlanar;
  return {type.dtype, type.dims, layout};
}

namespace {

using Names = std::map<std::string, std::string, std::less<>>;

// Families call what they declare by small letters and digits. Other names, until kernels are made, for symbols that
// may be called the same.
Names StandIns(const SymbolRanges& symbols) {
  Names names;
  std::set<std::string> taken;
  for (const auto& [symbol, range] : symbols) taken.insert(symbol);
  for (const auto& [symbol, range] : symbols) {
    if (std::any_of(symbol.begin(), symbol.end(), absl::ascii_isupper)) continue;
    std::string other = absl::StrCat("S_", symbol);
    while (!taken.insert(other).second) other += "_";
    names[symbol] = std::move(other);
  }
  return names;
}

SymbolRanges Renamed(const SymbolRanges& symbols, const Names& names) {
  SymbolRanges renamed;
  for (const auto& [symbol, range] : symbols) {
    const auto found = names.find(symbol);
    renamed[found == names.end() ? symbol : found->second] = range;
  }
  return renamed;
}

StatusOr<ir::Node> Renamed(const ir::Node& region, const Names& names) {
  opt::Substitution values;
  for (const auto& [symbol, other] : names) values.emplace(symbol, Extent::Symbol(other));
  const auto rename = [&](SymbolRanges& symbols) {
    symbols = Renamed(symbols, names);
    return absl::OkStatus();
  };
  ir::Node result = region;
  for (std::shared_ptr<const ir::Graph>& body : result.bodies) {
    QUERN_ASSIGN(ir::Graph renamed, opt::Substitute(*body, values, rename, "rename_symbols"));
    body = std::make_shared<const ir::Graph>(std::move(renamed));
  }
  for (ir::TensorType& type : result.results) {
    for (Extent& dim : type.dims) dim = dim.Renamed(names);
  }
  return result;
}

StatusOr<family::LoweredRegion> LowerAsNamed(std::span<const family::Memory> memory, const ir::Node& region,
                                             const SymbolRanges& ranges, const family::TargetFacts& facts) {
  const family::Scope body(memory, region, ranges, facts);
  const family::RegionView view(body);
  const std::string& name = region.attributes.String("family");
  for (const family::Family& family : Families()) {
    if (name != family.name) continue;
    const family::Matched plan = family.match(view);
    if (!plan.ok()) return absl::UnimplementedError(absl::StrCat("no ", name, " region: ", plan.status().message()));
    QUERN_ASSIGN(family::LoweredRegion lowered, family.lower(view, **plan));
    if (!facts.blocks) return lowered;
    for (family::KernelUse& use : lowered.kernels) {
      QUERN_ASSIGN(use.kernel, ScheduleBlocks(use.kernel, *facts.blocks));
    }
    return lowered;
  }
  return absl::InternalError(absl::StrCat("no family is called ", name));
}

}  // namespace

StatusOr<family::LoweredRegion> LowerRegion(std::span<const family::Memory> memory, const ir::Node& region,
                                            const SymbolRanges& ranges, const family::TargetFacts& facts) {
  const Names names = StandIns(ranges);
  if (names.empty()) return LowerAsNamed(memory, region, ranges, facts);
  QUERN_ASSIGN(const ir::Node renamed, Renamed(region, names));
  QUERN_ASSIGN(family::LoweredRegion lowered, LowerAsNamed(memory, renamed, Renamed(ranges, names), facts));
  Names back;
  for (const auto& [symbol, other] : names) back[other] = symbol;
  for (family::KernelUse& use : lowered.kernels) use.kernel = kir::RenameSymbols(use.kernel, back);
  for (kir::BufferType& temporary : lowered.temporaries) {
    for (Extent& dim : temporary.dims) dim = dim.Renamed(back);
  }
  return lowered;
}

}  // namespace quern::codegen
