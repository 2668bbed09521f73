// Rows that pick one of several matrices (PickedMatMul), those of a mixture of experts: each row by itself, as few rows
// are multiplied, or runs of rows by panels.
//
//   grid mb in 0..rows, n0 in 0..768 by 32 {            grid n0 in 0..768 by 64 {
//     let e = max(0, min(which[mb], 31))                  for e in 0..32 {
//     dot_q4_K t += w[e, n0 : +32, :], x[mb : +1, :]        let from = .., to = ..
//     ..                                                    if from < to { .. panels of w[e], rows from .. to .. }
#include "codegen/matmul_kernels.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;
using kir::Op;

// A row of its own names its matrix. Of runs a chunk has all, so that columns alone say who writes what, whatever is
// said of where they begin.
kir::Block MatmulKernels::WithMatrix(KernelWriter& writer, kir::Block body) {
  const kir::ExprRef e = kb::Ref("e"), rows = kb::FromExtent(plan_.rows), i = kb::Ref("i"),
                     last = kb::Int(plan_.matrices - 1);
  const auto named = [&](const kir::ExprRef& at) {
    if (view_.IsNumber(plan_.which)) return kb::CastTo(DType::kI64, Literal(view_.node(plan_.which.node)));
    const std::string which = writer.Input(view_.InputIndex(plan_.which));
    return kb::CastTo(DType::kI64, kb::At(which, view_.type(plan_.which).dtype, {at}));
  };
  const bool one = plan_.matrices == 1;
  if (plan_.picks == Picks::kByRow) {
    const kir::ExprRef own = kb::Ref("own"), from_start = kb::Select(kb::Call(Op::kLt, {own, kb::Int(0)}),
                                                                     own + static_cast<double>(plan_.matrices), own);
    kir::Block picks = {kb::Let("own", one ? kb::Int(0) : named(FirstRow())),
                        kb::Let("e", kb::Max(kb::Int(0), kb::Min(from_start, last)))};
    body.insert(body.begin(), picks.begin(), picks.end());
    return body;
  }
  const auto begins = [&](const kir::ExprRef& run) {
    const kir::ExprRef least = kb::ReduceVec(kir::ReduceOp::kMax, 1, "i", kb::Int(1), run + 1.0, named(i));
    return kb::Max(kb::Int(0), kb::Min(least, rows));
  };
  const kir::ExprRef is_last = kb::Call(Op::kLe, {last, e});
  kir::Block run = {kb::Let("from", one ? kb::Int(0) : begins(e)),
                    kb::Let("to", one ? rows : kb::Select(is_last, rows, begins(kb::Min(e + 1.0, last)))),
                    kb::If(kb::Call(Op::kLt, {kb::Ref("from"), kb::Ref("to")}), std::move(body), {})};
  return {kb::For("e", kb::Int(0), kb::Int(plan_.matrices), std::move(run))};
}

}  // namespace quern::codegen
