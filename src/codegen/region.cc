#include "codegen/region.h"

#include "absl/strings/str_cat.h"
#include "codegen/block_schedule.h"
#include "codegen/kernel_writer.h"

namespace quern::codegen {
namespace {

struct FamilyRow {
  const char* name;
  StatusOr<LoweredRegion> (*lower)(const RegionView&);
};
constexpr FamilyRow kFamilies[] = {
    {"attention", LowerAttention}, {"map", LowerMap},       {"matmul", LowerMatmul},
    {"reduce", LowerReduce},       {"update", LowerUpdate},
};

}  // namespace

std::string OriginText(const ir::Graph& body, int node) {
  const ir::Node& from = body.node(node);
  const std::string label = from.origin < 0 ? "" : body.origins()[from.origin].label;
  return label.empty() ? from.op->name : absl::StrCat(label, ": ", from.op->name);
}

bool IsParam(const ir::Graph& graph, const ir::Node& region, int input) {
  return std::string_view(graph.node(region.inputs[input].node).op->name) == "Param";
}

bool IsDonated(const ir::Graph& graph, const ir::Node& region, int input) {
  const ir::Node& node = graph.node(region.inputs[input].node);
  if (std::string_view(node.op->name) != "Input") return false;
  for (const ir::Donation& donation : graph.donations) {
    if (donation.input == node.attributes.String("name")) return true;
  }
  return false;
}

bool LowerAlike(const ir::Graph& graph, const ir::Node& a, const ir::Node& b) {
  if (a.inputs.size() != b.inputs.size() || a.results != b.results || !(a.attributes == b.attributes)) return false;
  for (int i = 0; i < static_cast<int>(a.inputs.size()); ++i) {
    if (IsParam(graph, a, i) != IsParam(graph, b, i) || IsDonated(graph, a, i) != IsDonated(graph, b, i)) return false;
  }
  return ir::SameGraph(*a.body, *b.body);
}

kir::BufferType BufferTypeOf(const ir::TensorType& type, bool parameter) {
  kir::Layout layout = kir::Layout::kRow;
  if (IsBlock(type.dtype)) layout = parameter ? kir::Layout::kBlocks : kir::Layout::kPlanar;
  return {type.dtype, type.dims, layout};
}

StatusOr<LoweredRegion> LowerRegion(const ir::Graph& graph, const ir::Node& region, const SymbolRanges& ranges,
                                    const TargetFacts& facts) {
  const RegionView view{graph, region, *region.body, region.body->Inputs(), ranges, facts};
  const std::string& family = region.attributes.String("family");
  for (const FamilyRow& row : kFamilies) {
    if (family != row.name) continue;
    QUERN_ASSIGN(LoweredRegion lowered, row.lower(view));
    if (!facts.blocks) return lowered;
    for (KernelUse& use : lowered.kernels) {
      QUERN_ASSIGN(use.kernel, ScheduleBlocks(use.kernel, *facts.blocks));
    }
    return lowered;
  }
  return absl::InternalError(absl::StrCat("no family is called ", family));
}

}  // namespace quern::codegen
