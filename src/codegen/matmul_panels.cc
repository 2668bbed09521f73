// Products of operands that lie in any order, on a CPU: panels of 32 columns of the right side are filled by loops into
// scratch, whatever its layout, batch or float type, and a block of rows of the left side runs past each.
//
//   grid i0 in 0..12, mb in 0..512 by 192, n0 in 0..512 by 32 {
//     alloc p : f32[32, 64] @kn32
//     for pk in 0..64 { vec pj in 0..32 { p[pj, pk] = x1[i0, pk, n0 + pj] } }
//     for m in mb .. min(mb + 192, 512) by 12 {
//       tile t : f32[12, 32] = 0
//       mma_f32 t += x0[i0, m : +12, :], p
//       map (i, j) in t [..] { y0[i0, m + i, n0 + j] = t }
//     }
//   }
//
// Where k is long, or a symbol, it is cut into blocks of a constant length, whose sums are added in order in scratch.
// What a row gets depends on that row alone.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "codegen/product_space.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kWidth = 32;         // columns of a panel
constexpr int64_t kColumns = 64;       // of a chunk where rows are copied, which then serve two panels
constexpr int64_t kWholeDepth = 1024;  // a panel of so many k stays in the second cache beside the rows
constexpr int64_t kDepth = 512;        // of a block of k otherwise
constexpr int64_t kRows = 192;         // of a chunk at most; few fill a panel for little use
constexpr int64_t kFewerRows = 96;     // where chunks are few, or rows are copied to scratch first

class PanelProduct {
 public:
  explicit PanelProduct(const RegionView& view);
  StatusOr<LoweredRegion> Lower();

 private:
  bool Blocked() const { return depth_ != space_.k(); }
  void ChooseRows();
  kir::Block Chunk();
  kir::Block RowsPastPanels(const kir::ExprRef& k0, const kir::ExprRef& depth);
  kir::StmtRef FillRows(const kir::ExprRef& k0, const kir::ExprRef& depth);
  kir::Block FillPanels(const kir::ExprRef& k0, const kir::ExprRef& depth);
  kir::StmtRef PrefetchNextPanel(const kir::ExprRef& m, const kir::ExprRef& n, const kir::ExprRef& k0);
  kir::StmtRef Finish(int64_t f);
  // Of columns f.. of the chunk: the panel, a tile, and the first of them.
  static std::string Panel(int64_t f) { return absl::StrCat("p", f / kWidth); }
  static std::string TileName(int64_t f) { return absl::StrCat("t", f / kWidth); }
  kir::ExprRef FirstColumn(int64_t f) const { return f == 0 ? kb::Ref("n0") : kb::Ref("n0") + static_cast<double>(f); }
  kir::StmtRef Of(const kir::StmtRef& stmt) { return kb::WithOrigin(stmt, writer_.Origin(space_.root())); }
  // Rows of a chunk: [FirstRow(), EndRow()).
  bool CutsRows() const { return rows_of_chunk_ < view_.UpperBound(space_.rows()); }
  kir::ExprRef FirstRow() const { return CutsRows() ? kb::Ref("mb") : kb::Int(0); }
  kir::ExprRef EndRow() const;
  kir::ExprRef LiveColumns(const kir::ExprRef& n) const;

  const RegionView& view_;
  const ProductSpace space_;
  const bool copies_rows_;  // the left side is not f32
  const int64_t columns_;   // of a chunk
  const Extent depth_;      // of a panel: all of k, or a constant
  const int64_t step_;      // rows of a tile
  int64_t rows_of_chunk_;
  KernelWriter writer_;
  FusedExpr expr_;
};

bool IsMultiple(const Extent& extent, int64_t of) { return extent.is_constant() && extent.constant() % of == 0; }

PanelProduct::PanelProduct(const RegionView& view)
    : view_(view),
      space_(view),
      copies_rows_(space_.dtype(0) != DType::kF32),
      columns_(IsMultiple(space_.columns(), kColumns) ? kColumns : kWidth),
      depth_(space_.k().is_constant() && space_.k().constant() <= kWholeDepth ? space_.k() : Extent(kDepth)),
      step_(view.facts.gemm_rows),
      writer_(view, "matmul"),
      expr_(view.graph) {
  space_.Declare(writer_);
  writer_.ProvideInputs(expr_);
  ChooseRows();
}

// Enough chunks for many threads, but each with rows enough for what filling its panel costs.
void PanelProduct::ChooseRows() {
  const Extent& m = space_.rows();
  const int64_t rows = view_.UpperBound(m), columns = view_.UpperBound(space_.columns());
  std::vector<Extent> chunks = space_.batch();
  chunks.push_back(Extent(CeilDiv(columns, columns_)));
  const bool most_have_work = BoundedElements(chunks, view_.ranges) >= kChunksWanted / 2;
  chunks.push_back(Extent(CeilDiv(rows, kRows)));
  const bool few = BoundedElements(chunks, view_.ranges) < kChunksWanted;
  const int64_t most = (few || copies_rows_ ? kFewerRows : kRows) / step_ * step_;
  rows_of_chunk_ = rows;
  if (rows <= most || (rows <= kRows && !copies_rows_ && most_have_work)) return;
  // Blocks of much the same length.
  const int64_t even = m.is_constant() ? CeilDiv(rows, CeilDiv(rows, most)) : most;
  rows_of_chunk_ = CeilDiv(even, step_) * step_;
}

kir::ExprRef PanelProduct::EndRow() const {
  const kir::ExprRef end = kb::FromExtent(space_.rows());
  return CutsRows() ? kb::Min(FirstRow() + static_cast<double>(rows_of_chunk_), end) : end;
}

kir::ExprRef PanelProduct::LiveColumns(const kir::ExprRef& n) const {
  if (IsMultiple(space_.columns(), kWidth)) return kb::Int(kWidth);
  return kb::Min(kb::FromExtent(space_.columns()) - n, kb::Int(kWidth));
}

StatusOr<LoweredRegion> PanelProduct::Lower() {
  std::vector<kir::GridDim> grid;
  if (CutsRows()) grid.push_back({"mb", kb::Int(0), kb::FromExtent(space_.rows()), rows_of_chunk_});
  grid.push_back({"n0", kb::Int(0), kb::FromExtent(space_.columns()), columns_});
  space_.EmitGrid(writer_.kernel, std::move(grid), Chunk());
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse use, writer_.Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

kir::Block PanelProduct::Chunk() {
  kir::Block block;
  const Extent rows(rows_of_chunk_);
  if (copies_rows_) block.push_back(kb::Alloc("px", {DType::kF32, {rows, depth_}, kir::Layout::kRow}));
  const kir::ExprRef k = kb::FromExtent(space_.k());
  if (!Blocked()) {
    const kir::Block past = RowsPastPanels(kb::Int(0), k);
    block.insert(block.end(), past.begin(), past.end());
    return block;
  }
  const kir::ExprRef r = kb::Ref("r"), c = kb::Ref("c"), n0 = kb::Ref("n0"), k0 = kb::Ref("k0");
  const kir::ExprRef columns = columns_ == kWidth ? LiveColumns(n0) : kb::Int(columns_);
  const auto each = [&](kir::Block body) {
    return kb::For("r", kb::Int(0), EndRow() - FirstRow(), {kb::Vec("c", kb::Int(0), columns, std::move(body))});
  };
  block.push_back(kb::Alloc("acc", {DType::kF32, {rows, Extent(columns_)}, kir::Layout::kRow}));
  block.push_back(each({kb::Store("acc", {r, c}, kb::Num(0))}));
  block.push_back(
      kb::For("k0", kb::Int(0), k, RowsPastPanels(k0, kb::Min(k - k0, kb::FromExtent(depth_))), depth_.constant()));
  block.push_back(each(space_.Results(writer_, expr_, FirstRow() + r, n0 + c, kb::At("acc", DType::kF32, {r, c}))));
  return block;
}

kir::Block PanelProduct::RowsPastPanels(const kir::ExprRef& k0, const kir::ExprRef& depth) {
  kir::Block block;
  if (copies_rows_) block.push_back(FillRows(k0, depth));
  const kir::Block fill = FillPanels(k0, depth);
  block.insert(block.end(), fill.begin(), fill.end());
  const kir::ExprRef m = kb::Ref("m");
  const kir::Slice x = copies_rows_
                           ? kb::SliceOf("px", {kb::Range(m - FirstRow(), kb::Min(EndRow() - m, kb::Int(step_))),
                                                kb::Range(kb::Int(0), depth)})
                           : ProductSpace::Rectangle(space_.Operand(writer_, 0), space_.BatchOf(0),
                                                     kb::Range(m, kb::Int(step_)), kb::Range(k0, depth));
  for (int64_t f = 0; f < columns_; f += kWidth) {
    const kir::ExprRef n = FirstColumn(f);
    kir::Block tile;
    if (view_.UpperBound(space_.columns()) > columns_) tile.push_back(PrefetchNextPanel(m, n, k0));
    if (!Blocked()) {
      // The stores of a tile would wait for their lines, a few of each of many rows, which nothing else foresees.
      for (size_t o = 0; o < view_.results().size(); ++o) {
        tile.push_back(
            kb::Prefetch(ProductSpace::Rectangle(space_.Result(writer_, static_cast<int>(o)), space_.BatchOfResult(),
                                                 kb::Range(m, kb::Int(step_)), kb::Range(n, kb::Int(kWidth)))));
      }
    }
    tile.push_back(kb::Tile(TileName(f), {step_, kWidth}));
    tile.push_back(Of(kb::CallTile(
        "mma_f32", {TileName(f)},
        {x, kb::SliceOf(Panel(f), {kb::Range(kb::Int(0), LiveColumns(n)), kb::Range(kb::Int(0), depth)})})));
    tile.push_back(Finish(f));
    block.push_back(kb::For("m", FirstRow(), EndRow(), std::move(tile), step_));
  }
  return block;
}

// Rows of the left side as f32.
kir::StmtRef PanelProduct::FillRows(const kir::ExprRef& k0, const kir::ExprRef& depth) {
  const kir::ExprRef i = kb::Ref("xi"), k = kb::Ref("xk");
  return kb::For(
      "xi", kb::Int(0), EndRow() - FirstRow(),
      {kb::Vec("xk", kb::Int(0), depth, {kb::Store("px", {i, k}, space_.Left(expr_, FirstRow() + i, k0 + k))})});
}

// Columns of the right side. Where k is contiguous, rows are transposed by a pack, as f32 or f16; where columns are,
// all panels take their part of a row of k together.
kir::Block PanelProduct::FillPanels(const kir::ExprRef& k0, const kir::ExprRef& depth) {
  const kir::ExprRef j = kb::Ref("pj"), k = kb::Ref("pk"), zero = kb::Int(0);
  kir::Block block, row;
  for (int64_t f = 0; f < columns_; f += kWidth) {
    const kir::ExprRef n = FirstColumn(f), live = LiveColumns(n), element = space_.Right(expr_, k0 + k, n + j);
    const std::string p = Panel(f);
    block.push_back(kb::Alloc(p, {DType::kF32, {Extent(kWidth), depth_}, kir::Layout::kKn32}));
    if (!space_.transposed()) {
      row.push_back(kb::Vec("pj", zero, live, {kb::Store(p, {j, k}, element)}));
      continue;
    }
    const kir::Slice panel = kb::SliceOf(p, {kb::Range(zero, kb::Int(kWidth)), kb::Range(zero, depth)});
    if (const DType dtype = space_.dtype(1); dtype == DType::kF32 || dtype == DType::kF16) {
      block.push_back(
          Of(kb::Pack(panel, ProductSpace::Rectangle(space_.Operand(writer_, 1), space_.BatchOf(1),
                                                     kb::Range(n, kb::Int(kWidth)), kb::Range(k0, depth)))));
      continue;
    }
    if (f == 0) block.push_back(kb::Alloc("pw", {DType::kF32, {Extent(kWidth), depth_}, kir::Layout::kRow}));
    block.push_back(kb::For("pj", zero, live, {kb::Vec("pk", zero, depth, {kb::Store("pw", {j, k}, element)})}));
    block.push_back(Of(kb::Pack(panel, kb::SliceOf("pw", {kb::Range(zero, live), kb::Range(zero, depth)}))));
  }
  if (!row.empty()) block.push_back(kb::For("pk", zero, depth, std::move(row)));
  return block;
}

// What the next columns' panel is made of, a part beside each tile: a few elements of each of many rows.
kir::StmtRef PanelProduct::PrefetchNextPanel(const kir::ExprRef& m, const kir::ExprRef& n, const kir::ExprRef& k0) {
  const int64_t of_row = CeilDiv(depth_.constant(), rows_of_chunk_);
  const kir::SliceDim columns = kb::Range(n + static_cast<double>(columns_), kb::Int(kWidth)),
                      part = kb::Range(k0 + (m - FirstRow()) * static_cast<double>(of_row), kb::Int(of_row * step_));
  return kb::Prefetch(ProductSpace::Rectangle(space_.Operand(writer_, 1), space_.BatchOf(1),
                                              space_.transposed() ? columns : part,
                                              space_.transposed() ? part : columns));
}

// What becomes of a tile: results, or a part of their sums.
kir::StmtRef PanelProduct::Finish(int64_t f) {
  const kir::ExprRef i = kb::Ref("i"), j = kb::Ref("j"), m = kb::Ref("m"), t = kb::Ref(TileName(f), DType::kF32),
                     n = FirstColumn(f);
  const std::vector<kir::ExprRef> live = {kb::Min(EndRow() - m, kb::Int(step_)), LiveColumns(n)};
  if (!Blocked()) return kb::Map({"i", "j"}, {TileName(f)}, live, space_.Results(writer_, expr_, m + i, n + j, t));
  const kir::Index at = {m - FirstRow() + i, f == 0 ? j : j + static_cast<double>(f)};
  return kb::Map({"i", "j"}, {TileName(f)}, live, {kb::Store("acc", at, kb::At("acc", DType::kF32, at) + t)});
}

}  // namespace

StatusOr<LoweredRegion> LowerPanels(const RegionView& view) { return PanelProduct(view).Lower(); }

}  // namespace quern::codegen
