// Many rows of a left side that is gathered from an image, [N, o.., k..]: a block of rows of windows is copied to
// scratch, which the second cache keeps, and multiplied by panel after panel of the weights.
//
//   grid mb in 0..3136 by 61, n0 in 0..128 by 128 {
//     alloc px : f32[61, 1152]
//     for q in mb / 56 .. {                            rows of the image
//       for c in max(0, mb - q * 56) .. {              windows that begin there
//         for d0 in 0..3 { vec d1 in 0..384 { px[q * 56 + c - mb, d0 * 384 + d1] = x0[0, q + d0 - 1, ..] else 0 } }
//       }
//     }
//     for f in 0..128 by 32 { for m in mb .. by 61 { .. mma_f32 t2 += px[m - mb : +61, :], x1[..] .. } }
//   }
//
// Long windows are copied and multiplied block by block of k, whose sums are added in order in scratch: so that the
// weights, which no cache near may keep, are read for many rows at once.
//
//   alloc s2 : f32[49, 64] = 0
//   for k0 in 0..3 {
//     .. px[q * 7 + c - mb, d1] = x0[0, q + k0 - 1, ..] else 0 ..
//     .. mma_f32 t2 += px[m - mb : +49, :], x1[:, .. + k0 * 1536 : +1536]
//        map (i, j) in t2 { s2[m - mb + i, f + j] = s2[m - mb + i, f + j] + t2 }
//   }
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/computed_side.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "family/work.h"
#include "ir/window.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kScratchBytes = 256 << 10;  // of copied rows, where more than kLeastRows fit
constexpr int64_t kLeastRows = 64;            // for which weights are read, where there are as many
constexpr int64_t kDepthBytes = 6 << 10;      // of a window that are copied at a time: 384 KiB of those rows
constexpr int64_t kColumns = 64;       // that copied rows are multiplied by, at the least, where there are as many
constexpr int64_t kWordColumns = 128;  // the same of rows of words, whose products take less beside the copying
constexpr int64_t kMostColumns = 512;  // whose sums are kept in scratch, where parts divide all of them
constexpr int64_t kChunks = 12;        // that are worth copying rows again for other columns

// By how many of `all` to go, at most `most`: as many each time, unless that were less than half of it, or almost.
int64_t EvenStep(int64_t all, int64_t most) {
  for (int64_t step = most; step * 2 >= most; --step) {
    if (all % step == 0) return step;
  }
  constexpr int64_t kVector = 16;
  const int64_t even = EvenPart(all, most);
  return most < kVector ? even : std::min(most, CeilDiv(even, kVector) * kVector);
}

// The least multiple of `step` by which blocks of so many times `inner` elements are whole words.
int64_t InWholeWords(int64_t step, int64_t inner, int64_t word) {
  while (step * inner % word != 0) ++step;
  return step;
}

// Of copied rows: bytes stay bytes.
DType CopiedType(const MatmulPlan::Tiles& plan) { return plan.row->in_words() ? plan.row->activation : DType::kF32; }

}  // namespace

StatusOr<std::set<int>> GatherWindows(const RegionView& view, MatmulPlan::Tiles& tiles) {
  using family::No;
  const bool many = view.UpperBound(tiles.rows) > kFewRows || tiles.row->in_panels();
  if (view.facts.blocks || tiles.row->panel != kir::Layout::kKn32 || !many)
    return No("few rows are not gathered on the way");
  std::vector<int> open = {tiles.lhs.node};
  std::set<int> nodes;
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    if (!nodes.insert(n).second) continue;
    const ir::Node& node = view.node(n);
    const bool widens =
        ir::IsCast(node) && ScalarBytes(view.type(node.inputs[0]).dtype) <= ScalarBytes(node.results[0].dtype);
    if ((node.op->kind != ir::OpKind::kIndex && !widens) || family::LooksUp(view, node))
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

DepthBlocks MatmulKernels::CutWindows(const MatmulPlan::Tiles& plan) {
  const family::AxisSpace& space = *plan.windows;
  std::vector<Extent> axes;
  for (const int axis : space.Find(plan.lhs)->dims.back()) axes.push_back(space.extents()[axis]);
  if (axes.empty()) axes = {Extent(1)};
  const int64_t most = kDepthBytes / ScalarBytes(CopiedType(plan));
  size_t cut = axes.size();
  int64_t inner = 1;
  while (cut > 0 && inner * axes[cut - 1].constant() <= most) inner *= axes[--cut].constant();
  if (cut == 0) return {std::move(axes), {most, most}};
  const int64_t step = InWholeWords(EvenStep(axes[cut - 1].constant(), most / inner), inner, plan.row->word);
  return {std::move(axes), {most, inner * step}};
}

// What a panel by itself brings: rows whose windows stay in the second cache beside it.
int64_t MatmulKernels::WindowRows() const {
  const int64_t row = depth_->Most().constant() * ScalarBytes(CopiedType(plan_)), tile = PanelTileRows();
  return std::max(kLeastRows, kScratchBytes / row / tile * tile);
}

// All columns, or as few of the parts that divide them as leave chunks for some threads.
int64_t MatmulKernels::WindowsChunk() const {
  const int64_t unit = CeilDiv(Unit(), plan_.row->panel_rows) * plan_.row->panel_rows;
  const int64_t blocks = std::min(CeilDiv(view_.UpperBound(plan_.rows), WindowRows()), kChunks);
  const int64_t least = plan_.row->in_words() ? kWordColumns : kColumns;
  int64_t all = 0, chunk = 0;
  for (const MatmulSegment& segment : plan_.segments) all = std::max(all, CeilDiv(segment.columns, unit) * unit);
  for (int64_t parts = 1; parts <= all / least || parts == 1; ++parts) {
    const auto divides = [&](const MatmulSegment& s) { return s.columns % (parts * unit) == 0; };
    if (parts > 1 && !std::all_of(plan_.segments.begin(), plan_.segments.end(), divides)) continue;
    chunk = all / parts;
    if (blocks * parts >= kChunks && (!InDepthBlocks() || chunk <= kMostColumns)) break;
  }
  if (Quantises()) return chunk;
  // Columns that no parts divide are cut all the same.
  const int64_t wanted = CeilDiv(CeilDiv(all, unit), CeilDiv(kChunks, blocks)) * unit;
  return std::min(chunk, std::max(wanted, CeilDiv(least, unit) * unit));
}

kir::Block MatmulKernels::FillWindows(KernelWriter& writer) {
  const DType dtype = CopiedType(plan_);
  ComputedSide left(view_, *plan_.windows, writer, plan_.lhs, ComputedSide::Side::kLeft, dtype);
  const DepthBlocks& depth = *depth_;
  const DepthBlocks::Elements inside = depth.Inside();
  const int64_t rows = ChunkRows();
  const bool constant = std::ranges::all_of(left.across(), [](const Extent& extent) { return extent.is_constant(); });
  const kir::ExprRef c = kb::Ref("c");
  kir::Block block = {kb::Alloc("px", {dtype, {Extent(rows), depth.Most()}, kir::Layout::kRow})};
  const kir::Block fill = left.Across(FirstRow(), EndRow() - FirstRow(), [&](const ComputedSide::Segment& segment) {
    kir::ExprRef row = segment.start + c - FirstRow();
    if (!constant) row = kb::Max(kb::Int(0), kb::Min(row, kb::Int(rows - 1)));  // which no proof finds by itself
    const DepthBlocks::Elements::Loop& along = inside.loops.back();
    const kir::StmtRef copy = kb::Vec(along.name, along.low, along.high,
                                      {kb::Store("px", {row, inside.k}, left.Element(segment, c, inside.at))});
    return kir::Block{kb::For("c", segment.low, segment.high, inside.Around(0, inside.loops.size() - 1, {copy}))};
  });
  block.insert(block.end(), fill.begin(), fill.end());
  return block;
}

// All products of a chunk, block by block of k: `products` are those of one, which AddToSums ends. Then what is done
// with the sums.
kir::Block MatmulKernels::OverDepth(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                                    const kir::ExprRef& n0, int64_t chunk, kir::Block products) {
  const kir::ExprRef r = kb::Ref("r"), c = kb::Ref("c"), column = n0 + c;
  const auto each = [&](kir::Block body) {
    return kb::For("r", kb::Int(0), EndRow() - FirstRow(),
                   {kb::Vec("c", kb::Int(0), LiveColumns(segment, n0, chunk), std::move(body))});
  };
  kir::Block block = SumsFromZero(segment, ChunkRows(), chunk, each);
  kir::Block one = plan_.windows ? FillWindows(writer) : kir::Block{};
  one.insert(one.end(), products.begin(), products.end());
  const kir::Block all = depth_->Over(std::move(one));
  block.insert(block.end(), all.begin(), all.end());
  block.push_back(each(Results(writer, expr, segment, FirstRow() + r, column, c, SumsAt(r, column, c, chunk))));
  return block;
}

kir::Block MatmulKernels::SumsFromZero(const MatmulSegment& segment, int64_t rows, int64_t columns,
                                       const std::function<kir::StmtRef(kir::Block)>& each) const {
  const DType dtype = plan_.row->sum;
  const kir::ExprRef zero = IsInteger(dtype) ? kb::Int(0, dtype) : kb::Num(0, dtype);
  kir::Block block, zeros;
  for (const int root : segment.roots) {
    block.push_back(kb::Alloc(SumName(root), {dtype, {Extent(rows), Extent(columns)}, kir::Layout::kRow}));
    zeros.push_back(kb::Store(SumName(root), {kb::Ref("r"), kb::Ref("c")}, zero));
  }
  block.push_back(each(std::move(zeros)));
  return block;
}

MatmulKernels::Sum MatmulKernels::SumsAt(kir::ExprRef row, kir::ExprRef column, kir::ExprRef place,
                                         int64_t width) const {
  return [=, dtype = plan_.row->sum](int root, const kir::ExprRef& at) {
    return kb::At(SumName(root), dtype, {row, at == column ? place : InChunk(at, column, place, width)});
  };
}

std::string MatmulKernels::SumName(int root) { return absl::StrCat("s", root, "x"); }

// The tiles of rows row.. and columns f.. of a chunk to its sums.
kir::StmtRef MatmulKernels::AddToSums(const MatmulSegment& segment, const kir::ExprRef& row, const kir::ExprRef& rows,
                                      const kir::ExprRef& f, const kir::ExprRef& columns, int64_t part) {
  const kir::Index at = {row + kb::Ref("i"), f + kb::Ref("j")};
  std::vector<std::string> tiles;
  kir::Block body;
  for (const int root : segment.roots) {
    tiles.push_back(TileName(root, part));
    const DType dtype = plan_.row->sum;
    const kir::ExprRef sum = kb::At(SumName(root), dtype, at) + kb::Ref(tiles.back(), dtype);
    body.push_back(kb::Store(SumName(root), at, sum));
  }
  return kb::Map({"i", "j"}, std::move(tiles), {rows, columns}, std::move(body));
}

}  // namespace quern::codegen
