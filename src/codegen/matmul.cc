// The matmul family: one or more products of the same rows, with everything that follows them element by element.
//
// Few rows (a decode step): chunks of weight rows stream by once, dotted with every activation row.
//   grid n0 in 0..2048 by 32 {
//     tile t3 : f32[1, 32] = 0
//     dot_q4_K t3 += w1[n0 : +32, :], x0   ahead 8192
//     map (i, j) in t3 [1, 32] { y0[0, n0 + j] = x2[0, n0 + j] + t3 }
//   }
// Many rows (a prompt): chunks of columns; a panel of weight rows is packed into scratch and used for every block of
// rows. On blocks of threads: squares of the result, from slices of both operands in shared memory.
// Anything without a tile op is a plain nest of loops with the reduction inside.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/families.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "ir/product.h"
#include "kir/rewrite.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::Value;
using kir::Op;

constexpr int64_t kPrologueElements = 32768;      // activations recomputed in every chunk rather than kept in memory
constexpr int64_t kBlockPrologueElements = 8192;  // the same where the chunk keeps them in shared memory

// Columns of a row that a rotation combines, where they may lie in different tiles.
int64_t WideSpan(const ir::Node& node) {
  const int64_t span = node.op->row_span == nullptr ? 0 : node.op->row_span(node);
  return span > 2 ? span : 0;
}

}  // namespace

MatmulKernels::MatmulKernels(const RegionView& view, const MatmulPlan::Tiles& plan)
    : view_(view), plan_(plan), may_take_parts_(MayTakeParts()), depth_(CutDepth()) {
  if (plan.picks == Picks::kByRow) return;
  if (view.UpperBound(plan.rows) <= FewRows() && !plan.row->in_panels()) return;
  if (view.facts.blocks)
    form_ = Form::kSquares;
  else if (PanelsFit() || depth_)
    form_ = Form::kMany;
  // Rows of windows of bytes are so short that copying them takes less than products of parts of them.
  if (form_ == Form::kMany && !Quantises() && !plan.row->in_words()) lines_ = WindowLines::Of(view, plan);
  if (lines_) form_ = Form::kLines;
}

StatusOr<LoweredRegion> MatmulKernels::Lower() {
  if (view_.facts.blocks && (Quantises() || IsBlock(view_.type(plan_.lhs).dtype))) {
    return absl::UnimplementedError("quantised activations are not for blocks of threads");
  }
  QUERN_RETURN_IF_ERROR(LowerPrologue());
  // Segments share one grid when a common chunk divides them all.
  const int64_t chunk = Chunk();
  if (form_ != Form::kSquares && form_ != Form::kLines) ChooseRows(chunk);
  const bool together = std::all_of(plan_.segments.begin(), plan_.segments.end(),
                                    [&](const MatmulSegment& s) { return s.columns % chunk == 0; });
  if (together || plan_.segments.size() == 1) {
    std::vector<const MatmulSegment*> all;
    for (const MatmulSegment& segment : plan_.segments) all.push_back(&segment);
    QUERN_RETURN_IF_ERROR(EmitKernel(all, chunk));
  } else {
    for (const MatmulSegment& segment : plan_.segments) QUERN_RETURN_IF_ERROR(EmitKernel({&segment}, chunk));
  }
  return std::move(lowered_);
}

// Activations that are computed: in each chunk when that is little work, else by a kernel of their own.
Status MatmulKernels::LowerPrologue() {
  lhs_input_ = view_.InputIndex(plan_.lhs);
  if (InParts()) return LowerParts();
  if (lhs_input_ >= 0 || plan_.windows) return absl::OkStatus();
  const int64_t elements = BoundedElements({plan_.rows, Extent(plan_.k)}, view_.ranges);
  const bool once = view_.UpperBound(plan_.rows) <= kFewRows || plan_.picks == Picks::kByRow;  // a chunk reads a row
  prologue_in_chunk_ = once && elements <= (view_.facts.blocks ? kBlockPrologueElements : kPrologueElements);
  if (prologue_in_chunk_) return absl::OkStatus();
  const std::vector<Extent> flat = plan_.Flat(Extent(plan_.k)), rows(flat.begin(), flat.end() - 1);
  lowered_.temporaries.push_back({view_.type(plan_.lhs).dtype, flat, kir::Layout::kRow});
  KernelWriter writer = Writer("prologue");
  FusedExpr expr(view_.graph);
  writer.ProvideInputs(expr);
  EmitGrid(view_, writer.kernel, rows, plan_.k, [&](const kir::Index& index, kir::Block& block) {
    kir::Index at = index;
    at.push_back(kb::Ref("c"));
    kir::Block body;
    const kir::ExprRef element = expr.Element(plan_.lhs, at);
    body.push_back(kb::Store(writer.Temporary(0, lowered_.temporaries[0], true), at, element));
    block.push_back(kb::Vec("c", kb::Int(0), kb::Int(plan_.k), std::move(body)));
  });
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered_.kernels.push_back(std::move(use));
  return absl::OkStatus();
}

// Rows that are packed lie in scratch until all columns of a chunk are there; and a chunk of very many rows keeps cores
// waiting.
void MatmulKernels::ChooseRows(int64_t chunk) {
  tile_rows_ = InIntegers() ? view_.facts.integer_rows : PanelTileRows();
  if (plan_.picks != Picks::kNone) row_block_ = plan_.picks == Picks::kByRow ? 1 : 0;
  if (plan_.picks != Picks::kNone) return;
  constexpr int64_t kMostRows = 4096, kSteps = 24, kSummedRows = 240;  // the latter: beside their sums
  int64_t packs = 0, most = kMostRows;
  for (const MatmulSegment& segment : plan_.segments) {
    const int64_t here = std::count_if(segment.results.begin(), segment.results.end(), [](const MatmulResult& result) {
      return result.kind == MatmulResult::Kind::kPack;
    });
    packs = std::max(packs, here);
  }
  if (InParts())
    most = MostPartRows();
  else if (InDepthBlocks())
    most = kSummedRows;
  if (packs > 0) most = std::min(most, view_.facts.scratch() / 2 / (packs * chunk * ScalarBytes(DType::kF32)));
  if (plan_.windows || plan_.row->in_panels()) return CutPanelRows(chunk, most);
  const int64_t rows = view_.UpperBound(plan_.rows);
  if (rows <= most) return;
  // Blocks of much the same length.
  const int64_t even = plan_.rows.is_constant() ? EvenPart(rows, most) : most;
  row_block_ = std::max(kSteps, std::min(CeilDiv(even, kSteps), most / kSteps) * kSteps);
}

kir::ExprRef MatmulKernels::FirstRow() const {
  if (plan_.picks == Picks::kByRun) return kb::Ref("from");
  return row_block_ == 0 ? kb::Int(0) : kb::Ref("mb");
}
kir::ExprRef MatmulKernels::EndRow() const {
  if (plan_.picks == Picks::kByRun) return kb::Ref("to");
  const kir::ExprRef end = kb::FromExtent(plan_.rows);
  return row_block_ == 0 ? end : kb::Min(FirstRow() + static_cast<double>(row_block_), end);
}

// Blocks of a quantised result, heads of a rotation; on CPUs a tile's rows, on blocks of threads the pairs of a
// rotation.
int64_t MatmulKernels::Unit() const {
  int64_t unit = view_.facts.blocks ? 8 : 32;
  for (const MatmulSegment& segment : plan_.segments) {
    for (const MatmulResult& result : segment.results) {
      if (result.kind == MatmulResult::Kind::kPack) unit = std::max<int64_t>(unit, Row(result.format).block_elements);
    }
  }
  for (const ir::Node& node : view_.graph.nodes()) {
    unit = std::max(unit, WideSpan(node));
  }
  return unit;
}

bool MatmulKernels::Quantises() const {
  return std::ranges::any_of(view_.graph.nodes(),
                             [](const ir::Node& node) { return node.op->kind == ir::OpKind::kPack; });
}

int64_t MatmulKernels::Chunk() {
  switch (form_) {
    case Form::kFew: return FewChunk();
    case Form::kMany: return plan_.windows ? WindowsChunk() : ManyChunk();
    case Form::kLines: return LinesChunk();
    case Form::kSquares: return SquareChunk();
  }
}

Status MatmulKernels::EmitKernel(const std::vector<const MatmulSegment*>& segments, int64_t chunk) {
  KernelWriter writer = Writer("matmul");
  FusedExpr expr(view_.graph);
  writer.ProvideInputs(expr);
  int64_t total = 0, products = 0;
  for (const MatmulSegment* segment : segments) {
    total += segment->columns;
    products = std::max(products, static_cast<int64_t>(segment->roots.size()));
  }
  const bool single = segments.size() == 1;
  const kir::ExprRef g = kb::Ref("g");
  if (form_ == Form::kSquares)
    writer.kernel.grid = {{"m", kb::Int(0), kb::FromExtent(plan_.rows), SquareProduct::kRows}};
  std::vector<kir::GridDim> rows;
  if (lines_) rows = lines_->Grid();
  if (row_block_ != 0) rows = {{"mb", kb::Int(0), kb::FromExtent(plan_.rows), row_block_}};
  if (lines_) rows_inside_ = plan_.k * total > lines_->ImageElements();
  std::vector<kir::GridDim>& grid = writer.kernel.grid;
  if (!rows_inside_) grid.insert(grid.end(), rows.begin(), rows.end());
  if (single)
    grid.push_back({"n0", kb::Int(0), kb::Int(total), chunk});
  else
    grid.push_back({"g", kb::Int(0), kb::Int(total / chunk), 1});
  if (rows_inside_) grid.insert(grid.end(), rows.begin(), rows.end());

  // Several segments: g counts chunks, and the first chunk of each is where the one before it ends.
  std::optional<SquareProduct> square;
  kir::Block staging;
  if (form_ == Form::kSquares) {
    staging = Staging(segments, chunk);
    family::BlockFacts facts = *view_.facts.blocks;
    facts.shared_bytes -=
        static_cast<int64_t>(staging.size()) * SquareProduct::kRows * chunk * ScalarBytes(DType::kF32);
    square.emplace(SquareType(), SquareProduct::kRows, chunk, static_cast<int>(products), facts);
  }
  kir::Block block;
  int64_t end = total;
  for (size_t s = segments.size(); s-- > 0;) {
    const int64_t start = end - segments[s]->columns;
    kir::Block body;
    const kir::ExprRef n0 =
        single ? kb::Ref("n0") : (g - static_cast<double>(start / chunk)) * static_cast<double>(chunk);
    switch (form_) {
      case Form::kFew: EmitFew(writer, expr, *segments[s], n0, chunk, body); break;
      case Form::kMany: EmitMany(writer, expr, *segments[s], n0, chunk, body); break;
      case Form::kLines: EmitLines(writer, expr, *segments[s], n0, chunk, body); break;
      case Form::kSquares: EmitSquares(writer, expr, *segments[s], *square, n0, chunk, body); break;
    }
    block = s + 1 == segments.size()
                ? std::move(body)
                : kir::Block{kb::If(kb::Call(Op::kLt, {g, kb::Int(end / chunk)}), std::move(body), std::move(block))};
    end = start;
  }
  if (plan_.picks != Picks::kNone) block = WithMatrix(writer, std::move(block));
  if (prologue_in_chunk_ || lines_ || (plan_.windows && !InDepthBlocks())) {
    kir::Block all = lines_ ? FillLines(writer) : plan_.windows ? FillWindows(writer) : ScratchPrologue(expr);
    all.insert(all.end(), block.begin(), block.end());
    block = lines_ ? lines_->InChunk(std::move(all)) : std::move(all);
  }
  if (square) {
    kir::Block allocs = square->Allocs();
    allocs.insert(allocs.end(), staging.begin(), staging.end());
    block.insert(block.begin(), allocs.begin(), allocs.end());
  }
  writer.kernel.body = std::move(block);
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered_.kernels.push_back(std::move(use));
  return absl::OkStatus();
}

kir::Slice MatmulKernels::Rows(KernelWriter& writer, const kir::ExprRef& from, const kir::ExprRef& count, bool scratch,
                               const kir::ExprRef& k, int64_t depth) {
  const kir::SliceDim rows = from == nullptr ? kb::All() : kb::Range(from, count),
                      columns = k != nullptr      ? kb::Range(k, kb::Int(depth))
                                : InDepthBlocks() ? kb::Range(depth_->First(), depth_->Count())
                                                  : kb::All();
  if (scratch) return kb::SliceOf("px", {rows, columns});
  if (plan_.windows) {
    const kir::SliceDim depth = InDepthBlocks() ? kb::Range(kb::Int(0), depth_->Count()) : kb::All();
    return kb::SliceOf("px", {kb::Range(from - FirstRow(), kb::Min(EndRow() - from, count)), depth});
  }
  std::vector<kir::SliceDim> dims;
  for (size_t d = 0; d < plan_.dims.size(); ++d)
    dims.push_back(static_cast<int>(d) == plan_.row_axis ? rows : kb::Point(kb::Int(0)));
  dims.push_back(columns);
  const std::string name =
      lhs_input_ >= 0 ? writer.Input(lhs_input_) : writer.Temporary(0, lowered_.temporaries[0], false);
  return kb::SliceOf(name, std::move(dims));
}

kir::Slice MatmulKernels::Weights(KernelWriter& writer, int root, const kir::ExprRef& n, const kir::ExprRef& count,
                                  const kir::ExprRef& k, const kir::ExprRef& depth) const {
  std::vector<kir::SliceDim> dims = {kb::Range(n, count), k == nullptr ? kb::All() : kb::Range(k, depth)};
  if (plan_.picks != Picks::kNone) dims.insert(dims.begin(), kb::Point(kb::Ref("e")));
  return kb::SliceOf(writer.Input(view_.InputIndex(view_.node(root).inputs[1])), std::move(dims));
}

KernelWriter MatmulKernels::Writer(const char* name) const {
  KernelWriter writer(view_, name);
  for (size_t i = 0; i < view_.inputs().size(); ++i) {
    const std::vector<Extent>& dims = view_.node(view_.inputs()[i]).results[0].dims;
    if (plan_.HasRows(dims) && !plan_.images.contains({view_.inputs()[i], 0}))
      writer.DeclareAs(static_cast<int>(i), plan_.Flat(dims.back()));
  }
  if (!plan_.row->in_panels()) return writer;
  for (const MatmulSegment& segment : plan_.segments) {
    for (const int root : segment.roots) {
      const ir::Value panels = view_.node(root).inputs[1];
      writer.DeclareAs(view_.InputIndex(panels),
                       {Extent(ir::kPanelColumns), view_.type(panels).dims[0] * Extent(PanelWords())},
                       kir::Layout::kKn32, plan_.row->in_words() ? DType::kU32 : plan_.row->weight);
    }
  }
  return writer;
}

std::string MatmulKernels::TileName(int root, int64_t part) { return absl::StrCat("t", root, part == 0 ? "x" : "y"); }

kir::ExprRef MatmulKernels::LiveColumns(const MatmulSegment& segment, const kir::ExprRef& n, int64_t count) const {
  return Live(Extent(segment.columns), n, count);
}

bool MatmulKernels::LacksVectors(const MatmulSegment& segment) const {
  const int64_t width = plan_.row->panel_rows, rest = segment.columns % width;
  return rest != 0 && rest <= width - view_.facts.lanes;
}

kir::SliceDim MatmulKernels::PanelColumns(const MatmulSegment& segment, const kir::ExprRef& n) const {
  if (!LacksVectors(segment)) return kb::All();
  return kb::Range(kb::Int(0), LiveColumns(segment, n, plan_.row->panel_rows));
}

std::string MatmulKernels::HiddenName(const MatmulResult& result) { return absl::StrCat("hid", result.output); }

void MatmulKernels::EmitHidden(const MatmulSegment& segment, int64_t chunk, kir::Block& block) const {
  for (const MatmulResult& result : segment.results) {
    if (result.kind != MatmulResult::Kind::kPack) continue;
    block.push_back(kb::Alloc(
        HiddenName(result),
        {DType::kF32, {row_block_ == 0 ? plan_.rows : Extent(row_block_), Extent(chunk)}, kir::Layout::kRow}));
  }
}

kir::Block MatmulKernels::Results(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                                  const kir::ExprRef& row, const kir::ExprRef& column, const kir::ExprRef& hidden,
                                  const Sum& sum) {
  for (const int root : segment.roots) {
    expr.Provide({root, 0}, [root, sum](const kir::Index& at, const kir::ExprRef&) { return sum(root, at.back()); });
  }
  kir::Block body;
  for (const MatmulResult& result : segment.results) {
    const kir::ExprRef value = expr.Element(result.value, plan_.At(row, column));
    kir::StmtRef store;
    switch (result.kind) {
      case MatmulResult::Kind::kStore:
        store = kb::Store(StoreName(writer, result), plan_.At(row, column), value);
        break;
      case MatmulResult::Kind::kWrite:
        store = kb::Store(WrittenName(writer, result), {kb::FromExtent(result.start) + row, column}, value);
        break;
      case MatmulResult::Kind::kPack: store = kb::Store(HiddenName(result), {row - FirstRow(), hidden}, value); break;
    }
    body.push_back(kb::WithOrigin(store, writer.Origin(result.value.node)));
  }
  return body;
}

// Another column of the same row: the partner of a rotation, which lies in the same chunk. Chunks are whole runs of the
// op (OpDef::row_span), so that the place in the chunk is what the op makes of one; the clamp states that it is inside.
kir::ExprRef MatmulKernels::InChunk(const kir::ExprRef& at, const kir::ExprRef& column, const kir::ExprRef& place,
                                    int64_t width) {
  const kir::ExprRef own = kir::Rewrite(at, [&](const kir::ExprRef& node) { return node == column ? place : nullptr; });
  return kb::Max(kb::Int(0), kb::Min(own, kb::Int(width - 1)));
}

kir::StmtRef MatmulKernels::Epilogue(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                                     const kir::ExprRef& m, const kir::ExprRef& rows, const kir::ExprRef& n,
                                     const kir::ExprRef& columns, int64_t width, const kir::ExprRef& hidden,
                                     int64_t part) {
  const kir::ExprRef i = kb::Ref("i"), j = kb::Ref("j"), column = n + j;
  std::vector<std::string> tiles;
  for (const int root : segment.roots) tiles.push_back(TileName(root, part));
  kir::Block body = Results(writer, expr, segment, m + i, column, hidden, [&](int root, const kir::ExprRef& at) {
    if (at == column) return kb::Ref(TileName(root, part), plan_.row->sum);
    return kb::At(TileName(root, part), plan_.row->sum, {i, InChunk(at, column, j, width)});
  });
  return kb::Map({"i", "j"}, tiles, {rows, columns}, std::move(body));
}

// The result's buffer, declared with the extents before any Reshape of it and with all rows in one dimension.
std::string MatmulKernels::StoreName(KernelWriter& writer, const MatmulResult& result) {
  const std::string name = writer.Result(result.output);
  writer.Redeclare(name, plan_.Flat(view_.type(result.value).dims.back()));
  return name;
}

// A carried tensor, declared as rows of the root.
std::string MatmulKernels::WrittenName(KernelWriter& writer, const MatmulResult& result) {
  const std::string name = writer.UpdatedInput(view_.InputIndex(result.target));
  writer.Redeclare(name, {view_.type(result.target).dims[0], view_.type(result.value).dims.back()});
  return name;
}

void MatmulKernels::EmitPacks(KernelWriter& writer, const MatmulSegment& segment, const kir::ExprRef& n0, int64_t chunk,
                              kir::Block& block) {
  for (const MatmulResult& result : segment.results) {
    if (result.kind != MatmulResult::Kind::kPack) continue;
    const kir::ExprRef m = kb::Ref("mq");
    std::vector<kir::SliceDim> place;
    for (size_t d = 0; d < plan_.dims.size(); ++d) {
      place.push_back(static_cast<int>(d) == plan_.row_axis ? kb::Range(m, kb::Int(1)) : kb::Point(kb::Int(0)));
    }
    place.push_back(kb::Range(n0, kb::Int(chunk)));
    block.push_back(kb::For(
        "mq", FirstRow(), EndRow(),
        {kb::WithOrigin(kb::Pack(kb::SliceOf(StoreName(writer, result), std::move(place)),
                                 kb::SliceOf(HiddenName(result), {kb::Range(m - FirstRow(), kb::Int(1)), kb::All()})),
                        writer.Origin(result.value.node))}));
  }
}

StatusOr<LoweredRegion> LowerMatmul(const RegionView& view, const RegionPlan& plan) {
  const auto& matmul = static_cast<const MatmulPlan&>(plan);
  if (matmul.tiles) return MatmulKernels(view, *matmul.tiles).Lower();
  const ProductSpace& space = *matmul.any_order->space;
  switch (matmul.any_order->form) {
    case MatmulPlan::Form::kPlain: return LowerPlainMatmul(view);
    case MatmulPlan::Form::kPanels: return LowerPanels(space);
    case MatmulPlan::Form::kFewRows: return LowerFewRows(space);
    case MatmulPlan::Form::kStreams: return LowerStreams(space);
    case MatmulPlan::Form::kDirect: return LowerDirect(space);
  }
}

}  // namespace quern::codegen
