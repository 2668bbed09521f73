// Matrix products by squares: a block of threads computes some rows by some columns of one or more products of the same
// rows, from slices of the operands in shared memory.
//
//   f16, bf16: 4 warps, each a quarter of every square, by the matrix op of a warp; where the target has groups of
//              warps, a group for every 64 rows
//   f32:       256 threads, each a sixteenth of the rows by a sixteenth of the columns in registers
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "family/target_facts.h"
#include "kir/kir.h"

namespace quern::codegen {

class SquareProduct {
 public:
  static constexpr int64_t kRows = 64;

  // `dtype`: f32, f16 or bf16, what the operands are in shared memory. `rows`, `columns`: multiples of 64. `products`:
  // of the same rows.
  SquareProduct(DType dtype, int64_t rows, int64_t columns, int products, const family::BlockFacts& facts);

  // Shared memory for the slices: at the start of the kernel.
  kir::Block Allocs() const;

  // `rows` rows and `depth` columns of an operand, from the column k.
  using Part = std::function<kir::Slice(int64_t rows, const kir::ExprRef& k, int64_t depth)>;
  // Statements for what a warp or thread holds: the elements from (row, column) of the squares, in the tiles.
  using Finish =
      std::function<kir::Block(const kir::ExprRef& row, const kir::ExprRef& column, int64_t rows, int64_t columns)>;
  // The thread loop. `tiles`: names for the sums, f32, one a product; `x`: the rows; `w`: one a product, its columns as
  // rows; `depth`: columns of all of them.
  kir::StmtRef Threads(const std::vector<std::string>& tiles, const Part& x, const std::vector<Part>& w,
                       const kir::ExprRef& depth, int origin, const Finish& finish) const;
  int64_t threads() const;

 private:
  bool halves() const { return dtype_ != DType::kF32; }
  // What one iteration of the thread loop holds of each square: where it starts, and its extents.
  struct Piece {
    kir::ThreadLevel level;
    const char* index;
    int64_t count;
    kir::ExprRef row, column;
    int64_t rows, columns;
  };
  Piece PieceOf() const;
  std::string Named(const char* what, int product) const;
  kir::StmtRef Steps(const Part& x, const std::vector<Part>& w, const kir::ExprRef& depth, kir::Block use) const;

  const DType dtype_;
  const bool groups_;
  const int64_t rows_, columns_, depth_, padded_;
  const int products_;
  int stages_ = 1;
};

}  // namespace quern::codegen
