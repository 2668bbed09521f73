#include "compiler/runtime_options.h"

#include "base/environment.h"
#include "cache/folder.h"
#include "cache/object_store.h"
#include "jit/engine.h"

namespace quern::compiler {
namespace {

constexpr int kMaxThreads = 256;

StatusOr<int> Threads(const char* what, int threads) {
  if (threads < 0 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d %s were asked for, 0 to %d can be had", threads, what, kMaxThreads));
  }
  return threads > 0 ? threads : DefaultThreads();
}

std::string DebugFolder(const Options& options) {
  return options.debug_kernels.empty() ? Environment("QUERN_DEBUG_KERNELS") : options.debug_kernels;
}

}  // namespace

StatusOr<std::shared_ptr<cache::ObjectStore>> StoreOf(const Options& options) {
  if (!DebugFolder(options).empty())
    return std::shared_ptr<cache::ObjectStore>();  // such objects hold the folder's path
  const std::optional<std::string> folder = cache::ChooseFolder(options.cache);
  if (!folder) return std::shared_ptr<cache::ObjectStore>();
  StatusOr<std::unique_ptr<cache::ObjectStore>> store = cache::ObjectStore::Open(*folder, cache::kDefaultLimit);
  if (store.ok()) return std::shared_ptr<cache::ObjectStore>(*std::move(store));
  // Whoever asked for a folder hears that it cannot be used; the default is only a convenience.
  if (!options.cache.empty() || !Environment("QUERN_CACHE").empty()) return store.status();
  if (options.log) options.log(absl::StrFormat("no cache: %s", std::string(store.status().message())));
  return std::shared_ptr<cache::ObjectStore>();
}

StatusOr<int> ThreadsOf(const Options& options) { return Threads("threads", options.threads); }

StatusOr<std::shared_ptr<jit::Engine>> EngineOf(const Options& options) {
  jit::EngineOptions engine_options;
  engine_options.perf_map = options.perf_map || Environment("QUERN_PERF_MAP") == "1";
  engine_options.debug_folder = DebugFolder(options);
  engine_options.cpu = options.cpu;
  QUERN_ASSIGN(engine_options.threads, Threads("compile threads", options.compile_threads));
  engine_options.emit.specialise = options.specialise;
  return jit::Engine::Create(engine_options);
}

StatusOr<ExecutableOptions> ExecutableOptionsOf(const Options& options) {
  QUERN_ASSIGN(const int threads, ThreadsOf(options));
  QUERN_ASSIGN(std::shared_ptr<jit::Engine> engine, EngineOf(options));
  ExecutableOptions executable_options;
  QUERN_ASSIGN(std::shared_ptr<cache::ObjectStore> store, StoreOf(options));
  executable_options.cache = std::make_shared<KernelCache>(std::move(engine), std::move(store), options.cache_verify);
  QUERN_ASSIGN(executable_options.pool, ThreadPool::Create(threads));
  executable_options.log = options.log;
  if (options.cancel != nullptr) executable_options.cancel = &options.cancel->flag();
  return executable_options;
}

}  // namespace quern::compiler
