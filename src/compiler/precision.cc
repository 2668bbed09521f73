#include "quern/precision.h"

#include "compiler/graph_state.h"
#include "compiler/public_error.h"
#include "hir/module.h"
#include "ir/op.h"
#include "opt/insert_qdq.h"
#include "opt/mixed_precision.h"

namespace quern {
namespace {

StatusOr<ir::Graph> Mixed(const hir::Module& module, const PrecisionOptions& options) {
  opt::PrecisionOptions mixed{DType::kBF16, options.conservative, options.ops, options.keep};
  if (options.dtype == "f16")
    mixed.dtype = DType::kF16;
  else if (options.dtype != "bf16")
    return absl::InvalidArgumentError(absl::StrFormat("MixedPrecision: dtype %s, bf16 or f16 expected", options.dtype));
  for (const std::string& op : options.ops) {
    if (ir::FindOp(op) == nullptr) return ir::UnknownOp(op);
  }
  QUERN_ASSIGN(const ir::Graph lowered, hir::LowerForAutodiff(module));
  QUERN_ASSIGN(const ir::Graph pairs, opt::InsertQdq(lowered));
  return opt::MixPrecision(pairs, mixed);
}

}  // namespace

Result<Graph> MixedPrecision(const Graph& graph, const PrecisionOptions& options) {
  const compiler::GraphAccess::State& state = compiler::GraphAccess::Of(graph);
  if (!state.ok()) return Result<Graph>::Failed(state.error);
  return state.InOps(Mixed(state.module, options));
}

}  // namespace quern
