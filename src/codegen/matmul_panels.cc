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
// Where k is long, or a symbol, it is cut into blocks of a constant length, whose sums are added in order in scratch;
// where chunks are few too, in parts (split_sum.h). What a row gets depends on that row alone. A right side that is
// computed on the way, as the images of a convolution are, has loops over the axes of k and of the columns instead
// (computed_side.h), and blocks of the former.
//
// Where both sides are bf16 and the target multiplies pairs of them, a panel has words of two neighbours along k, and
// the left side is read as it lies:
//
//   alloc p : u32[32, 32] @kn32
//   for pk in 0..63 by 2 { vec pj in 0..32 { p[pj, pk / 2] = bits<u32>(..x1[i0, pk, n0 + pj]..) >> 16 | .. } }
//   mma_bf16_pairs t += x0[i0, m : +12, :], p
//
// Of bytes, whatever the target, words have four neighbours, and the tile sums are i32. Where a target multiplies bytes
// with a sign by bytes without (mma_i8_quads.cc) and both sides are alike, the right one is stored less or plus 128,
// which the tile is told to add.
//
//   for pk in 0..61 by 4 { vec pj in 0..32 { p[pj, pk / 4] = (x1[i0, pk, n0 + pj] | .. << 8 | .. ) ^ 0x80808080 } }
//   mma_i8_quads t += x0[i0, m : +12, :], p add -128
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "codegen/product_panels.h"
#include "codegen/split_sum.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kRows = 192;      // of a chunk at most; few fill a panel for little use
constexpr int64_t kFewerRows = 96;  // where chunks are few, or rows are copied to scratch first
constexpr int64_t kMostAsked = 32;  // rows of results that a tile asks for

class PanelProduct {
 public:
  explicit PanelProduct(const ProductSpace& space);
  StatusOr<LoweredRegion> Lower();

 private:
  bool Blocked() const { return !panels_.depth().whole(); }
  void ChooseRows();
  kir::Block Chunk();
  kir::Block RowsPastPanels();
  kir::StmtRef FillRows();
  DType SumType() const { return panels_.SumType(); }
  // The element of "acc" at `at`, and that with a sum of one more block.
  kir::StmtRef AddToSum(const kir::Index& at, const kir::ExprRef& sum) const {
    return kb::Store("acc", at, kb::At("acc", SumType(), at) + sum);
  }
  kir::StmtRef PrefetchNextPanel(const kir::ExprRef& m, const kir::ExprRef& n);
  kir::StmtRef Finish(int64_t f);
  kir::StmtRef Rest();
  static std::string TileName(int64_t f) { return absl::StrCat("t", f / ProductPanels::kWidth); }
  // The left side's rows from m on, `count` of them, in the block of k.
  kir::Slice Rows(const kir::ExprRef& m, const kir::ExprRef& count);
  // Rows of a chunk: [FirstRow(), EndRow()).
  bool CutsRows() const { return rows_of_chunk_ < view_.UpperBound(space_.rows()); }
  kir::ExprRef FirstRow() const { return CutsRows() ? kb::Ref("mb") : kb::Int(0); }
  kir::ExprRef EndRow() const;

  const RegionView& view_;
  const ProductSpace& space_;
  ProductKernel kernel_;
  ProductPanels panels_;
  const SplitSum split_;
  const bool copies_rows_;  // the left side, of short floats that are not f32
  int64_t step_;            // rows of a tile
  int64_t rows_of_chunk_;
};

PanelProduct::PanelProduct(const ProductSpace& space)
    : view_(space.view()),
      space_(space),
      kernel_(space),
      panels_(kernel_),
      split_(space_, panels_.SumType(), panels_.columns(), panels_.computed() ? kRows : kFewerRows,
             panels_.depth().Step()),
      copies_rows_(space_.dtype(0) != SumType() && !panels_.InWords()),
      step_(panels_.InWords() ? view_.facts.word_rows : view_.facts.gemm_rows) {
  ChooseRows();
}

// Enough chunks for many threads, but each with rows enough for what filling its panel costs: more where it is
// computed.
void PanelProduct::ChooseRows() {
  const Extent& m = space_.rows();
  const int64_t rows = view_.UpperBound(m), columns = view_.UpperBound(space_.columns());
  std::vector<Extent> chunks = space_.batch();
  chunks.push_back(Extent(CeilDiv(columns, panels_.columns())));
  const bool most_have_work = BoundedElements(chunks, view_.ranges) >= kChunksWanted / 3;
  chunks.push_back(Extent(CeilDiv(rows, kRows)));
  const bool few = BoundedElements(chunks, view_.ranges) < kChunksWanted;
  const int64_t most = ((few && !panels_.computed()) || copies_rows_ ? kFewerRows : kRows) / step_ * step_;
  rows_of_chunk_ = rows;
  if (rows <= most || (rows <= kRows && !copies_rows_ && most_have_work)) {
    if (m.is_constant() && !panels_.InWords()) step_ = EvenTile(rows, step_);
    return;
  }
  // Blocks of much the same length.
  const int64_t even = m.is_constant() ? EvenPart(rows, most) : most;
  rows_of_chunk_ = CeilDiv(even, step_) * step_;
}

kir::ExprRef PanelProduct::EndRow() const {
  const kir::ExprRef end = kb::FromExtent(space_.rows());
  return CutsRows() ? kb::Min(FirstRow() + static_cast<double>(rows_of_chunk_), end) : end;
}

StatusOr<LoweredRegion> PanelProduct::Lower() {
  std::vector<kir::GridDim> grid;
  if (CutsRows()) grid.push_back({"mb", kb::Int(0), kb::FromExtent(space_.rows()), rows_of_chunk_});
  const kir::ExprRef end = panels_.rest() > 0 ? kb::Int(panels_.Covered()) : kb::FromExtent(space_.columns());
  grid.push_back({"n0", kb::Int(0), end, panels_.columns()});
  return split_.Lower(kernel_, std::move(grid), Chunk());
}

kir::Block PanelProduct::Chunk() {
  kir::Block block;
  const Extent rows(rows_of_chunk_);
  if (copies_rows_) block.push_back(kb::Alloc("px", {DType::kF32, {rows, panels_.depth().Most()}, kir::Layout::kRow}));
  if (!Blocked()) {
    Append(block, RowsPastPanels());
    return block;
  }
  const kir::ExprRef r = kb::Ref("r"), c = kb::Ref("c"), n0 = kb::Ref("n0");
  const kir::ExprRef columns =
      panels_.rest() > 0 ? kb::FromExtent(space_.columns()) : Live(space_.columns(), n0, panels_.columns());
  const auto each = [&](kir::Block body) {
    return kb::For("r", kb::Int(0), EndRow() - FirstRow(), {kb::Vec("c", kb::Int(0), columns, std::move(body))});
  };
  block.push_back(kb::Alloc("acc", {SumType(), {rows, Extent(panels_.columns() + panels_.rest())}, kir::Layout::kRow}));
  block.push_back(
      each({kb::Store("acc", {r, c}, space_.IsOfBytes() ? kb::Int(0, DType::kI32) : kb::Num(0, SumType()))}));
  const int64_t unit = panels_.depth().Unit();
  Append(block, split_.splits() ? panels_.depth().Over(RowsPastPanels(), split_.First(unit), split_.End(unit))
                                : panels_.depth().Over(RowsPastPanels()));
  block.push_back(each(split_.Finish(kernel_, FirstRow() + r, n0 + c, kb::At("acc", SumType(), {r, c}))));
  return block;
}

kir::Block PanelProduct::RowsPastPanels() {
  kir::Block block;
  if (copies_rows_) block.push_back(FillRows());
  Append(block, panels_.Fill());
  const kir::ExprRef m = kb::Ref("m");
  const kir::Slice x = Rows(m, kb::Int(step_));
  // A tile of rows is read from the nearest cache by all panels but the first.
  kir::Block tiles;
  for (int64_t f = 0; f < panels_.columns(); f += ProductPanels::kWidth) {
    const kir::ExprRef n = panels_.First(f), width = kb::Int(ProductPanels::kWidth);
    kir::Block tile;
    if (!space_.in_panels() && !panels_.computed() && view_.UpperBound(space_.columns()) > panels_.columns())
      tile.push_back(PrefetchNextPanel(m, n));
    // The stores of a tile would wait for their lines, a few of each of many rows, which nothing else foresees. Where a
    // tile has many rows, asking for all of them at once is waited for as well.
    if (!Blocked() && step_ <= kMostAsked) {
      for (kir::Slice& slice : kernel_.ResultRectangles(kb::Range(m, kb::Int(step_)), kb::Range(n, width)))
        tile.push_back(kb::Prefetch(std::move(slice)));
    }
    tile.push_back(kb::Tile(TileName(f), {step_, ProductPanels::kWidth}, 0, SumType()));
    tile.push_back(panels_.Multiply(TileName(f), x, f));
    tile.push_back(Finish(f));
    if (panels_.AlwaysLive(f))
      Append(tiles, tile);
    else
      tiles.push_back(kb::If(kb::Call(kir::Op::kLt, {n, kb::FromExtent(space_.columns())}), std::move(tile)));
  }
  block.push_back(kb::For("m", FirstRow(), EndRow(), std::move(tiles), step_));
  if (panels_.rest() > 0) {
    Append(block, panels_.FillRest());
    block.push_back(Rest());
  }
  return block;
}

kir::StmtRef PanelProduct::Rest() {
  constexpr int64_t kRestRows = 64;
  const kir::ExprRef m = kb::Ref("m"), i = kb::Ref("i"), j = kb::Ref("j"), t = kb::Ref("tr", DType::kF32),
                     live = kb::Min(EndRow() - m, kb::Int(kRestRows)),
                     column = j + static_cast<double>(panels_.Covered());
  const kir::Index at = {m - FirstRow() + i, column};
  const kir::SliceDim all = kb::Range(kb::Int(0), panels_.depth().Count());
  kir::Block finish = Blocked() ? kir::Block{AddToSum(at, t)} : kernel_.Results(m + i, column, t);
  return kb::For("m", FirstRow(), EndRow(),
                 {kb::Tile("tr", {panels_.rest(), kRestRows}),
                  kernel_.Of(kb::CallTile(panels_.InWords() ? "dot_bf16_pairs" : "dot_f32", {"tr"},
                                          {Rows(m, live), kb::SliceOf("pr", {kb::All(), all})})),
                  kb::Map({"j", "i"}, {"tr"}, {kb::Int(panels_.rest()), live}, std::move(finish))},
                 kRestRows);
}

kir::Slice PanelProduct::Rows(const kir::ExprRef& m, const kir::ExprRef& count) {
  const kir::ExprRef depth = panels_.depth().Count();
  if (!copies_rows_) return kernel_.Rectangle(0, kb::Range(m, count), kb::Range(panels_.depth().First(), depth));
  return kb::SliceOf("px", {kb::Range(m - FirstRow(), kb::Min(EndRow() - m, count)), kb::Range(kb::Int(0), depth)});
}

// Rows of the left side as f32.
kir::StmtRef PanelProduct::FillRows() {
  const kir::ExprRef i = kb::Ref("xi"), k = kb::Ref("xk");
  return kb::For(
      "xi", kb::Int(0), EndRow() - FirstRow(),
      {kb::Vec("xk", kb::Int(0), panels_.depth().Count(),
               {kb::Store("px", {i, k},
                          kb::CastTo(DType::kF32, kernel_.Left(FirstRow() + i, panels_.depth().First() + k)))})});
}

// What the next columns' panel is made of, a part beside each tile: some of its rows, or of its columns where those are
// rows of memory.
kir::StmtRef PanelProduct::PrefetchNextPanel(const kir::ExprRef& m, const kir::ExprRef& n) {
  const bool by_columns = space_.transposed();
  const int64_t all = by_columns ? ProductPanels::kWidth : panels_.depth().Most().constant(),
                of_tile = CeilDiv(all, CeilDiv(rows_of_chunk_, step_));
  const kir::ExprRef tile = (m - FirstRow()) / static_cast<double>(step_), done = tile * static_cast<double>(of_tile),
                     next = n + static_cast<double>(panels_.columns());
  if (by_columns)
    return kb::Prefetch(kernel_.Rectangle(1, kb::Range(next + done, kb::Int(of_tile)),
                                          kb::Range(panels_.depth().First(), panels_.depth().Count())));
  return kb::Prefetch(kernel_.Rectangle(1, kb::Range(panels_.depth().First() + done, kb::Int(of_tile)),
                                        kb::Range(next, kb::Int(ProductPanels::kWidth))));
}

// What becomes of a tile: results, or a part of their sums.
kir::StmtRef PanelProduct::Finish(int64_t f) {
  const kir::ExprRef i = kb::Ref("i"), j = kb::Ref("j"), m = kb::Ref("m"), t = kb::Ref(TileName(f), SumType()),
                     n = panels_.First(f);
  const std::vector<kir::ExprRef> live = {kb::Min(EndRow() - m, kb::Int(step_)), panels_.Live(f)};
  if (!Blocked()) return kb::Map({"i", "j"}, {TileName(f)}, live, kernel_.Results(m + i, n + j, t));
  const kir::Index at = {m - FirstRow() + i, f == 0 ? j : j + static_cast<double>(f)};
  return kb::Map({"i", "j"}, {TileName(f)}, live, {AddToSum(at, t)});
}

}  // namespace

StatusOr<LoweredRegion> LowerPanels(const ProductSpace& space) { return PanelProduct(space).Lower(); }

}  // namespace quern::codegen
