// A region of fused MIR becomes one or more KIR kernels.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/target_facts.h"
#include "ir/graph.h"
#include "kir/kir.h"

namespace quern::codegen {

// Where a kernel parameter comes from.
struct Operand {
  enum class Kind : uint8_t { kInput, kResult, kTemporary } kind;
  int index;  // of the region's inputs, of its results, or of LoweredRegion::temporaries
};

struct KernelUse {
  kir::Kernel kernel;
  int last_origin = -1;           // the body node that the last row of kernel.origins stands for
  std::vector<Operand> operands;  // one a parameter of the kernel, in order
};

struct LoweredRegion {
  std::vector<KernelUse> kernels;            // in order; each waits for the one before it
  std::vector<kir::BufferType> temporaries;  // memory between the kernels of this region
};

// "layers.3/ffn_up: Silu" for a node of a region's body: a row of Kernel::origins.
std::string OriginText(const ir::Graph& body, int node);

// Buffer type of a MIR value: block-format parameters @blocks, q8 intermediates @planar, everything else dense.
kir::BufferType BufferTypeOf(const ir::TensorType& type, bool parameter);

// Whether input `i` of the region is a Param of the graph (rows of a file) rather than an intermediate; and whether it
// is an Input that is donated to an output: memory that the region may write.
bool IsParam(const ir::Graph& graph, const ir::Node& region, int input);
bool IsDonated(const ir::Graph& graph, const ir::Node& region, int input);

// Whether two regions of a graph lower to the same kernels, but for origins: equal bodies and inputs of the same kinds.
bool LowerAlike(const ir::Graph& graph, const ir::Node& a, const ir::Node& b);

// `region`: a Region node whose body uses the symbols in `ranges` (a guard has narrowed them, or made them constant).
// The kernels verify; where `facts` has blocks they are scheduled for blocks of threads. Errors: Unimplemented with the
// op and origin when no family takes the region, or with the statement that has no schedule.
StatusOr<LoweredRegion> LowerRegion(const ir::Graph& graph, const ir::Node& region, const SymbolRanges& ranges,
                                    const TargetFacts& facts);

}  // namespace quern::codegen
