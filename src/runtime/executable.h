// Executable: a model ready to run. Inputs and outputs are the caller's memory, parameters are bound once, donated
// inputs are state that the executable owns, and the variant (a plan for some ranges of the symbols) is chosen by each
// run.
//
//   QUERN_ASSIGN(auto executable, Executable::Create(SignatureOf(graph), std::move(variants), options));
//   QUERN_RETURN_IF_ERROR(executable->BindParam("w", bytes));
//   QUERN_RETURN_IF_ERROR(executable->Run(inputs, outputs, {{"SEQ", 5}}));
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/extent.h"
#include "base/status.h"
#include "lir/plan.h"
#include "runtime/bound_plan.h"
#include "runtime/kernel_cache.h"
#include "runtime/run_log.h"
#include "runtime/run_sizes.h"
#include "runtime/runnable.h"
#include "runtime/thread_pool.h"

namespace quern {

// A plan that is made when a run first needs it.
struct Variant {
  SymbolRanges guard;  // symbols that are not named may have any value in the signature's range
  std::function<StatusOr<lir::Plan>()> plan;
};

// Where plans stay between starts: both functions or none. Plans of runs with an observer are neither kept nor found.
struct PlanKeeper {
  // A plan of an earlier start for the variant at this position, sealed; nothing, where there is none.
  std::function<std::optional<lir::Plan>(int variant)> find;
  // Takes what has been compiled.
  std::function<void(int variant, const BoundPlan& bound)> keep;
};

struct ExecutableOptions {
  std::shared_ptr<KernelCache> cache;
  std::shared_ptr<ThreadPool> pool;
  std::function<void(std::string_view)> log;  // one line when a variant is compiled; may be empty
  Stepping stepping = {};                     // normal runs: as it is
  const std::atomic<bool>* cancel = nullptr;  // true: a run ends as soon as it can; null: nobody asks
  PlanKeeper plans = {};
};

// Different executables are independent, except that those of one pool must not run at once; they may share a kernel
// cache.
class Executable : public Runnable {
 public:
  // Variants are tried in order. State is allocated and zero.
  // Errors: a state or parameter without a largest size; no memory.
  static StatusOr<std::unique_ptr<Executable>> Create(Signature signature, std::vector<Variant> variants,
                                                      ExecutableOptions options);
  ~Executable() override;

  const Signature& signature() const override;
  // Position among signature().inputs. Error: kUnknownName lists the names there are.
  StatusOr<int> InputIndex(std::string_view name) const;

  // The bytes must outlive the executable; those that are not aligned to their elements (of blocks: to 32)
  // are copied. What was made of other parameters alone stays.
  Status BindParam(std::string_view name, std::span<const uint8_t> bytes) override {
    return BindParam(name, bytes, nullptr);
  }
  // The same with an end: `release` is called once, by the thread that uses the executable, when nobody reads the bytes
  // any more. Where runs read what was made of them alone, that is in the next Prepare or Run, which compiles every
  // variant; else when the parameter is bound again, or the executable goes. It must not use the executable. After an
  // error it has not been called, and never will be. With an observer bytes are read to the end.
  Status BindParam(std::string_view name, std::span<const uint8_t> bytes, std::function<void()> release);
  // Error: an output that shares a byte with a parameter or a state.
  Status CheckApart(std::span<const MutableBytes> outputs) const;
  // Memory is read and written in place.
  Status Run(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs,
             const Binding& symbols) override;
  Status Prepare(const Binding& symbols) override;

  StatusOr<std::span<uint8_t>> State(std::string_view name);
  void ResetState();

  const Report& report() const override;
  // Values of all symbols in the last run that went well, those that it found among them; none before the first.
  Binding last_sizes() const;
  // The plan of the last run, or null.
  const BoundPlan* last() const;

  // Plans have kernels with bodies from here on: those that were found are made again when a run needs them.
  Status Unseal();
  // Runs from here on are recorded in `log`, made for the pool's threads, which outlives them; null: no longer.
  void Record(RunLog* log);
  // By position among the variants that Create was given. A plan is null until the variant is compiled.
  int variants() const;
  const SymbolRanges& guard(int variant) const;
  const BoundPlan* plan(int variant) const;
  // Runs of the variant since it was compiled, or since the last DropUnused.
  int64_t runs(int variant) const;
  // Gives back the code and the packed weights of the variants without such a run, but for what others use, and the
  // arena; a run that needs one of them compiles it again. What was made of parameters that were given back stays. How
  // many they were. Errors: kBusy, during a run or while runs are recorded.
  StatusOr<int> DropUnused();
  // Held now.
  struct MemoryReport {
    int64_t states = 0, arena = 0, packed = 0, constants = 0, code = 0;
    int64_t scratch = 0;  // of all threads
    int64_t copied = 0;   // parameters that were not aligned
  };
  MemoryReport memory() const;
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
  // The variant, and before parameters are given back every other.
  Status Compile(int variant);
  Status CompileOne(int variant);
  // A plan with its kernels and its memory; found where it was kept.
  StatusOr<std::unique_ptr<BoundPlan>> BindOne(int variant, int64_t& planned);
  // Gives back the parameters that no run of any variant reads.
  void ReleasePacked();
  Status ReserveScratch(int64_t bytes);
  std::unique_ptr<State_> s_;
};

}  // namespace quern
