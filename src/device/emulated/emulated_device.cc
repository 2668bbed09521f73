#include "device/emulated/emulated_device.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "device/host_memory.h"
#include "kir/interpret.h"
#include "runtime/thread_pool.h"

namespace quern::device::emulated {
namespace {

// A kernel for one thread of the pool, ready for the symbols that it had last.
struct Worker {
  std::unique_ptr<kir::Interpreter> interpreter;
  std::vector<int64_t> symbols;
};

struct Function {
  std::string symbol;
  kir::Kernel kernel;
  std::vector<Worker> workers;
};

// One launch, as the pool's threads see it.
struct Launching {
  Function* function;
  std::span<const int64_t> symbols;
  std::vector<kir::BufferBytes> buffers;
  Binding binding;
  int64_t chunks, parts;
  std::mutex mutex;
  Status status;  // of the first part that failed
};

Status RunPart(Launching& launching, int worker, int64_t part) {
  Worker& own = launching.function->workers[worker];
  if (own.interpreter == nullptr ||
      !std::equal(own.symbols.begin(), own.symbols.end(), launching.symbols.begin(), launching.symbols.end())) {
    QUERN_ASSIGN(kir::Interpreter interpreter, kir::Interpreter::Create(launching.function->kernel, launching.binding));
    own.interpreter = std::make_unique<kir::Interpreter>(std::move(interpreter));
    own.symbols.assign(launching.symbols.begin(), launching.symbols.end());
  }
  if (own.interpreter->chunks() != launching.chunks) {
    return absl::InternalError(
        absl::StrFormat("%d chunks are launched, the grid has %d", launching.chunks, own.interpreter->chunks()));
  }
  return own.interpreter->Run(launching.buffers, launching.chunks * part / launching.parts,
                              launching.chunks * (part + 1) / launching.parts);
}

// A quern_kernel: its chunks are parts of a launch, and its scratch says which thread runs it.
void RunParts(const quern_args* args, void* scratch, int64_t begin, int64_t end) {
  Launching& launching = *static_cast<Launching*>(args->buffers[0]);
  for (int64_t part = begin; part < end; ++part) {
    const Status status = RunPart(launching, *static_cast<int*>(scratch), part);
    if (status.ok()) continue;
    const std::lock_guard lock(launching.mutex);
    launching.status.Update(status);
  }
}

class EmulatedDevice : public HostMemoryDevice {
 public:
  explicit EmulatedDevice(int threads) : pool_(threads), numbers_(threads) {
    for (int w = 0; w < threads; ++w) {
      numbers_[w] = w;
      scratch_.push_back(&numbers_[w]);
    }
  }

  std::string name() const override { return "emulated (the KIR interpreter)"; }

  StatusOr<LoadedModule> Load(const ModuleSource& source) override {
    if (source.kernels.size() != source.entries.size())
      return absl::InvalidArgumentError("the emulated device loads kernels, and the module has none");
    LoadedModule loaded{next_++, {}};
    for (size_t k = 0; k < source.kernels.size(); ++k) {
      const uint64_t id = next_++;
      Function& function = functions_[id];
      function.symbol = source.entries[k].symbol;
      function.kernel = source.kernels[k];
      function.workers.resize(numbers_.size());
      loaded.functions.push_back(id);
    }
    modules_[loaded.module] = loaded.functions;
    return loaded;
  }

  Status Unload(uint64_t module) override {
    const auto found = modules_.find(module);
    if (found == modules_.end()) return absl::InvalidArgumentError("no module to unload");
    for (const uint64_t function : found->second) functions_.erase(function);
    modules_.erase(found);
    return absl::OkStatus();
  }

  Status Launch(const LaunchCall& call) override {
    const auto found = functions_.find(call.function);
    if (found == functions_.end()) return absl::InvalidArgumentError("no function to launch");
    Function& function = found->second;
    Status status = Launch(function, call);
    return status.ok() ? status : Status(status.code(), absl::StrCat(function.symbol, ": ", status.message()));
  }

 private:
  Status Launch(Function& function, const LaunchCall& call) {
    const kir::Kernel& kernel = function.kernel;
    if (call.pointers.size() != kernel.params.size() || call.symbols.size() != kernel.symbols.size() ||
        call.chunks < 1) {
      return absl::InvalidArgumentError("launched with other arguments than it has");
    }
    Launching launching{.function = &function,
                        .symbols = call.symbols,
                        .buffers = {},
                        .binding = {},
                        .chunks = call.chunks,
                        .parts = std::min<int64_t>(call.chunks, static_cast<int64_t>(numbers_.size())),
                        .mutex = {},
                        .status = {}};
    for (size_t s = 0; s < kernel.symbols.size(); ++s) launching.binding[kernel.symbols[s].name] = call.symbols[s];
    for (size_t p = 0; p < kernel.params.size(); ++p) {
      const kir::Param& param = kernel.params[p];
      QUERN_ASSIGN(const int64_t bytes,
                   kir::LayoutBytes(param.type.layout, param.type.dtype, param.type.dims).Evaluate(launching.binding));
      QUERN_ASSIGN(uint8_t* const memory, Find(call.pointers[p], bytes, param.name.c_str()));
      if (call.pointers[p] % static_cast<uint64_t>(param.align) != 0) {
        return absl::InvalidArgumentError(absl::StrFormat("%s is not aligned to %d", param.name, param.align));
      }
      launching.buffers.emplace_back(memory, static_cast<size_t>(bytes));
    }
    void* const context = &launching;
    const quern_args args = {&context, nullptr};
    Dispatch dispatch{};
    dispatch.kernel = RunParts;
    dispatch.args = &args;
    dispatch.chunks = launching.parts;
    pool_.Run({&dispatch, 1}, scratch_);
    return launching.status;
  }

  ThreadPool pool_;
  std::vector<int> numbers_;    // by thread: its own
  std::vector<void*> scratch_;  // by thread: where that is
  std::map<uint64_t, Function> functions_;
  std::map<uint64_t, std::vector<uint64_t>> modules_;
  uint64_t next_ = 1;
};

}  // namespace

std::shared_ptr<Device> MakeDevice(int threads) { return std::make_shared<EmulatedDevice>(threads); }

}  // namespace quern::device::emulated
