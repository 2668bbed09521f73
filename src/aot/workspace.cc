#include "aot/workspace.h"

#include <algorithm>

#include "aot/support/support.h"
#include "lir/once.h"

namespace quern::aot {
namespace {

int64_t RoundUp64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

struct Most {
  size_t launches = 0, slots = 0, symbols = 0, loops = 0;

  void Add(const lir::Plan& plan, const std::vector<lir::Launch>& list) {
    size_t arguments = 0, table = 0;
    for (const lir::Launch& launch : list) arguments += launch.arguments.size();
    for (const kir::Kernel& kernel : plan.kernels) table += kernel.symbols.size();
    launches = std::max(launches, list.size());
    slots = std::max(slots, arguments);
    symbols = std::max(symbols, table);
    const auto moves = [](const lir::Buffer& buffer) { return buffer.home == lir::Home::kLoop; };
    loops = std::max<size_t>(loops, std::count_if(plan.buffers.begin(), plan.buffers.end(), moves));
  }
};

}  // namespace

StatusOr<Workspace> PlaceWorkspace(Model& model) {
  static_assert(sizeof(quern_instance) <= QUERN_INSTANCE_BYTES);
  Workspace at;
  Most most;
  int64_t once_bytes = 0;
  for (Level& level : model.levels) {
    std::vector<lir::Plan*> plans;
    for (Variant& variant : level.variants) plans.push_back(&variant.plan);
    lir::PlaceOnceTogether(plans);
    for (const Variant& variant : level.variants) {
      const lir::Plan& plan = variant.plan;
      most.Add(plan, plan.launches);
      most.Add(plan, plan.once);
      for (const kir::Kernel& kernel : plan.kernels) {
        QUERN_ASSIGN(const int64_t bytes, kir::ScratchBytes(kernel, {}));
        at.scratch = std::max(at.scratch, RoundUp64(bytes));
      }
      const std::optional<int64_t> arena = plan.arena_bytes.UpperBound(plan.ranges);
      if (!arena) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s: memory for intermediate values has no largest size: %s bytes", model.name,
                            plan.arena_bytes.ToString()));
      }
      at.arena_bytes = std::max(at.arena_bytes, RoundUp64(*arena));
      if (!plan.once_bytes.is_constant()) return absl::InternalError("parameter-only memory depends on a symbol");
      once_bytes = std::max(once_bytes, RoundUp64(plan.once_bytes.constant()));
    }
  }
  at.scratch = std::max<int64_t>(at.scratch, 64);
  at.dispatches = QUERN_INSTANCE_BYTES;
  at.args = at.dispatches + static_cast<int64_t>(most.launches * sizeof(quern_dispatch));
  at.pointers = at.args + static_cast<int64_t>(most.launches * sizeof(quern_args));
  at.tables = at.pointers + static_cast<int64_t>(most.slots * sizeof(void*));
  at.loops = at.tables + static_cast<int64_t>(most.symbols * sizeof(int64_t));
  at.state = RoundUp64(at.loops + static_cast<int64_t>(most.loops * sizeof(void*)));
  int64_t end = at.state;
  for (const Port& port : model.signature.states) {
    const std::optional<int64_t> bytes = BytesOf(port, false).UpperBound(model.signature.symbols);
    if (!bytes)
      return absl::InvalidArgumentError(
          absl::StrFormat("state %s has no largest size: %s", port.name, port.type.ToString()));
    at.states[port.name] = end;
    end += RoundUp64(*bytes);
  }
  at.state_bytes = end - at.state;
  at.once = end;
  at.arena = end + once_bytes;
  at.fixed = at.arena + at.arena_bytes;
  return at;
}

}  // namespace quern::aot
