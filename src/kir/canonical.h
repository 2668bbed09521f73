// Equality of KIR values, and the form in which kernels that differ only in names are equal.
#pragma once

#include "kir/kir.h"

namespace quern::kir {

// Structural equality: the same nodes with the same dtypes, names and literals (floats bit for bit). Origins compare
// by their text; the range of a derived symbol, which follows from the others, is not compared.
bool Same(const ExprRef& a, const ExprRef& b);
bool Same(const Block& a, const Block& b);
bool Same(const Kernel& a, const Kernel& b);

// The kernel with every name replaced by its role and order of first appearance, and without origins:
//   b0.. buffers and allocs, s0.. symbols, i0.. indices, v0.. lets and vars, t0.. tiles; the kernel itself is "k".
Kernel NormaliseNames(const Kernel& kernel);

// The kernel with its symbols under other names. What it declares itself, and calls by one of those, gets another, too.
Kernel RenameSymbols(const Kernel& kernel, const std::map<std::string, std::string, std::less<>>& names);

}  // namespace quern::kir
