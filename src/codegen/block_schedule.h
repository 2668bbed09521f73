// Schedules plain kernels for blocks of threads: KIR to KIR, so that the interpreter can run both forms.
//
//   grid r in 0..M {                                    grid r in 0..M {
//     let s = sum accs 4 vec c in 0..C { x[r, c] }        alloc part0 : f32[8] shared
//     vec c in 0..C { y[r, c] = x[r, c] / s }      =>     thread t in 0..256 @ block {
//   }                                                       var own0 : f32 = 0.0  for c in t..C by 256 { ... } ...
//
// What it takes is what the map and reduce families write: their loop kinds say what is independent, and the choices that
// are a CPU's (chunk sizes, accumulators) do not bind it. A matrix product it takes as a sum over k of c[i, j] alone: the
// form with panels and micro-kernels has lost what a tile of threads is made from.
#pragma once

#include "base/status.h"
#include "kir/kir.h"

namespace quern::codegen {

// What a schedule may know of a target with blocks of threads: a row of a table that the target's folder owns.
struct BlockFacts {
  int threads = 256;                 // of a block that strides over rows or elements; a multiple of 32
  int elements = 4;                  // that each of them takes of a chunk of a flat map
  int64_t shared_bytes = 48 << 10;
  bool half_products = true;         // a warp multiplies matrices of f16 and bf16
  int stages = 3;                    // shared-memory buffers that copies fill ahead
};

// The kernel for blocks of threads, with the same parameters and symbols; it verifies. Sums of floats are in another
// order. Errors: Unimplemented, with the statement, for tile ops, packs and scratch that does not fit shared memory.
StatusOr<kir::Kernel> ScheduleBlocks(const kir::Kernel& plain, const BlockFacts& facts);

// The matrix product alone: Unimplemented unless `plain` is
//   grid i in 0..M, j in 0..N { c[i, j] = e(sum for k in 0..K { a[i, k] * b[j, k] }) }
// with any expression e of the sum, i and j, the operands f32, or f16 or bf16 under a cast.
StatusOr<kir::Kernel> ScheduleProduct(const kir::Kernel& plain, const BlockFacts& facts);

}  // namespace quern::codegen
