#include "lir/once.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lir/arena.h"
#include "lir/kernel_symbols.h"
#include "lir/lifetimes.h"
#include "lir/sealed.h"

namespace quern::lir {
namespace {

// What is known of the bytes of a buffer: nothing of one that no launch has written.
struct Contents {
  std::string text;
  std::set<std::string> params;
};

Contents GivenContents(const Buffer& buffer) {
  switch (buffer.home) {
    case Home::kParam: return {absl::StrCat("param ", buffer.name), {buffer.name}};
    case Home::kConstant: {
      const std::vector<uint8_t>& data = *buffer.data;
      return {absl::StrCat("constant ", HashBytes({reinterpret_cast<const char*>(data.data()), data.size()}).ToHex()),
              {}};
    }
    default: return {};
  }
}

const ir::CustomDef* CallOf(const Plan& plan, int kernel) {
  const auto call = plan.calls.find(kernel);
  return call == plan.calls.end() ? nullptr : call->second;
}

// In ticks of plan.once.
std::map<int, Lifetime> OnceLifetimes(const Plan& plan) {
  std::map<int, Lifetime> live;
  for (int l = 0; l < static_cast<int>(plan.once.size()); ++l) {
    for (const Argument& argument : plan.once[l].arguments) {
      const Buffer& buffer = plan.buffers[argument.buffer];
      if (buffer.home == Home::kOnce)
        live.try_emplace(argument.buffer, Lifetime{l, l, buffer.bytes}).first->second.last = l;
    }
  }
  return live;
}

// Offsets of what is kept, by its key, from 0.
class KeptLayout {
 public:
  Extent Place(const Hash128& key, const Extent& bytes) {
    const auto [at, added] = offsets_.emplace(key, bytes_);
    if (added) bytes_ = bytes_ + RoundUp64(bytes);
    return at->second;
  }
  const Extent& bytes() const { return bytes_; }

 private:
  std::map<Hash128, Extent> offsets_;
  Extent bytes_ = 0;
};

// The rest of the plan's, from `start`. Returns where it ends.
Extent PlaceTemporaries(Plan& plan, const std::map<int, OnceValue>& kept, const Extent& start) {
  std::map<int, Lifetime> live = OnceLifetimes(plan);
  std::erase_if(live, [&](const auto& entry) { return kept.contains(entry.first); });
  std::vector<Lifetime> lifetimes;
  for (const auto& [buffer, lifetime] : live) lifetimes.push_back(lifetime);
  const ArenaLayout layout = PlaceArena(lifetimes, plan.ranges);
  size_t i = 0;
  for (const auto& [buffer, lifetime] : live) plan.buffers[buffer].offset = start + layout.offsets[i++];
  return start + layout.bytes;
}

}  // namespace

std::map<int, OnceValue> KeptOnce(const Plan& plan) {
  if (plan.once.empty()) return {};
  if (plan.sealed != nullptr) return plan.sealed->once;
  std::map<int, Contents> contents;    // of buffers that work of this kind touches: constants of others are not hashed
  std::map<int, std::string> kernels;  // what each computes
  for (const Launch& launch : plan.once) {
    const kir::Kernel& kernel = plan.kernels[launch.kernel];
    std::string& text = kernels[launch.kernel];
    if (text.empty()) text = HashBytes(KernelIdentity(kernel, CallOf(plan, launch.kernel))).ToHex();
    Contents made{text, {}};
    for (const Argument& argument : launch.arguments) {
      const auto [known, added] = contents.try_emplace(argument.buffer);
      Contents& read = known->second;
      if (added) read = GivenContents(plan.buffers[argument.buffer]);
      absl::StrAppend(&made.text, " (", read.text, ") +", argument.offset.ToString());
      made.params.insert(read.params.begin(), read.params.end());
    }
    made.text = HashBytes(made.text).ToHex();
    for (size_t p = 0; p < launch.arguments.size(); ++p) {
      if (kernel.params[p].mode == kir::Mode::kIn) continue;
      // Several launches may write parts of one buffer.
      contents[launch.arguments[p].buffer] = {absl::StrCat(made.text, " result ", p), made.params};
    }
  }
  std::map<int, OnceValue> kept;
  for (const int buffer : ReadByRuns(plan)) {
    const Buffer& read = plan.buffers[buffer];
    if (read.home != Home::kOnce) continue;
    const std::string key = absl::StrCat(contents[buffer].text, " ", read.bytes.ToString());
    kept[buffer] = {HashBytes(key), contents[buffer].params};
  }
  return kept;
}

std::vector<size_t> OnceLaunchesFor(const Plan& plan, std::set<int> buffers) {
  std::vector<size_t> launches;
  for (size_t l = plan.once.size(); l-- > 0;) {
    const Launch& launch = plan.once[l];
    const kir::Kernel& kernel = plan.kernels[launch.kernel];
    bool needed = false;
    for (size_t p = 0; p < launch.arguments.size(); ++p)
      needed |= kernel.params[p].mode != kir::Mode::kIn && buffers.contains(launch.arguments[p].buffer);
    if (!needed) continue;
    for (const Argument& argument : launch.arguments) buffers.insert(argument.buffer);
    launches.push_back(l);
  }
  std::reverse(launches.begin(), launches.end());
  return launches;
}

void PlaceOnce(Plan& plan) { PlaceOnceTogether({{&plan}}); }

void PlaceOnceTogether(std::span<Plan* const> plans) {
  KeptLayout layout;
  std::vector<std::map<int, OnceValue>> kept;
  for (Plan* const plan : plans) {
    for (const auto& [buffer, value] : kept.emplace_back(KeptOnce(*plan)))
      plan->buffers[buffer].offset = layout.Place(value.key, plan->buffers[buffer].bytes);
  }
  std::vector<Extent> ends;
  for (size_t p = 0; p < plans.size(); ++p) ends.push_back(PlaceTemporaries(*plans[p], kept[p], layout.bytes()));
  Extent most = layout.bytes();
  for (const Extent& end : ends) {
    if (end.ProvablyAtLeast(most, {})) most = end;
  }
  for (Plan* const plan : plans) {
    plan->once_bytes = most;
    plan->once_kept_bytes = layout.bytes();
  }
}

}  // namespace quern::lir
