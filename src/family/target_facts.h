// What a schedule may know of a target: rows of tables owned by the targets' folders, never a target's name.
#pragma once

#include <cstdint>
#include <optional>

namespace quern::family {

// Of a target with blocks of threads.
struct BlockFacts {
  int threads = 256;  // of a block that strides over rows or elements; a multiple of 32
  int elements = 4;   // that each of them takes of a chunk of a flat map
  int64_t shared_bytes = 48 << 10;
  bool half_products = true;    // a warp multiplies matrices of f16 and bf16
  bool group_products = false;  // four warps multiply them together, from shared memory
  int stages = 3;               // shared-memory buffers that copies fill ahead
  // Products of halves with this many rows and columns are made in squares of 128 instead of 64: the larger ones read
  // every operand half as often, the smaller ones keep more blocks busy.
  int64_t large_product = 1024;
};

struct TargetFacts {
  // Not of the target but of the plan: a row has the same bits wherever its sequence was cut into steps.
  bool invariant = false;
  int gemm_rows = 12;         // rows of a block of mma_f32
  int integer_rows = 24;      // rows of a block of the integer mma ops
  int word_rows = 12;         // rows of a block of the mma ops of words: pairs of bf16, quads of bytes
  bool few_by_panels = true;  // integer dot ops of some rows pack weights as those do, and take many rows as well
  bool bf16_pairs = false;    // products of bf16 by bf16 take two of each at once, for twice the speed of f32
  bool bf16_tiles = false;    // several products of bf16 by bf16 take less than one of f32
  bool any_signs = false;     // products of bytes take any signs; else one side has to have one and the other none
  int lanes = 16;             // f32 elements of a vector register
  int vector_registers = 32;  // that hold values at the same time
  int64_t prefetch_ahead = 8192;
  int64_t scratch_bytes = 1 << 20;  // that a chunk may use: it stays in a core's own cache beside what streams by
  // Set: every kernel of a region is scheduled for blocks of threads (block_schedule.h), and what is above does not
  // matter.
  std::optional<BlockFacts> blocks;

  // Bytes that a chunk may keep for itself.
  int64_t scratch() const { return blocks ? blocks->shared_bytes : scratch_bytes; }
};

}  // namespace quern::family
