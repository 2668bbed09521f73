// Values drawn for the leaves of a graph: any do, where it is the kernels that are looked at.
#pragma once

#include <cstdint>

#include "check/run_case.h"

namespace quern::check {

// The bytes of each Input and, with `params`, each Param, those of bodies too: floats in -1..1, whole numbers from 0 to
// 7, blocks of weights under small scales. The same seed gives the same bytes everywhere. Errors: Unimplemented, for an
// Input of a block format; those of SizesOf.
StatusOr<Bytes> DrawBytes(const ir::Graph& graph, const Binding& sizes, uint64_t seed, bool params = true);

}  // namespace quern::check
