// What the families of recurrences (delta_rule, selective_scan) ask of a region alike.
#pragma once

#include "family/family.h"

namespace quern::codegen {

// One root of the family called `name`, and views and casts of what it reads: anything else would be computed for each
// block of lanes again. Nothing else is used outside; there is no schedule for blocks of threads.
family::Matched MatchRecurrence(const family::RegionView& view, std::string_view name);

}  // namespace quern::codegen
