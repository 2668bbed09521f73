// What quern/ops.h says of one block or op.
#pragma once

#include <string>
#include <utility>

#include "hir/block.h"
#include "ir/op.h"
#include "quern/ops.h"

namespace quern::compiler {

// The section of an op: its place among the sections, and its title.
using Section = std::pair<int, std::string>;
Section SectionOf(const ir::OpDef& op);

OpInfo Describe(const ir::OpDef& op);
OpInfo Describe(const hir::BlockDef& block);

}  // namespace quern::compiler
