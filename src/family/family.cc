#include "family/family.h"

namespace quern::family {

const Family& FamilyOf(std::span<const Family> families, const RegionView& view) {
  for (const Family& family : families) {
    for (const int n : view.nodes()) {
      const ir::OpDef& op = *view.node(n).op;
      const bool root = op.kind == ir::OpKind::kRoot || op.kind == ir::OpKind::kPack || op.kind == ir::OpKind::kWrite;
      if (root && std::string_view(family.name) == op.family) return family;
    }
  }
  return families.back();
}

}  // namespace quern::family
