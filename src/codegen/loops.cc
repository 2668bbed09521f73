#include "codegen/loops.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/divide.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

// Steps of a grid dimension that one chunk takes, when each is `elements` elements.
int64_t StepsOfChunk(int64_t elements) { return std::max<int64_t>(1, kChunkElements / std::max<int64_t>(1, elements)); }

// Too little work, for all values of the symbols, to share out.
bool IsShort(const std::vector<Extent>& dims, int64_t elements_per_step, const SymbolRanges& ranges) {
  int64_t total = 0;
  return !__builtin_mul_overflow(BoundedElements(dims, ranges), elements_per_step, &total) &&
         total <= kSequentialElements;
}

}  // namespace

Extent PartsOf(const RegionView& view, kir::Kernel& kernel, const Extent& extent, int64_t step) {
  if (extent.is_constant()) return Extent(CeilDiv(extent.constant(), step));
  std::vector<kir::SymbolDecl> free;
  for (const auto& [name, range] : view.ranges) free.push_back({name, range, std::nullopt});
  kernel.symbols.push_back(kir::DerivedSymbol("PARTS", extent, step, free));
  return Extent::Symbol("PARTS");
}

int64_t BoundedElements(const std::vector<Extent>& dims, const SymbolRanges& ranges) {
  int64_t product = 1;
  for (const Extent& dim : dims) {
    if (__builtin_mul_overflow(product, dim.UpperBound(ranges).value_or(INT64_MAX), &product)) return INT64_MAX;
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
    for (size_t d = in_grid; d < rank; ++d) per_step *= std::min<int64_t>(view.UpperBound(dims[d]), kChunkElements);
    const int64_t step = StepsOfChunk(per_step);
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
  kernel.sequential = IsShort(dims, elements_per_step, view.ranges);
}

bool IsMultiple(const Extent& extent, int64_t of) { return extent.is_constant() && extent.constant() % of == 0; }

kir::ExprRef Live(const Extent& extent, const kir::ExprRef& start, int64_t count) {
  if (IsMultiple(extent, count)) return kb::Int(count);
  return kb::Min(kb::FromExtent(extent) - start, kb::Int(count));
}

kir::Index NestIndex(size_t rank) {
  kir::Index index;
  for (size_t d = 0; d < rank; ++d) index.push_back(kb::Ref(d + 1 == rank ? "c" : absl::StrCat("i", d)));
  return index;
}

void EmitElements(const RegionView& view, kir::Kernel& kernel, const std::vector<Extent>& dims,
                  const std::vector<Ranges>& boxes,
                  const std::function<void(size_t, const kir::Index&, kir::Block&)>& body,
                  const std::function<void(const kir::Index&, kir::Block&)>& before) {
  const int rank = static_cast<int>(dims.size()), last = rank - 1;
  if (rank == 0) {
    EmitGrid(view, kernel, dims, 1, [&](const kir::Index& index, kir::Block& block) { body(0, index, block); });
    return;
  }
  // The vector loop is cut into chunks where there is no other, else the last of at most two loops around it.
  const int in_grid = std::max(1, std::min(last, 2)), cut = in_grid - 1;
  int64_t per_step = 1;
  for (int d = in_grid; d < rank; ++d) per_step *= std::min<int64_t>(view.UpperBound(dims[d]), kChunkElements);
  const int64_t step = StepsOfChunk(per_step);
  const kir::Index index = NestIndex(rank);
  auto name = [&](int d) { return std::get<kir::NameRef>(index[d]->node).name; };
  // A dimension of which every chunk has one element and every box all needs no loop.
  auto looped = [&](int d) {
    const bool chunked = (d == cut && step > 1) || d == last || d >= in_grid;
    return chunked || std::any_of(boxes.begin(), boxes.end(), [&](const Ranges& box) { return box.contains(d); });
  };
  for (int d = 0; d < in_grid; ++d) {
    kernel.grid.push_back(
        {looped(d) ? absl::StrCat("b", d) : name(d), kb::Int(0), kb::FromExtent(dims[d]), d == cut ? step : 1});
  }
  kernel.body.clear();
  for (size_t b = 0; b < boxes.size(); ++b) {
    kir::Block block;
    body(b, index, block);
    for (int d = rank; d-- > 0;) {
      if (!looped(d)) continue;
      const auto box = boxes[b].find(d);
      const bool part = box != boxes[b].end();
      kir::ExprRef low = kb::FromExtent(part ? box->second.first : Extent(0));
      kir::ExprRef high = kb::FromExtent(part ? box->second.second : dims[d]);
      if (d < in_grid) {
        const kir::ExprRef start = kb::Ref(absl::StrCat("b", d));
        low = part && box->second.first != Extent(0) ? kb::Max(start, low) : start;
        high = kb::Min(start + static_cast<double>(kernel.grid[d].step), high);
      }
      const kir::StmtRef loop =
          d == last ? kb::Vec(name(d), low, high, std::move(block)) : kb::For(name(d), low, high, std::move(block));
      block.clear();
      if (d == last && before) before(index, block);
      block.push_back(loop);
    }
    kernel.body.insert(kernel.body.end(), block.begin(), block.end());
  }
  kernel.sequential = IsShort(dims, 1, view.ranges);
}

}  // namespace quern::codegen
