// Slices, and what takes them: tile calls, packs, prefetches.
#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kir/describe.h"
#include "kir/tile_op.h"
#include "kir/verify_state.h"

namespace quern::kir {
namespace {

std::string Named(DType dtype) { return std::string(Name(dtype)); }
std::string TypeText(DType dtype, Layout layout) {
  return layout == Layout::kRow ? Named(dtype) : absl::StrCat(Named(dtype), " @", Row(layout).name);
}
std::string TypeText(const BufferType& type) { return TypeText(type.dtype, type.layout); }

// Which dimensions of the buffer behind an operand are dimensions of the op's tiles too. `names`: of the ranged ones.
std::vector<bool> OwnLanes(const TileOp& op, const Slice& slice, const std::vector<std::string_view>& names) {
  const auto in_tile = [&](std::string_view name) {
    return std::any_of(op.tiles.begin(), op.tiles.end(), [&](const TileOperand& tile) {
      return std::any_of(tile.dims.begin(), tile.dims.end(), [&](std::string_view dim) { return dim == name; });
    });
  };
  std::vector<bool> own;
  auto name = names.begin();
  for (size_t d = 0; name != names.end(); ++d) {
    const bool point = !slice.dims.empty() && slice.dims[d].start != nullptr && slice.dims[d].extent == nullptr;
    own.push_back(!point && in_tile(*name++));
  }
  return own;
}

}  // namespace

// A hint may lie outside the buffer, everything else starts inside; a range is clipped at the end of its dimension.
StatusOr<Verifier::Rectangle> Verifier::CheckSlice(const Slice& slice, bool hint) {
  QUERN_ASSIGN(const Entity* entity, FindBuffer(slice.buffer));
  const std::vector<Extent>& dims = entity->type.dims;
  if (!slice.dims.empty() && slice.dims.size() != dims.size()) {
    return Fail(absl::StrFormat("%s has %d dimensions, indexed by %d", slice.buffer, dims.size(), slice.dims.size()));
  }
  Rectangle rectangle;
  rectangle.entity = entity;
  rectangle.whole = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    const SliceDim dim = slice.dims.empty() ? SliceDim{} : slice.dims[d];
    const bool last = d + 1 == dims.size();
    Extent start, size = dims[d];
    std::string text = dims[d].ToString();
    if (dim.start != nullptr) {
      rectangle.whole = false;
      QUERN_RETURN_IF_ERROR(CheckExprOf(dim.start, DType::kI64, "start"));
      QUERN_RETURN_IF_ERROR(CheckUniform(dim.start, "the start of a slice"));
      start = ValueOf(dim.start);
      if (!hint) {
        QUERN_RETURN_IF_ERROR(CheckInside(dim.start, start, dims[d], slice.buffer));
      }
      if (dim.extent == nullptr) {
        if (last && entity->type.layout != Layout::kRow) {
          return Fail(absl::StrFormat("%s takes one element of a block", Describe(slice)));
        }
        rectangle.position.push_back(start);
        rectangle.first.push_back(start);
        rectangle.last.push_back(start);
        continue;
      }
      QUERN_RETURN_IF_ERROR(CheckExprOf(dim.extent, DType::kI64, "extent"));
      QUERN_RETURN_IF_ERROR(CheckUniform(dim.extent, "the extent of a slice"));
      text = Print(dim.extent);
      const Extent extent = ValueOf(dim.extent);
      if (!prover_.AtMost(1, extent)) return Fail(absl::StrFormat("extent %s is not proved to be at least 1", text));
      const Extent rest = dims[d] - start;
      const bool inside = hint || prover_.AtMost(extent, rest);
      size = inside ? extent : Smaller(extent, rest);
      if (!inside) text = absl::StrCat("at most ", text);
    } else if (dim.extent != nullptr) {
      return Fail(absl::StrFormat("%s has an extent without a start", slice.buffer));
    }
    const Extent offset = NewIndex(slice.buffer, 0, size, 1).first;
    rectangle.position.push_back(start + offset);
    rectangle.first.push_back(start);
    rectangle.last.push_back(start + size - 1);
    rectangle.sizes.push_back(size);
    rectangle.texts.push_back(text);
    if (last) {
      rectangle.column = start;
      rectangle.whole_last = dim.start == nullptr || (start == Extent(0) && size == dims[d]);
    }
  }
  return rectangle;
}

// What a binding can address: whole blocks, whole panels, and dense elements in the last dimension. `columns`: a part
// of a planar row is allowed.
Status Verifier::CheckOperand(const Slice& slice, const Rectangle& rectangle, bool columns) {
  const BufferType& type = rectangle.entity->type;
  if (!slice.dims.empty() && slice.dims.back().start != nullptr && slice.dims.back().extent == nullptr) {
    return Fail(absl::StrFormat("the last dimension of %s is not a range", Describe(slice)));
  }
  if (type.layout == Layout::kRow) return absl::OkStatus();
  // The first rows of [K][32] lie where those of a panel would, from any column on. Packs, which make columns that are
  // not given zero, begin with the first.
  const bool first = type.layout == Layout::kKn32 && rectangle.first.front() == Extent(0) &&
                     (!columns || rectangle.first.back() == Extent(0));
  if (IsPanel(type.layout) && !rectangle.whole && !first)
    return Fail(absl::StrFormat("%s cuts a panel", Describe(slice)));
  if (type.layout == Layout::kPlanar && !columns && !rectangle.whole_last) {
    return Fail(absl::StrFormat("%s cuts a planar row", Describe(slice)));
  }
  const int64_t block = Row(type.dtype).block_elements;
  if (!IndexProver::MultipleOf(rectangle.column, block) || !IndexProver::MultipleOf(rectangle.sizes.back(), block)) {
    return Fail(
        absl::StrFormat("%s is not proved to cut %s between blocks of %d", Describe(slice), slice.buffer, block));
  }
  return absl::OkStatus();
}

Status Verifier::CheckNode(const TileCall& call) {
  QUERN_RETURN_IF_ERROR(NotInside("a tile call"));
  QUERN_RETURN_IF_ERROR(OnlyInsideThreads("a tile call"));
  const TileOp* op = FindTileOp(call.op);
  if (op == nullptr) return Fail(absl::StrFormat("no tile op is named %s", call.op));
  if (call.tiles.size() != op->tiles.size()) {
    return Fail(absl::StrFormat("%s takes %d tiles, not %d", call.op, op->tiles.size(), call.tiles.size()));
  }
  size_t required = op->operands.size();
  while (required > 0 && op->operands[required - 1].optional) --required;
  if (call.operands.size() < required || call.operands.size() > op->operands.size()) {
    return Fail(absl::StrFormat("%s takes %d operands, not %d", call.op, required, call.operands.size()));
  }

  struct Size {
    Extent value;
    std::string text, from;
  };
  std::map<std::string_view, Size> sizes;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    const Slice& slice = call.operands[o];
    const TileOperand& operand = op->operands[o];
    QUERN_ASSIGN(const Rectangle rectangle, CheckSlice(slice, /*hint=*/false));
    const BufferType& type = rectangle.entity->type;
    if (type.dtype != operand.dtype || type.layout != operand.layout) {
      return Fail(absl::StrFormat("operand %s of %s is %s, not %s", operand.name, call.op,
                                  TypeText(operand.dtype, operand.layout), TypeText(type)));
    }
    std::vector<std::string_view> names;
    for (const char* dim : operand.dims) {
      if (*dim != '\0') names.push_back(dim);
    }
    if (rectangle.sizes.size() != names.size()) {
      return Fail(absl::StrFormat("operand %s of %s has %d ranged dimensions, not %d", operand.name, call.op,
                                  names.size(), rectangle.sizes.size()));
    }
    QUERN_RETURN_IF_ERROR(CheckOperand(slice, rectangle, /*columns=*/false));
    QUERN_RETURN_IF_ERROR(CheckReadable(slice.buffer, *rectangle.entity));
    QUERN_RETURN_IF_ERROR(NoteShared(slice.buffer, /*write=*/false, Describe(slice)));
    Record(slice.buffer, /*write=*/false, rectangle.position);
    if (rectangle.entity->kind == EntityKind::kAlloc)
      NoteScratchRead(slice.buffer, rectangle.first, rectangle.last, OwnLanes(*op, slice, names));
    for (size_t d = 0; d < names.size(); ++d) {
      const auto [it, added] = sizes.try_emplace(names[d], Size{rectangle.sizes[d], rectangle.texts[d], operand.name});
      if (added || prover_.Equal(it->second.value, rectangle.sizes[d])) continue;
      return Fail(absl::StrFormat("size %s of %s is %s in %s and %s in %s", std::string(names[d]), call.op,
                                  it->second.text, it->second.from, rectangle.texts[d], operand.name));
    }
  }
  std::set<std::string> seen;
  for (size_t t = 0; t < call.tiles.size(); ++t) {
    const TileOperand& wanted = op->tiles[t];
    QUERN_ASSIGN(const Entity* tile, FindBuffer(call.tiles[t]));
    if (tile->kind != EntityKind::kTile) return Fail(absl::StrFormat("%s is not a tile", call.tiles[t]));
    if (!seen.insert(call.tiles[t]).second) return Fail(absl::StrFormat("tile %s is used twice", call.tiles[t]));
    if (tile->type.dtype != wanted.dtype || tile->type.dims.size() != wanted.dims.size()) {
      return Fail(absl::StrFormat("tile %s of %s is %s of %d dimensions, not %s of %d", wanted.name, call.op,
                                  Named(wanted.dtype), wanted.dims.size(), Named(tile->type.dtype),
                                  tile->type.dims.size()));
    }
    Record(call.tiles[t], /*write=*/true, std::vector<Extent>(wanted.dims.size()));
    for (size_t d = 0; d < wanted.dims.size(); ++d) {
      const Extent& extent = tile->type.dims[d];
      const auto [it, added] = sizes.try_emplace(wanted.dims[d], Size{extent, extent.ToString(), call.tiles[t]});
      if (prover_.AtMost(it->second.value, extent)) continue;
      return Fail(absl::StrFormat("size %s of %s is %s in %s, more than the %s of tile %s", wanted.dims[d], call.op,
                                  it->second.text, it->second.from, extent.ToString(), call.tiles[t]));
    }
  }
  seen.clear();
  for (const auto& [name, value] : call.attributes) {
    const auto attribute = std::find_if(op->attributes.begin(), op->attributes.end(),
                                        [&](const TileAttribute& row) { return row.name == name; });
    if (attribute == op->attributes.end()) return Fail(absl::StrFormat("%s has no attribute %s", call.op, name));
    if (!seen.insert(name).second) return Fail(absl::StrFormat("attribute %s is given twice", name));
    QUERN_RETURN_IF_ERROR(CheckExprOf(value, attribute->dtype, "attribute"));
  }
  return absl::OkStatus();
}

Status Verifier::CheckNode(const Pack& pack) {
  QUERN_RETURN_IF_ERROR(NotInside("a pack"));
  QUERN_RETURN_IF_ERROR(NotForThreads("a pack"));
  QUERN_ASSIGN(const Rectangle src, CheckSlice(pack.src, /*hint=*/false));
  QUERN_ASSIGN(const Rectangle dst, CheckSlice(pack.dst, /*hint=*/false));
  const BufferType& from = src.entity->type;
  const BufferType& to = dst.entity->type;
  const PackRow* row = FindPack(from.dtype, from.layout, to.dtype, to.layout);
  if (row == nullptr) {
    return Fail(absl::StrFormat("no pack leads from %s to %s", TypeText(from), TypeText(to)));
  }
  QUERN_RETURN_IF_ERROR(CheckOperand(pack.src, src, /*columns=*/false));
  QUERN_RETURN_IF_ERROR(CheckOperand(pack.dst, dst, /*columns=*/true));
  const size_t src_rank = src.sizes.size(), dst_rank = dst.sizes.size();
  if (src_rank > 2 || dst_rank > 2) return Fail("a pack takes a row or a rectangle");
  const bool turns = Turns(from.layout, to.layout);
  if (turns && (src_rank != 2 || dst_rank != 2)) return Fail("a pack turns a rectangle");
  if (turns && src.entity == dst.entity) return Fail(absl::StrFormat("%s is turned into itself", pack.src.buffer));
  const size_t columns = turns ? 0 : dst_rank - 1, rows = turns ? 1 : 0;  // dimensions of dst that have those of src
  const Extent room = dst.sizes[columns] * row->merges;
  if (row->merges == 1 ? !prover_.Equal(src.sizes.back(), room) : !prover_.AtMost(src.sizes.back(), room)) {
    return Fail(
        absl::StrFormat("rows of %s to %s of %s", src.texts.back(), turns ? "columns" : "rows", dst.texts[columns]));
  }
  const Extent src_rows = src_rank == 2 ? src.sizes[0] : 1, dst_rows = dst_rank == 2 ? dst.sizes[rows] : 1;
  const std::string src_text = src_rank == 2 ? src.texts[0] : "1", dst_text = dst_rank == 2 ? dst.texts[rows] : "1";
  if (IsPanel(to.layout) ? !prover_.AtMost(src_rows, dst_rows) : !prover_.Equal(src_rows, dst_rows)) {
    return Fail(absl::StrFormat("%s rows to %s", src_text, dst_text));
  }
  QUERN_RETURN_IF_ERROR(CheckReadable(pack.src.buffer, *src.entity));
  QUERN_RETURN_IF_ERROR(NoteShared(pack.src.buffer, /*write=*/false, Describe(pack.src)));
  Record(pack.src.buffer, /*write=*/false, src.position);
  if (src.entity->kind == EntityKind::kAlloc) NoteScratchRead(pack.src.buffer, src.first, src.last);
  QUERN_RETURN_IF_ERROR(CheckWritable(pack.dst.buffer, *dst.entity));
  QUERN_RETURN_IF_ERROR(NoteShared(pack.dst.buffer, /*write=*/true, Describe(pack.dst)));
  Record(pack.dst.buffer, /*write=*/true, dst.position);
  written_.insert(pack.dst.buffer);
  return absl::OkStatus();
}

Status Verifier::CheckNode(const Prefetch& prefetch) { return CheckSlice(prefetch.slice, /*hint=*/true).status(); }

}  // namespace quern::kir
