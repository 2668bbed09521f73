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
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::Value;
using kir::Op;

constexpr int64_t kFewRows = 8;                   // at most this many rows are dotted row by row
constexpr int64_t kPrologueElements = 32768;      // activations recomputed in every chunk rather than kept in memory
constexpr int64_t kBlockPrologueElements = 8192;  // the same where the chunk keeps them in shared memory

bool IsNeoxRope(const ir::Node& node) {
  return std::string_view(node.op->name) == "Rope" && node.attributes.String("style") == "neox";
}

}  // namespace

MatmulKernels::MatmulKernels(const RegionView& view, const MatmulPlan& plan) : view_(view), plan_(plan) {
  if (UpperBound(plan.rows, view.ranges) > kFewRows) form_ = view.facts.blocks ? Form::kSquares : Form::kMany;
}

StatusOr<LoweredRegion> MatmulKernels::Lower() {
  const bool quantises = std::any_of(view_.body.nodes().begin(), view_.body.nodes().end(),
                                     [](const ir::Node& node) { return node.op->family == ir::Family::kQuantize; });
  if (view_.facts.blocks && (quantises || IsBlock(view_.body.type(plan_.lhs).dtype))) {
    return absl::UnimplementedError("quantised activations are not for blocks of threads");
  }
  QUERN_RETURN_IF_ERROR(LowerPrologue());
  // Segments share one grid when a common chunk divides them all.
  const int64_t chunk = Chunk();
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
  if (lhs_input_ >= 0) return absl::OkStatus();
  const int64_t elements = BoundedElements({plan_.rows, Extent(plan_.k)}, view_.ranges);
  prologue_in_chunk_ =
      form_ == Form::kFew && elements <= (view_.facts.blocks ? kBlockPrologueElements : kPrologueElements);
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

// Blocks of a quantised result, heads of a rotation; on CPUs a tile's rows, on blocks of threads the pairs of a
// rotation.
int64_t MatmulKernels::Unit() const {
  int64_t unit = view_.facts.blocks ? 8 : 32;
  for (const MatmulSegment& segment : plan_.segments) {
    for (const MatmulResult& result : segment.results) {
      if (result.kind == MatmulResult::Kind::kQuantize)
        unit = std::max<int64_t>(unit, Row(result.format).block_elements);
    }
  }
  for (const ir::Node& node : view_.body.nodes()) {
    if (IsNeoxRope(node)) unit = std::max(unit, (node.attributes.Int("head_dim") + 31) / 32 * 32);
  }
  return unit;
}

int64_t MatmulKernels::Chunk() const {
  switch (form_) {
    case Form::kFew: return FewChunk();
    case Form::kMany: return ManyChunk();
    case Form::kSquares: return SquareChunk();
  }
}

Status MatmulKernels::EmitKernel(const std::vector<const MatmulSegment*>& segments, int64_t chunk) {
  KernelWriter writer(view_, "matmul");
  FusedExpr expr(view_.body);
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
  if (single)
    writer.kernel.grid.push_back({"n0", kb::Int(0), kb::Int(total), chunk});
  else
    writer.kernel.grid.push_back({"g", kb::Int(0), kb::Int(total / chunk), 1});

  // Several segments: g counts chunks, and the first chunk of each is where the one before it ends.
  std::optional<SquareProduct> square;
  kir::Block staging;
  if (form_ == Form::kSquares) {
    staging = Staging(segments, chunk);
    BlockFacts facts = *view_.facts.blocks;
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
      case Form::kSquares: EmitSquares(writer, expr, *segments[s], *square, n0, chunk, body); break;
    }
    block = s + 1 == segments.size()
                ? std::move(body)
                : kir::Block{kb::If(kb::Call(Op::kLt, {g, kb::Int(end / chunk)}), std::move(body), std::move(block))};
    end = start;
  }
  if (prologue_in_chunk_) {
    kir::Block all;
    EmitScratchPrologue(expr, all);
    all.insert(all.end(), block.begin(), block.end());
    block = std::move(all);
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
                      columns = k == nullptr ? kb::All() : kb::Range(k, kb::Int(depth));
  if (scratch) return kb::SliceOf("px", {rows, columns});
  std::vector<kir::SliceDim> dims;
  for (size_t d = 0; d < plan_.dims.size(); ++d)
    dims.push_back(static_cast<int>(d) == plan_.row_axis ? rows : kb::Point(kb::Int(0)));
  dims.push_back(columns);
  const std::string name =
      lhs_input_ >= 0 ? writer.Input(lhs_input_) : writer.Temporary(0, lowered_.temporaries[0], false);
  return kb::SliceOf(name, std::move(dims));
}

kir::Slice MatmulKernels::Weights(KernelWriter& writer, int root, const kir::ExprRef& n, int64_t count,
                                  const kir::ExprRef& k, int64_t depth) {
  const std::string w = writer.Input(view_.InputIndex(view_.body.node(root).inputs[1]));
  return kb::SliceOf(w, {kb::Range(n, kb::Int(count)), k == nullptr ? kb::All() : kb::Range(k, kb::Int(depth))});
}

const MatmulRow& MatmulKernels::RowOf(int root) const {
  const ir::Node& node = view_.body.node(root);
  return *FindMatmulRow(view_.body.type(node.inputs[1]).dtype, view_.body.type(plan_.lhs).dtype);
}

std::string MatmulKernels::TileName(int root) { return absl::StrCat("t", root, "x"); }

kir::ExprRef MatmulKernels::LiveColumns(const MatmulSegment& segment, const kir::ExprRef& n, int64_t count) const {
  if (segment.columns % count == 0) return kb::Int(count);
  return kb::Min(kb::Int(segment.columns) - n, kb::Int(count));
}

std::string MatmulKernels::HiddenName(const MatmulResult& result) { return absl::StrCat("hid", result.output); }

void MatmulKernels::EmitHidden(const MatmulSegment& segment, int64_t chunk, kir::Block& block) const {
  for (const MatmulResult& result : segment.results) {
    if (result.kind != MatmulResult::Kind::kQuantize) continue;
    block.push_back(kb::Alloc(HiddenName(result), {DType::kF32, {plan_.rows, Extent(chunk)}, kir::Layout::kRow}));
  }
}

kir::Block MatmulKernels::Results(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                                  const kir::ExprRef& row, const kir::ExprRef& column, const kir::ExprRef& hidden,
                                  const Sum& sum) {
  for (const int root : segment.roots) {
    expr.Provide({root, 0}, [root, sum](const kir::Index& at, const kir::ExprRef&) { return sum(root, at.back()); });
  }
  kir::Block body;
  expr.ShareIn(&body);
  for (const MatmulResult& result : segment.results) {
    const kir::ExprRef value = expr.Element(result.value, plan_.At(row, column));
    kir::StmtRef store;
    switch (result.kind) {
      case MatmulResult::Kind::kStore:
        store = kb::Store(StoreName(writer, result), plan_.At(row, column), value);
        break;
      case MatmulResult::Kind::kUpdate:
        store = kb::Store(UpdateName(writer, result), {kb::FromExtent(result.start) + row, column}, value);
        break;
      case MatmulResult::Kind::kQuantize: store = kb::Store(HiddenName(result), {row, hidden}, value); break;
    }
    body.push_back(kb::WithOrigin(store, writer.Origin(result.value.node)));
  }
  expr.ShareIn(nullptr);
  return body;
}

kir::StmtRef MatmulKernels::Epilogue(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                                     const kir::ExprRef& m, const kir::ExprRef& rows, const kir::ExprRef& n,
                                     const kir::ExprRef& columns, int64_t width, const kir::ExprRef& hidden) {
  const kir::ExprRef i = kb::Ref("i"), j = kb::Ref("j"), column = n + j;
  std::vector<std::string> tiles;
  for (const int root : segment.roots) tiles.push_back(TileName(root));
  kir::Block body = Results(writer, expr, segment, m + i, column, hidden, [&](int root, const kir::ExprRef& at) {
    if (at == column) return kb::Ref(TileName(root), DType::kF32);
    // Another column of the same row: the partner of a rotation, which lies in the same chunk. The clamp states so.
    return kb::At(TileName(root), DType::kF32, {i, kb::Max(kb::Int(0), kb::Min(at - n, kb::Int(width - 1)))});
  });
  return kb::Map({"i", "j"}, tiles, {rows, columns}, std::move(body));
}

// The result's buffer, declared with the extents before any Reshape of it.
std::string MatmulKernels::StoreName(KernelWriter& writer, const MatmulResult& result) {
  const std::string name = writer.Result(result.output);
  for (kir::Param& param : writer.kernel.params) {
    if (param.name == name) param.type.dims = view_.body.type(result.value).dims;
  }
  return name;
}

// A carried tensor, declared as rows of the root.
std::string MatmulKernels::UpdateName(KernelWriter& writer, const MatmulResult& result) {
  const std::string name = writer.UpdatedInput(result.updated_input);
  for (kir::Param& param : writer.kernel.params) {
    if (param.name == name) param.type.dims = {param.type.dims[0], view_.body.type(result.value).dims.back()};
  }
  return name;
}

void MatmulKernels::EmitPacks(KernelWriter& writer, const MatmulSegment& segment, const kir::ExprRef& n0, int64_t chunk,
                              kir::Block& block) {
  for (const MatmulResult& result : segment.results) {
    if (result.kind != MatmulResult::Kind::kQuantize) continue;
    const kir::ExprRef m = kb::Ref("mq");
    std::vector<kir::SliceDim> place;
    for (size_t d = 0; d < plan_.dims.size(); ++d) {
      place.push_back(static_cast<int>(d) == plan_.row_axis ? kb::Range(m, kb::Int(1)) : kb::Point(kb::Int(0)));
    }
    place.push_back(kb::Range(n0, kb::Int(chunk)));
    block.push_back(
        kb::For("mq", kb::Int(0), kb::FromExtent(plan_.rows),
                {kb::WithOrigin(kb::Pack(kb::SliceOf(writer.Result(result.output), std::move(place)),
                                         kb::SliceOf(HiddenName(result), {kb::Range(m, kb::Int(1)), kb::All()})),
                                writer.Origin(result.value.node))}));
  }
}

StatusOr<LoweredRegion> LowerMatmul(const RegionView& view) {
  if (const std::optional<MatmulPlan> plan = PlanMatmul(view)) return MatmulKernels(view, *plan).Lower();
  return LowerPlainMatmul(view);
}

}  // namespace quern::codegen
