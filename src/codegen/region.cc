#include "codegen/region.h"

#include "absl/strings/str_cat.h"
#include "codegen/block_schedule.h"

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

StatusOr<family::LoweredRegion> LowerRegion(std::span<const family::Memory> memory, const ir::Node& region,
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

}  // namespace quern::codegen
