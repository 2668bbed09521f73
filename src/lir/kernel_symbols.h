// What kernels are called and what tells them apart.
#pragma once

#include <string>
#include <vector>

#include "lir/plan.h"

namespace quern::lir {

// Readable names for the machine code of a plan's kernels: what perf, gdb, objects and profiles show. One name a kernel
// of the plan, no two equal: the place of its first use, its family, the format of its largest
// weights, and those of its sizes that `guard` leaves open: "layers.0.ffn.matmul.q4_K.SEQ2_8". Letters, digits, '_' and
// '.' only.
std::vector<std::string> KernelSymbols(const Plan& plan, const SymbolRanges& guard);

// Kernels of equal identity compute the same: their canonical text, symbols, and `call`, where a C function computes
// it, else null.
std::string KernelIdentity(const kir::Kernel& kernel, const ir::CustomDef* call);

}  // namespace quern::lir
