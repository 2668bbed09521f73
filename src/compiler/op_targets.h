// Which ops the targets take: a section of docs/ops.md. It is found by compiling an example of each op for each
// target, which takes seconds; so the page, as it is when the library is built, is part of the library and is what is
// shown, and a test holds it to what compiling says.
#pragma once

#include <string>
#include <string_view>

namespace quern::compiler {

// The section. `compile`: found anew.
std::string TargetSection(bool compile);

// Text in a table's cell.
std::string Cell(std::string_view text);

}  // namespace quern::compiler
