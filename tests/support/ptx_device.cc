#include "support/ptx_device.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/ptx_machine.h"

namespace quern::ptx {
namespace {

using device::Address;

struct Freed {
  void operator()(uint8_t* memory) const { std::free(memory); }
};
struct Allocation {
  std::unique_ptr<uint8_t, Freed> memory;
  int64_t bytes = 0;
};

class PtxDevice : public device::Device {
 public:
  explicit PtxDevice(bool descending) : descending_(descending) {}
  std::string name() const override { return "PTX on this machine"; }

  StatusOr<device::LoadedModule> Load(const device::ModuleSource& source) override {
    QUERN_ASSIGN(PtxModule parsed, PtxModule::Parse(source.text));
    device::LoadedModule loaded{next_++, {}};
    PtxModule& module = modules_.emplace(loaded.module, std::move(parsed)).first->second;
    for (const device::ModuleSource::Entry& entry : source.entries) {
      const PtxEntry* const found = module.Find(entry.symbol);
      if (found == nullptr || found->threads() != entry.threads) return absl::InvalidArgumentError("no entry " + entry.symbol);
      functions_[next_] = {loaded.module, found};
      loaded.functions.push_back(next_++);
    }
    return loaded;
  }
  Status Unload(uint64_t module) override {
    std::erase_if(functions_, [&](const auto& function) { return function.second.first == module; });
    return modules_.erase(module) == 1 ? absl::OkStatus() : absl::InvalidArgumentError("no module to unload");
  }

  // Filled with NaN, as memory that nothing has written.
  StatusOr<Address> Allocate(int64_t bytes) override {
    const auto size = static_cast<size_t>((bytes + device::kMemoryAlign - 1) / device::kMemoryAlign * device::kMemoryAlign);
    Allocation made{std::unique_ptr<uint8_t, Freed>(static_cast<uint8_t*>(std::aligned_alloc(device::kMemoryAlign, size))), bytes};
    if (made.memory == nullptr) return absl::ResourceExhaustedError("no memory");
    std::memset(made.memory.get(), 0xff, size);
    const auto address = reinterpret_cast<Address>(made.memory.get());
    memory_.emplace(address, std::move(made));
    return address;
  }
  Status Free(Address address) override { return memory_.erase(address) == 1 ? absl::OkStatus() : absl::InvalidArgumentError("no memory to free"); }
  Status CopyIn(Address to, const void* from, int64_t bytes) override {
    std::memcpy(reinterpret_cast<void*>(to), from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  Status CopyOut(void* to, Address from, int64_t bytes) override {
    std::memcpy(to, reinterpret_cast<const void*>(from), static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  Status Fill(Address to, uint8_t value, int64_t bytes) override {
    std::memset(reinterpret_cast<void*>(to), value, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }

  Status Launch(const device::LaunchCall& call) override {
    const auto found = functions_.find(call.function);
    if (found == functions_.end()) return absl::InvalidArgumentError("no function to launch");
    std::vector<uint64_t> arguments(call.pointers.begin(), call.pointers.end());
    for (const int64_t symbol : call.symbols) arguments.push_back(static_cast<uint64_t>(symbol));
    std::vector<Piece> pieces;
    for (const Address address : call.pointers) {
      auto next = memory_.upper_bound(address);
      if (next == memory_.begin()) continue;
      const auto& [start, allocation] = *std::prev(next);
      pieces.push_back({reinterpret_cast<uint8_t*>(start), static_cast<uint64_t>(allocation.bytes)});
    }
    return found->second.second->Run({0, call.chunks, descending_}, arguments, pieces);
  }
  Status Synchronise() override { return absl::OkStatus(); }

 private:
  const bool descending_;
  std::map<uint64_t, std::pair<uint64_t, const PtxEntry*>> functions_;
  std::map<uint64_t, PtxModule> modules_;
  std::map<Address, Allocation> memory_;
  uint64_t next_ = 1;
};

}  // namespace

std::shared_ptr<device::Device> MakeDevice(bool descending) { return std::make_shared<PtxDevice>(descending); }

}  // namespace quern::ptx
