// Sheets: elementwise nodes of one shape become regions many at a time, before fusion joins what is left pair by pair.
// A pair is checked in time linear in the two, so that a thousand nodes joined by pairs would take a thousand checks of
// a thousand nodes; what follows from the shape of the graph alone, that no path leaves a sheet and comes back, needs
// one walk for all sheets.
//
// How long a region may be is then no matter of registers: code generation cuts its loops (codegen/cut_loops.h), and
// what crosses such a cut stays in a core's cache, while what crosses from region to region goes through memory.
#pragma once

#include <vector>

#include "opt/fusion_groups.h"

namespace quern::opt {

// Joins the nodes that are still single and of the last family, where that makes regions of more than kLeastSheet
// nodes. Smaller ones are left to joins by pairs, which see more of their neighbourhood.
inline constexpr size_t kLeastSheet = 64;
void JoinSheets(const family::Scope& scope, const std::vector<bool>& once, const family::Family& map,
                FusionGroups& groups);

}  // namespace quern::opt
