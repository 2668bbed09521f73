// Family: the contract between fusion and code generation. A family says of a set of nodes whether it makes one region
// of them, and how; and it makes kernels of what it said. Fusion is handed a table of families and knows none by name.
//
//   const Family kMap = {.name = "map", .doc = "", .growth = {.sources = true}, .match = MatchMap, .lower = LowerMap};
//
// `match` sees a set twice: as a candidate in the graph that is being fused, and as the body of the region that came of
// it, where its plan is what `lower` gets. It may ask nothing that differs between the two: not the order of nodes, nor
// names.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "family/lowered_region.h"
#include "family/region_view.h"

namespace quern::family {

// How a family's kernels are laid out for one set of nodes; each family derives its own.
class RegionPlan {
 public:
  virtual ~RegionPlan() = default;
  // What whoever asks why a region is slow should know of it, for the fusion report; "" for nothing.
  virtual std::string Remark() const { return ""; }
};
using Matched = StatusOr<std::unique_ptr<const RegionPlan>>;
// Why nodes are no region of a family.
template <typename... Args>
Status No(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return absl::FailedPreconditionError(absl::StrFormat(format, args...));
}

// How fusion makes the regions of a family larger. The families grow in the order of their table.
struct Growth {
  bool siblings = false;    // roots that read the same first operand join before anything else
  bool readers = false;     // what reads the results of a root joins it, the last root first
  bool neighbours = false;  // readers and sources join a root, and so do neighbouring regions of this family
  bool sources = false;     // what a region reads joins it, when every family has had what reads its results
};

struct Family {
  const char* name;  // Region's attribute "family"; OpDef::family of the roots it takes
  const char* doc;
  Growth growth;
  // How the nodes become kernels of this family. An error is a sentence about why they do not: "the results differ in
  // extents: ...". Any root alone matches.
  Matched (*match)(const RegionView& view);
  // `plan` is what match gave for `view`, which is a body. The kernels verify. Errors: Unimplemented.
  StatusOr<LoweredRegion> (*lower)(const RegionView& view, const RegionPlan& plan);
};

// The family that the nodes belong to: the first of the table that takes a root, pack or write among them; the last one
// takes none and is what everything else belongs to.
const Family& FamilyOf(std::span<const Family> families, const RegionView& view);

}  // namespace quern::family
