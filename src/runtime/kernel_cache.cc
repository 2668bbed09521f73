#include "runtime/kernel_cache.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/ticks.h"

namespace quern {

void KernelCache::Wanted::Add(kir::Kernel kernel, cache::CompileKey key, const Hash128& text) {
  kernels.push_back(std::move(kernel));
  keys.push_back(std::move(key));
  texts.push_back(text);
}

std::vector<Hash128> KernelCache::Wanted::Objects() const {
  std::vector<Hash128> objects;
  for (const cache::CompileKey& key : keys) objects.push_back(cache::HashOf(key));
  return objects;
}

StatusOr<KernelCache::Kernels> KernelCache::Get(std::span<const kir::Kernel> kernels,
                                                std::span<const std::string> symbols) {
  const std::lock_guard lock(mutex_);
  std::vector<Hash128> texts;
  Wanted wanted;
  for (size_t i = 0; i < kernels.size(); ++i) {
    cache::CompileKey key = engine_->KeyOf(kernels[i], symbols[i]);
    texts.push_back(HashBytes(key.kernel));
    if (kernels_.emplace(texts.back(), Known{}).second)
      wanted.Add(kernels[i], std::move(key), texts.back());
    else
      ++report_.reused;
  }
  const std::vector<Hash128> added = wanted.texts;
  StatusOr<Wanted> missing = Load(std::move(wanted));
  const Status status = missing.ok() ? Compile(*missing) : missing.status();
  if (!status.ok()) {
    // What was got before the error stays.
    for (const Hash128& text : added) {
      if (kernels_[text].function == nullptr) kernels_.erase(text);
    }
    return status;
  }
  return Gathered(texts);
}

StatusOr<KernelCache::Kernels> KernelCache::Find(std::span<const lir::SealedKernel> kernels) {
  const std::lock_guard lock(mutex_);
  const int64_t start = SteadyNs();
  const auto missing = [](const std::string& symbol) {
    return absl::NotFoundError(absl::StrCat("the code of ", symbol, " is not there"));
  };
  std::vector<Hash128> texts, added, objects;
  std::vector<cache::Entry> entries;
  std::set<Hash128> wanted;
  for (const lir::SealedKernel& kernel : kernels) {
    texts.push_back(kernel.text);
    if (kernels_.contains(kernel.text) || !wanted.insert(kernel.text).second) continue;
    std::optional<cache::Entry> entry;
    if (store_ != nullptr && !verify_) entry = store_->Find(kernel.object);
    if (!entry) return missing(kernel.symbol);
    added.push_back(kernel.text);
    objects.push_back(kernel.object);
    entries.push_back(*std::move(entry));
  }
  if (!entries.empty()) {
    std::vector<jit::SavedObject> saved;
    for (const cache::Entry& entry : entries) saved.push_back({entry.object, entry.key.symbol});
    StatusOr<jit::Module> module = engine_->Load(saved);
    if (!module.ok()) return missing(entries[0].key.symbol);
    Adopt(*std::move(module), added, objects);
  }
  report_.loaded += static_cast<int>(entries.size());
  report_.reused += static_cast<int>(kernels.size() - entries.size());
  report_.load_ns += SteadyNs() - start;
  return Gathered(texts);
}

KernelCache::Kernels KernelCache::Gathered(std::span<const Hash128> texts) {
  Kernels got;
  std::set<Hash128> counted;
  for (const Hash128& text : texts) {
    const Known& known = kernels_[text];
    got.functions.push_back(known.function);
    got.sealed.push_back({known.symbol, text, known.object});
    if (!counted.insert(text).second) continue;
    got.code_bytes += known.bytes;
    if (std::find(got.modules.begin(), got.modules.end(), known.module) == got.modules.end())
      got.modules.push_back(known.module);
  }
  return got;
}

void KernelCache::Collect() {
  const std::lock_guard lock(mutex_);
  std::map<const jit::Module*, int64_t> own;  // uses by this cache
  for (const auto& module : modules_) own[module.get()] = 1;
  for (const auto& [text, known] : kernels_) ++own[known.module.get()];
  std::set<const jit::Module*> unused;
  for (const auto& module : modules_) {
    if (module.use_count() == own[module.get()]) unused.insert(module.get());
  }
  std::erase_if(kernels_, [&](const auto& entry) { return unused.contains(entry.second.module.get()); });
  std::erase_if(modules_, [&](const auto& module) { return unused.contains(module.get()); });
}

StatusOr<KernelCache::Wanted> KernelCache::Load(Wanted wanted) {
  if (store_ == nullptr || wanted.kernels.empty()) return wanted;
  const int64_t start = SteadyNs();
  Wanted missing, found;
  std::vector<cache::Entry> entries;
  for (size_t i = 0; i < wanted.kernels.size(); ++i) {
    std::optional<cache::Entry> entry = store_->Find(wanted.keys[i]);
    (entry ? found : missing).Add(std::move(wanted.kernels[i]), std::move(wanted.keys[i]), wanted.texts[i]);
    if (entry) entries.push_back(*std::move(entry));
  }
  if (entries.empty()) return missing;
  if (verify_) {
    QUERN_ASSIGN(const jit::Module again, Compiled(found));
    for (size_t i = 0; i < entries.size(); ++i) {
      if (again.object(i) == entries[i].object) continue;
      return absl::DataLossError(absl::StrFormat("the cached object of %s is not what compiling it gives (in %s)",
                                                 found.keys[i].symbol, store_->folder()));
    }
  }
  std::vector<jit::SavedObject> objects;
  for (const cache::Entry& entry : entries) objects.push_back({entry.object, entry.key.symbol});
  StatusOr<jit::Module> module = engine_->Load(objects);
  if (!module.ok()) {
    // The bytes are those that were stored, yet cannot be linked: compiling is the safe way out.
    for (size_t i = 0; i < found.kernels.size(); ++i)
      missing.Add(std::move(found.kernels[i]), std::move(found.keys[i]), found.texts[i]);
    return missing;
  }
  report_.loaded += static_cast<int>(entries.size());
  Adopt(*std::move(module), found.texts, found.Objects());
  report_.load_ns += SteadyNs() - start;
  return missing;
}

StatusOr<jit::Module> KernelCache::Compiled(const Wanted& wanted) {
  std::vector<std::string> symbols;
  for (const cache::CompileKey& key : wanted.keys) symbols.push_back(key.symbol);
  return engine_->Compile(wanted.kernels, symbols);
}

Status KernelCache::Compile(const Wanted& wanted) {
  if (wanted.kernels.empty()) return absl::OkStatus();
  QUERN_ASSIGN(jit::Module module, Compiled(wanted));
  report_.compiled += static_cast<int>(wanted.kernels.size());
  report_.compile.wall += module.report().wall;
  if (store_ != nullptr) {
    for (size_t i = 0; i < wanted.kernels.size(); ++i) {
      const Status stored = store_->Insert({wanted.keys[i], module.object(i), wanted.kernels[i].origins});
      if (!stored.ok()) ++report_.unstored;
    }
    store_->CollectAtTimes();
  }
  Adopt(std::move(module), wanted.texts, wanted.Objects());
  return absl::OkStatus();
}

void KernelCache::Adopt(jit::Module made, std::span<const Hash128> texts, std::span<const Hash128> objects) {
  const auto module = std::make_shared<const jit::Module>(std::move(made));
  for (size_t i = 0; i < texts.size(); ++i) {
    const jit::ObjectReport& report = module->object_report(i);
    kernels_[texts[i]] = {module->kernel(i), module, report.bytes, report.symbol, objects[i]};
  }
  const jit::CompileReport& report = module->report();
  report_.compile.times.emit += report.times.emit;
  report_.compile.times.link += report.times.link;
  report_.compile.times.optimise += report.times.optimise;
  report_.compile.times.codegen += report.times.codegen;
  report_.compile.jitlink += report.jitlink;
  report_.compile.code_bytes += report.code_bytes;
  modules_.push_back(module);
}

KernelCache::Report KernelCache::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

std::vector<std::pair<quern_kernel*, jit::ObjectReport>> KernelCache::objects() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<quern_kernel*, jit::ObjectReport>> objects;
  for (const auto& module : modules_) {
    for (size_t i = 0; i < module->size(); ++i) objects.emplace_back(module->kernel(i), module->object_report(i));
  }
  return objects;
}

}  // namespace quern
