// Many rows of activations (a prompt) on a CPU: a panel of weight rows is packed into scratch, then used for every
// block of rows.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/matmul_kernels.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr int64_t kManyColumns = 64;  // columns of a chunk

bool MatmulKernels::PanelsFit() const {
  const bool integer = plan_.row->panel == kir::Layout::kPanel16;
  size_t roots = 0;
  for (const MatmulSegment& segment : plan_.segments) roots = std::max(roots, segment.roots.size());
  const int64_t bytes = integer ? 1 : ScalarBytes(DType::kF32);
  return plan_.k <= view_.facts.scratch_bytes / (static_cast<int64_t>(roots) * plan_.row->panel_rows * bytes);
}

int64_t MatmulKernels::ManyChunk() const {
  const int64_t width = plan_.row->panel_rows, unit = Unit(),
                chunk = (std::max(kManyColumns, unit) + width - 1) / width * width;
  const auto divides = [&](int64_t c) {
    return std::all_of(plan_.segments.begin(), plan_.segments.end(),
                       [&](const MatmulSegment& s) { return s.columns % c == 0; });
  };
  // A last chunk that is cut short is one panel: then it is plain that chunks do not overlap.
  return divides(chunk) || unit > 32 ? chunk : width;
}

void MatmulKernels::EmitMany(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                             const kir::ExprRef& n0, int64_t chunk, kir::Block& block) {
  const int64_t width = plan_.row->panel_rows;
  const bool integer = plan_.row->panel == kir::Layout::kPanel16;
  const int64_t step = integer ? view_.facts.integer_rows : view_.facts.gemm_rows;
  EmitHidden(segment, chunk, block);
  kir::Block panel;
  const kir::ExprRef f = kb::Ref("f"), n = n0 + f, m = kb::Ref("m");
  for (const int root : segment.roots) {
    const std::string p = absl::StrCat("p", root);
    const MatmulRow& row = RowOf(root);
    const DType dtype = integer ? row.weight : DType::kF32;
    block.push_back(kb::Alloc(p, {dtype, {Extent(width), Extent(plan_.k)}, row.panel}));
    panel.push_back(kb::WithOrigin(kb::Pack(kb::Whole(p, 2), Weights(writer, root, n, width)), writer.Origin(root)));
  }
  for (const int root : segment.roots)
    panel.push_back(kb::Prefetch(Weights(writer, root, n + static_cast<double>(width), width)));
  kir::Block rows;
  for (const int root : segment.roots) {
    rows.push_back(kb::Tile(TileName(root), {step, width}));
    rows.push_back(
        kb::WithOrigin(kb::CallTile(RowOf(root).mma, {TileName(root)},
                                    {Rows(writer, m, kb::Int(step), false), kb::Whole(absl::StrCat("p", root), 2)}),
                       writer.Origin(root)));
  }
  const kir::ExprRef live_rows = kb::Min(EndRow() - m, kb::Int(step));
  rows.push_back(
      Epilogue(writer, expr, segment, m, live_rows, n, LiveColumns(segment, n, width), width, f + kb::Ref("j")));
  panel.push_back(kb::For("m", FirstRow(), EndRow(), std::move(rows), step));
  block.push_back(kb::For("f", kb::Int(0),
                          segment.columns % chunk == 0 || chunk == width
                              ? kb::Int(chunk)
                              : kb::Min(kb::Int(chunk), kb::Int(segment.columns) - n0),
                          std::move(panel), width));
  EmitPacks(writer, segment, n0, chunk, block);
}

}  // namespace quern::codegen
