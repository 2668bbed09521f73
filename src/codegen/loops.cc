#include "codegen/loops.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

}  // namespace

int64_t BoundedElements(const std::vector<Extent>& dims, const SymbolRanges& ranges) {
  int64_t product = 1;
  for (const Extent& dim : dims) {
    if (__builtin_mul_overflow(product, UpperBound(dim, ranges), &product)) return INT64_MAX;
  }
  return product;
}

void EmitGrid(const RegionView& view, kir::Kernel& kernel, const std::vector<Extent>& dims, int64_t elements_per_step,
              const std::function<void(const kir::Index&, kir::Block&)>& body) {
  const size_t rank = dims.size(), in_grid = std::min<size_t>(rank, 2);
  kir::Index index;
  for (size_t d = 0; d < rank; ++d) index.push_back(kb::Ref(absl::StrCat("i", d)));

  // The innermost loops first: what does not fit the grid, then the steps of a chunk.
  kir::Block block;
  body(index, block);
  for (size_t d = rank; d-- > in_grid;) {
    block = {kb::For(absl::StrCat("i", d), kb::Int(0), kb::FromExtent(dims[d]), std::move(block))};
  }
  if (rank == 0) {
    kernel.grid = {{"one", kb::Int(0), kb::Int(1), 1}};
  } else {
    int64_t per_step = elements_per_step;
    for (size_t d = in_grid; d < rank; ++d)
      per_step *= std::min<int64_t>(UpperBound(dims[d], view.ranges), kChunkElements);
    const int64_t step = std::max<int64_t>(1, kChunkElements / std::max<int64_t>(1, per_step));
    for (size_t d = 0; d < in_grid; ++d) {
      const bool last = d + 1 == in_grid;
      const kir::ExprRef end = kb::FromExtent(dims[d]);
      if (last && step > 1) {
        kernel.grid.push_back({absl::StrCat("b", d), kb::Int(0), end, step});
        const kir::ExprRef start = kb::Ref(absl::StrCat("b", d));
        block = {
            kb::For(absl::StrCat("i", d), start, kb::Min(start + static_cast<double>(step), end), std::move(block))};
      } else {
        kernel.grid.push_back({absl::StrCat("i", d), kb::Int(0), end, 1});
      }
    }
  }
  kernel.body = std::move(block);
  const int64_t rows = BoundedElements(dims, view.ranges);
  int64_t total = 0;
  kernel.sequential = !__builtin_mul_overflow(rows, elements_per_step, &total) && total <= kSequentialElements;
}

StatusOr<std::vector<Extent>> SharedExtents(const RegionView& view, const char* what) {
  const std::vector<Extent>& dims = view.body.type(view.body.outputs[0]).dims;
  for (const ir::Value& output : view.body.outputs) {
    if (view.body.type(output).dims != dims)
      return absl::UnimplementedError(absl::StrCat("results of a ", what, " differ in extents"));
  }
  return dims;
}

void StoreResults(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const kir::Index& at,
                  kir::Block& block) {
  expr.ShareIn(&block);
  for (size_t o = 0; o < view.body.outputs.size(); ++o) {
    const ir::Value output = view.body.outputs[o];
    const kir::ExprRef element = expr.Element(output, at);
    block.push_back(
        kb::WithOrigin(kb::Store(writer.Result(static_cast<int>(o)), at, element), writer.Origin(output.node)));
  }
  expr.ShareIn(nullptr);
}

void StoreRows(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const kir::Index& row,
               const Extent& width, kir::Block& block) {
  kir::Index at = row;
  at.push_back(kb::Ref("c"));
  kir::Block body;
  StoreResults(view, writer, expr, at, body);
  block.push_back(kb::Vec("c", kb::Int(0), kb::FromExtent(width), std::move(body)));
}

void EmitReducedResults(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const std::vector<Extent>& dims,
                        bool by_rows) {
  constexpr int64_t kElementsOfPoint = 256, kElementsOfRow = 4096;  // about, and of work rather than of results
  if (!by_rows) {
    EmitGrid(view, writer.kernel, dims, kElementsOfPoint,
             [&](const kir::Index& at, kir::Block& block) { StoreResults(view, writer, expr, at, block); });
    return;
  }
  const std::vector<Extent> outer(dims.begin(), dims.end() - 1);
  EmitGrid(view, writer.kernel, outer, kElementsOfRow,
           [&](const kir::Index& row, kir::Block& block) { StoreRows(view, writer, expr, row, dims.back(), block); });
}

}  // namespace quern::codegen
