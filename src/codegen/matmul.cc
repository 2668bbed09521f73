// The matmul family: one or more products of the same rows, with everything that follows them element by element.
//
// Few rows (a decode step): chunks of weight rows stream by once, dotted with every activation row.
//   grid n0 in 0..2048 by 32 {
//     tile t3 : f32[1, 32] = 0
//     dot_q4_K t3 += w1[n0 : +32, :], x0   ahead 8192
//     map (i, j) in t3 [1, 32] { y0[0, n0 + j] = x2[0, n0 + j] + t3 }
//   }
// Many rows (a prompt): chunks of columns; a panel of weight rows is packed into scratch and used for every block of rows.
// Anything without a tile op is a plain nest of loops with the reduction inside.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/loops.h"
#include "codegen/matmul_plan.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::Value;
using kir::Op;

constexpr int64_t kFewRows = 8;              // at most this many rows are dotted row by row
constexpr int64_t kChunkBytes = 96 << 10;    // of weights in a chunk of the few-rows kernel
constexpr int64_t kManyColumns = 64;         // columns of a chunk of the many-rows kernel
constexpr int64_t kPrologueElements = 32768; // activations recomputed in every chunk rather than kept in memory

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// Columns that must stay together in one chunk of the segment: blocks of a quantised result, heads of a rotation.
int64_t ColumnUnit(const RegionView& view, const MatmulSegment& segment) {
  int64_t unit = 32;
  for (const MatmulResult& result : segment.results) {
    if (result.kind == MatmulResult::Kind::kQuantize) unit = std::max<int64_t>(unit, Row(result.format).block_elements);
  }
  for (const ir::Node& node : view.body.nodes()) {
    if (std::string_view(node.op->name) == "Rope" && node.attributes.String("style") == "neox") {
      unit = std::max(unit, RoundUp(node.attributes.Int("head_dim"), 32));
    }
  }
  return unit;
}

// Writes the kernels of one planned region.
class TileMatmul {
 public:
  TileMatmul(const RegionView& view, const MatmulPlan& plan) : view_(view), plan_(plan) {
    few_ = UpperBound(plan.rows, view.ranges) <= kFewRows;
  }

  StatusOr<LoweredRegion> Lower() {
    QUERN_RETURN_IF_ERROR(LowerPrologue());
    // Segments share one grid when a common chunk divides them all.
    int64_t chunk = few_ ? FewChunk() : ManyChunk();
    const bool together = std::all_of(plan_.segments.begin(), plan_.segments.end(), [&](const MatmulSegment& s) { return s.columns % chunk == 0; });
    if (together || plan_.segments.size() == 1) {
      std::vector<const MatmulSegment*> all;
      for (const MatmulSegment& segment : plan_.segments) all.push_back(&segment);
      QUERN_RETURN_IF_ERROR(EmitKernel(all, chunk));
    } else {
      for (const MatmulSegment& segment : plan_.segments) QUERN_RETURN_IF_ERROR(EmitKernel({&segment}, chunk));
    }
    return std::move(lowered_);
  }

 private:
  // Activations that are computed: in each chunk when that is little work, else by a kernel of their own.
  Status LowerPrologue() {
    lhs_input_ = view_.InputIndex(plan_.lhs);
    if (lhs_input_ >= 0) return absl::OkStatus();
    const int64_t elements = BoundedElements({plan_.rows, Extent(plan_.k)}, view_.ranges);
    prologue_in_chunk_ = few_ && elements <= kPrologueElements;
    if (prologue_in_chunk_) return absl::OkStatus();
    const ir::TensorType& type = view_.body.type(plan_.lhs);
    lowered_.temporaries.push_back(BufferTypeOf(type, false));
    KernelWriter writer(view_, "prologue");
    FusedExpr expr(view_.body);
    writer.ProvideInputs(expr);
    EmitGrid(view_, writer.kernel, plan_.dims, plan_.k, [&](const kir::Index& index, kir::Block& block) {
      kir::Index at = index;
      at.push_back(kb::Ref("c"));
      kir::Block body;
      expr.ShareIn(&body);
      const kir::ExprRef element = expr.Element(plan_.lhs, at);
      body.push_back(kb::Store(writer.Temporary(0, lowered_.temporaries[0], true), at, element));
      block.push_back(kb::Vec("c", kb::Int(0), kb::Int(plan_.k), std::move(body)));
    });
    QUERN_ASSIGN(KernelUse use, writer.Finish());
    lowered_.kernels.push_back(std::move(use));
    return absl::OkStatus();
  }

  int64_t Unit() const {
    int64_t unit = 32;
    for (const MatmulSegment& segment : plan_.segments) unit = std::max(unit, ColumnUnit(view_, segment));
    return unit;
  }
  int64_t FewChunk() const {
    const MatmulSegment& first = plan_.segments[0];
    const ir::TensorType& w = view_.body.type(view_.body.node(first.roots[0]).inputs[1]);
    const int64_t row_bytes = RowBytes(w.dtype, plan_.k) * static_cast<int64_t>(first.roots.size());
    const int64_t unit = Unit(), wanted = std::max<int64_t>(unit, kChunkBytes / std::max<int64_t>(1, row_bytes) / unit * unit);
    // At least about eight chunks, so that threads balance; prefer a divisor of every segment.
    int64_t columns = 0;
    for (const MatmulSegment& segment : plan_.segments) columns += segment.columns;
    const int64_t most = std::max(unit, std::min<int64_t>({wanted, 256, columns / 8 / unit * unit}));
    for (int64_t chunk = most; chunk > unit; chunk -= unit) {
      if (std::all_of(plan_.segments.begin(), plan_.segments.end(), [&](const MatmulSegment& s) { return s.columns % chunk == 0; })) return chunk;
    }
    return unit;
  }
  int64_t ManyChunk() const {
    const int64_t width = plan_.row->panel_rows, chunk = RoundUp(std::max(kManyColumns, Unit()), width);
    const auto divides = [&](int64_t c) {
      return std::all_of(plan_.segments.begin(), plan_.segments.end(), [&](const MatmulSegment& s) { return s.columns % c == 0; });
    };
    // A last chunk that is cut short is one panel: then it is plain that chunks do not overlap.
    return divides(chunk) || Unit() > 32 ? chunk : width;
  }

  Status EmitKernel(const std::vector<const MatmulSegment*>& segments, int64_t chunk) {
    KernelWriter writer(view_, "matmul");
    FusedExpr expr(view_.body);
    writer.ProvideInputs(expr);
    int64_t total = 0;
    for (const MatmulSegment* segment : segments) total += segment->columns;
    const bool single = segments.size() == 1;
    const kir::ExprRef g = kb::Ref("g");
    if (single) writer.kernel.grid = {{"n0", kb::Int(0), kb::Int(total), chunk}};
    else writer.kernel.grid = {{"g", kb::Int(0), kb::Int(total / chunk), 1}};

    // Several segments: g counts chunks, and the first chunk of each is where the one before it ends.
    kir::Block block;
    int64_t end = total;
    for (size_t s = segments.size(); s-- > 0;) {
      const int64_t start = end - segments[s]->columns;
      kir::Block body;
      const kir::ExprRef n0 = single ? kb::Ref("n0") : (g - static_cast<double>(start / chunk)) * static_cast<double>(chunk);
      if (few_) EmitFew(writer, expr, *segments[s], n0, chunk, body);
      else EmitMany(writer, expr, *segments[s], n0, chunk, body);
      block = s + 1 == segments.size() ? std::move(body)
                                       : kir::Block{kb::If(kb::Call(Op::kLt, {g, kb::Int(end / chunk)}), std::move(body), std::move(block))};
      end = start;
    }
    writer.kernel.body = std::move(block);
    QUERN_ASSIGN(KernelUse use, writer.Finish());
    lowered_.kernels.push_back(std::move(use));
    return absl::OkStatus();
  }

  // The activations as a slice of rows [from, from + count), or all of them.
  kir::Slice Rows(KernelWriter& writer, const kir::ExprRef& from, const kir::ExprRef& count, bool scratch) {
    std::vector<kir::SliceDim> dims;
    if (scratch) {
      dims.push_back(from == nullptr ? kb::All() : kb::Range(from, count));
      dims.push_back(kb::All());
      return kb::SliceOf("px", std::move(dims));
    }
    for (size_t d = 0; d < plan_.dims.size(); ++d) {
      if (static_cast<int>(d) != plan_.row_axis) dims.push_back(kb::Point(kb::Int(0)));
      else dims.push_back(from == nullptr ? kb::All() : kb::Range(from, count));
    }
    dims.push_back(kb::All());
    const std::string name = lhs_input_ >= 0 ? writer.Input(lhs_input_) : writer.Temporary(0, lowered_.temporaries[0], false);
    return kb::SliceOf(name, std::move(dims));
  }

  kir::Slice Weights(KernelWriter& writer, int root, const kir::ExprRef& n, int64_t count) {
    const std::string w = writer.Input(view_.InputIndex(view_.body.node(root).inputs[1]));
    return kb::SliceOf(w, {kb::Range(n, kb::Int(count)), kb::All()});
  }

  const MatmulRow& RowOf(int root) const {
    const ir::Node& node = view_.body.node(root);
    return *FindMatmulRow(view_.body.type(node.inputs[1]).dtype, view_.body.type(plan_.lhs).dtype);
  }

  static std::string TileName(int root) { return absl::StrCat("t", root, "x"); }

  void EmitFew(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0, int64_t chunk, kir::Block& block) {
    const int64_t most = UpperBound(plan_.rows, view_.ranges);
    if (prologue_in_chunk_) EmitScratchPrologue(expr, block);
    for (const int root : segment.roots) {
      block.push_back(kb::Tile(TileName(root), {most, chunk}));
      block.push_back(kb::WithOrigin(kb::CallTile(RowOf(root).dot, {TileName(root)},
                                                  {Weights(writer, root, n0, chunk), Rows(writer, nullptr, nullptr, prologue_in_chunk_)},
                                                  {{"ahead", kb::Int(view_.facts.prefetch_ahead)}}),
                                     writer.Origin(root)));
    }
    const kir::ExprRef rows = kb::FromExtent(plan_.rows), columns = LiveColumns(segment, n0, chunk);
    EmitEpilogue(writer, expr, segment, kb::Int(0), rows, n0, columns, chunk, 0, block);
    EmitPacks(writer, segment, n0, chunk, block);
  }

  void EmitScratchPrologue(FusedExpr& expr, kir::Block& block) {
    block.push_back(kb::Alloc("px", {DType::kF32, {plan_.rows, Extent(plan_.k)}, kir::Layout::kRow}));
    kir::Block body;
    expr.ShareIn(&body);
    const kir::ExprRef m = kb::Ref("pm"), c = kb::Ref("pc");
    const kir::ExprRef element = expr.Element(plan_.lhs, plan_.At(m, c));
    body.push_back(kb::Store("px", {m, c}, element));
    expr.ShareIn(nullptr);
    block.push_back(kb::For("pm", kb::Int(0), kb::FromExtent(plan_.rows), {kb::Vec("pc", kb::Int(0), kb::Int(plan_.k), std::move(body))}));
  }

  void EmitMany(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0, int64_t chunk, kir::Block& block) {
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
    for (const int root : segment.roots) panel.push_back(kb::Prefetch(Weights(writer, root, n + static_cast<double>(width), width)));
    kir::Block rows;
    for (const int root : segment.roots) {
      rows.push_back(kb::Tile(TileName(root), {step, width}));
      rows.push_back(kb::WithOrigin(kb::CallTile(RowOf(root).mma, {TileName(root)}, {Rows(writer, m, kb::Int(step), false), kb::Whole(absl::StrCat("p", root), 2)}),
                                    writer.Origin(root)));
    }
    const kir::ExprRef live_rows = MinExpr(kb::FromExtent(plan_.rows) - m, kb::Int(step));
    EmitEpilogue(writer, expr, segment, m, live_rows, n, LiveColumns(segment, n, width), chunk, 1, rows);
    panel.push_back(kb::For("m", kb::Int(0), kb::FromExtent(plan_.rows), std::move(rows), step));
    block.push_back(kb::For("f", kb::Int(0), segment.columns % chunk == 0 || chunk == width ? kb::Int(chunk) : MinExpr(kb::Int(chunk), kb::Int(segment.columns) - n0),
                            std::move(panel), width));
    EmitPacks(writer, segment, n0, chunk, block);
  }

  // Columns of the tile that exist: all of them, unless the last chunk is cut short.
  kir::ExprRef LiveColumns(const MatmulSegment& segment, const kir::ExprRef& n, int64_t count) const {
    if (segment.columns % count == 0) return kb::Int(count);
    return MinExpr(kb::Int(segment.columns) - n, kb::Int(count));
  }

  // Scratch rows that a quantised result is gathered in before it is packed.
  static std::string HiddenName(const MatmulResult& result) { return absl::StrCat("hid", result.output); }
  void EmitHidden(const MatmulSegment& segment, int64_t chunk, kir::Block& block) {
    for (const MatmulResult& result : segment.results) {
      if (result.kind != MatmulResult::Kind::kQuantize) continue;
      block.push_back(kb::Alloc(HiddenName(result), {DType::kF32, {plan_.rows, Extent(chunk)}, kir::Layout::kRow}));
    }
  }

  // `level` 1: hidden rows were declared by the caller; 0: here.
  void EmitEpilogue(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& m0, const kir::ExprRef& rows,
                    const kir::ExprRef& n, const kir::ExprRef& columns, int64_t chunk, int level, kir::Block& block) {
    if (level == 0) EmitHidden(segment, chunk, block);
    const kir::ExprRef i = kb::Ref("i"), j = kb::Ref("j");
    const kir::ExprRef row = m0 + i, column = n + j;
    std::vector<std::string> tiles;
    int64_t width = 0;
    for (const int root : segment.roots) {
      tiles.push_back(TileName(root));
      width = level == 0 ? chunk : plan_.row->panel_rows;
      const std::string name = tiles.back();
      expr.Provide({root, 0}, [name, row, column, i, n, width](const kir::Index& at, const kir::ExprRef&) {
        if (at.back() == column) return kb::Ref(name, DType::kF32);
        // Another column of the same row: the partner of a rotation, which lies in the same chunk. The clamp states so.
        const kir::ExprRef other = kb::Call(Op::kMax, {kb::Int(0), MinExpr(at.back() - n, kb::Int(width - 1))});
        return kb::At(name, DType::kF32, {i, other});
      });
    }
    kir::Block body;
    expr.ShareIn(&body);
    for (const MatmulResult& result : segment.results) {
      const kir::ExprRef value = expr.Element(result.value, plan_.At(row, column));
      kir::StmtRef store;
      switch (result.kind) {
        case MatmulResult::Kind::kStore: store = kb::Store(StoreName(writer, result), plan_.At(row, column), value); break;
        case MatmulResult::Kind::kUpdate:
          store = kb::Store(UpdateName(writer, result), {kb::FromExtent(result.start) + row, column}, value);
          break;
        case MatmulResult::Kind::kQuantize:
          store = kb::Store(HiddenName(result), {row, level == 0 ? j : kb::Ref("f") + j}, value);
          break;
      }
      body.push_back(kb::WithOrigin(store, writer.Origin(result.value.node)));
    }
    expr.ShareIn(nullptr);
    block.push_back(kb::Map({"i", "j"}, tiles, {rows, columns}, std::move(body)));
  }

  // The result's buffer, declared with the extents before any Reshape of it.
  std::string StoreName(KernelWriter& writer, const MatmulResult& result) {
    const std::string name = writer.Result(result.output);
    for (kir::Param& param : writer.kernel.params) {
      if (param.name == name) param.type.dims = view_.body.type(result.value).dims;
    }
    return name;
  }
  // A carried tensor, declared as rows of the root.
  std::string UpdateName(KernelWriter& writer, const MatmulResult& result) {
    const std::string name = writer.UpdatedInput(result.updated_input);
    for (kir::Param& param : writer.kernel.params) {
      if (param.name == name) param.type.dims = {param.type.dims[0], view_.body.type(result.value).dims.back()};
    }
    return name;
  }

  void EmitPacks(KernelWriter& writer, const MatmulSegment& segment, const kir::ExprRef& n0, int64_t chunk, kir::Block& block) {
    for (const MatmulResult& result : segment.results) {
      if (result.kind != MatmulResult::Kind::kQuantize) continue;
      const kir::ExprRef m = kb::Ref("mq");
      std::vector<kir::SliceDim> place;
      for (size_t d = 0; d < plan_.dims.size(); ++d) {
        place.push_back(static_cast<int>(d) == plan_.row_axis ? kb::Range(m, kb::Int(1)) : kb::Point(kb::Int(0)));
      }
      place.push_back(kb::Range(n0, kb::Int(chunk)));
      block.push_back(kb::For("mq", kb::Int(0), kb::FromExtent(plan_.rows),
                              {kb::WithOrigin(kb::Pack(kb::SliceOf(writer.Result(result.output), std::move(place)),
                                                       kb::SliceOf(HiddenName(result), {kb::Range(m, kb::Int(1)), kb::All()})),
                                              writer.Origin(result.value.node))}));
    }
  }

  const RegionView& view_;
  const MatmulPlan& plan_;
  LoweredRegion lowered_;
  bool few_ = false;
  int lhs_input_ = -1;
  bool prologue_in_chunk_ = false;
};

// Any shapes and dtypes: the sum over k inside loops over the result.
StatusOr<LoweredRegion> LowerPlain(const RegionView& view) {
  KernelWriter writer(view, "matmul");
  FusedExpr expr(view.body);
  writer.ProvideInputs(expr);
  QUERN_ASSIGN(const std::vector<Extent> dims, SharedExtents(view, "plain matmul region"));
  bool transposed = true;
  for (int n = 0; n < static_cast<int>(view.body.nodes().size()); ++n) {
    const ir::Node& node = view.body.node(n);
    if (node.op->family == ir::Family::kQuantize || node.op->family == ir::Family::kUpdate) {
      return absl::UnimplementedError("a plain matmul region ends in elementwise ops");
    }
    if (node.op->family != ir::Family::kMatmul) continue;
    transposed = node.attributes.Bool("transpose_b");
    expr.Provide({n, 0}, [&view, &expr, &node, n](const kir::Index& at, const kir::ExprRef&) {
      const ir::TensorType &a = view.body.type(node.inputs[0]), &b = view.body.type(node.inputs[1]);
      const kir::ExprRef k = kb::Ref(absl::StrCat("k", n));
      const size_t rank = at.size();
      auto batch = [&](const ir::TensorType& type) {
        kir::Index index;
        const size_t leading = type.dims.size() - 2;
        for (size_t d = 0; d < leading; ++d) index.push_back(type.dims[d] == Extent(1) ? kb::Int(0) : at[rank - 2 - leading + d]);
        return index;
      };
      kir::Index at_a = batch(a), at_b = batch(b);
      at_a.push_back(at[rank - 2]);
      at_a.push_back(k);
      const bool nk = node.attributes.Bool("transpose_b");
      at_b.push_back(nk ? at[rank - 1] : k);
      at_b.push_back(nk ? k : at[rank - 1]);
      auto widened = [](kir::ExprRef value) {
        const bool half = value->dtype == DType::kF16 || value->dtype == DType::kBF16;
        return half ? kb::CastTo(DType::kF32, value) : value;
      };
      const kir::ExprRef product = kb::Contract(widened(expr.Element(node.inputs[0], at_a)) * widened(expr.Element(node.inputs[1], at_b)));
      const std::string name = absl::StrCat("k", n);
      const kir::ExprRef count = kb::FromExtent(a.dims.back());
      const kir::ExprRef sum = nk ? kb::SumVec(4, name, kb::Int(0), count, product)
                                  : kb::ReduceFor(kir::ReduceOp::kSum, name, kb::Int(0), count, product);
      return kb::CastTo(node.results[0].dtype, kb::Contract(sum));
    });
  }
  // A transposed right side has the unit stride along the reduction.
  EmitReducedResults(view, writer, expr, dims, /*by_rows=*/!transposed);
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

}  // namespace

StatusOr<LoweredRegion> LowerMatmul(const RegionView& view) {
  if (const std::optional<MatmulPlan> plan = PlanMatmul(view)) return TileMatmul(view, *plan).Lower();
  return LowerPlain(view);
}

}  // namespace quern::codegen
