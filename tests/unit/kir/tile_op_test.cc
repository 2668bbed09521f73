// The tables of tile ops and packs: every row is complete and its parts agree.
#include "kir/tile_op.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "kir/parse.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

// Names that a block reads, and those it stores to.
struct Uses : Visitor {
  std::set<std::string> reads, writes;

  bool Enter(const Stmt& stmt) override {
    const bool plain = std::holds_alternative<Loop>(stmt.node) || std::holds_alternative<If>(stmt.node) ||
                       std::holds_alternative<Let>(stmt.node) || std::holds_alternative<Store>(stmt.node);
    EXPECT_TRUE(plain) << "a meaning has loops, branches, lets and stores only";
    return true;
  }
  void Use(const std::string& name) override { reads.insert(name); }
  void Write(const std::string& name) override { writes.insert(name); }
};

TEST(TileOps, AreSortedAndFound) {
  const auto ops = TileOps();
  ASSERT_GE(ops.size(), 17u);
  for (size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(FindTileOp(ops[i]->name), ops[i]);
    if (i > 0) EXPECT_LT(std::string(ops[i - 1]->name), ops[i]->name);
  }
  EXPECT_EQ(FindTileOp("dot_q"), nullptr);
  EXPECT_EQ(FindTileOp(""), nullptr);
  EXPECT_EQ(FindTileOp("zzz"), nullptr);
}

TEST(TileOps, DeclarationsAreComplete) {
  for (const TileOp* op : TileOps()) {
    SCOPED_TRACE(op->name);
    ASSERT_FALSE(op->tiles.empty());
    if (op->symbol != nullptr) EXPECT_EQ(std::string(op->symbol), std::string("qk_") + op->name);
    const bool exact = op->tiles[0].dtype == DType::kI32;
    EXPECT_EQ(op->rtol == 0, exact);
    std::set<std::string> names, dims;
    auto declare = [&](const char* name) { EXPECT_TRUE(names.insert(name).second) << name; };
    for (const char* size : op->sizes) declare(size);
    for (const TileAttribute& attribute : op->attributes) declare(attribute.name);
    for (const TileOperand& tile : op->tiles) {
      declare(tile.name);
      EXPECT_EQ(tile.dtype, op->tiles[0].dtype);
      EXPECT_TRUE(exact || tile.dtype == DType::kF32 || tile.dtype == DType::kF64) << tile.name;
      EXPECT_EQ(tile.layout, Layout::kRow);
      dims.insert(tile.dims.begin(), tile.dims.end());
    }
    bool optional = false;
    for (const TileOperand& operand : op->operands) {
      declare(operand.name);
      EXPECT_TRUE(LayoutAllows(operand.layout, operand.dtype)) << operand.name;
      EXPECT_TRUE(!optional || operand.optional) << "optional operands are last";
      optional = operand.optional;
      dims.insert(operand.dims.begin(), operand.dims.end());
    }
    for (const char* size : op->sizes) EXPECT_EQ(dims.erase(size), 1u) << size;
    dims.erase("");
    EXPECT_TRUE(dims.empty()) << "a dim without size: " << *dims.begin();
    if (op->workspace_bytes != nullptr) {
      const std::vector<int64_t> sizes(op->sizes.size(), 67);
      EXPECT_GT(op->workspace_bytes(sizes), 0);
      EXPECT_EQ(op->workspace_bytes(sizes) % 64, 0);
    }
  }
}

TEST(TileOps, MeaningsParseAndUseEveryName) {
  for (const TileOp* op : TileOps()) {
    SCOPED_TRACE(op->name);
    Uses uses;
    uses.Visit(Meaning(*op));
    for (const TileOperand& tile : op->tiles) {
      EXPECT_EQ(uses.reads.count(tile.name), 1u) << tile.name;
      EXPECT_EQ(uses.writes.erase(tile.name), 1u) << tile.name;
    }
    EXPECT_TRUE(uses.writes.empty()) << "stores to " << *uses.writes.begin();
    for (const TileOperand& operand : op->operands) EXPECT_EQ(uses.reads.count(operand.name), 1u) << operand.name;
    for (const char* size : op->sizes) EXPECT_EQ(uses.reads.count(size), 1u) << size;
    for (const TileAttribute& attribute : op->attributes) {
      // Prefetching, and the order of sums, are no part of what it means.
      constexpr std::string_view kHints[] = {"ahead", "next", "after", "many"};
      const bool hint = std::ranges::find(kHints, attribute.name) != std::end(kHints);
      EXPECT_EQ(uses.reads.count(attribute.name), hint ? 0u : 1u) << attribute.name;
    }
  }
}

// What a GEMV or GEMM of a format needs can be made by the pack table.
TEST(PackTable, FeedsEveryTileOp) {
  for (const TileOp* op : TileOps()) {
    for (const TileOperand& operand : op->operands) {
      const bool packed = operand.layout != Layout::kRow && operand.layout != Layout::kBlocks;
      if (!packed) continue;
      const bool weight = operand.layout == Layout::kPanel16;
      const bool words = operand.dtype == DType::kU32, planar = IsBlock(operand.dtype);
      const DType src = weight ? operand.dtype : words ? op->operands[0].dtype : planar ? DType::kF32 : operand.dtype;
      const Layout src_layout = weight ? Layout::kBlocks : Layout::kRow;
      EXPECT_NE(FindPack(src, src_layout, operand.dtype, operand.layout), nullptr) << op->name << " " << operand.name;
    }
  }
}

TEST(PackTable, RowsAreUniqueAndAllowed) {
  std::set<std::string> symbols;
  for (const PackRow& row : PackTable()) {
    if (Turns(row.src_layout, row.dst_layout)) {
      EXPECT_EQ(row.symbol, "qk_turn_" + std::to_string(ScalarBytes(row.src))) << Name(row.src);
      EXPECT_EQ(row.src, row.dst);
    } else if (row.merges == 1 || (row.src != DType::kU8 && row.src != DType::kBF16)) {  // packed as i8 and f16 are
      EXPECT_TRUE(symbols.insert(row.symbol).second) << row.symbol;
    }
    EXPECT_TRUE(LayoutAllows(row.src_layout, row.src) && LayoutAllows(row.dst_layout, row.dst)) << Name(row.src);
    EXPECT_EQ(FindPack(row.src, row.src_layout, row.dst, row.dst_layout), &row);
  }
  EXPECT_EQ(FindPack(DType::kF32, Layout::kRow, DType::kQ4_K, Layout::kBlocks), nullptr);
}

}  // namespace
}  // namespace quern::kir
