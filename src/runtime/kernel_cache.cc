#include "runtime/kernel_cache.h"

namespace quern {

StatusOr<std::vector<quern_kernel*>> KernelCache::Get(std::span<const kir::Kernel> kernels) {
  const std::lock_guard lock(mutex_);
  std::vector<Hash128> keys;
  std::vector<kir::Kernel> missing;
  std::vector<Hash128> missing_keys;
  for (const kir::Kernel& kernel : kernels) {
    keys.push_back(HashBytes(kir::Print(kernel, {.origins = false, .normalise_names = true})));
    if (!kernels_.emplace(keys.back(), nullptr).second) {
      ++report_.reused;
      continue;
    }
    missing.push_back(kernel);
    missing_keys.push_back(keys.back());
  }
  if (!missing.empty()) {
    StatusOr<jit::Module> module = engine_->Compile(missing);
    if (!module.ok()) {
      for (const Hash128& key : missing_keys) kernels_.erase(key);
      return std::move(module).status();
    }
    for (size_t i = 0; i < missing.size(); ++i) kernels_[missing_keys[i]] = module->kernel(i);
    const jit::CompileReport& report = module->report();
    report_.compiled += static_cast<int>(missing.size());
    report_.compile.times.emit += report.times.emit;
    report_.compile.times.link += report.times.link;
    report_.compile.times.optimise += report.times.optimise;
    report_.compile.times.codegen += report.times.codegen;
    report_.compile.jitlink += report.jitlink;
    report_.compile.wall += report.wall;
    report_.compile.code_bytes += report.code_bytes;
    modules_.push_back(*std::move(module));
  }
  std::vector<quern_kernel*> functions;
  for (const Hash128& key : keys) functions.push_back(kernels_[key]);
  return functions;
}

KernelCache::Report KernelCache::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

}  // namespace quern
