#include "kir/tile_op.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "kir/block_products.h"
#include "kir/flash_steps.h"
#include "kir/parse.h"

namespace quern::kir {

#define QUERN_TILE_OP(stem) const TileOp& TileOp_##stem();
#include "kir_tiles.inc"
#undef QUERN_TILE_OP

namespace {

#define QUERN_TILE_OP(stem) TileOp_##stem,
constexpr const TileOp& (*kMakers[])() = {
#include "kir_tiles.inc"
};
#undef QUERN_TILE_OP

BufferType TypeOf(const TileOperand& operand) {
  BufferType type{operand.dtype, {}, operand.layout};
  for (std::string_view dim : operand.dims) {
    if (!dim.empty()) type.dims.push_back(Extent::Symbol(std::string(dim)));
  }
  return type;
}

}  // namespace

std::span<const TileOp* const> TileOps() {
  static const std::vector<const TileOp*>* const ops = [] {
    auto* const all = new std::vector<const TileOp*>;  // kept for as long as the process, as what it names
    for (const auto maker : kMakers) all->push_back(&maker());
    for (const TileOp* op : BlockProducts()) all->push_back(op);
    for (const TileOp* op : FlashSteps()) all->push_back(op);
    std::sort(all->begin(), all->end(),
              [](const TileOp* a, const TileOp* b) { return std::string_view(a->name) < std::string_view(b->name); });
    return all;
  }();
  return *ops;
}

const TileOp* FindTileOp(std::string_view name) {
  const std::span<const TileOp* const> ops = TileOps();
  const auto it = std::lower_bound(ops.begin(), ops.end(), name,
                                   [](const TileOp* op, std::string_view wanted) { return op->name < wanted; });
  return it != ops.end() && name == (*it)->name ? *it : nullptr;
}

Block Meaning(const TileOp& op) {
  Scope scope;
  for (const char* size : op.sizes) scope.scalars.emplace_back(size, DType::kI64);
  for (const TileAttribute& attribute : op.attributes) scope.scalars.emplace_back(attribute.name, attribute.dtype);
  for (const TileOperand& tile : op.tiles) scope.buffers.emplace_back(tile.name, TypeOf(tile));
  for (const TileOperand& operand : op.operands) scope.buffers.emplace_back(operand.name, TypeOf(operand));
  StatusOr<Block> block = ParseStatements(op.meaning, scope);
  QUERN_CHECK(block.ok());  // a test parses every meaning
  return *std::move(block);
}

}  // namespace quern::kir
