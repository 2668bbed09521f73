// A plan with its kernels and its memory: the dispatch list of one variant, kept between runs. Whatever depends on
// nothing is written once; a change of symbols rewrites the symbol tables, the chunk counts and the offsets that name a
// symbol; a caller's new pointer rewrites the arguments that use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "lir/plan.h"
#include "runtime/bound_steps.h"
#include "runtime/kernel_cache.h"
#include "runtime/once_store.h"
#include "runtime/region_observer.h"
#include "runtime/requirements.h"
#include "runtime/run_log.h"
#include "runtime/symbol_program.h"
#include "runtime/thread_pool.h"

namespace quern {

// The launches of a plan (or those that run once) as dispatches, over a table of base addresses, one a buffer.
class DispatchList {
 public:
  Status Build(const lir::Plan& plan, const std::vector<lir::Launch>& launches,
               std::span<quern_kernel* const> functions, std::span<const std::string> names);
  // Follows new values of the symbols; `bases` are the buffers' addresses.
  void Bind(const lir::Plan& plan, std::span<const int64_t> values, std::span<uint8_t* const> bases);
  // Follows a new address of one buffer.
  void Rebase(int buffer, std::span<const int64_t> values, uint8_t* base);
  std::span<const Dispatch> dispatches() const { return dispatches_; }
  // Puts another function in the place of a launch's kernel.
  void Substitute(size_t launch, quern_kernel* kernel) { dispatches_[launch].kernel = kernel; }

 private:
  // One entry of a launch's table of pointers.
  struct Slot {
    int buffer;
    Polynomial offset;
  };
  void HintWeights();

  std::vector<KernelSizes> sizes_;            // by kernel of the plan
  std::vector<std::vector<int64_t>> tables_;  // symbol values, by kernel
  std::vector<int64_t> chunks_;               // by kernel
  std::vector<Slot> slots_;
  std::vector<void*> pointers_;          // one a slot
  std::vector<std::vector<int>> users_;  // slots of each buffer
  std::vector<int> moving_;              // slots whose offset names a symbol
  std::vector<int> kernels_;             // by launch
  std::vector<bool> sequential_;         // by launch, as compiled
  std::vector<int> weight_slots_;        // by launch: its largest parameter, or -1
  std::vector<int64_t> weight_bytes_;
  std::vector<quern_args> args_;
  std::vector<Dispatch> dispatches_;
};

// Addresses that several variants share, by leaf name.
struct SharedMemory {
  // Without an address where the bytes were given back: what is made of them is in `once`.
  std::map<std::string, std::span<const uint8_t>, std::less<>> params;
  std::map<std::string, Memory, std::less<>> states;
  OnceStore once;
  Memory arena;  // of the variant that runs; grows to the largest that has been asked for
};

class BoundPlan {
 public:
  // `names`: the table of symbols; `kernel_symbols`: what the machine code of each kernel is called. Compiles what the
  // cache lacks and runs the parameter-only work that no plan before it did; with an observer, all of it.
  // Errors: a parameter that is not bound, or was given back and is needed; those of the compiler.
  static StatusOr<std::unique_ptr<BoundPlan>> Create(lir::Plan plan, std::span<const std::string> names,
                                                     std::vector<std::string> kernel_symbols, KernelCache& cache,
                                                     SharedMemory& memory, ThreadPool& pool, Stepping stepping = {});

  // Follows the symbols, and makes sure the arena is large enough. Cheap when nothing changed.
  // Errors: a requirement of the plan that the values break; no memory.
  Status Bind(std::span<const int64_t> values, SharedMemory& memory);
  void SetInput(std::string_view name, const void* data);
  void SetOutput(int index, void* data);
  // Runs the steps; with an observer, region by region between its calls. `log`: takes the times of the launches, of a
  // run that it was told of; or null. `cancel`: Cancelled as soon as it is true; or null. Errors: those of
  // BoundSteps::Run and of the observer.
  Status Run(ThreadPool& pool, std::span<void* const> scratch, RunLog* log, const std::atomic<bool>* cancel);
  // The plan as bytes that an Executable of a later process may find (lir/sealed.h). Error: Unimplemented, a plan that
  // has no such form.
  StatusOr<std::string> Sealed() const;
  // Forgets where it lies in the arena, which is to be another one.
  void Unplace();
  // What it holds, and what of it other plans may hold too: of machine code, of values of parameters alone (and their
  // keys in the store), of constants.
  int64_t code_bytes() const { return kernels_.code_bytes; }
  int64_t packed_bytes() const { return packed_bytes_; }
  const std::set<Hash128>& packed() const { return packed_; }
  int64_t constant_bytes() const;
  // Of the arena, for the values it is bound to.
  int64_t arena_bytes() const { return values_.empty() && !names_.empty() ? 0 : arena_bytes_.Evaluate(values_); }
  // Bytes of scratch that a worker needs.
  int64_t scratch_bytes() const { return scratch_bytes_; }
  std::span<const Dispatch> dispatches() const { return list_.dispatches(); }
  // Of the symbols, in the order of the names: what the last run was given and found.
  const std::vector<int64_t>& values() const { return values_; }
  // Launches of the last run, each as often as it ran.
  int64_t launched() const { return launched_; }
  const lir::Plan& plan() const { return plan_; }
  const std::vector<quern_kernel*>& functions() const { return functions_; }
  const std::vector<std::string>& kernel_symbols() const { return kernel_symbols_; }

 private:
  BoundPlan(lir::Plan plan, Stepping stepping) : plan_(std::move(plan)), stepping_(std::move(stepping)) {}
  Status Prepare(std::span<const std::string> names, KernelCache& cache, SharedMemory& memory, ThreadPool& pool);
  // Bytes of scratch of a kernel for all sizes.
  StatusOr<int64_t> ScratchOf(size_t kernel) const;
  // What computes each kernel: compiled where the cache lacks it, or the caller's own.
  Status GetFunctions(KernelCache& cache);
  Status RunOnce(std::span<const std::string> names, SharedMemory& memory, ThreadPool& pool);
  // Puts the functions of `stepping_` in the place of kernels.
  void Substitute(DispatchList& list, std::span<const lir::Launch> launches) const;
  class Host;
  // The launches [first, end) of a list, between calls of the observer.
  Status RunStepwise(const DispatchList& list, std::span<const lir::Launch> launches, size_t first, size_t end,
                     std::span<const int64_t> values, bool once, ThreadPool& pool, std::span<void* const> scratch);
  // Sets the base of a buffer that is alive for as long as the arena stays where it is.
  void Place(int buffer, uint8_t* base);

  lir::Plan plan_;
  Stepping stepping_;
  std::vector<std::string> names_, kernel_symbols_;
  KernelCache::Kernels kernels_;
  std::vector<quern_kernel*> functions_;
  std::set<Hash128> packed_;
  int64_t packed_bytes_ = 0;
  std::vector<uint8_t*> bases_;      // by buffer of the plan
  std::vector<Polynomial> offsets_;  // by buffer: in the arena
  Requirements requirements_;
  Polynomial arena_bytes_;
  bool arena_bounded_ = true;                       // fits 64 bits for all values of the symbols
  std::map<std::string, int, std::less<>> inputs_;  // buffers
  std::map<int, std::vector<int>> outputs_;
  std::vector<Memory> constants_;
  DispatchList list_;
  BoundSteps steps_;
  std::vector<int64_t> values_;     // that the list is bound to; empty before the first
  const uint8_t* arena_ = nullptr;  // that the list is bound to
  int64_t scratch_bytes_ = 0;
  int64_t launched_ = 0;
};

}  // namespace quern
