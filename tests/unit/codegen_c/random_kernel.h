// Random kernels: every operator, dtype, reduction, conversion and statement of KIR, in bounds by construction.
//
// Parameters are x_<dtype> : [M, 11] in for every scalar dtype, w_<format> : [M, 256] @blocks in, and one output for
// each statement that writes. Some integer divisors are 0 and some shifts too wide: what that gives is defined.
#pragma once

#include <cstdint>

#include "kir/kir.h"

namespace quern::kir {

struct RandomKernelOptions {
  int statements = 12;
  int depth = 4;  // of expressions
  // Only f32, and functions that keep a small error small: the run in float may be compared.
  bool smooth = false;
};

// y[r, c] = f(..f(x[r, c])) and s[r] = sum of the same, where f uses its argument three times: 3^length nodes as a
// tree.
Kernel ChainKernel(int length);

// One symbol, M in 1..64.
Kernel RandomKernel(uint64_t seed, const RandomKernelOptions& options = {});

}  // namespace quern::kir
