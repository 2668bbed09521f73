// The shape of a matmul region: its roots, the segments of columns they make, and how each result is written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel_writer.h"

namespace quern::codegen {

// How one (weight, activation) pair of element types is computed: tile ops by name, and the panel that mma reads.
struct MatmulRow {
  DType weight, activation;
  const char* dot;
  const char* mma;
  kir::Layout panel;
  int panel_rows;
};
// The row for these types, or null: such a product is written as plain loops.
const MatmulRow* FindMatmulRow(DType weight, DType activation);

// Where a result of the region goes.
struct MatmulResult {
  enum class Kind : uint8_t { kStore, kUpdate, kQuantize };
  Kind kind = Kind::kStore;
  int output = 0;              // of the region
  ir::Value value;             // with the root's extents: what is computed at (row, column)
  int updated_input = -1;      // kUpdate: the region input written
  Extent start;                // kUpdate: first row
  DType format = DType::kF32;  // kQuantize
};

// Roots whose results are combined, of one N, and the results that need them.
struct MatmulSegment {
  std::vector<int> roots;  // body nodes
  int64_t columns = 0;
  std::vector<MatmulResult> results;
};

struct MatmulPlan {
  ir::Value lhs;
  std::vector<Extent> dims;  // of the roots, but for the last: [1.., M] in some order of ones
  int row_axis = 0;          // the dimension of dims that is M
  Extent rows;               // M
  int64_t k = 0;
  const MatmulRow* row = nullptr;  // of the first root; segments may differ only in weight dtype
  std::vector<MatmulSegment> segments;

  // The index [0.., m] or [0.., m, n] of the roots' extents.
  kir::Index At(const kir::ExprRef& m, const kir::ExprRef& n) const;
};

// The plan for tile ops: weights [N, K] of constant extents, one dimension of rows. Nullopt when the region is not of
// that kind and plain loops have to do.
std::optional<MatmulPlan> PlanMatmul(const RegionView& view);

}  // namespace quern::codegen
