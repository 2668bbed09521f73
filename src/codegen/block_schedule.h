// Schedules plain kernels for blocks of threads: KIR to KIR, so that the interpreter can run both forms.
//
//   grid r in 0..M {                                    grid r in 0..M {
//     let s = sum accs 4 vec c in 0..C { x[r, c] }        alloc part0 : f32[8] shared
//     vec c in 0..C { y[r, c] = x[r, c] / s }      =>     thread t in 0..256 @ block {
//   }                                                       var own0 : f32 = 0.0  for c in t..C by 256 { ... } ...
//
// What it takes is what the families write: their loop kinds say what is independent, and the choices that
// are a CPU's (chunk sizes, accumulators) do not bind it. Dots and attention steps run on all threads of the block
// (block_tiles.h). A matrix product it takes as a sum over k of c[i, j] alone (plain_product.cc); the form with panels
// and micro-kernels has lost what a tile of threads is made from, and the matmul family writes squares
// (matmul_squares.cc) instead.
#pragma once

#include "base/status.h"
#include "family/target_facts.h"
#include "kir/kir.h"

namespace quern::codegen {

// The kernel for blocks of threads, with the same parameters and symbols; it verifies. Sums of floats are in another
// order. One that is scheduled already stays as it is. Errors: Unimplemented, with the statement, for other tile ops,
// packs and scratch that does not fit shared memory.
StatusOr<kir::Kernel> ScheduleBlocks(const kir::Kernel& kernel, const family::BlockFacts& facts);

// The matrix product alone: Unimplemented unless `plain` is
//   grid i in 0..M, j in 0..N { c[i, j] = e(sum for k in 0..K { a[i, k] * b[j, k] }) }
// with any expression e of the sum, i and j, the operands f32, or f16 or bf16 under a cast.
StatusOr<kir::Kernel> ScheduleProduct(const kir::Kernel& plain, const family::BlockFacts& facts);

}  // namespace quern::codegen
