// The graph in ops that ranges and quantisation maps name values of, and what becomes of it.
#pragma once

#include "hir/module.h"
#include "ir/quantisation.h"
#include "opt/insert_qdq.h"
#include "quern/qdq.h"

namespace quern::compiler {

StatusOr<ir::Graph> WithQdq(const hir::Module& module, const QuantisationMap& map, const opt::ParamBytes& params);

}  // namespace quern::compiler
