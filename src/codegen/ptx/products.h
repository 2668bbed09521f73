// Matrix products of warps and of groups of four warps, as instructions: what stands for the tile ops mma_f16 and
// mma_bf16.
#pragma once

#include <span>

#include "llvm/IR/IRBuilder.h"

namespace quern::ptx {

// Rows of 16-bit floats in shared memory.
struct SharedRows {
  llvm::Value* first = nullptr;  // address
  int64_t pitch = 0;             // elements from a row to the next
  int64_t apart = 1;             // a power of two that divides where rows begin, in elements
};

// sums[rows, columns] += x[rows, depth] w[columns, depth]^T, the sums f32.
struct Product {
  std::span<llvm::AllocaInst* const>
      sums;  // a lane's share: of each 16 x 8 elements of a warp four, rows of parts first
  int64_t rows = 0, columns = 0, depth = 0;
  bool f16 = false;  // else bf16
  SharedRows x, w;
};

// By one warp, of which this is lane `lane` (i64). Rows and depth are multiples of 16, columns of 8; where rows begin
// at even elements.
void MultiplyByWarp(llvm::IRBuilder<>& b, llvm::Value* lane, const Product& product);

// By a group, for machines that have it: 64 rows, at most 256 columns. Both operands lie in parts of 8 x 8, 128 bytes
// each, those of a row of parts one after the other; where they begin is a multiple of 8.
void MultiplyByGroup(llvm::IRBuilder<>& b, const Product& product);
// What ordinary stores have put into shared memory before is seen by products of groups behind the next barrier.
void FenceForGroups(llvm::IRBuilder<>& b);

}  // namespace quern::ptx
