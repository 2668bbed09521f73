// Many rows of activations (a prompt) on a CPU: a panel of weight rows is packed into scratch, then used for every
// block of rows. Weights that lie in panels are read where they are, one panel behind the other:
//
//   mma_f32 t3 += x0[m : +12, :], x1[:, n / 32 * 768 : +768]      x1 : f32[32, 96 * 768] @kn32
//
// two of them together where chunks have as many (mma_f32_pair).
//
// What a tile reads and writes besides is prefetched before it, the next panel's weights among it: the lines of a few
// columns of each of many rows are in no order that a processor foresees.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "ir/product.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kManyColumns = 64;   // columns of a chunk
constexpr int64_t kDeepColumns = 128;  // the same of parts in blocks of k, which are read once for it
constexpr int64_t kPanelRows = 64;     // that a panel of weights is brought from memory for, where there are as many
constexpr int64_t kDeep = 512;         // elements of k: a panel that the first cache does not keep
constexpr int64_t kDepthBlock = 2048;  // elements of k of a panel, where one of all of them does not fit

}  // namespace

int64_t EvenTile(int64_t rows, int64_t most) {
  // Of each tile, beside its rows; of two lengths the greater, unless the other takes that much less.
  constexpr double kBesides = 0.7, kWorth = 0.98;
  const auto cost = [&](int64_t step) {
    return static_cast<double>(CeilDiv(rows, step)) * (static_cast<double>(step) + kBesides);
  };
  int64_t best = most;
  for (int64_t step = most; step >= most * 3 / 4; --step) {
    if (cost(step) < kWorth * cost(best)) best = step;
  }
  return std::min(best, rows);
}

bool MatmulKernels::PanelsFit() const {
  if (plan_.row->in_panels() || plan_.windows) return true;
  size_t roots = 0;
  for (const MatmulSegment& segment : plan_.segments) roots = std::max(roots, segment.roots.size());
  const int64_t bytes = InIntegers() ? 1 : ScalarBytes(DType::kF32);
  return plan_.k <= view_.facts.scratch_bytes / (static_cast<int64_t>(roots) * plan_.row->panel_rows * bytes);
}

std::optional<DepthBlocks> MatmulKernels::CutDepth() const {
  if (plan_.windows) return CutWindows(plan_);
  if (may_take_parts_ && plan_.picks == Picks::kNone) return CutPartsDepth();
  if (PanelsFit() || InIntegers() || plan_.picks != Picks::kNone || view_.facts.blocks) return std::nullopt;
  return DepthBlocks({Extent(plan_.k)}, {kDepthBlock, kDepthBlock});
}

int64_t MatmulKernels::ManyChunk() const {
  const int64_t width = plan_.row->panel_rows, unit = Unit(),
                columns = InParts() && InDepthBlocks() ? kDeepColumns : kManyColumns,
                chunk = (std::max(columns, unit) + width - 1) / width * width;
  const auto divides = [&](int64_t c) {
    return std::all_of(plan_.segments.begin(), plan_.segments.end(),
                       [&](const MatmulSegment& s) { return s.columns % c == 0; });
  };
  // Weights in panels stream by, nothing is filled: as many chunks as there may be threads.
  const int64_t rows = view_.UpperBound(plan_.rows), wanted = rows <= kFewRows ? kChunksWanted : kChunksWanted / 2,
                blocks = std::min(CeilDiv(rows, kPanelRows), wanted);  // of any number of rows
  if (plan_.row->in_panels() && unit <= width && CeilDiv(plan_.Columns(), chunk) * blocks < wanted) return width;
  // A last chunk that is cut short is one panel: then it is plain that chunks do not overlap.
  return divides(chunk) || unit > 32 ? chunk : width;
}

int64_t MatmulKernels::PanelsTogether(int64_t chunk) const {
  const int64_t both = 2 * plan_.row->panel_rows;
  const bool even = std::ranges::all_of(plan_.segments, [&](const MatmulSegment& segment) {
    return CeilDiv(segment.columns, plan_.row->panel_rows) % 2 == 0 && !LacksVectors(segment);
  });
  // Elsewhere a pair would be two calls. Two long panels would not stay in the second cache for all rows.
  const bool stays = plan_.windows || 2 * PanelBytes(2) <= view_.facts.scratch_bytes;
  const bool registers = view_.facts.lanes == 16 && view_.facts.vector_registers >= 32;
  const bool panels = plan_.row->in_panels() && !plan_.row->in_words() && Unit() <= plan_.row->panel_rows && registers;
  return panels && stays && chunk % both == 0 && even ? 2 : 1;
}

int64_t MatmulKernels::PanelBytes(int64_t together) const {
  const int64_t bytes = plan_.row->in_words() ? ScalarBytes(plan_.row->weight) : ScalarBytes(DType::kF32);
  return together * plan_.row->panel_rows * PanelWords() * plan_.row->word * bytes;
}

MatmulKernels::Asked MatmulKernels::AskFor(int64_t together, int64_t depth, const kir::ExprRef& tile,
                                           const kir::ExprRef& tiles, const kir::ExprRef& k, int64_t count) const {
  const int64_t element_bytes = PanelBytes(1) / plan_.k;
  const kir::ExprRef zero = kb::Int(0), one = kb::Int(1), first = kb::Call(kir::Op::kLt, {tile, one});
  Asked asked{kb::Select(first, kb::Int(view_.facts.prefetch_ahead), zero), nullptr, nullptr};
  const int64_t bytes = together * depth * element_bytes, most = view_.facts.scratch_bytes;
  const bool all_stay = plan_.Columns() / ir::kPanelColumns * PanelBytes(1) < most;
  const bool read_once = rows_inside_ || depth < plan_.k;
  if (!read_once || all_stay || 2 * bytes > most) return asked;
  const kir::ExprRef others = kb::Max(one, tiles - 1.0), share = (kb::Int(bytes) + others - 1.0) / others;
  asked.next = share;
  asked.after = (tile - 1.0) * share;
  if (k != nullptr) {
    const kir::ExprRef all = kb::Int(depth);
    asked.next = (share * static_cast<double>(count) + static_cast<double>(depth - 1)) / all;
    asked.after = asked.after + (kb::Int(depth - count) - k) * static_cast<double>(element_bytes) + share * k / all;
  }
  asked.next = kb::Select(first, zero, asked.next);
  asked.after = kb::Select(first, zero, asked.after);
  return asked;
}

kir::StmtRef MatmulKernels::MultiplyPanels(int root, int64_t together, kir::Slice x,
                                           const std::function<kir::Slice(int64_t part)>& panel, const Asked& asked,
                                           KernelWriter& writer, bool runs) const {
  const bool pair = together == 2;
  std::vector<std::string> tiles;
  std::vector<kir::Slice> operands = {std::move(x)};
  for (int64_t part = 0; part < together; ++part) {
    tiles.push_back(TileName(root, part));
    operands.push_back(panel(part));
  }
  decltype(kir::TileCall::attributes) attributes;
  const auto attribute = [&](const char* name, const kir::ExprRef& value) {
    if (value != nullptr) attributes.emplace_back(name, value);
  };
  if (plan_.row->in_words()) {
    if (RowOf(root).weight == DType::kI8) attributes.emplace_back("signed", kb::Int(1));
  } else {
    attribute("ahead", asked.ahead);
    attribute("next", asked.next);
    attribute("after", asked.after);
  }
  const char* const one = runs ? "mma_f32_runs" : RowOf(root).mma;
  const char* const two = runs ? "mma_f32_runs_pair" : "mma_f32_pair";
  return kb::WithOrigin(kb::CallTile(pair ? two : one, std::move(tiles), std::move(operands), std::move(attributes)),
                        writer.Origin(root));
}

// No panels are filled, so a block of rows that the second cache keeps is enough. Where that is a few tiles and the
// panel long, they are one to the tile op: the first of its rows bring the panel from memory, and it finds blocks of
// much the same length by itself.
void MatmulKernels::CutPanelRows(int64_t chunk, int64_t most) {
  constexpr int64_t kRowBytes = 512 << 10, kLeastRows = 48;
  const int64_t rows = view_.UpperBound(plan_.rows);
  if (plan_.windows) {
    most = std::min(most, WindowRows());
  } else {
    most = std::min(most, std::max(kRowBytes / (plan_.k * ScalarBytes(plan_.row->activation)), kLeastRows));
    rows_inside_ = rows <= most;  // the cache keeps them all, beside a panel for each
    const int64_t wanted = CeilDiv(kChunksWanted, CeilDiv(plan_.Columns(), chunk));
    most = std::min(most, std::max(kPanelRows, CeilDiv(rows, wanted)));
  }
  const int64_t depth = plan_.windows ? depth_->Most().constant() : plan_.k;
  const int64_t even = plan_.rows.is_constant() ? EvenPart(rows, most) : std::min(rows, most);
  if (depth >= kDeep && even <= kPanelRows) {
    tile_rows_ = even;
    if (rows > most) row_block_ = even;
    return;
  }
  if (plan_.row->in_words())
    tile_rows_ = std::min(tile_rows_, rows);
  else if (depth >= kDeep)
    tile_rows_ *= 2;
  else if (plan_.rows.is_constant())
    tile_rows_ = EvenTile(rows, tile_rows_);
  const int64_t tiles = CeilDiv(rows, tile_rows_), fit = most / tile_rows_;
  if (rows > most) row_block_ = (plan_.rows.is_constant() ? EvenPart(tiles, fit) : fit) * tile_rows_;
}

// The panel of a root's weights that begins with column n, or what of it is in the block of k.
kir::Slice MatmulKernels::Panel(KernelWriter& writer, int root, const MatmulSegment& segment, const kir::ExprRef& n) {
  kir::ExprRef first = n / static_cast<double>(ir::kPanelColumns) * static_cast<double>(PanelWords()),
               count = kb::Int(PanelWords());
  if (InDepthBlocks()) {
    const DepthBlocks& depth = *depth_;
    const auto word = static_cast<double>(plan_.row->word);
    first = first + (plan_.row->in_words() ? depth.First() / word : depth.First());
    count = plan_.row->in_words() ? (depth.Count() + (word - 1)) / word : depth.Count();
  }
  return kb::SliceOf(writer.Input(view_.InputIndex(view_.node(root).inputs[1])),
                     {PanelColumns(segment, n), kb::Range(first, count)});
}

// The rows that the next panel is packed from, a part beside each tile, what is left beside the last: all of them at
// once would be waited for.
kir::StmtRef MatmulKernels::PrefetchNextPanel(KernelWriter& writer, int root, const kir::ExprRef& n,
                                              const kir::ExprRef& m, int64_t step) {
  const int64_t width = plan_.row->panel_rows, part = CeilDiv(width, CeilDiv(ChunkRows(), step));
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
  const int64_t step = tile_rows_, together = PanelsTogether(chunk);
  EmitHidden(segment, chunk, block);
  kir::Block panel;
  const kir::ExprRef f = kb::Ref("f"), n = n0 + f, m = kb::Ref("m");
  const bool packs = !plan_.row->in_panels();
  const std::optional<DepthBlocks> deep = InDepthBlocks() ? depth_ : std::nullopt;
  const auto packed = [&](const std::string& p) {
    return deep ? kb::SliceOf(p, {kb::All(), kb::Range(kb::Int(0), deep->Count())}) : kb::Whole(p, 2);
  };
  if (InParts()) Append(block, AllocParts(segment));
  for (const int root : segment.roots) {
    if (!packs) break;
    if (InParts()) {
      Append(panel, PackParts(writer, root, n));
      continue;
    }
    const std::string p = absl::StrCat("p", root);
    const MatmulRow& row = RowOf(root);
    const DType dtype = InIntegers() ? row.weight : DType::kF32;
    block.push_back(kb::Alloc(p, {dtype, {Extent(width), deep ? deep->Most() : Extent(plan_.k)}, row.panel}));
    const kir::ExprRef first = deep ? deep->First() : nullptr, count = deep ? deep->Count() : nullptr;
    panel.push_back(kb::WithOrigin(kb::Pack(packed(p), Weights(writer, root, n, kb::Int(width), first, count)),
                                   writer.Origin(root)));
  }
  const kir::ExprRef live_rows = kb::Min(EndRow() - m, kb::Int(step));
  Asked asked;
  if (!packs && step >= ChunkRows()) {
    // The only tile: its blocks of rows, where it has several, ask as tiles do elsewhere.
    asked.ahead = kb::Int(view_.facts.prefetch_ahead);
    const int64_t panels = PanelBytes(together);
    if (step > PanelTileRows() && !deep && 2 * panels <= view_.facts.scratch_bytes) asked.next = kb::Int(panels);
  } else if (!packs) {
    const kir::ExprRef first = rows_inside_ ? kb::Int(0) : FirstRow(), each = kb::Int(step);
    asked = AskFor(together, plan_.k, (m - first) / each, (kb::FromExtent(plan_.rows) + each - 1.0) / each);
  }
  kir::Block rows;
  for (const int root : segment.roots) {
    if (packs && !deep) rows.push_back(PrefetchNextPanel(writer, root, n, m, step));
  }
  if (!deep) {
    for (kir::Slice& slice : ResultRectangles(writer, segment, m, step, n, together * width))
      rows.push_back(kb::Prefetch(std::move(slice)));
  }
  for (const int root : segment.roots) {
    for (int64_t part = 0; part < together; ++part)
      rows.push_back(kb::Tile(TileName(root, part), {step, width}, 0, plan_.row->sum));
    const kir::ExprRef rows_of_tile = plan_.picks == Picks::kByRun ? live_rows : kb::Int(step);
    if (InParts()) {
      rows.push_back(MultiplyParts(writer, root, m, rows_of_tile));
      continue;
    }
    rows.push_back(MultiplyPanels(
        root, together, Rows(writer, m, rows_of_tile, prologue_in_chunk_),
        [&](int64_t part) {
          if (packs) return packed(absl::StrCat("p", root));
          return Panel(writer, root, segment, n + static_cast<double>(part * width));
        },
        asked, writer));
  }
  for (int64_t part = 0; part < together; ++part) {
    const kir::ExprRef from = f + static_cast<double>(part * width), columns = LiveColumns(segment, n0 + from, width);
    rows.push_back(
        deep ? AddToSums(segment, m - FirstRow(), live_rows, from, columns, part)
             : Epilogue(writer, expr, segment, m, live_rows, n0 + from, columns, width, from + kb::Ref("j"), part));
  }
  panel.push_back(kb::For("m", FirstRow(), EndRow(), std::move(rows), step));
  // Of a last chunk that is cut short some panels are not there.
  if (segment.columns % chunk != 0 && chunk != width)
    panel = {kb::If(kb::Call(kir::Op::kLt, {n, kb::Int(segment.columns)}), std::move(panel))};
  kir::Block products = {kb::For("f", kb::Int(0), kb::Int(chunk), std::move(panel), together * width)};
  if (deep) products = OverDepth(writer, expr, segment, n0, chunk, std::move(products));
  block.insert(block.end(), products.begin(), products.end());
  EmitPacks(writer, segment, n0, chunk, block);
}

}  // namespace quern::codegen
