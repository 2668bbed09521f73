// Runnable: a model that is ready to run, wherever it runs. What sessions see of an Executable (this machine's
// processor, runtime/executable.h) and of a device::Executor (memory and blocks of threads of a device).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/extent.h"
#include "base/status.h"
#include "lir/signature.h"

namespace quern {

struct ConstBytes {
  const void* data;
  int64_t bytes;
};
struct MutableBytes {
  void* data;
  int64_t bytes;
};

// One run at a time: a Run, Prepare or BindParam while another is under way is the error kBusy, and has no effect.
// Everything else is not thread-safe.
//
// Errors of a run are Diagnostics (base/diagnostic.h): kMissing, kUnknownName, kOutOfRange, kInputCount,
// kShapeMismatch, kSizeConflict and kBusy, with the operand ("input x", "symbol SEQ") and the name of the graph.
class Runnable {
 public:
  virtual ~Runnable() = default;

  virtual const Signature& signature() const = 0;
  // Binding after a run has effect: parameter-only work is done again. Errors: an unknown name, another length.
  virtual Status BindParam(std::string_view name, std::span<const uint8_t> bytes) = 0;
  // `inputs` and `outputs` in the order of the signature. Memory is aligned to its elements, no output overlaps another
  // or an input. Errors: a missing, unbound or out-of-range symbol; a wrong count or length; a parameter that is not
  // bound; no variant. After one of these nothing is written.
  virtual Status Run(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs,
                     const Binding& symbols) = 0;
  // Compiles the variant for these symbols without running it.
  virtual Status Prepare(const Binding& symbols) = 0;

  struct Report {
    int variants = 0;          // that have been compiled
    int64_t plan_ns = 0;       // regions lowered and planned
    int64_t compile_ns = 0;    // to machine code, and parameter-only work
    int64_t arena_bytes = 0;   // held now
    int64_t packed_bytes = 0;  // held for what depends on parameters alone
    int64_t bind_ns = 0;       // of the last run: everything before the first kernel
    int64_t run_ns = 0;        // of the last run: kernels, and copies from and to a device
  };
  virtual const Report& report() const = 0;
};

}  // namespace quern
