// A few rows of activations (a decode step): a chunk is some rows of weights, each dotted with every row of
// activations.
#include <algorithm>

#include "codegen/matmul_kernels.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr int64_t kChunkBytes = 96 << 10;       // of weights in a chunk
constexpr int64_t kLeastChunkBytes = 32 << 10;  // below that starting a chunk shows
constexpr int64_t kLeastElements = 1 << 16;     // nor are more elements needed: few bits take as long as many
constexpr int64_t kFewestChunks = 8;            // of small weights

// Panels fill and prefetch once for each 32 rows of weights, which few rows of activations do not pay for. Floats are
// dotted eight rows at a time: long ones do not stay in the first cache beside weights.
int64_t MatmulKernels::FewRows() const {
  constexpr int64_t kLeastMany = 17, kDepth = 8192;
  if (view_.facts.invariant || view_.facts.blocks || plan_.windows) return kFewRows;
  if (InIntegers()) return view_.facts.few_by_panels ? kMostFewRows : kFewRows;
  if (may_take_parts_ && plan_.row->weight == DType::kBF16) return kFewRows;  // of one part, packed as fast as read
  // Blocks are decoded for each four rows: 16 lanes look up the codes of some, 1.2 to 1.4 times as fast as panels; 8
  // lanes are 0.7 to 1.1 times.
  const DType weight = plan_.row->weight;
  const int lanes = IsBlock(weight) ? 16 : 8;
  const bool dots =
      view_.facts.lanes >= lanes && plan_.k <= kDepth && (!IsBlock(weight) || FormatOf(weight).elements == 32);
  return dots && plan_.rows.LowerBound(view_.ranges).value_or(kLeastMany) < kLeastMany ? kMostFewRows : kFewRows;
}

int64_t MatmulKernels::FewChunk() const {
  const int64_t unit = Unit();
  if (view_.facts.blocks) return unit;  // a row a warp: the more blocks the better
  const MatmulSegment& first = plan_.segments[0];
  const ir::TensorType& w = view_.type(view_.node(first.roots[0]).inputs[1]);
  const int64_t row_bytes = RowBytes(w.dtype, plan_.k) * static_cast<int64_t>(first.roots.size());
  const auto rows_of = [&](int64_t bytes) { return bytes / std::max<int64_t>(1, row_bytes) / unit * unit; };
  const int64_t least_bytes = std::min(kLeastChunkBytes, RowBytes(w.dtype, kLeastElements));
  // Work for as many threads as there may be, where it is worth theirs; prefer a divisor of every segment.
  const auto part = [&](int64_t chunks) { return plan_.Columns() / chunks / unit * unit; };
  const int64_t wanted = std::max(part(kChunksWanted), std::min(part(kFewestChunks), rows_of(least_bytes)));
  const int64_t most = std::max(unit, std::min<int64_t>({rows_of(kChunkBytes), 256, wanted}));
  for (int64_t chunk = most; chunk > unit; chunk -= unit) {
    if (std::all_of(plan_.segments.begin(), plan_.segments.end(),
                    [&](const MatmulSegment& s) { return s.columns % chunk == 0; }))
      return chunk;
  }
  return unit;
}

void MatmulKernels::EmitFew(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0,
                            int64_t chunk, kir::Block& block) {
  // More rows than few, where panels of weights are too long to pack: some at a time.
  const bool one = plan_.picks == Picks::kByRow;
  const int64_t bound = one ? 1 : view_.UpperBound(plan_.rows), most = std::min(bound, FewRows());
  const bool groups = bound > most || plan_.picks == Picks::kByRun;
  const kir::ExprRef m = groups ? kb::Ref("m") : FirstRow(),
                     live = groups ? kb::Min(EndRow() - m, kb::Int(most))
                                   : (one ? kb::Int(1) : kb::FromExtent(plan_.rows));
  kir::Block rows;
  for (const int root : segment.roots) {
    const kir::Slice x =
        groups || one ? Rows(writer, m, live, prologue_in_chunk_) : Rows(writer, nullptr, nullptr, prologue_in_chunk_);
    rows.push_back(kb::Tile(TileName(root), {most, chunk}));
    decltype(kir::TileCall::attributes) attributes = {{"ahead", kb::Int(view_.facts.prefetch_ahead)}};
    if (InIntegers() && view_.facts.invariant) attributes.emplace_back("many", kb::Int(1));
    rows.push_back(kb::WithOrigin(kb::CallTile(RowOf(root).dot, {TileName(root)},
                                               {Weights(writer, root, n0, kb::Int(chunk)), x}, std::move(attributes)),
                                  writer.Origin(root)));
  }
  kir::Block finish = {
      Epilogue(writer, expr, segment, m, live, n0, LiveColumns(segment, n0, chunk), chunk, kb::Ref("j"))};
  if (groups) {
    rows.insert(rows.end(), finish.begin(), finish.end());
    EmitHidden(segment, chunk, block);
    block.push_back(kb::For("m", FirstRow(), EndRow(), std::move(rows), most));
  } else {
    block.insert(block.end(), rows.begin(), rows.end());
    EmitHidden(segment, chunk, block);
    block.insert(block.end(), finish.begin(), finish.end());
  }
  EmitPacks(writer, segment, n0, chunk, block);
}

kir::Block MatmulKernels::ScratchPrologue(FusedExpr& expr) {
  kir::Block block;
  block.push_back(kb::Alloc("px", {DType::kF32, {plan_.rows, Extent(plan_.k)}, kir::Layout::kRow}));
  kir::Block body;
  const kir::ExprRef m = kb::Ref("pm"), c = kb::Ref("pc");
  const kir::ExprRef element = expr.Element(plan_.lhs, plan_.At(m, c));
  body.push_back(kb::Store("px", {m, c}, element));
  block.push_back(kb::For("pm", kb::Int(0), kb::FromExtent(plan_.rows),
                          {kb::Vec("pc", kb::Int(0), kb::Int(plan_.k), std::move(body))}));
  return block;
}

}  // namespace quern::codegen
