// Many rows of a left side that are windows of an image whose lines they share (window_lines.h):
//
//   grid q0 in 0..14 by 7, n0 in 0..256 by 64 {
//     alloc px : f32[144, 256] scratch
//     for r in 0..9 { for p in 0..16 { vec e in 0..256 { px[r * 16 + p, e] = x0[0, q0 + r - 1, ..] else 0 } } }
//     for f in 0..64 by 32 {
//       for q in q0 .. q0 + 7 { for c in 0..14 by 14 {
//         tile t3 : f32[16, 32] = 0                       or two, of panels that are read together (matmul_many.cc)
//         for h in 0..3 { mma_f32_runs t3 += px[(q - q0 + h) * 16 + c : +16, :], x1[:, .. + h * 768 : +768] }
//         map (i, j) in t3[14, 32] { .. }
//       } }
//     }
//   }
//
// Where the weights of a panel are too many for the second cache to keep them for all lines, beside those behind them,
// and the image so small that a block has all of it, the loop over h is the outermost, and the sums of all tiles lie in
// scratch meanwhile: what a line of the kernel has is read for all tiles, which ask for the next line's.
//
//   alloc s3 : f32[49, 32] = 0
//   for h in 0..3 { for q in 0..7 { for c in 0..7 by 7 {
//     tile t3 : f32[9, 32] = 0
//     mma_f32_runs t3 += .. next .. after ..
//     map (i, j) in t3[7, 32] { s3[q * 7 + c + i, j] = s3[..] + t3 }
//   } } }
#include <algorithm>

#include "base/divide.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "ir/product.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kChunks = 8;    // that are worth copying lines again for other columns, or more of them
constexpr int64_t kColumns = 64;  // that copied lines are multiplied by, at the least, where there are as many

}  // namespace

// All columns, or as few of the parts that divide them as leave chunks for some threads; where those are not enough,
// fewer lines.
int64_t MatmulKernels::LinesChunk() {
  const int64_t unit = CeilDiv(Unit(), plan_.row->panel_rows) * plan_.row->panel_rows;
  int64_t all = 0;
  for (const MatmulSegment& segment : plan_.segments) all = std::max(all, CeilDiv(segment.columns, unit) * unit);
  const auto divides = [&](int64_t parts) {
    return std::ranges::all_of(plan_.segments, [&](const MatmulSegment& s) { return s.columns % (parts * unit) == 0; });
  };
  const int64_t most = std::max<int64_t>(1, all / kColumns);
  while (lines_->Blocks() * most < kChunks && lines_->CutFurther()) {}
  int64_t chunk = all;
  for (int64_t parts = 2; parts <= most && lines_->Blocks() * (all / chunk) < kChunks; ++parts) {
    if (divides(parts)) chunk = all / parts;
  }
  return chunk;
}

kir::Block MatmulKernels::FillLines(KernelWriter& writer) {
  ComputedSide left(view_, *plan_.windows, writer, plan_.lhs, ComputedSide::Side::kLeft, DType::kF32);
  return lines_->Fill(left);
}

// A tile by a line of the kernel.
kir::StmtRef MatmulKernels::LineProduct(KernelWriter& writer, const MatmulSegment& segment, int root, int64_t together,
                                        const kir::ExprRef& n, bool by_runs) const {
  const std::string weights = writer.Input(view_.InputIndex(view_.node(root).inputs[1]));
  const bool of_all = rows_inside_ && !by_runs;
  const kir::ExprRef at = lines_->RunStart();
  const int64_t count = lines_->RunElements();
  const auto of = [&](int64_t part) {
    const kir::ExprRef column = n + static_cast<double>(part * plan_.row->panel_rows),
                       which = column / static_cast<double>(ir::kPanelColumns);
    return kb::SliceOf(
        weights, {PanelColumns(segment, column), kb::Range(which * static_cast<double>(plan_.k) + at, kb::Int(count))});
  };
  const Asked asked = AskFor(together, by_runs ? count : plan_.k, lines_->Tile(of_all), lines_->TileCount(of_all),
                             by_runs ? kb::Int(0) : at, count);
  return MultiplyPanels(root, together, lines_->RowsOfTile(), of, asked, writer, /*runs=*/true);
}

kir::Block MatmulKernels::LineTiles(const MatmulSegment& segment, int64_t together) const {
  kir::Block tiles;
  for (const int root : segment.roots) {
    for (int64_t part = 0; part < together; ++part)
      tiles.push_back(
          kb::Tile(TileName(root, part), {lines_->TileRows() + lines_->RowsBehind(), plan_.row->panel_rows}));
  }
  return tiles;
}

// Panels that the second cache keeps beside those behind them are read whole for each tile.
kir::Block MatmulKernels::LinesByPanel(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                                       const kir::ExprRef& n0, int64_t together) {
  const int64_t width = plan_.row->panel_rows;
  const kir::ExprRef f = kb::Ref("f"), n = n0 + f;
  return lines_->Tiles([&](const kir::ExprRef& row, const kir::ExprRef& rows) {
    kir::Block tile;
    for (kir::Slice& slice : ResultRectangles(writer, segment, row, lines_->TileRows(), n, together * width))
      tile.push_back(kb::Prefetch(std::move(slice)));
    Append(tile, LineTiles(segment, together));
    for (const int root : segment.roots)
      Append(tile,
             lines_->OverRuns({LineProduct(writer, segment, root, together, n, /*by_runs=*/false)}, /*in_tiles=*/true));
    for (int64_t part = 0; part < together; ++part) {
      const kir::ExprRef from = f + static_cast<double>(part * width);
      tile.push_back(Epilogue(writer, expr, segment, row, rows, n0 + from, LiveColumns(segment, n0 + from, width),
                              width, from + kb::Ref("j"), part));
    }
    return tile;
  });
}

// Longer ones line of the kernel by line.
kir::Block MatmulKernels::LinesByRuns(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                                      const kir::ExprRef& n0) {
  const int64_t width = plan_.row->panel_rows;
  const kir::ExprRef f = kb::Ref("f"), n = n0 + f, r = kb::Ref("r"), j = kb::Ref("j"), zero = kb::Int(0),
                     live = LiveColumns(segment, n, width), column = n + j;
  kir::Block block = SumsFromZero(segment, lines_->RowsOfBlock(), width, [&](kir::Block zeros) {
    return kb::For("r", zero, kb::Int(lines_->RowsOfBlock()), {kb::Vec("c", zero, kb::Int(width), std::move(zeros))});
  });
  const auto add = [&](const kir::ExprRef&, const kir::ExprRef& rows) {
    kir::Block tile = LineTiles(segment, 1);
    for (const int root : segment.roots) tile.push_back(LineProduct(writer, segment, root, 1, n, /*by_runs=*/true));
    tile.push_back(AddToSums(segment, lines_->RowInBlock(), rows, zero, live, 0));
    return tile;
  };
  Append(block, lines_->OverRuns(lines_->Tiles(add, /*in_runs=*/true)));
  Append(block, lines_->Tiles([&](const kir::ExprRef& row, const kir::ExprRef& rows) {
    kir::Block results =
        Results(writer, expr, segment, row + r, column, f + j, SumsAt(lines_->RowInBlock() + r, column, j, width));
    return kir::Block{kb::For("r", zero, rows, {kb::Vec("j", zero, live, std::move(results))})};
  }));
  return block;
}

void MatmulKernels::EmitLines(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                              const kir::ExprRef& n0, int64_t chunk, kir::Block& block) {
  const bool long_panel = lines_->RunElements() < plan_.k && 2 * PanelBytes(1) > view_.facts.scratch_bytes;
  const bool by_runs = long_panel && lines_->HoldsImage();  // larger images make up for what they wait
  const int64_t width = plan_.row->panel_rows, together = by_runs ? 1 : PanelsTogether(chunk);
  kir::Block panel =
      by_runs ? LinesByRuns(writer, expr, segment, n0) : LinesByPanel(writer, expr, segment, n0, together);
  // Of a last chunk that is cut short some panels are not there.
  if (segment.columns % chunk != 0 && chunk != width)
    panel = {kb::If(kb::Call(kir::Op::kLt, {n0 + kb::Ref("f"), kb::Int(segment.columns)}), std::move(panel))};
  block.push_back(kb::For("f", kb::Int(0), kb::Int(chunk), std::move(panel), together * width));
}

}  // namespace quern::codegen
