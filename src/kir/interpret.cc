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
    forgiven_.clear();  // scratch begins anew
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
