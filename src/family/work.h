// What fusing would cost: work that is done more often than the values need.
#pragma once

#include <vector>

#include "base/status.h"
#include "family/region_view.h"

namespace quern::family {

// Fails when an elementwise node would be computed more often than it has elements, by a broadcast or a gather behind
// it, and when windows would slide over what joins pieces, repeats elements, looks them up or is read across. `named`:
// by position in the nodes of the view, values that the family computes once and keeps. What roots read is counted from
// their first operand on; `own_operands`: the family computes operands of roots itself, and has its own rule for that.
Status NoWorkTwice(const RegionView& view, const std::vector<bool>& named, bool own_operands = false);

// Whether the node has elements of a table, operand 0, by their numbers, operand 1.
bool LooksUp(const RegionView& view, const ir::Node& node);

}  // namespace quern::family
