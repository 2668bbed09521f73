#include <algorithm>

#include "runtime/bound_plan.h"

namespace quern {
namespace {

// What waiting workers pull towards their caches of the weights that come next.
constexpr int64_t kPrefetchBytes = 32 << 10;

}  // namespace

Status DispatchList::Build(const lir::Plan& plan, const std::vector<lir::Launch>& launches,
                           std::span<quern_kernel* const> functions, std::span<const std::string> names) {
  for (const kir::Kernel& kernel : plan.kernels) {
    QUERN_ASSIGN(KernelSizes sizes, KernelSizes::Compile(kernel, names));
    tables_.emplace_back(sizes.symbols());
    sizes_.push_back(std::move(sizes));
  }
  chunks_.resize(plan.kernels.size());
  users_.resize(plan.buffers.size());
  std::vector<size_t> first;
  for (const lir::Launch& launch : launches) {
    first.push_back(slots_.size());
    int weight = -1;
    int64_t most = 0;
    for (const lir::Argument& argument : launch.arguments) {
      const int slot = static_cast<int>(slots_.size());
      QUERN_ASSIGN(Polynomial offset, Polynomial::Compile(argument.offset, names));
      if (!offset.is_constant()) moving_.push_back(slot);
      users_[argument.buffer].push_back(slot);
      slots_.push_back({argument.buffer, std::move(offset)});
      const lir::Buffer& buffer = plan.buffers[argument.buffer];
      const bool weights = buffer.home == lir::Home::kParam && buffer.bytes.is_constant();
      if (weights && buffer.bytes.constant() > most) weight = slot, most = buffer.bytes.constant();
    }
    kernels_.push_back(launch.kernel);
    sequential_.push_back(plan.kernels[launch.kernel].sequential);
    weight_slots_.push_back(weight);
    weight_bytes_.push_back(std::min(most, kPrefetchBytes));
  }
  pointers_.resize(slots_.size());
  for (size_t l = 0; l < launches.size(); ++l) {
    args_.push_back({pointers_.data() + first[l], tables_[kernels_[l]].data()});
  }
  for (size_t l = 0; l < launches.size(); ++l) {
    Dispatch dispatch{};
    dispatch.kernel = functions[kernels_[l]];
    dispatch.args = &args_[l];
    dispatches_.push_back(dispatch);
  }
  return absl::OkStatus();
}

void DispatchList::Bind(const lir::Plan& plan, std::span<const int64_t> values, std::span<uint8_t* const> bases) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) chunks_[k] = sizes_[k].Evaluate(values, tables_[k]);
  for (size_t l = 0; l < dispatches_.size(); ++l) {
    dispatches_[l].chunks = chunks_[kernels_[l]];
    // A single chunk can be nobody else's: the worker that arrives last takes it on the spot.
    dispatches_[l].sequential = sequential_[l] || dispatches_[l].chunks == 1;
  }
  for (const int slot : moving_) {
    uint8_t* base = bases[slots_[slot].buffer];
    pointers_[slot] = base == nullptr ? nullptr : base + slots_[slot].offset.Evaluate(values);
  }
  HintWeights();
}

void DispatchList::Rebase(int buffer, std::span<const int64_t> values, uint8_t* base) {
  for (const int slot : users_[buffer]) {
    pointers_[slot] = base == nullptr ? nullptr : base + slots_[slot].offset.Evaluate(values);
  }
}

void DispatchList::HintWeights() {
  const void* weights = nullptr;
  int64_t bytes = 0;
  for (size_t l = dispatches_.size(); l-- > 0;) {
    dispatches_[l].prefetch = weights;
    dispatches_[l].prefetch_bytes = bytes;
    if (dispatches_[l].sequential || weight_slots_[l] < 0) continue;
    weights = pointers_[weight_slots_[l]];
    bytes = weight_bytes_[l];
  }
}

}  // namespace quern
