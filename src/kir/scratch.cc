#include "kir/scratch.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "kir/symbols.h"
#include "kir/tile_op.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

// Bytes that no scratch has; small enough to add to.
constexpr int64_t kUnbounded = int64_t{1} << 56;

int64_t RoundUp64(int64_t value) { return value > INT64_MAX - 63 ? INT64_MAX : (value + 63) / 64 * 64; }

// A multiple of 64 that is at least `bytes` for all values of the symbols.
Extent Aligned(const Extent& bytes, const SymbolRanges& ranges) {
  if (bytes.is_constant()) return RoundUp64(bytes.constant());
  bool exact = true;
  for (const Extent::Term& term : bytes.terms()) exact = exact && term.coefficient % 64 == 0;
  if (exact) return bytes;
  if (const std::optional<int64_t> bound = bytes.UpperBound(ranges)) return RoundUp64(*bound);
  Extent rounded;
  for (const Extent::Term& term : bytes.terms()) {
    if (term.coefficient < 0) continue;
    rounded = rounded + Extent({term.symbols, RoundUp64(term.coefficient)});
  }
  return rounded;
}

using Types = std::map<std::string, BufferType, std::less<>>;

Types TypesOf(const Kernel& kernel) {
  Types types;
  for (const Param& param : kernel.params) types.emplace(param.name, param.type);
  ForEach(kernel.body, [&](const Stmt& stmt) {
    if (const auto* alloc = std::get_if<Alloc>(&stmt.node)) types.emplace(alloc->name, alloc->type);
    if (const auto* tile = std::get_if<Tile>(&stmt.node)) types.emplace(tile->name, tile->type);
  });
  return types;
}

int64_t Bound(const Extent& extent, const SymbolRanges& ranges) {
  return extent.UpperBound(ranges).value_or(INT64_MAX);
}

// Bounds of the ranged dimensions of a slice, outermost first.
std::vector<int64_t> SliceBounds(const Slice& slice, const Types& types, const SymbolRanges& ranges) {
  std::vector<int64_t> bounds;
  auto type = types.find(slice.buffer);
  for (size_t i = 0; i < slice.dims.size(); ++i) {
    const SliceDim& dim = slice.dims[i];
    if (dim.start != nullptr && dim.extent == nullptr) continue;
    int64_t bound = INT64_MAX;
    if (type != types.end() && i < type->second.dims.size()) bound = Bound(type->second.dims[i], ranges);
    if (dim.extent != nullptr) {
      const auto* constant = std::get_if<Const>(&dim.extent->node);
      if (constant != nullptr) bound = std::min(bound, constant->integer);
    }
    bounds.push_back(bound);
  }
  return bounds;
}

std::vector<int64_t> SizeBounds(const TileCall& call, const TileOp& op, const Types& types,
                                const SymbolRanges& ranges) {
  std::vector<int64_t> sizes(op.sizes.size(), INT64_MAX);
  auto lower = [&](std::string_view name, int64_t bound) {
    for (size_t i = 0; i < op.sizes.size(); ++i) {
      if (name == op.sizes[i]) sizes[i] = std::min(sizes[i], bound);
    }
  };
  for (size_t t = 0; t < op.tiles.size() && t < call.tiles.size(); ++t) {
    auto type = types.find(call.tiles[t]);
    if (type == types.end()) continue;
    for (size_t d = 0; d < op.tiles[t].dims.size() && d < type->second.dims.size(); ++d) {
      lower(op.tiles[t].dims[d], Bound(type->second.dims[d], ranges));
    }
  }
  for (size_t o = 0; o < op.operands.size() && o < call.operands.size(); ++o) {
    const std::vector<int64_t> bounds = SliceBounds(call.operands[o], types, ranges);
    size_t ranged = 0;
    for (const char* name : op.operands[o].dims) {
      if (*name == '\0') continue;  // taken by a point
      if (ranged < bounds.size()) lower(name, bounds[ranged]);
      ++ranged;
    }
  }
  return sizes;
}

struct Builder {
  const SymbolRanges ranges;
  const Types types;
  ScratchLayout layout;

  // Lays out `block` from `at` on.
  void Place(const Block& block, Extent at) {
    for (const StmtRef& stmt : block) {
      const BufferType* type = nullptr;
      const std::string* name = nullptr;
      const auto* alloc = std::get_if<Alloc>(&stmt->node);
      if (alloc != nullptr && alloc->space == Space::kScratch) type = &alloc->type, name = &alloc->name;
      if (const auto* tile = std::get_if<Tile>(&stmt->node)) type = &tile->type, name = &tile->name;
      if (type != nullptr) {
        layout.offset[*name] = at;
        at = at + Aligned(LayoutBytes(type->layout, type->dtype, type->dims), ranges);
      }
      for (const Block* body : Bodies(*stmt)) Place(*body, at);
    }
    if (std::find(layout.ends.begin(), layout.ends.end(), at) == layout.ends.end()) layout.ends.push_back(at);
  }

  void FindWorkspace(const Block& block) {
    ForEach(block, [this](const Stmt& stmt) {
      const auto* call = std::get_if<TileCall>(&stmt.node);
      const TileOp* op = call == nullptr ? nullptr : FindTileOp(call->op);
      if (op == nullptr || op->workspace_bytes == nullptr) return;
      const std::vector<int64_t> sizes = SizeBounds(*call, *op, types, ranges);
      const bool bounded = std::find(sizes.begin(), sizes.end(), INT64_MAX) == sizes.end();
      layout.workspace = std::max(layout.workspace, bounded ? RoundUp64(op->workspace_bytes(sizes)) : kUnbounded);
    });
  }
};

}  // namespace

ScratchLayout LayoutScratch(const Kernel& kernel) {
  Builder builder{RangesOf(kernel), TypesOf(kernel), {}};
  builder.FindWorkspace(kernel.body);
  builder.Place(kernel.body, builder.layout.workspace);
  return std::move(builder.layout);
}

std::vector<int64_t> TileCallSizeBounds(const Kernel& kernel, const TileCall& call, const TileOp& op) {
  return SizeBounds(call, op, TypesOf(kernel), RangesOf(kernel));
}

StatusOr<int64_t> ScratchBytes(const Kernel& kernel, const Binding& binding) {
  // Symbols that are bound shrink to a point; derived ones follow from them.
  Kernel narrowed;
  narrowed.symbols = kernel.symbols;
  for (SymbolDecl& symbol : narrowed.symbols) {
    auto it = binding.find(symbol.name);
    if (it != binding.end() && !symbol.derived) symbol.range = {it->second, it->second};
  }
  const SymbolRanges ranges = RangesOf(narrowed);
  int64_t bytes = 0;
  for (const Extent& end : LayoutScratch(kernel).ends) {
    const std::optional<int64_t> bound = end.UpperBound(ranges);
    if (!bound || *bound >= kUnbounded) {
      return absl::OutOfRangeError(
          absl::StrFormat("kernel %s: scratch of %s bytes has no upper bound", kernel.name, end.ToString()));
    }
    bytes = std::max(bytes, *bound);
  }
  return bytes;
}

}  // namespace quern::kir
