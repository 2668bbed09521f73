// Compiled kernels by their canonical text: regions that are equal but for names compile once, across layers, variants
// and executables of one process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "jit/engine.h"

namespace quern {

// Thread-safe. Owns the machine code; kernels stay valid for its life.
class KernelCache {
 public:
  struct Report {
    int compiled = 0, reused = 0;  // kernels asked for
    jit::CompileReport compile;    // summed
  };

  explicit KernelCache(std::shared_ptr<jit::Engine> engine) : engine_(std::move(engine)) {}

  // One function a kernel, compiling what is new in one batch. The kernels have passed kir::Verify.
  StatusOr<std::vector<quern_kernel*>> Get(std::span<const kir::Kernel> kernels);
  Report report() const;
  const jit::Engine& engine() const { return *engine_; }

 private:
  std::shared_ptr<jit::Engine> engine_;
  mutable std::mutex mutex_;
  std::map<Hash128, quern_kernel*> kernels_;
  std::vector<jit::Module> modules_;
  Report report_;
};

}  // namespace quern
