#include "compiler/runtime_options.h"

#include "jit/engine.h"

namespace quern::compiler {
namespace {

constexpr int kMaxThreads = 256;

StatusOr<int> Threads(const char* what, int threads) {
  if (threads < 0 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(absl::StrFormat("%d %s were asked for, 0 to %d can be had", threads, what, kMaxThreads));
  }
  return threads > 0 ? threads : DefaultThreads();
}

}  // namespace

StatusOr<ExecutableOptions> ExecutableOptionsOf(const Options& options) {
  QUERN_ASSIGN(const int threads, Threads("threads", options.threads));
  jit::EngineOptions engine_options;
  engine_options.cpu = options.cpu;
  QUERN_ASSIGN(engine_options.threads, Threads("compile threads", options.compile_threads));
  engine_options.emit.specialise = options.specialise;
  QUERN_ASSIGN(std::shared_ptr<jit::Engine> engine, jit::Engine::Create(engine_options));
  ExecutableOptions executable_options;
  executable_options.cache = std::make_shared<KernelCache>(std::move(engine));
  executable_options.pool = std::make_shared<ThreadPool>(threads);
  executable_options.log = options.log;
  return executable_options;
}

}  // namespace quern::compiler
