#include "runtime/bound_plan.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/diagnostic.h"
#include "kir/scratch.h"
#include "lir/arena.h"
#include "lir/sealed.h"

namespace quern {

StatusOr<std::unique_ptr<BoundPlan>> BoundPlan::Create(lir::Plan plan, std::span<const std::string> names,
                                                       std::vector<std::string> kernel_symbols, KernelCache& cache,
                                                       SharedMemory& memory, ThreadPool& pool, Stepping stepping) {
  std::unique_ptr<BoundPlan> bound(new BoundPlan(std::move(plan), std::move(stepping)));
  bound->kernel_symbols_ = std::move(kernel_symbols);
  QUERN_RETURN_IF_ERROR(bound->Prepare(names, cache, memory, pool));
  return bound;
}

Status BoundPlan::Prepare(std::span<const std::string> names, KernelCache& cache, SharedMemory& memory,
                          ThreadPool& pool) {
  names_.assign(names.begin(), names.end());
  QUERN_RETURN_IF_ERROR(GetFunctions(cache));
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    QUERN_ASSIGN(const int64_t bytes, ScratchOf(k));
    scratch_bytes_ = std::max(scratch_bytes_, bytes);
  }
  QUERN_ASSIGN(requirements_, Requirements::Create(plan_.requirements, names));
  QUERN_ASSIGN(arena_bytes_, Polynomial::Compile(plan_.arena_bytes, names));
  arena_bounded_ = plan_.arena_bytes.UpperBound(plan_.ranges).has_value();
  QUERN_RETURN_IF_ERROR(list_.Build(plan_, plan_.launches, functions_, names));
  QUERN_ASSIGN(steps_, BoundSteps::Compile(plan_.bodies, names));
  Substitute(list_, plan_.launches);

  bases_.resize(plan_.buffers.size());
  offsets_.resize(plan_.buffers.size());
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
    const lir::Buffer& buffer = plan_.buffers[b];
    switch (buffer.home) {
      case lir::Home::kArena: {
        QUERN_ASSIGN(offsets_[b], Polynomial::Compile(buffer.offset, names));
        break;
      }
      case lir::Home::kInput: inputs_[buffer.name] = b; break;
      case lir::Home::kOutput: outputs_[buffer.index].push_back(b); break;
      case lir::Home::kParam: {
        const auto param = memory.params.find(buffer.name);
        if (param == memory.params.end())
          return absl::FailedPreconditionError(absl::StrCat("parameter ", buffer.name, " is not bound"));
        bases_[b] = const_cast<uint8_t*>(param->second.data());  // kernels declare it `in`: never written
        break;
      }
      case lir::Home::kConstant: {
        QUERN_ASSIGN(Memory constant, Memory::Allocate(static_cast<int64_t>(buffer.data->size())));
        if (constant.size() > 0) std::memcpy(constant.data(), buffer.data->data(), buffer.data->size());
        bases_[b] = constant.data();
        constants_.push_back(std::move(constant));
        break;
      }
      case lir::Home::kState: {
        const auto state = memory.states.find(buffer.name);
        if (state == memory.states.end())
          return absl::InternalError(absl::StrCat("state ", buffer.name, " has no memory"));
        bases_[b] = state->second.data();
        break;
      }
      case lir::Home::kOnce: break;  // RunOnce says
      case lir::Home::kLoop: break;  // the step says, while it runs
    }
  }
  return RunOnce(names, memory, pool);
}

void BoundPlan::Substitute(DispatchList& list, std::span<const lir::Launch> launches) const {
  if (!stepping_.substitute) return;
  for (size_t l = 0; l < launches.size(); ++l)
    list.Substitute(l, stepping_.substitute(launches[l], list.dispatches()[l].kernel));
}

StatusOr<int64_t> BoundPlan::ScratchOf(size_t kernel) const {
  if (plan_.sealed != nullptr) return plan_.sealed->kernels[kernel].scratch_bytes;
  return kir::ScratchBytes(plan_.kernels[kernel], {});
}

StatusOr<std::string> BoundPlan::Sealed() const {
  lir::Sealed sealed{kernels_.sealed, lir::KeptOnce(plan_)};
  for (size_t k = 0; k < sealed.kernels.size(); ++k) {
    QUERN_ASSIGN(sealed.kernels[k].scratch_bytes, ScratchOf(k));
  }
  return lir::Seal(plan_, sealed);
}

Status BoundPlan::GetFunctions(KernelCache& cache) {
  if (plan_.sealed != nullptr) {
    QUERN_ASSIGN(kernels_, cache.Find(plan_.sealed->kernels));
    functions_ = kernels_.functions;
    return absl::OkStatus();
  }
  std::vector<kir::Kernel> kernels;
  std::vector<std::string> symbols;
  for (const auto& [kernel, call] : plan_.calls) {
    if (call->load != nullptr) QUERN_RETURN_IF_ERROR(call->load());
  }
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    if (plan_.calls.contains(static_cast<int>(k))) continue;
    kernels.push_back(plan_.kernels[k]);
    symbols.push_back(kernel_symbols_[k]);
  }
  QUERN_ASSIGN(kernels_, cache.Get(kernels, symbols));
  size_t next = 0;
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    const auto call = plan_.calls.find(static_cast<int>(k));
    functions_.push_back(call == plan_.calls.end() ? kernels_.functions[next++] : call->second->kernel);
  }
  return absl::OkStatus();
}

Status BoundPlan::RunOnce(std::span<const std::string> names, SharedMemory& memory, ThreadPool& pool) {
  if (plan_.once.empty()) return absl::OkStatus();
  if (!plan_.once_bytes.is_constant()) return absl::InternalError("parameter-only memory depends on a symbol");
  // What no plan before this one has made. An observer sees the work of each plan whole: its values are the plan's own.
  std::map<int, lir::OnceValue> kept = lir::KeptOnce(plan_);
  // One block for all of them: pages of many small ones cost more than what is written there.
  std::vector<std::pair<lir::OnceValue, int64_t>> made;  // where each begins in it
  std::map<Hash128, int64_t> places;                     // of two equal values of the plan one is kept
  int64_t block_bytes = 0;
  std::set<int> missing;
  for (auto& [buffer, value] : kept) {
    if (stepping_.observer != nullptr)
      value.key = HashBytes(absl::StrCat(value.key.ToHex(), " of variant ", stepping_.variant));
    if (packed_.insert(value.key).second) packed_bytes_ += lir::RoundUp64(plan_.buffers[buffer].bytes).constant();
    bases_[buffer] = memory.once.Find(value.key);
    if (bases_[buffer] != nullptr) continue;
    missing.insert(buffer);
    if (!places.emplace(value.key, block_bytes).second) continue;
    made.emplace_back(value, block_bytes);
    block_bytes += lir::RoundUp64(plan_.buffers[buffer].bytes).constant();
  }
  if (missing.empty()) return absl::OkStatus();
  QUERN_ASSIGN(Memory allocated, Memory::Allocate(std::max(block_bytes, lir::kBufferAlign)));
  const auto block = std::make_shared<const Memory>(std::move(allocated));
  for (const int buffer : missing) bases_[buffer] = block->data() + places[kept[buffer].key];

  std::vector<lir::Launch> launches;
  for (const size_t launch : lir::OnceLaunchesFor(plan_, missing)) launches.push_back(plan_.once[launch]);
  const int64_t kept_bytes = plan_.once_kept_bytes.constant();
  QUERN_ASSIGN(const Memory temporary, Memory::Allocate(plan_.once_bytes.constant() - kept_bytes));
  for (const lir::Launch& launch : launches) {
    for (const lir::Argument& argument : launch.arguments) {
      const lir::Buffer& buffer = plan_.buffers[argument.buffer];
      uint8_t*& base = bases_[argument.buffer];
      if (buffer.home == lir::Home::kOnce && base == nullptr)
        base = temporary.data() + (buffer.offset.constant() - kept_bytes);
      if (buffer.home == lir::Home::kParam && base == nullptr && buffer.bytes != Extent(0)) {
        const std::string name = absl::StrCat("parameter ", buffer.name);
        return WithMessage(
            ToStatus({DiagnosticCode::kMissing, "", name, "", "", plan_.name}),
            absl::StrFormat("%s was released when it had been packed, and is needed again: bind it (in %s)", name,
                            plan_.name));
      }
    }
  }
  DispatchList list;
  QUERN_RETURN_IF_ERROR(list.Build(plan_, launches, functions_, names));
  Substitute(list, launches);
  // Kernels of the other launches are sized too; any value of the symbols does.
  const std::vector<int64_t> values(names_.size(), 1);
  for (size_t b = 0; b < bases_.size(); ++b) list.Rebase(static_cast<int>(b), values, bases_[b]);
  list.Bind(plan_, values, bases_);
  std::vector<Memory> workers;
  std::vector<void*> scratch;
  for (int w = 0; w < pool.threads(); ++w) {
    QUERN_ASSIGN(Memory worker, Memory::Allocate(scratch_bytes_));
    scratch.push_back(worker.data());
    workers.push_back(std::move(worker));
  }
  if (stepping_.observer != nullptr) {
    QUERN_RETURN_IF_ERROR(RunStepwise(list, launches, 0, launches.size(), values, true, pool, scratch));
  } else {
    pool.Run(list.dispatches(), scratch);
  }
  for (auto& [value, at] : made) memory.once.Add(std::move(value), block, block->data() + at);
  for (size_t b = 0; b < bases_.size(); ++b) {
    const bool temporary_buffer = plan_.buffers[b].home == lir::Home::kOnce && !kept.contains(static_cast<int>(b));
    if (temporary_buffer) bases_[b] = nullptr;
  }
  return absl::OkStatus();
}

Status BoundPlan::RunStepwise(const DispatchList& list, std::span<const lir::Launch> launches, size_t first, size_t end,
                              std::span<const int64_t> values, bool once, ThreadPool& pool,
                              std::span<void* const> scratch) {
  Binding symbols;
  for (size_t s = 0; s < names_.size(); ++s) symbols[names_[s]] = values[s];
  const auto same = [&](const lir::Launch& a, const lir::Launch& b) {
    return a.region >= 0 && a.region == b.region && a.body == b.body;
  };
  while (first < end) {
    size_t next = first + 1;
    while (next < end && same(launches[first], launches[next])) ++next;
    const RegionStep step = {stepping_.variant, &plan_, launches.subspan(first, next - first), bases_, &symbols, once};
    QUERN_RETURN_IF_ERROR(stepping_.observer->Before(step));
    pool.Run(list.dispatches().subspan(first, next - first), scratch);
    QUERN_RETURN_IF_ERROR(stepping_.observer->After(step));
    first = next;
  }
  return absl::OkStatus();
}

// The threads of this machine, and its memory.
class BoundPlan::Host : public StepHost {
 public:
  Host(BoundPlan& plan, ThreadPool& pool, std::span<void* const> scratch, RunLog* log, const std::atomic<bool>* cancel)
      : plan_(plan), pool_(pool), scratch_(scratch), log_(log), cancel_(cancel) {}

  Status Launch(int first, int end) override {
    plan_.launched_ += end - first;
    if (plan_.stepping_.observer != nullptr)
      return plan_.RunStepwise(plan_.list_, plan_.plan_.launches, first, end, plan_.values_, false, pool_, scratch_);
    const size_t count = end - first;
    RunRecord* const record = log_ == nullptr ? nullptr : &log_->AddPart(first, count);
    return pool_.Run(plan_.list_.dispatches().subspan(first, count), scratch_, record, cancel_) ? absl::OkStatus()
                                                                                                : Cancelled();
  }
  Status Poll() override {
    return cancel_ != nullptr && cancel_->load(std::memory_order_relaxed) ? Cancelled() : absl::OkStatus();
  }
  uint64_t Base(int buffer) const override { return reinterpret_cast<uint64_t>(plan_.bases_[buffer]); }
  void Rebase(int buffer, uint64_t base) override { plan_.Place(buffer, reinterpret_cast<uint8_t*>(base)); }
  StatusOr<uint8_t> Read(uint64_t address) override { return *reinterpret_cast<const uint8_t*>(address); }
  StatusOr<int64_t> ReadCount(uint64_t address) override {
    int64_t count = 0;
    std::memcpy(&count, reinterpret_cast<const void*>(address), sizeof(count));
    return count;
  }
  void Bind(int symbol, int64_t value) override {
    if (plan_.values_[symbol] == value) return;
    plan_.values_[symbol] = value;
    plan_.list_.Bind(plan_.plan_, plan_.values_, plan_.bases_);
  }

 private:
  BoundPlan& plan_;
  ThreadPool& pool_;
  const std::span<void* const> scratch_;
  RunLog* const log_;
  const std::atomic<bool>* const cancel_;
};

Status BoundPlan::Run(ThreadPool& pool, std::span<void* const> scratch, RunLog* log, const std::atomic<bool>* cancel) {
  launched_ = 0;
  Host host(*this, pool, scratch, log, cancel);
  return steps_.Run(values_, host);
}

void BoundPlan::Place(int buffer, uint8_t* base) {
  if (bases_[buffer] == base) return;
  bases_[buffer] = base;
  if (!values_.empty() || names_.empty()) list_.Rebase(buffer, values_, base);
}

void BoundPlan::Unplace() {
  arena_ = nullptr;
  values_.clear();
}

int64_t BoundPlan::constant_bytes() const {
  int64_t bytes = 0;
  for (const Memory& constant : constants_) bytes += constant.size();
  return bytes;
}

Status BoundPlan::Bind(std::span<const int64_t> values, SharedMemory& memory) {
  const bool first = arena_ == nullptr && values_.empty();
  const bool moved = first || !std::equal(values.begin(), values.end(), values_.begin(), values_.end());
  if (!moved && arena_ == memory.arena.data()) return absl::OkStatus();
  if (moved) QUERN_RETURN_IF_ERROR(requirements_.Check(values, plan_.name));
  if (moved && !arena_bounded_) {
    Binding binding;
    for (size_t s = 0; s < names_.size(); ++s) binding[names_[s]] = values[s];
    QUERN_RETURN_IF_ERROR(plan_.arena_bytes.Evaluate(binding).status());
  }
  const int64_t bytes = arena_bytes_.Evaluate(values);
  if (memory.arena.size() < bytes || memory.arena.data() == nullptr) {
    QUERN_ASSIGN(memory.arena, Memory::Allocate(std::max<int64_t>(bytes, lir::kBufferAlign)));
  }
  values_.assign(values.begin(), values.end());
  const bool rebased = arena_ != memory.arena.data();
  arena_ = memory.arena.data();
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    if (plan_.buffers[b].home == lir::Home::kArena && (rebased || !offsets_[b].is_constant())) {
      bases_[b] = memory.arena.data() + offsets_[b].Evaluate(values);
      list_.Rebase(static_cast<int>(b), values_, bases_[b]);
    }
  }
  if (first) {
    for (size_t b = 0; b < plan_.buffers.size(); ++b) list_.Rebase(static_cast<int>(b), values_, bases_[b]);
  }
  list_.Bind(plan_, values_, bases_);
  return absl::OkStatus();
}

void BoundPlan::SetInput(std::string_view name, const void* data) {
  const auto input = inputs_.find(name);
  if (input != inputs_.end()) Place(input->second, const_cast<uint8_t*>(static_cast<const uint8_t*>(data)));
}

void BoundPlan::SetOutput(int index, void* data) {
  const auto output = outputs_.find(index);
  if (output == outputs_.end()) return;
  for (const int buffer : output->second) Place(buffer, static_cast<uint8_t*>(data));
}

}  // namespace quern
