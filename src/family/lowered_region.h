// What becomes of a region: KIR kernels, and where their parameters come from.
#pragma once

#include <memory>
#include <vector>

#include "ir/custom.h"
#include "kir/kir.h"

namespace quern::family {

// Where a kernel parameter comes from.
struct Operand {
  enum class Kind : uint8_t { kInput, kResult, kTemporary, kConstant } kind;
  int index;  // of the region's inputs, of its results, or of LoweredRegion's temporaries or constants
};

// Bytes that a kernel reads as memory.
struct ConstantBytes {
  kir::BufferType type;
  std::shared_ptr<const std::vector<uint8_t>> data;
};

struct KernelUse {
  kir::Kernel kernel;             // without a body where `call` computes it: the parameters, sizes and grid of that
  int last_origin = -1;           // the body node that the last row of kernel.origins stands for
  std::vector<Operand> operands;  // one a parameter of the kernel, in order
  const ir::CustomDef* call = nullptr;
};

struct LoweredRegion {
  std::vector<KernelUse> kernels;            // in order; each waits for the one before it
  std::vector<kir::BufferType> temporaries;  // memory between the kernels of this region
  std::vector<ConstantBytes> constants = {};
};

}  // namespace quern::family
