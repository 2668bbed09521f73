// Kernels through the Metal emitter, on the CPU: the text is checked (msl_check.h), compiled by clang against a
// metal_stdlib of fibers (msl_shim), loaded, and called with the ABI of quern/abi.h, a chunk of the grid being a
// threadgroup.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/extent.h"
#include "base/status.h"
#include "codegen/device_module.h"
#include "kir/kir.h"
#include "lir/plan.h"
#include "quern/abi.h"
#include "support/shared_object.h"

namespace quern {

class MetalLibrary {
 public:
  // `kernels`: of which the module was made, in order. Errors: what the check finds, the compiler's output.
  static StatusOr<MetalLibrary> Compile(const codegen::DeviceModule& module, std::span<const kir::Kernel> kernels);
  // Emits first. The kernels verify and are scheduled for blocks.
  static StatusOr<MetalLibrary> Compile(std::span<const kir::Kernel> kernels);

  // One a kernel; they live as long as the library. Callable from several threads at once.
  const std::vector<quern_kernel*>& kernels() const { return kernels_; }
  // The order in which threads of a group begin: the first first, or the last.
  void SetDescending(bool descending) const { *descending_() = descending ? 1 : 0; }

 private:
  explicit MetalLibrary(SharedObjects objects) : objects_(std::move(objects)) {}
  SharedObjects objects_;
  std::vector<quern_kernel*> kernels_;
  int* (*descending_)() = nullptr;
  std::shared_ptr<void>
      fibers_;  // of the thread that lets go of the library; before the objects, of which its end is a function
};

// All kernels of a plan that was built for blocks (TargetFacts::blocks), in the order of Plan::kernels.
StatusOr<MetalLibrary> CompileMetal(const lir::Plan& plan);

struct MetalCase {
  kir::Kernel kernel = {};  // scheduled for blocks
  Binding binding = {};
  uint64_t seed = 1;
  int64_t max_chunks = 1 << 20;  // of a larger grid: the first, the last and one between, for the interpreter is slow
  double tolerance = 1e-5;  // relative to an element and to the largest of its buffer; halves have their own on top
  bool each = false;        // relative to the element alone
  std::vector<std::vector<uint8_t>> inputs = {};  // of the first parameters, in place of random ones
};

// Runs each on random buffers, threads in both orders, and holds the results to the interpreter's, which checks the
// kernel for races, too. The first difference: kernel, buffer, element, seed.
Status CheckKernelsThroughMetal(std::span<const MetalCase> cases);
Status CheckKernelsThroughMetal(std::span<const MetalCase> cases, const MetalLibrary& library);

}  // namespace quern
