// Loop nests over the axes of a result.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
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

// Parts of some dimensions, by dimension: from, to.
using Ranges = std::map<int, std::pair<Extent, Extent>>;
// The same over elements, in chunks of about kChunkElements, with the last dimension as a vector loop: a nest for each
// of `boxes`, which have all of a dimension that they do not name. `before` may add statements in front of the vector
// loop.
//   grid b0 in 0..11 by 5 {
//     for i0 in b0..min(b0 + 5, 4) { vec c in 0..300 { ... } }
//     for i0 in max(b0, 4)..min(b0 + 5, 11) { vec c in 0..300 { ... } }
//   }
void EmitElements(const RegionView& view, kir::Kernel& kernel, const std::vector<Extent>& dims,
                  const std::vector<Ranges>& boxes,
                  const std::function<void(size_t box, const kir::Index& index, kir::Block& block)>& body,
                  const std::function<void(const kir::Index& index, kir::Block& block)>& before = {});

inline void Append(kir::Block& block, const kir::Block& more) { block.insert(block.end(), more.begin(), more.end()); }

bool IsMultiple(const Extent& extent, int64_t of);
// Of `count` elements from `start` of a dimension those that exist: all, where the dimension is a multiple of `count`
// and `start` is.
kir::ExprRef Live(const Extent& extent, const kir::ExprRef& start, int64_t count);

// The index of an element in such a nest: i0, i1, .., c.
kir::Index NestIndex(size_t rank);

// The number of parts of `step` elements that `extent` is cut into, the last of them perhaps shorter: PARTS, which the
// kernel declares, unless it is known.
Extent PartsOf(const RegionView& view, kir::Kernel& kernel, const Extent& extent, int64_t step);

// Product of the upper bounds of `dims`; INT64_MAX when unbounded.
int64_t BoundedElements(const std::vector<Extent>& dims, const SymbolRanges& ranges);

}  // namespace quern::codegen
