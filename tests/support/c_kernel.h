// Passes kernels through the C emitter and the system's C compiler, and holds them to the interpreter.
//
// Each kernel is emitted twice. In double its results must equal the interpreter's bit for bit, everywhere: outputs,
// bytes of outputs that nothing writes, inputs, and guard bytes around buffers and scratch; far reads outside crash. In
// float, as an ordinary program would compute, they must agree within a tolerance. Runs take random chunks, in two
// calls, on scratch that starts as NaN. All cases of one call are compiled together; temporary files are removed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/extent.h"
#include "base/status.h"
#include "kir/kir.h"
#include "quern/abi.h"
#include "support/shared_object.h"

namespace quern {

struct CKernelCase {
  kir::Kernel kernel = {};
  Binding binding = {};
  uint64_t seed = 1;
  int64_t max_chunks = 4;  // of a larger grid: the first, the last and one between, for the interpreter is slow
  // Of the run in float, relative to the largest value of a buffer; 0: not run, for kernels where a rounding error may
  // decide an integer or a comparison. Halves have their own precision on top.
  double tolerance = 1e-4;
  std::optional<kir::Kernel> emitted = {};  // what becomes C in place of `kernel`: to test the comparison itself
};

// The first difference: kernel, arithmetic, buffer, element, seed.
Status CheckKernelsThroughC(std::span<const CKernelCase> cases);
Status CheckKernelThroughC(const kir::Kernel& kernel, const Binding& binding, uint64_t seed);

// C sources compiled to one shared object each and loaded.
class CLibrary {
 public:
  // Errors carry the compiler's output.
  static StatusOr<CLibrary> Compile(const std::vector<std::string>& sources);
  // Null when `source` defines no such function.
  quern_kernel* Find(size_t source, const std::string& symbol) const { return objects_.FindKernel(source, symbol); }

 private:
  explicit CLibrary(SharedObjects objects) : objects_(std::move(objects)) {}
  SharedObjects objects_;
};

}  // namespace quern
