// Many rows of activations on blocks of threads: squares of the result. Weights of a block format are decoded, and
// activations rounded to halves where the target multiplies those, on their way into shared memory.
//
// A rotation needs two columns of a row, which may be different threads': its squares go through shared memory.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/matmul_kernels.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

int64_t MatmulKernels::SquareChunk() const { return (std::max<int64_t>(64, Unit()) + 63) / 64 * 64; }

DType MatmulKernels::SquareType() const {
  if (!view_.facts.blocks->half_products) return DType::kF32;
  for (const MatmulSegment& segment : plan_.segments) {
    // Of one column warps that share rows would write the same elements, for all that the verifier knows.
    if (segment.columns == 1) return DType::kF32;
    for (const int root : segment.roots) {
      if (view_.type(view_.node(root).inputs[1]).dtype == DType::kF32) return DType::kF32;
    }
  }
  return DType::kF16;
}

bool MatmulKernels::Rotates(const MatmulSegment& segment) const {
  const auto rotates = [&](ir::Value value, const auto& self) -> bool {
    const ir::Node& node = view_.node(value.node);
    if (ir::IsRoot(node, "matmul") || node.op->kind == ir::OpKind::kLeaf) return false;
    if (node.op->row_span != nullptr) return true;  // it reads other elements of the row
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::Value input) { return self(input, self); });
  };
  return std::any_of(segment.results.begin(), segment.results.end(),
                     [&](const MatmulResult& result) { return rotates(result.value, rotates); });
}

namespace {
std::string StagingName(size_t number) { return absl::StrCat("sq", number); }
}  // namespace

kir::Block MatmulKernels::Staging(const std::vector<const MatmulSegment*>& segments, int64_t chunk) const {
  size_t count = 0;
  for (const MatmulSegment* segment : segments) count = std::max(count, Rotates(*segment) ? segment->roots.size() : 0);
  kir::Block allocs;
  for (size_t s = 0; s < count; ++s) {
    allocs.push_back(kb::Alloc(StagingName(s),
                               {DType::kF32, {Extent(SquareProduct::kRows), Extent(chunk)}, kir::Layout::kRow},
                               kir::Space::kShared));
  }
  return allocs;
}

void MatmulKernels::EmitSquares(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment,
                                const SquareProduct& square, const kir::ExprRef& n0, int64_t chunk, kir::Block& block) {
  const kir::ExprRef m = kb::Ref("m"), i = kb::Ref("i"), j = kb::Ref("j");
  std::vector<std::string> tiles;
  for (const int root : segment.roots) tiles.push_back(TileName(root));
  auto number = [&](int root) {
    return static_cast<size_t>(std::find(segment.roots.begin(), segment.roots.end(), root) - segment.roots.begin());
  };
  std::vector<SquareProduct::Part> weights;
  for (const int root : segment.roots) {
    weights.push_back([&, root](int64_t rows, const kir::ExprRef& k, int64_t depth) {
      return Weights(writer, root, n0, kb::Int(rows), k, kb::Int(depth));
    });
  }
  auto rows = [&](int64_t count, const kir::ExprRef& k, int64_t depth) {
    return Rows(writer, m, kb::Int(count), false, k, depth);
  };
  // What there is of `count` rows or columns from `first`, a place in the square.
  auto live = [](int64_t count, const kir::ExprRef& end, const kir::ExprRef& first) {
    return kb::Min(kb::Int(count), end - first);
  };
  const kir::ExprRef all_rows = kb::FromExtent(plan_.rows), all_columns = kb::Int(segment.columns);
  const bool staged = Rotates(segment);
  auto staging = [&](int root) { return StagingName(number(root)); };
  auto finish = [&](const kir::ExprRef& row, const kir::ExprRef& column, int64_t high, int64_t wide) -> kir::Block {
    kir::Block body;
    if (staged) {
      for (const int root : segment.roots) {
        body.push_back(kb::Store(staging(root), {row + i, column + j}, kb::Ref(TileName(root), DType::kF32)));
      }
      return {kb::Map({"i", "j"}, tiles, {kb::Int(high), kb::Int(wide)}, std::move(body))};
    }
    body = Results(writer, expr, segment, m + row + i, n0 + column + j, nullptr,
                   [&](int root, const kir::ExprRef&) { return kb::Ref(TileName(root), DType::kF32); });
    return {kb::Map({"i", "j"}, tiles, {live(high, all_rows, m + row), live(wide, all_columns, n0 + column)},
                    std::move(body))};
  };
  block.push_back(square.Threads(tiles, rows, weights, kb::Int(plan_.k), writer.Origin(segment.roots[0]), finish));
  if (!staged) return;
  const kir::ExprRef column = n0 + j;
  kir::Block body = Results(writer, expr, segment, m + i, column, nullptr, [&](int root, const kir::ExprRef& at) {
    const kir::ExprRef place = at == column ? j : InChunk(at, column, j, chunk);
    return kb::At(staging(root), DType::kF32, {i, place});
  });
  const kir::ExprRef t = kb::Ref("t");
  const int64_t across = 64;
  block.push_back(kb::Barrier());
  block.push_back(kb::Thread(
      kir::ThreadLevel::kBlock, "t", square.threads(),
      {kb::For("i", t / static_cast<double>(across), live(SquareProduct::kRows, all_rows, m),
               {kb::For("j", t % static_cast<double>(across), live(chunk, all_columns, n0), std::move(body), across)},
               square.threads() / across)}));
  // Nothing follows, but other branches of the kernel end without a barrier, and the verifier takes the ends of
  // branches as one.
  block.push_back(kb::Barrier());
}

}  // namespace quern::codegen
