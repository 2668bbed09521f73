// Emits kernels as one self-contained C11 translation unit, readable and with no target facts: vec loops are plain
// loops, tile ops are expanded from their meaning, packs are scalar loops. A second statement of what KIR means, and an
// oracle.
//
//   kernel scale (x : f32[M] in, y : f32[M] out) sym M in 1..64 { grid r in 0..M { y[r] = x[r] * 0.5 } }
// becomes, after the includes and the helper functions that it uses,
//   void scale(const quern_args* args, void* scratch, int64_t begin, int64_t end) {
//     const int64_t M = args->symbols[0];
//     const float* const x = args->buffers[0];
//     float* const y = args->buffers[1];
//     for (int64_t chunk = begin; chunk < end; ++chunk) {
//       const int64_t r = chunk;
//       y[r] = x[r] * 0.5f;
//     }
//   }
// The function has the ABI of quern/abi.h. Compile it without contraction (-ffp-contract=off).
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "kir/kir.h"

namespace quern::c {

struct EmitOptions {
  // Floats below f64 are computed as float; reductions add in order of the index. With `wide` they are computed in
  // double and rounded where the text says so, at stores, casts and bit casts: results then equal kir::Interpreter's
  // bit for bit.
  bool wide = false;
};

// A kernel and the name of its function, a C identifier.
struct NamedKernel {
  const kir::Kernel* kernel;
  std::string symbol;
};

// Precondition: kir::Verify passes for each kernel; errors name what it would have refused.
StatusOr<std::string> EmitC(std::span<const NamedKernel> kernels, const EmitOptions& options = {});
// One kernel, the function named like it.
StatusOr<std::string> EmitC(const kir::Kernel& kernel, const EmitOptions& options = {});

}  // namespace quern::c
