#include "support/shim_device.h"

#include <map>
#include <utility>
#include <vector>

#include "device/host_memory.h"
#include "support/metal_kernel.h"

namespace quern {
namespace {

using device::Address;

class ShimDevice : public device::HostMemoryDevice {
 public:
  std::string name() const override { return "Metal text on this machine"; }

  StatusOr<device::LoadedModule> Load(const device::ModuleSource& source) override {
    if (source.text.empty() || source.kernels.size() != source.entries.size())
      return absl::InvalidArgumentError("a module without text or kernels");
    codegen::DeviceModule module;
    module.text = source.text;
    for (const auto& entry : source.entries)
      module.kernels.push_back({.symbol = entry.symbol, .threads = entry.threads});
    QUERN_ASSIGN(MetalLibrary library, MetalLibrary::Compile(module, source.kernels));
    device::LoadedModule loaded{next_++, {}};
    for (size_t k = 0; k < source.kernels.size(); ++k) {
      loaded.functions.push_back(next_);
      functions_[next_++] = {library.kernels()[k], source.kernels[k].params.size(), source.kernels[k].symbols.size()};
    }
    modules_.emplace(loaded.module, Module{std::move(library), loaded.functions});
    return loaded;
  }
  Status Unload(uint64_t module) override {
    const auto found = modules_.find(module);
    if (found == modules_.end()) return absl::InvalidArgumentError("no module to unload");
    for (const uint64_t function : found->second.functions) functions_.erase(function);
    modules_.erase(found);
    return absl::OkStatus();
  }

  Status Launch(const device::LaunchCall& call) override {
    const auto found = functions_.find(call.function);
    if (found == functions_.end()) return absl::InvalidArgumentError("no function to launch");
    if (call.pointers.size() != found->second.pointers || call.symbols.size() != found->second.symbols) {
      return absl::InvalidArgumentError("launched with other arguments than it has");
    }
    std::vector<void*> pointers;
    for (const Address address : call.pointers) pointers.push_back(reinterpret_cast<void*>(address));
    const quern_args args = {pointers.data(), call.symbols.data()};
    found->second.run(&args, nullptr, 0, call.chunks);
    return absl::OkStatus();
  }

 private:
  struct Function {
    quern_kernel* run;
    size_t pointers, symbols;
  };
  struct Module {
    MetalLibrary library;
    std::vector<uint64_t> functions;
  };
  std::map<uint64_t, Function> functions_;
  std::map<uint64_t, Module> modules_;
  uint64_t next_ = 1;
};

}  // namespace

std::shared_ptr<device::Device> MakeShimDevice() { return std::make_shared<ShimDevice>(); }

}  // namespace quern
