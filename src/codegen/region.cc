#include "codegen/region.h"

#include "absl/strings/str_cat.h"
#include "codegen/kernel_writer.h"

namespace quern::codegen {
namespace {

struct FamilyRow {
  const char* name;
  StatusOr<LoweredRegion> (*lower)(const RegionView&);
};
constexpr FamilyRow kFamilies[] = {
    {"attention", LowerAttention}, {"map", LowerMap}, {"matmul", LowerMatmul}, {"reduce", LowerReduce}, {"update", LowerUpdate},
};

}  // namespace

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
    if (family == row.name) return row.lower(view);
  }
  return absl::InternalError(absl::StrCat("no family is called ", family));
}

}  // namespace quern::codegen
