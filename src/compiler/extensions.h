// The extensions of this process (quern/extend.h).
#pragma once

#include <string_view>

#include "quern/extend.h"

namespace quern::compiler {

// The extension of that name, or null. It stays where it is.
const Extension* FindExtension(std::string_view name);

}  // namespace quern::compiler
