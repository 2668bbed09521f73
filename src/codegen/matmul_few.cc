// A few rows of activations (a decode step): a chunk is some rows of weights, each dotted with every row of
// activations.
#include <algorithm>

#include "codegen/matmul_kernels.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr int64_t kChunkBytes = 96 << 10;  // of weights in a chunk

int64_t MatmulKernels::FewChunk() const {
  const int64_t unit = Unit();
  if (view_.facts.blocks) return unit;  // a row a warp: the more blocks the better
  const MatmulSegment& first = plan_.segments[0];
  const ir::TensorType& w = view_.body.type(view_.body.node(first.roots[0]).inputs[1]);
  const int64_t row_bytes = RowBytes(w.dtype, plan_.k) * static_cast<int64_t>(first.roots.size());
  const int64_t wanted = std::max<int64_t>(unit, kChunkBytes / std::max<int64_t>(1, row_bytes) / unit * unit);
  // At least about eight chunks, so that threads balance; prefer a divisor of every segment.
  int64_t columns = 0;
  for (const MatmulSegment& segment : plan_.segments) columns += segment.columns;
  const int64_t most = std::max(unit, std::min<int64_t>({wanted, 256, columns / 8 / unit * unit}));
  for (int64_t chunk = most; chunk > unit; chunk -= unit) {
    if (std::all_of(plan_.segments.begin(), plan_.segments.end(),
                    [&](const MatmulSegment& s) { return s.columns % chunk == 0; }))
      return chunk;
  }
  return unit;
}

void MatmulKernels::EmitFew(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0,
                            int64_t chunk, kir::Block& block) {
  const int64_t most = UpperBound(plan_.rows, view_.ranges);
  for (const int root : segment.roots) {
    block.push_back(kb::Tile(TileName(root), {most, chunk}));
    block.push_back(kb::WithOrigin(
        kb::CallTile(RowOf(root).dot, {TileName(root)},
                     {Weights(writer, root, n0, chunk), Rows(writer, nullptr, nullptr, prologue_in_chunk_)},
                     {{"ahead", kb::Int(view_.facts.prefetch_ahead)}}),
        writer.Origin(root)));
  }
  EmitHidden(segment, chunk, block);
  block.push_back(Epilogue(writer, expr, segment, kb::Int(0), kb::FromExtent(plan_.rows), n0,
                           LiveColumns(segment, n0, chunk), chunk, kb::Ref("j")));
  EmitPacks(writer, segment, n0, chunk, block);
}

void MatmulKernels::EmitScratchPrologue(FusedExpr& expr, kir::Block& block) {
  block.push_back(kb::Alloc("px", {DType::kF32, {plan_.rows, Extent(plan_.k)}, kir::Layout::kRow}));
  kir::Block body;
  expr.ShareIn(&body);
  const kir::ExprRef m = kb::Ref("pm"), c = kb::Ref("pc");
  const kir::ExprRef element = expr.Element(plan_.lhs, plan_.At(m, c));
  body.push_back(kb::Store("px", {m, c}, element));
  expr.ShareIn(nullptr);
  block.push_back(kb::For("pm", kb::Int(0), kb::FromExtent(plan_.rows),
                          {kb::Vec("pc", kb::Int(0), kb::Int(plan_.k), std::move(body))}));
}

}  // namespace quern::codegen
