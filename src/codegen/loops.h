// Loop nests over the dimensions of a result.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/kernel_writer.h"

namespace quern::codegen {

// Elements a chunk should have at least: about a microsecond of work, so that taking it costs little.
inline constexpr int64_t kChunkElements = 8192;
// At most this many elements are not worth sharing among threads.
inline constexpr int64_t kSequentialElements = 16384;

// The grid, and `for` loops where the grid's three dimensions do not suffice, over `dims`; `body` is called once with
// an index a dimension and the block to fill. Chunks take enough of the innermost grid dimension to hold kChunkElements
// when each of its steps is `elements_per_step` elements.
void EmitGrid(const RegionView& view, kir::Kernel& kernel, const std::vector<Extent>& dims, int64_t elements_per_step,
              const std::function<void(const kir::Index& index, kir::Block& block)>& body);

// Extents that all results of the region share. Unimplemented when they differ; `what` names the region in its text.
StatusOr<std::vector<Extent>> SharedExtents(const RegionView& view, const char* what);
// Stores the element `at` of every result; what several results need is computed once.
void StoreResults(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const kir::Index& at,
                  kir::Block& block);
// The same for whole rows: `row` indexes all dimensions but the last, which becomes a vector loop over `width`.
void StoreRows(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const kir::Index& row,
               const Extent& width, kir::Block& block);
// The kernel's grid and body for results of these extents whose elements each take a reduction. by_rows: the last axis
// is a vector loop around the reductions, which then run one after another; else each element is alone, its reduction a
// vector.
void EmitReducedResults(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const std::vector<Extent>& dims,
                        bool by_rows);

// Product of the upper bounds of `dims`; INT64_MAX when unbounded.
int64_t BoundedElements(const std::vector<Extent>& dims, const SymbolRanges& ranges);

}  // namespace quern::codegen
