#include "support/ptx_device.h"

#include <map>
#include <utility>

#include "device/host_memory.h"
#include "support/ptx_machine.h"

namespace quern::ptx {
namespace {

using device::Address;

class PtxDevice : public device::HostMemoryDevice {
 public:
  explicit PtxDevice(bool descending) : descending_(descending) {}
  std::string name() const override { return "PTX on this machine"; }

  StatusOr<device::LoadedModule> Load(const device::ModuleSource& source) override {
    QUERN_ASSIGN(PtxModule parsed, PtxModule::Parse(source.text));
    device::LoadedModule loaded{next_++, {}};
    PtxModule& module = modules_.emplace(loaded.module, std::move(parsed)).first->second;
    for (const device::ModuleSource::Entry& entry : source.entries) {
      const PtxEntry* const found = module.Find(entry.symbol);
      if (found == nullptr || found->threads() != entry.threads)
        return absl::InvalidArgumentError("no entry " + entry.symbol);
      functions_[next_] = {loaded.module, found};
      loaded.functions.push_back(next_++);
    }
    return loaded;
  }
  Status Unload(uint64_t module) override {
    std::erase_if(functions_, [&](const auto& function) { return function.second.first == module; });
    return modules_.erase(module) == 1 ? absl::OkStatus() : absl::InvalidArgumentError("no module to unload");
  }

  Status Launch(const device::LaunchCall& call) override {
    const auto found = functions_.find(call.function);
    if (found == functions_.end()) return absl::InvalidArgumentError("no function to launch");
    std::vector<uint64_t> arguments(call.pointers.begin(), call.pointers.end());
    for (const int64_t symbol : call.symbols) arguments.push_back(static_cast<uint64_t>(symbol));
    std::vector<Piece> pieces;
    for (const Address address : call.pointers) {
      const std::span<uint8_t> piece = PieceOf(address);
      if (!piece.empty()) pieces.push_back({piece.data(), piece.size()});
    }
    return found->second.second->Run({0, call.chunks, descending_}, arguments, pieces);
  }

 private:
  const bool descending_;
  std::map<uint64_t, std::pair<uint64_t, const PtxEntry*>> functions_;
  std::map<uint64_t, PtxModule> modules_;
  uint64_t next_ = 1;
};

}  // namespace

std::shared_ptr<device::Device> MakeDevice(bool descending) { return std::make_shared<PtxDevice>(descending); }

}  // namespace quern::ptx
