// Many rows of activations (a prompt) on a CPU: a panel of weight rows is packed into scratch, then used for every
// block of rows. Weights that lie in panels are read where they are, one panel behind the other:
//
//   mma_f32 t3 += x0[m : +12, :], x1[:, n / 32 * 768 : +768]      x1 : f32[32, 96 * 768] @kn32
//
// What a tile reads and writes besides is prefetched before it, the next panel's weights among it: the lines of a few
// columns of each of many rows are in no order that a processor foresees.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/matmul_kernels.h"
#include "ir/product.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr int64_t kManyColumns = 64;  // columns of a chunk

bool MatmulKernels::PanelsFit() const {
  if (plan_.row->in_panels()) return true;
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
  // Few rows of weights in panels stream by: as many chunks as there may be threads.
  const bool streams = plan_.row->in_panels() && view_.UpperBound(plan_.rows) <= kFewRows;
  if (streams && unit <= width && plan_.Columns() < kChunksWanted * chunk) return width;
  // A last chunk that is cut short is one panel: then it is plain that chunks do not overlap.
  return divides(chunk) || unit > 32 ? chunk : width;
}

// The panel of a root's weights that begins with column n.
kir::Slice MatmulKernels::Panel(KernelWriter& writer, int root, const kir::ExprRef& n) {
  const kir::ExprRef first = n / static_cast<double>(ir::kPanelColumns) * static_cast<double>(plan_.k);
  return kb::SliceOf(writer.Input(view_.InputIndex(view_.node(root).inputs[1])),
                     {kb::All(), kb::Range(first, kb::Int(plan_.k))});
}

// The rows that the next panel is packed from, a part beside each tile, what is left beside the last: all of them at
// once would be waited for.
kir::StmtRef MatmulKernels::PrefetchNextPanel(KernelWriter& writer, int root, const kir::ExprRef& n,
                                              const kir::ExprRef& m, int64_t step) {
  const int64_t width = plan_.row->panel_rows, most = row_block_ == 0 ? view_.UpperBound(plan_.rows) : row_block_,
                part = CeilDiv(width, CeilDiv(most, step));
  const kir::ExprRef done = (m - FirstRow()) / static_cast<double>(step) * static_cast<double>(part),
                     left = kb::Max(kb::Int(1), kb::Int(width) - done),
                     more = kb::Call(kir::Op::kLt, {m + static_cast<double>(step), EndRow()}),
                     count = kb::Select(more, kb::Min(left, kb::Int(part)), left);
  return kb::Prefetch(Weights(writer, root, n + static_cast<double>(width) + done, count));
}

// Where the results of a tile lie, and what is read beside it: a few elements of each of many rows, which nothing else
// foresees.
std::vector<kir::Slice> MatmulKernels::ResultRectangles(KernelWriter& writer, const MatmulSegment& segment,
                                                        const kir::ExprRef& m, int64_t step, const kir::ExprRef& n,
                                                        int64_t width) {
  const kir::SliceDim columns = kb::Range(n, kb::Int(width));
  const auto rows_of = [&](const std::string& name) {
    std::vector<kir::SliceDim> dims(plan_.dims.size(), kb::Point(kb::Int(0)));
    dims[plan_.row_axis] = kb::Range(m, kb::Int(step));
    dims.push_back(columns);
    return kb::SliceOf(name, std::move(dims));
  };
  std::vector<kir::Slice> slices;
  std::set<int> seen(segment.roots.begin(), segment.roots.end());
  const auto visit = [&](const auto& self, int node) -> void {
    if (!seen.insert(node).second) return;
    const int input = view_.InputIndex({node, 0});
    const std::vector<Extent>& dims = view_.node(node).results[0].dims;
    if (input >= 0 && plan_.HasRows(dims) && dims.back() == Extent(segment.columns))
      slices.push_back(rows_of(writer.Input(input)));
    if (!view_.Has(node)) return;
    for (const ir::Value& operand : view_.node(node).inputs) self(self, operand.node);
  };
  for (const MatmulResult& result : segment.results) {
    if (result.kind == MatmulResult::Kind::kStore) slices.push_back(rows_of(StoreName(writer, result)));
    if (result.kind == MatmulResult::Kind::kWrite)
      slices.push_back(kb::SliceOf(WrittenName(writer, result),
                                   {kb::Range(kb::FromExtent(result.start) + m, kb::Int(step)), columns}));
    visit(visit, result.value.node);
  }
  return slices;
}

void MatmulKernels::EmitMany(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                             const kir::ExprRef& n0, int64_t chunk, kir::Block& block) {
  const int64_t width = plan_.row->panel_rows;
  const bool integer = plan_.row->panel == kir::Layout::kPanel16;
  const int64_t step = integer ? view_.facts.integer_rows : view_.facts.gemm_rows;
  EmitHidden(segment, chunk, block);
  kir::Block panel;
  const kir::ExprRef f = kb::Ref("f"), n = n0 + f, m = kb::Ref("m");
  const bool packs = !plan_.row->in_panels();
  for (const int root : segment.roots) {
    if (!packs) break;
    const std::string p = absl::StrCat("p", root);
    const MatmulRow& row = RowOf(root);
    const DType dtype = integer ? row.weight : DType::kF32;
    block.push_back(kb::Alloc(p, {dtype, {Extent(width), Extent(plan_.k)}, row.panel}));
    panel.push_back(
        kb::WithOrigin(kb::Pack(kb::Whole(p, 2), Weights(writer, root, n, kb::Int(width))), writer.Origin(root)));
  }
  const kir::ExprRef live_rows = kb::Min(EndRow() - m, kb::Int(step));
  kir::Block rows;
  for (const int root : segment.roots) {
    if (packs) rows.push_back(PrefetchNextPanel(writer, root, n, m, step));
  }
  for (kir::Slice& slice : ResultRectangles(writer, segment, m, step, n, width))
    rows.push_back(kb::Prefetch(std::move(slice)));
  for (const int root : segment.roots) {
    rows.push_back(kb::Tile(TileName(root), {step, width}));
    rows.push_back(kb::WithOrigin(
        kb::CallTile(RowOf(root).mma, {TileName(root)},
                     {Rows(writer, m, plan_.picks == Picks::kByRun ? live_rows : kb::Int(step), prologue_in_chunk_),
                      packs ? kb::Whole(absl::StrCat("p", root), 2) : Panel(writer, root, n)}),
        writer.Origin(root)));
  }
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
