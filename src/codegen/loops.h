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

// The grid, and `for` loops where the grid's three dimensions do not suffice, over `dims`; `body` is called once with an
// index a dimension and the block to fill. Chunks take enough of the innermost grid dimension to hold kChunkElements when
// each of its steps is `elements_per_step` elements.
void EmitGrid(const RegionView& view, kir::Kernel& kernel, const std::vector<Extent>& dims, int64_t elements_per_step,
              const std::function<void(const kir::Index& index, kir::Block& block)>& body);

// Product of the upper bounds of `dims`; INT64_MAX when unbounded.
int64_t BoundedElements(const std::vector<Extent>& dims, const SymbolRanges& ranges);

}  // namespace quern::codegen
