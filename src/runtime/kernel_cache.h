// Compiled kernels by their canonical text: regions that are equal but for names compile once, across layers, variants
// and executables of one process; with a store, once for all processes of a user.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "cache/object_store.h"
#include "jit/engine.h"
#include "lir/sealed.h"

namespace quern {

// Thread-safe. Owns the machine code, for as long as it lives or until Collect.
class KernelCache {
 public:
  // Functions, and what keeps their code.
  struct Kernels {
    std::vector<quern_kernel*> functions;
    std::vector<std::shared_ptr<const jit::Module>> modules;
    int64_t code_bytes = 0;                 // of the object files of these functions, each once
    std::vector<lir::SealedKernel> sealed;  // what Find takes, one a function; no scratch
  };
  struct Report {
    int compiled = 0, loaded = 0, reused = 0;  // kernels asked for: new, from the store, known
    int unstored = 0;                          // compiled, but the store did not take them
    jit::CompileReport compile;                // summed; jitlink and code_bytes of loaded ones too
    int64_t load_ns = 0;                       // finding, checking and linking what came from the store
  };

  // `store` may be null. `verify`: what the store has is compiled as well, and the bytes compared.
  explicit KernelCache(std::shared_ptr<jit::Engine> engine, std::shared_ptr<const cache::ObjectStore> store = nullptr,
                       bool verify = false)
      : engine_(std::move(engine)), store_(std::move(store)), verify_(verify) {}

  // One function a kernel, compiling what is new in one batch. The kernels have passed kir::Verify. `symbols`: what the
  // functions are called where they are new, none twice (lir/kernel_symbols.h). A store that cannot be read or written
  // is as good as none. Errors: those of the compiler; with `verify`, a stored object that differs, by its symbol.
  StatusOr<Kernels> Get(std::span<const kir::Kernel> kernels, std::span<const std::string> symbols);
  // Functions of kernels that Get has had, in this process or an earlier one, without their text. Error: NotFound, the
  // store lacks one, or it is not to be trusted (`verify`).
  StatusOr<Kernels> Find(std::span<const lir::SealedKernel> kernels);
  // Forgets code that nobody keeps beside it: of modules of which all Kernels are gone.
  void Collect();
  Report report() const;
  // Of every kernel so far, in the order it was got: its function and where the time of its code went.
  std::vector<std::pair<quern_kernel*, jit::ObjectReport>> objects() const;
  const jit::Engine& engine() const { return *engine_; }
  // May be null.
  const std::shared_ptr<const cache::ObjectStore>& store() const { return store_; }

 private:
  // Kernels of one Get that this process does not know yet. A key is made once a kernel: it holds the text, whose hash
  // is `text`.
  struct Wanted {
    std::vector<kir::Kernel> kernels;
    std::vector<cache::CompileKey> keys;
    std::vector<Hash128> texts;
    void Add(kir::Kernel kernel, cache::CompileKey key, const Hash128& text);
    std::vector<Hash128> Objects() const;  // hashes of the keys
  };
  StatusOr<jit::Module> Compiled(const Wanted& wanted);
  // Adds those that the store has; the others are returned.
  StatusOr<Wanted> Load(Wanted wanted);
  Status Compile(const Wanted& wanted);
  // `objects`: hashes of the keys, beside `texts`.
  void Adopt(jit::Module module, std::span<const Hash128> texts, std::span<const Hash128> objects);
  // What is known of kernels by the hashes of their texts.
  Kernels Gathered(std::span<const Hash128> texts);

  const std::shared_ptr<jit::Engine> engine_;
  const std::shared_ptr<const cache::ObjectStore> store_;
  const bool verify_;
  mutable std::mutex mutex_;
  struct Known {
    quern_kernel* function = nullptr;
    std::shared_ptr<const jit::Module> module;
    int64_t bytes = 0;
    std::string symbol;
    Hash128 object;
  };
  std::map<Hash128, Known> kernels_;
  std::vector<std::shared_ptr<const jit::Module>> modules_;
  Report report_;
};

}  // namespace quern
