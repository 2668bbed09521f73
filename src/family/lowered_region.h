// What becomes of a region: KIR kernels, and where their parameters come from.
#pragma once

#include <vector>

#include "kir/kir.h"

namespace quern::family {

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

}  // namespace quern::family
