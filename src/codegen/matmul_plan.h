// The shape of a matmul region: its roots, the segments of columns they make, and how each result is written.
//
// A product that tile ops can write (weights [N, K] with transpose_b) may share its grid with others of the same left
// side, compute that side element by element or gather it from an image, and end in elementwise ops, a rotation within
// the row, rows written into a carried tensor or quantised rows. Any other product takes elementwise ops alone: of
// short floats on a CPU it fills panels or streams its large side, else it is plain loops.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/kernel_writer.h"
#include "codegen/product_space.h"
#include "family/family.h"

namespace quern::codegen {

inline constexpr int64_t kFewRows = 8;        // at most this many rows are dotted row by row
inline constexpr int64_t kMostFewRows = 32;   // or this many, where a row need not have bits of its own
inline constexpr int64_t kFewColumns = 8;     // at most this many columns are what rows are dotted with
inline constexpr int64_t kChunksWanted = 64;  // of a product of few rows, so that as many threads have some

inline bool IsProduct(const ir::Node& node) { return ir::IsRoot(node, "matmul"); }

// How one (weight, activation) pair of element types is computed: tile ops by name, and the panel that mma reads.
struct MatmulRow {
  DType weight, activation;
  const char* dot;  // null where the weights lie in panels
  const char* mma;
  kir::Layout panel;
  int panel_rows;
  DType sum = DType::kF32;  // of a tile
  int64_t word = 1;         // elements of k that lie together in panels

  bool in_panels() const { return dot == nullptr; }
  bool in_words() const { return word > 1; }
};

// Where a result of the region goes.
struct MatmulResult {
  enum class Kind : uint8_t { kStore, kWrite, kPack };
  Kind kind = Kind::kStore;
  int output = 0;              // of the region
  ir::Value value;             // with the root's extents: what is computed at (row, column)
  ir::Value target;            // kWrite: the tensor that is written
  Extent start;                // kWrite: first row
  DType format = DType::kF32;  // kPack
};

// Roots whose results are combined, of one N, and the results that need them.
struct MatmulSegment {
  std::vector<int> roots;
  int64_t columns = 0;
  std::vector<MatmulResult> results;
};

struct MatmulPlan : family::RegionPlan {
  // By tile ops. The roots' extents, but for the last, are rows that follow one another: a tensor [B, S, N] is [1, B S,
  // N].
  struct Tiles {
    ir::Value lhs;
    std::vector<Extent> dims;  // of the roots, but for the last
    int row_axis = 0;          // the last of them that is not 1
    Extent rows;               // their product
    int64_t k = 0;
    const MatmulRow* row = nullptr;  // of the first root; segments may differ only in weight dtype
    std::vector<MatmulSegment> segments;
    // The left side's axes where it is gathered on the way, as the windows of an image are.
    std::optional<family::AxisSpace> windows;
    std::set<ir::Value> images;  // what those are read from
    // Where rows have matrices of their own (PickedMatMul): how, operand 2 of the roots, and how many there are.
    enum class Picks : uint8_t { kNone, kByRow, kByRun } picks = Picks::kNone;
    ir::Value which;
    int64_t matrices = 1;

    // The index of (row m, column n) in the roots' extents with all rows in row_axis; without n: of row m.
    kir::Index At(const kir::ExprRef& m, const kir::ExprRef& n) const;
    // The extents that index is for, ending in `columns`.
    std::vector<Extent> Flat(const Extent& columns) const;
    // Of all segments.
    int64_t Columns() const;
    // Whether a value of these extents has an element for every row.
    bool HasRows(const std::vector<Extent>& value) const;
  };
  std::optional<Tiles> tiles;
  // Operands that lie in any order or are computed.
  enum class Form : uint8_t { kPlain, kPanels, kFewRows, kStreams, kDirect };
  struct AnyOrder {
    std::unique_ptr<const ProductSpace> space;
    Form form;
  };
  std::optional<AnyOrder> any_order;  // without tiles

  std::string Remark() const override;
};

// Sets `windows` and `images` of a plan whose left side index maps and casts make of memory, as they make the windows
// of an image; those nodes (matmul_windows.cc).
StatusOr<std::set<int>> GatherWindows(const family::RegionView& view, MatmulPlan::Tiles& tiles);
// The row for the types of a product that tile ops can write, or null (matmul_rows.cc).
const MatmulRow* TileRow(const family::RegionView& view, int root);

// Of products whose operands may lie in any order (matmul_any_order.cc).
StatusOr<MatmulPlan::AnyOrder> MatchAnyOrder(const family::RegionView& view, const std::vector<int>& roots);

family::Matched MatchMatmul(const family::RegionView& view);

}  // namespace quern::codegen
