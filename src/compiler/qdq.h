// The graph in ops that ranges and quantisation maps name values of, and what becomes of it.
#pragma once

#include "hir/module.h"
#include "ir/quantisation.h"
#include "quern/qdq.h"

namespace quern::compiler {

// The graph in ops that has the map. Errors: those of WithQuantisation.
StatusOr<ir::Graph> Mapped(const hir::Module& module, const QuantisationMap& map);

}  // namespace quern::compiler
