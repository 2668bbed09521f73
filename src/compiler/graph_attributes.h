// Attributes of the public interface in the kinds that blocks and ops have them in.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/attributes.h"
#include "ir/op.h"
#include "quern/graph.h"

namespace quern::compiler {

// `defs`: what the block or op `name` declares; a value that cannot be of the declared kind stays as it is, for the
// checks that follow to refuse. Error: kBadAttribute, for text that is no extent.
StatusOr<ir::Attributes> ConvertAttributes(std::string_view name, const std::vector<ir::AttrDef>& defs,
                                           const std::vector<Attribute>& attributes, std::string_view label);

}  // namespace quern::compiler
