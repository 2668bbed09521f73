// Many rows of a left side that is gathered from an image, [N, o.., k..]: a block of rows of windows is copied to
// scratch, which the second cache keeps, and multiplied by panel after panel of the weights.
//
//   grid mb in 0..3136 by 48, n0 in 0..128 by 128 {
//     alloc px : f32[48, 1152]
//     for q in mb / 56 .. {                            rows of the image
//       for c in max(0, mb - q * 56) .. {              windows that begin there
//         for k0 in 0..3 { vec k1 in 0..384 { px[q * 56 + c - mb, k0 * 384 + k1] = x0[0, q + k0 - 1, ..] else 0 } }
//       }
//     }
//     for f in 0..128 by 32 { for m in mb .. by 12 { .. mma_f32 t2 += px[m - mb : +12, :], x1[..] .. } }
//   }
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/computed_side.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "ir/window.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kScratchBytes = 256 << 10;  // of rows, where as many as a tile has fit
constexpr int64_t kRows = 12;                 // that are worth a panel
constexpr int64_t kColumns = 128;  // that copied rows are multiplied by, at the least, where there are as many

}  // namespace

int64_t WindowRows(const RegionView& view, int64_t k) {
  const int64_t step = view.facts.gemm_rows, row = k * ScalarBytes(DType::kF32), least = CeilDiv(kRows, step) * step,
                most = kScratchBytes / row / step * step;
  return least * row <= view.facts.scratch() ? std::max(least, most) : 0;
}

StatusOr<std::set<int>> GatherWindows(const RegionView& view, MatmulPlan::Tiles& tiles) {
  using family::No;
  const bool many = view.UpperBound(tiles.rows) > kFewRows || tiles.row->in_panels();
  if (view.facts.blocks || tiles.row->panel != kir::Layout::kKn32 || !many || WindowRows(view, tiles.k) == 0)
    return No("rows of this length are not gathered on the way");
  std::vector<int> open = {tiles.lhs.node};
  std::set<int> nodes;
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    if (!nodes.insert(n).second) continue;
    if (view.node(n).op->kind != ir::OpKind::kIndex && !ir::IsCast(view.node(n)))
      return No("%s would be computed for every window", view.Describe(n));
    for (const ir::Value& input : view.node(n).inputs) {
      if (IsBlock(view.type(input).dtype)) return No("%s decodes whole rows by itself", view.Describe(n));
      if (view.Has(input.node))
        open.push_back(input.node);
      else
        tiles.images.insert(input);
    }
  }
  if (std::ranges::none_of(nodes, [&](int n) { return ir::IsWindow(view.node(n)); }))
    return No("%s moves elements that no window reads again", view.Describe(tiles.lhs.node));
  tiles.windows.emplace(view, tiles.lhs, /*given=*/-1, /*joins=*/false);
  tiles.windows->PinAt(tiles.lhs);
  tiles.windows->Merge(std::vector<bool>(tiles.windows->extents().size()));
  if (!tiles.windows->consistent()) return No("%s meets itself along another axis", view.Describe(tiles.lhs.node));
  return nodes;
}

// All columns, or as few of the parts that divide them as leave chunks for many threads.
int64_t MatmulKernels::WindowsChunk() const {
  const int64_t unit = CeilDiv(Unit(), plan_.row->panel_rows) * plan_.row->panel_rows;
  const int64_t blocks = CeilDiv(view_.UpperBound(plan_.rows), WindowRows(view_, plan_.k));
  int64_t all = 0, chunk = 0;
  for (const MatmulSegment& segment : plan_.segments) all = std::max(all, CeilDiv(segment.columns, unit) * unit);
  for (int64_t parts = 1; parts <= all / kColumns || parts == 1; ++parts) {
    const auto divides = [&](const MatmulSegment& s) { return s.columns % (parts * unit) == 0; };
    if (parts > 1 && !std::all_of(plan_.segments.begin(), plan_.segments.end(), divides)) continue;
    chunk = all / parts;
    if (blocks * parts >= kChunksWanted) break;
  }
  return chunk;
}

kir::Block MatmulKernels::FillWindows(KernelWriter& writer) {
  ComputedSide left(view_, *plan_.windows, writer, plan_.lhs, ComputedSide::Side::kLeft, DType::kF32);
  const std::vector<Extent>& axes = left.k();
  const int64_t rows = row_block_ == 0 ? view_.UpperBound(plan_.rows) : row_block_;
  const bool constant = std::ranges::all_of(left.across(), [](const Extent& extent) { return extent.is_constant(); });
  const kir::ExprRef c = kb::Ref("c");
  kir::Index at;
  kir::ExprRef k = kb::Int(0);
  for (size_t d = 0; d < axes.size(); ++d) {
    at.push_back(kb::Ref(absl::StrCat("k", d)));
    k = d == 0 ? at[0] : k * kb::FromExtent(axes[d]) + at[d];
  }
  kir::Block block = {kb::Alloc("px", {DType::kF32, {Extent(rows), Extent(plan_.k)}, kir::Layout::kRow})};
  const kir::Block fill = left.Across(FirstRow(), EndRow() - FirstRow(), [&](const ComputedSide::Segment& segment) {
    kir::ExprRef row = segment.start + c - FirstRow();
    if (!constant) row = kb::Max(kb::Int(0), kb::Min(row, kb::Int(rows - 1)));  // which no proof finds by itself
    kir::Block body = {kb::Store("px", {row, k}, left.Element(segment, c, at))};
    for (size_t d = axes.size(); d-- > 0;) {
      const std::string name = absl::StrCat("k", d);
      const kir::ExprRef end = kb::FromExtent(axes[d]);
      body = {d + 1 == axes.size() ? kb::Vec(name, kb::Int(0), end, std::move(body))
                                   : kb::For(name, kb::Int(0), end, std::move(body))};
    }
    return kir::Block{kb::For("c", segment.low, segment.high, std::move(body))};
  });
  block.insert(block.end(), fill.begin(), fill.end());
  return block;
}

}  // namespace quern::codegen
