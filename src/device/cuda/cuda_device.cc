#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "device/cuda/driver.h"

namespace quern::device::cuda {
namespace {

constexpr int kLeastCapability = 80;
constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING: no order with streams of others

// A function of a module. Its address is what callers know it by.
struct Entry {
  Function function = nullptr;
  unsigned threads = 0;
  std::string symbol;
};

struct LoadedText {
  Module module = nullptr;
  std::vector<std::unique_ptr<Entry>> entries;
};

struct RecordedGraph {
  Graph graph = nullptr;  // its nodes are what updates name
  GraphExec exec = nullptr;
  std::vector<GraphNode> nodes;
};

class DriverDevice : public Device {
 public:
  DriverDevice(std::shared_ptr<const Driver> driver, DeviceId id, std::string name)
      : d_(std::move(driver)), id_(id), name_(std::move(name)) {}

  // What has been made is given back, however far Open came. Nobody is left to hear of an error.
  ~DriverDevice() override {
    if (context_ == nullptr) return;
    while (!graphs_.empty()) (void)Drop(graphs_.begin()->first);
    while (!texts_.empty()) (void)Unload(texts_.begin()->first);
    (void)Within([&]() -> Status {
      if (stream_ != nullptr) (void)d_->cuStreamDestroy_v2(stream_);
      return absl::OkStatus();
    });
    (void)d_->cuDevicePrimaryCtxRelease_v2(id_);
  }

  Status Open() {
    QUERN_CUDA(*d_, cuDevicePrimaryCtxRetain, (&context_, id_), absl::StrCat("the context of ", name_));
    return Within([&]() -> Status {
      QUERN_CUDA(*d_, cuStreamCreate, (&stream_, kNonBlocking), "a stream");
      return absl::OkStatus();
    });
  }

  std::string name() const override { return name_; }

  StatusOr<LoadedModule> Load(const ModuleSource& source) override {
    if (source.text.empty()) return absl::InvalidArgumentError("a CUDA device loads PTX, and the module has none");
    LoadedModule loaded;
    QUERN_RETURN_IF_ERROR(Within([&]() -> Status {
      QUERN_ASSIGN(const uint64_t id, LoadText(source));
      loaded.module = id;
      for (const std::unique_ptr<Entry>& entry : texts_[id].entries)
        loaded.functions.push_back(reinterpret_cast<uint64_t>(entry.get()));
      return absl::OkStatus();
    }));
    return loaded;
  }

  Status Unload(uint64_t module) override {
    const auto found = texts_.find(module);
    if (found == texts_.end()) return absl::InvalidArgumentError("no module to unload");
    const Module handle = found->second.module;
    texts_.erase(found);
    return Within([&]() -> Status {
      QUERN_CUDA(*d_, cuModuleUnload, (handle), "a module");
      return absl::OkStatus();
    });
  }

  StatusOr<Address> Allocate(int64_t bytes) override {
    DevicePointer pointer = 0;
    const Status status = Within([&]() -> Status {
      QUERN_CUDA(*d_, cuMemAlloc_v2, (&pointer, static_cast<size_t>(bytes)), absl::StrCat(bytes, " bytes"));
      return absl::OkStatus();
    });
    if (status.ok()) return pointer;
    if (pointer != 0) (void)Free(pointer);
    return status;
  }

  Status Free(Address address) override {
    return Within([&]() -> Status {
      QUERN_CUDA(*d_, cuMemFree_v2, (address), "memory");
      return absl::OkStatus();
    });
  }

  Status CopyIn(Address to, const void* from, int64_t bytes) override {
    return Within([&]() -> Status {
      QUERN_CUDA(*d_, cuMemcpyHtoDAsync_v2, (to, from, static_cast<size_t>(bytes), stream_),
                 absl::StrCat(bytes, " bytes to the device"));
      return absl::OkStatus();
    });
  }
  Status CopyOut(void* to, Address from, int64_t bytes) override {
    return Within([&]() -> Status {
      QUERN_CUDA(*d_, cuMemcpyDtoHAsync_v2, (to, from, static_cast<size_t>(bytes), stream_),
                 absl::StrCat(bytes, " bytes from the device"));
      return absl::OkStatus();
    });
  }
  Status Fill(Address to, uint8_t value, int64_t bytes) override {
    return Within([&]() -> Status {
      QUERN_CUDA(*d_, cuMemsetD8Async, (to, value, static_cast<size_t>(bytes), stream_),
                 absl::StrCat(bytes, " bytes to fill"));
      return absl::OkStatus();
    });
  }

  Status Launch(const LaunchCall& call) override {
    return Within([&]() -> Status {
      const Entry& entry = EntryOf(call);
      QUERN_CUDA(*d_, cuLaunchKernel,
                 (entry.function, static_cast<unsigned>(call.chunks), 1, 1, entry.threads, 1, 1, 0, stream_,
                  Arguments(call), nullptr),
                 Doing(call));
      return absl::OkStatus();
    });
  }

  Status Synchronise() override {
    return Within([&]() -> Status {
      QUERN_CUDA(*d_, cuStreamSynchronize, (stream_), "work on the device");
      return absl::OkStatus();
    });
  }

  bool can_record() const override { return true; }

  // Each launch a node that follows the one before it.
  StatusOr<uint64_t> Record(std::span<const LaunchCall> calls) override {
    RecordedGraph made;
    Status status = Within([&]() -> Status {
      QUERN_CUDA(*d_, cuGraphCreate, (&made.graph, 0), "a graph");
      for (const LaunchCall& call : calls) {
        GraphNode node = nullptr;
        const KernelNode kernel = NodeOf(call);
        const GraphNode* const before = made.nodes.empty() ? nullptr : &made.nodes.back();
        QUERN_CUDA(*d_, cuGraphAddKernelNode, (&node, made.graph, before, before == nullptr ? 0 : 1, &kernel),
                   Doing(call));
        made.nodes.push_back(node);
      }
      QUERN_CUDA(*d_, cuGraphInstantiateWithFlags, (&made.exec, made.graph, 0),
                 absl::StrCat("a graph of ", calls.size(), " launches"));
      return absl::OkStatus();
    });
    const uint64_t id = next_++;
    graphs_[id] = std::move(made);
    if (status.ok()) return id;
    (void)Drop(id);
    return status;
  }

  Status Update(uint64_t recording, size_t launch, const LaunchCall& call) override {
    RecordedGraph& graph = graphs_.at(recording);
    return Within([&]() -> Status {
      const KernelNode kernel = NodeOf(call);
      QUERN_CUDA(*d_, cuGraphExecKernelNodeSetParams, (graph.exec, graph.nodes[launch], &kernel), Doing(call));
      return absl::OkStatus();
    });
  }

  Status Replay(uint64_t recording) override {
    RecordedGraph& graph = graphs_.at(recording);
    return Within([&]() -> Status {
      QUERN_CUDA(*d_, cuGraphLaunch, (graph.exec, stream_),
                 absl::StrCat("a graph of ", graph.nodes.size(), " launches"));
      return absl::OkStatus();
    });
  }

  Status Drop(uint64_t recording) override {
    const auto found = graphs_.find(recording);
    if (found == graphs_.end()) return absl::InvalidArgumentError("no recording to drop");
    const RecordedGraph graph = std::move(found->second);
    graphs_.erase(found);
    return Within([&]() -> Status {
      Status status;
      if (graph.exec != nullptr)
        status.Update(d_->Check(d_->cuGraphExecDestroy(graph.exec), "cuGraphExecDestroy", "a graph"));
      if (graph.graph != nullptr)
        status.Update(d_->Check(d_->cuGraphDestroy(graph.graph), "cuGraphDestroy", "a graph"));
      return status;
    });
  }

 private:
  // Runs `body` with the context current on this thread, which may have another one of its program's.
  template <typename Body>
  Status Within(const Body& body) {
    QUERN_CUDA(*d_, cuCtxPushCurrent_v2, (context_), "the context");
    Status status = body();
    Context popped = nullptr;
    status.Update(d_->Check(d_->cuCtxPopCurrent_v2(&popped), "cuCtxPopCurrent_v2", "the context"));
    return status;
  }

  // With the context current. What the driver's compiler has to say becomes part of its error.
  StatusOr<uint64_t> LoadText(const ModuleSource& source) {
    LoadedText text;
    std::string log(8192, '\0');
    int names[] = {kJitErrorLog, kJitErrorLogBytes};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    const Result result = d_->cuModuleLoadDataEx(&text.module, source.text.c_str(), 2, names, values);
    if (result != 0) {
      log.resize(std::min(log.find('\0'), log.size()));
      const Status status =
          d_->Check(result, "cuModuleLoadDataEx", absl::StrCat("PTX of ", source.entries.size(), " kernels"));
      return Status(status.code(), absl::StrCat(status.message(), log.empty() ? "" : ": ", log));
    }
    const auto find = [&]() -> Status {
      for (const ModuleSource::Entry& entry : source.entries) {
        auto made = std::make_unique<Entry>(Entry{nullptr, static_cast<unsigned>(entry.threads), entry.symbol});
        QUERN_CUDA(*d_, cuModuleGetFunction, (&made->function, text.module, entry.symbol.c_str()), entry.symbol);
        text.entries.push_back(std::move(made));
      }
      return absl::OkStatus();
    };
    if (const Status status = find(); !status.ok()) {
      (void)d_->cuModuleUnload(text.module);
      return status;
    }
    const uint64_t id = next_++;
    texts_[id] = std::move(text);
    return id;
  }

  static const Entry& EntryOf(const LaunchCall& call) { return *reinterpret_cast<const Entry*>(call.function); }
  static std::string Doing(const LaunchCall& call) {
    return absl::StrFormat("%d blocks of %u threads of %s", call.chunks, EntryOf(call).threads, EntryOf(call).symbol);
  }

  // Where each argument lies: what a launch takes, and copies before it returns.
  void** Arguments(const LaunchCall& call) {
    arguments_.clear();
    for (const Address& pointer : call.pointers) arguments_.push_back(const_cast<Address*>(&pointer));
    for (const int64_t& symbol : call.symbols) arguments_.push_back(const_cast<int64_t*>(&symbol));
    return arguments_.data();
  }

  KernelNode NodeOf(const LaunchCall& call) {
    const Entry& entry = EntryOf(call);
    return {entry.function,
            static_cast<unsigned>(call.chunks),
            1,
            1,
            entry.threads,
            1,
            1,
            0,
            Arguments(call),
            nullptr,
            nullptr,
            nullptr};
  }

  const std::shared_ptr<const Driver> d_;
  const DeviceId id_;
  const std::string name_;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  std::map<uint64_t, LoadedText> texts_;
  std::map<uint64_t, RecordedGraph> graphs_;
  std::vector<void*> arguments_;
  uint64_t next_ = 1;
};

std::string PathOf(const CudaOptions& options) {
  if (!options.driver.empty()) return options.driver;
  const std::string path = Environment("QUERN_CUDA_DRIVER");
  return path.empty() ? "libcuda.so.1" : path;
}

}  // namespace

StatusOr<CudaDevice> OpenDevice(const CudaOptions& options) {
  QUERN_ASSIGN(const std::shared_ptr<const Driver> driver, Driver::Load(PathOf(options)));
  QUERN_CUDA(*driver, cuInit, (0), "the driver");
  int count = 0;
  QUERN_CUDA(*driver, cuDeviceGetCount, (&count), "the number of devices");
  if (options.ordinal < 0 || options.ordinal >= count) {
    return absl::UnavailableError(
        absl::StrFormat("there is no NVIDIA device %d: the driver has %d", options.ordinal, count));
  }
  DeviceId id = 0;
  QUERN_CUDA(*driver, cuDeviceGet, (&id, options.ordinal), absl::StrCat("device ", options.ordinal));
  char name[256] = {};
  QUERN_CUDA(*driver, cuDeviceGetName, (name, static_cast<int>(sizeof name) - 1, id),
             absl::StrCat("device ", options.ordinal));
  int major = 0, minor = 0;
  QUERN_CUDA(*driver, cuDeviceGetAttribute, (&major, kCapabilityMajor, id), name);
  QUERN_CUDA(*driver, cuDeviceGetAttribute, (&minor, kCapabilityMinor, id), name);
  CudaDevice opened;
  opened.capability = major * 10 + minor;
  if (opened.capability < kLeastCapability) {
    return absl::UnavailableError(absl::StrFormat("%s has compute capability %d.%d; at least %d.%d is needed", name,
                                                  major, minor, kLeastCapability / 10, kLeastCapability % 10));
  }
  auto device = std::make_shared<DriverDevice>(driver, id, absl::StrFormat("%s (sm_%d)", name, opened.capability));
  QUERN_RETURN_IF_ERROR(device->Open());
  opened.device = std::move(device);
  return opened;
}

}  // namespace quern::device::cuda
