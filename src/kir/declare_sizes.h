// The sizes that a kernel names, declared: a kernel is written with the extents of a graph, whose quotients become
// derived symbols.
#pragma once

#include <span>

#include "kir/kir.h"

namespace quern::kir {

// Declares, before the symbols that `kernel` has, those of `ranges` that its types, expressions and derived symbols
// name, and the quotients that they name as derived symbols of names of their own (ceil0, ceil1, ..), which stand in
// their place from then on. Of `facts`, extents that are not negative, the kernel gets those of its symbols; where
// `own_quotients`, of these only those whose quotients it names, too.
void DeclareSizes(Kernel& kernel, const SymbolRanges& ranges, std::span<const SizeFact> facts = {},
                  bool own_quotients = false);

}  // namespace quern::kir
