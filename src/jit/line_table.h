// The line table of an object's function, for jitdump. Internal to jit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/jitdump.h"

namespace quern::jit {

// Where each line begins, in bytes from the function's start, in order; empty for an object without line tables.
std::vector<CodeLine> LineTable(std::string_view object, const std::string& symbol);

}  // namespace quern::jit
