#include "kir/interpret.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kir/interpret_machine.h"

namespace quern::kir {
namespace interpret {

Machine::Machine(Program& program)
    : program_(program),
      root_slots_(program.slot_count, Value{.integer = 0}),
      slots_(root_slots_.data()),
      views_(program.views.data()) {
  for (const auto& [slot, value] : program.symbols) slots_[slot].integer = value;
}

Status Machine::Run(int64_t begin, int64_t end) {
  for (int64_t chunk = begin; chunk < end && !failed_; ++chunk) {
    slots_ = root_slots_.data();
    views_ = program_.views.data();
    int64_t rest = chunk;
    for (size_t d = program_.grid.size(); d-- > 0;) {
      const Program::Dim& dim = program_.grid[d];
      slots_[dim.slot].integer = dim.low + rest % dim.count * dim.step;
      rest /= dim.count;
    }
    chunk_ = chunk;
    if (program_.watch.threads > 0)
      RunBlock();
    else
      Execute(program_.body);
  }
  return error_;
}

void Machine::Execute(const Steps& steps) {
  for (const auto& step : steps) {
    if (failed_) return;
    const Step* outer = step_;
    step_ = step.get();
    ExecuteOne(*step);
    step_ = outer;
  }
}

void Machine::ExecuteOne(const Step& step) {
  switch (step.kind) {
    case StepKind::kLoop: {
      const int64_t low = Integer(*step.low), high = Integer(*step.high);
      for (int64_t i = low; i < high && !failed_; i += step.step) {
        slots_[step.slot].integer = i;
        Execute(step.body);
      }
      return;
    }
    case StepKind::kIf: Execute(Integer(*step.value) != 0 ? step.body : step.else_body); return;
    case StepKind::kSet: slots_[step.slot] = Evaluate(*step.value); return;
    case StepKind::kStore: {
      const View& view = views_[step.view];
      const Value value = Evaluate(*step.value);
      int64_t index[kMaxRank];
      const bool inside = Inside(view, step.index, index);
      if (failed_) return;
      if (!inside)
        OutOfRange(view, index);
      else
        Check(WriteElement(view, index, value), view, index);
      return;
    }
    case StepKind::kAlloc: views_[step.view].memory->Undefine(); return;
    case StepKind::kTile: {
      const View& view = views_[step.view];
      const Value value = Evaluate(*step.value);
      int64_t count = 1;
      for (int d = 0; d < view.rank; ++d) count *= view.size[d];
      View flat = view;
      flat.rank = 1;
      flat.stride[0] = 1;
      for (int64_t i = 0; i < count; ++i) WriteElement(flat, &i, value);
      return;
    }
    case StepKind::kCall: Call(step); return;
    case StepKind::kMap: MapOver(step, 0); return;
    case StepKind::kPack: RunPack(step); return;
    case StepKind::kThread:
    case StepKind::kBarrier:
    case StepKind::kCopy:
    case StepKind::kPipeline:
    case StepKind::kShuffle:
      FailWith("has no meaning here");  // inside a map, or in a kernel without a thread loop
      return;
  }
}

// Loops over dimension `dim` and those below it.
void Machine::MapOver(const Step& step, size_t dim) {
  if (dim == step.slots.size()) {
    Execute(step.body);
    return;
  }
  const int64_t live = Integer(*step.index[dim]);
  for (int view : step.views) {
    if (live > views_[view].size[dim]) {
      FailWith(
          absl::StrFormat("extent %d of %s, which has %d", live, views_[view].memory->name, views_[view].size[dim]));
    }
  }
  for (int64_t i = 0; i < live && !failed_; ++i) {
    slots_[step.slots[dim]].integer = i;
    MapOver(step, dim + 1);
  }
}

void Machine::Call(const Step& step) {
  for (int slot : step.slots) slots_[slot].integer = -1;  // not known yet
  for (const Step::Operand& operand : step.operands) {
    View cut;
    if (!Cut(operand.slice, cut)) return;
    if (static_cast<size_t>(cut.rank) != operand.sizes.size()) {
      FailWith(
          absl::StrFormat("%s has %d ranged dimensions, not %d", cut.memory->name, cut.rank, operand.sizes.size()));
      return;
    }
    for (int d = 0; d < cut.rank; ++d) {
      int64_t& size = slots_[operand.sizes[d]].integer;
      if (size >= 0 && size != cut.size[d]) {
        FailWith(absl::StrFormat("%s has %d where an earlier operand has %d", cut.memory->name, cut.size[d], size));
        return;
      }
      size = cut.size[d];
    }
    views_[operand.view] = cut;
  }
  for (const Step::TileArgument& tile : step.tiles) {
    View view = views_[tile.outer];
    for (int d = 0; d < view.rank; ++d) {
      int64_t& size = slots_[tile.sizes[d]].integer;
      if (size < 0) size = view.size[d];
      if (size > view.size[d]) {
        FailWith(absl::StrFormat("tile %s has %d where the operands have %d", view.memory->name, view.size[d], size));
        return;
      }
      view.size[d] = size;
    }
    views_[tile.inner] = view;
  }
  for (const auto& [slot, value] : step.attributes) slots_[slot] = Evaluate(*value);
  calls_.push_back(&step);
  Execute(step.body);
  calls_.pop_back();
}

void Machine::RunPack(const Step& step) {
  View dst, src;
  if (!Cut(step.dst, dst) || !Cut(step.src, src)) return;
  if (dst.rank < 1 || dst.rank > 2 || src.rank < 1 || src.rank > 2) {
    FailWith("packs rows or a rectangle");
    return;
  }
  const int64_t dst_rows = dst.rank == 2 ? dst.size[0] : 1, src_rows = src.rank == 2 ? src.size[0] : 1;
  const bool panel = dst.layout == Layout::kPanel16 || dst.layout == Layout::kKn32;
  if (dst.size[dst.rank - 1] != src.size[src.rank - 1] || (panel ? src_rows > dst_rows : src_rows != dst_rows)) {
    FailWith(absl::StrFormat("%d x %d to %d x %d", src_rows, src.size[src.rank - 1], dst_rows, dst.size[dst.rank - 1]));
    return;
  }
  for (const View& view : {dst, src}) {
    const int64_t block = Row(view.dtype).block_elements;
    if (view.column % block != 0 || view.size[view.rank - 1] % block != 0) {
      FailWith(absl::StrFormat("%s is cut inside a block", view.memory->name));
      return;
    }
  }
  Fault fault = Fault::kNone;
  if (!PackViews(dst, src, fault)) {
    FailWith("no pack joins these types");
  } else if (fault == Fault::kUndefined) {
    FailWith(src.memory->name + " is read before it is written");
  } else if (fault == Fault::kReadOnly) {
    FailWith(dst.memory->name + " is written, but it is an input");
  }
}

}  // namespace interpret

struct Interpreter::State {
  Kernel kernel;  // the program points into its statements
  interpret::Program program;
};

Interpreter::Interpreter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;
Interpreter::~Interpreter() = default;

StatusOr<Interpreter> Interpreter::Create(const Kernel& kernel, const Binding& binding) {
  auto state = std::make_unique<State>();
  state->kernel = kernel;
  QUERN_ASSIGN(state->program, interpret::Resolve(state->kernel, binding));
  return Interpreter(std::move(state));
}

int64_t Interpreter::chunks() const { return state_->program.chunks; }

Status Interpreter::Run(std::span<const BufferBytes> buffers, int64_t begin, int64_t end) {
  interpret::Program& program = state_->program;
  const std::vector<Param>& params = state_->kernel.params;
  if (buffers.size() != params.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("kernel %s: %d buffers, not %d", program.kernel, buffers.size(), params.size()));
  }
  if (begin < 0 || end > program.chunks || begin > end) {
    return absl::InvalidArgumentError(
        absl::StrFormat("kernel %s: chunks %d..%d of %d", program.kernel, begin, end, program.chunks));
  }
  size_t number = 0;
  for (interpret::Memory& memory : program.memories) {
    memory.uses.clear();
    if (number >= params.size()) {
      memory.storage.assign(static_cast<size_t>(memory.bytes), 0);
      memory.data = memory.storage.data();
      memory.Undefine();
      continue;
    }
    if (static_cast<int64_t>(buffers[number].size()) != memory.bytes) {
      return absl::InvalidArgumentError(absl::StrFormat("kernel %s: %s has %d bytes, not %d", program.kernel,
                                                        memory.name, buffers[number].size(), memory.bytes));
    }
    memory.data = buffers[number].data();
    memory.defined.clear();
    if (program.undefined_param[number]) memory.Undefine();
    ++number;
  }
  return interpret::Machine(program).Run(begin, end);
}

Status Interpret(const Kernel& kernel, const Binding& binding, std::span<const BufferBytes> buffers) {
  QUERN_ASSIGN(Interpreter interpreter, Interpreter::Create(kernel, binding));
  return interpreter.Run(buffers, 0, interpreter.chunks());
}

}  // namespace quern::kir
