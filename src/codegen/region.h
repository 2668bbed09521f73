// A region of fused MIR becomes one or more KIR kernels.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "family/family.h"
#include "ir/graph.h"
#include "kir/kir.h"

namespace quern::codegen {

// The families, in the order of their worth: what a product can finish while its tile is in registers goes first, then
// what an attention or a line can take, then what is computed element by element.
std::span<const family::Family> Families();

// "layers.3/ffn_up: Silu" for a node of a region's body: a row of Kernel::origins.
std::string OriginText(const ir::Graph& body, int node);

// Buffer type of a MIR value: block-format parameters @blocks, q8 intermediates @planar, everything else dense.
kir::BufferType BufferTypeOf(const ir::TensorType& type, bool parameter);

// Whether two regions, each of a graph whose nodes' memory is given, lower to the same kernels, but for origins: equal
// bodies, operands in the same memory.
bool LowerAlike(std::span<const family::Memory> memory_a, const ir::Node& a, std::span<const family::Memory> memory_b,
                const ir::Node& b);

// `region`: a Region node of a graph whose nodes' memory is `memory`; its body uses the symbols in `ranges` (a guard
// has narrowed them, or made them constant). The kernels verify; where `facts` has blocks they are scheduled for blocks
// of threads. Errors: Unimplemented with the op and origin when no family takes the region, or with the statement that
// has no schedule.
StatusOr<family::LoweredRegion> LowerRegion(std::span<const family::Memory> memory, const ir::Node& region,
                                            const SymbolRanges& ranges, const family::TargetFacts& facts);

}  // namespace quern::codegen
