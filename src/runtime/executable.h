// Executable: a model ready to run. Inputs and outputs are the caller's memory, parameters are bound once, donated inputs
// are state that the executable owns, and the variant (a plan for some ranges of the symbols) is chosen by each run.
//
//   QUERN_ASSIGN(auto executable, Executable::Create(SignatureOf(graph), std::move(variants), options));
//   QUERN_RETURN_IF_ERROR(executable->BindParam("w", bytes));
//   QUERN_RETURN_IF_ERROR(executable->Run(inputs, outputs, {{"SEQ", 5}}));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/extent.h"
#include "base/status.h"
#include "lir/plan.h"
#include "lir/signature.h"
#include "runtime/bound_plan.h"
#include "runtime/kernel_cache.h"
#include "runtime/run_log.h"
#include "runtime/thread_pool.h"

namespace quern {

// A plan that is made when a run first needs it.
struct Variant {
  SymbolRanges guard;  // symbols that are not named may have any value in the signature's range
  std::function<StatusOr<lir::Plan>()> plan;
};

// "LOGITS == 1, SEQ in 2..8", or "all sizes": for people.
std::string GuardText(const SymbolRanges& guard);

struct ExecutableOptions {
  std::shared_ptr<KernelCache> cache;
  std::shared_ptr<ThreadPool> pool;
  std::function<void(std::string_view)> log;  // one line when a variant is compiled; may be empty
  Stepping stepping = {};                     // normal runs: as it is
};

struct ConstBytes { const void* data; int64_t bytes; };
struct MutableBytes { void* data; int64_t bytes; };

// One run at a time: a Run, Prepare or BindParam while another is under way is the error kBusy, and has no effect. Everything
// else is not thread-safe. Different executables are independent, except that those of one pool must not run at once; they
// may share a kernel cache.
//
// Errors of a run are Diagnostics (base/diagnostic.h): kMissing, kUnknownName, kOutOfRange, kInputCount, kShapeMismatch,
// kSizeConflict and kBusy, with the operand ("input x", "symbol SEQ") and the name of the graph.
class Executable {
 public:
  // Variants are tried in order. State is allocated and zero.
  // Errors: a state or parameter without a largest size; no memory.
  static StatusOr<std::unique_ptr<Executable>> Create(Signature signature, std::vector<Variant> variants, ExecutableOptions options);
  ~Executable();

  const Signature& signature() const;
  // Position among signature().inputs. Error: kUnknownName lists the names there are.
  StatusOr<int> InputIndex(std::string_view name) const;

  // The bytes must outlive the executable; those that are not aligned to 32 are copied. Binding after a run has effect:
  // parameter-only work is done again. Errors: an unknown name, another length.
  Status BindParam(std::string_view name, std::span<const uint8_t> bytes);

  // `inputs` and `outputs` in the order of the signature. Memory is read and written in place: aligned to its elements, no
  // output overlaps another or an input. Nothing is written when there is an error.
  // Errors: a missing, unbound or out-of-range symbol; a wrong count or length; a parameter that is not bound; no variant.
  Status Run(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs, const Binding& symbols);
  // Compiles the variant for these symbols without running it.
  Status Prepare(const Binding& symbols);

  StatusOr<std::span<uint8_t>> State(std::string_view name);
  void ResetState();

  struct Report {
    int variants = 0;         // that have been compiled
    int64_t plan_ns = 0;      // regions lowered and planned
    int64_t compile_ns = 0;   // to machine code, and parameter-only work
    int64_t arena_bytes = 0;  // held now
    int64_t bind_ns = 0;      // of the last run: everything before the first kernel
    int64_t run_ns = 0;       // of the last run: kernels
  };
  const Report& report() const;
  // The plan of the last run, or null.
  const BoundPlan* last() const;

  // Runs from here on are recorded in `log`, made for the pool's threads, which outlives them; null: no longer.
  void Record(RunLog* log);
  // By position among the variants that Create was given. A plan is null until the variant is compiled.
  const SymbolRanges& guard(int variant) const;
  const BoundPlan* plan(int variant) const;
  // When variants were compiled, on the steady clock in nanoseconds.
  struct CompiledVariant {
    int variant;
    int64_t start, planned, compiled;
  };
  const std::vector<CompiledVariant>& compiled() const;
  const KernelCache& cache() const;
  ThreadPool& pool() const;
  int threads() const { return pool().threads(); }

 private:
  struct State_;
  explicit Executable(std::unique_ptr<State_> state);
  Status Fail(DiagnosticCode code, std::string operand, std::string expected, std::string got) const;
  StatusOr<int> Choose(const Binding& symbols);
  Status Compile(int variant);
  Status CheckLength(const char* kind, const Port& port, const void* data, int64_t bytes, int64_t expected) const;
  Status CheckLengths(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs);
  std::unique_ptr<State_> s_;
};

}  // namespace quern
