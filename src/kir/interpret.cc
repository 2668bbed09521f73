#include "kir/interpret.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/half.h"
#include "kir/describe.h"
#include "kir/interpret_program.h"

namespace quern::kir {
namespace interpret {
namespace {

// The bits of a value of `dtype`, and back.
uint64_t ToBits(DType dtype, Value value) {
  switch (dtype) {
    case DType::kF32: return std::bit_cast<uint32_t>(static_cast<float>(value.real));
    case DType::kF64: return std::bit_cast<uint64_t>(value.real);
    case DType::kF16: return FloatToHalf(static_cast<float>(RoundReal(dtype, value.real)));
    case DType::kBF16: return FloatToBFloat16(static_cast<float>(RoundReal(dtype, value.real)));
    default: return static_cast<uint64_t>(value.integer);
  }
}

Value FromBits(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::kF32: return {.real = std::bit_cast<float>(static_cast<uint32_t>(bits))};
    case DType::kF64: return {.real = std::bit_cast<double>(bits)};
    case DType::kF16: return {.real = HalfToFloat(static_cast<uint16_t>(bits))};
    case DType::kBF16: return {.real = BFloat16ToFloat(static_cast<uint16_t>(bits))};
    default: return {.integer = WrapInteger(dtype, static_cast<int64_t>(bits))};
  }
}

// What a reduction of integers starts from: the dtype's own extremes for max and min.
int64_t IntegerIdentity(ReduceOp op, DType dtype) {
  const bool is_unsigned = IsUnsigned(dtype) || dtype == DType::kBool;
  const int bits = dtype == DType::kBool ? 1 : 8 * ScalarBytes(dtype);
  const int64_t high = bits == 64 ? (is_unsigned ? -1 : INT64_MAX) : (int64_t{1} << (is_unsigned ? bits : bits - 1)) - 1;
  switch (op) {
    case ReduceOp::kSum: return 0;
    case ReduceOp::kProd: return 1;
    case ReduceOp::kMin: return high;
    case ReduceOp::kMax: return is_unsigned ? 0 : -high - 1;
  }
  QUERN_CHECK(false);
}

class Machine {
 public:
  explicit Machine(Program& program) : program_(program), slots_(program.slot_count, Value{.integer = 0}) {
    for (const auto& [slot, value] : program.symbols) slots_[slot].integer = value;
  }

  Status Run(int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end && !failed_; ++chunk) {
      int64_t rest = chunk;
      for (size_t d = program_.grid.size(); d-- > 0;) {
        const Program::Dim& dim = program_.grid[d];
        slots_[dim.slot].integer = dim.low + rest % dim.count * dim.step;
        rest /= dim.count;
      }
      chunk_ = chunk;
      Execute(program_.body);
    }
    return error_;
  }

 private:
  bool FailWith(const std::string& message) {
    if (!failed_) {
      failed_ = true;
      std::string where;
      for (const Step* step : calls_) absl::StrAppend(&where, Describe(*step->source), ": ");
      if (step_ != nullptr) absl::StrAppend(&where, Describe(*step_->source), ": ");
      error_ = absl::InvalidArgumentError(
          absl::StrFormat("kernel %s, chunk %d: %s%s", program_.kernel, chunk_, where, message));
    }
    return false;
  }

  std::string ElementText(const View& view, const int64_t* index) const {
    return absl::StrCat(view.memory->name, "[", absl::StrJoin(index, index + view.rank, ", "), "]");
  }

  // Evaluates indices; false when outside the view.
  bool Inside(const View& view, const std::vector<NodeRef>& nodes, int64_t* index) {
    bool inside = true;
    for (int d = 0; d < view.rank; ++d) {
      index[d] = Integer(*nodes[d]);
      inside = inside && index[d] >= 0 && index[d] < view.size[d];
    }
    return inside;
  }

  bool Check(Fault fault, const View& view, const int64_t* index) {
    switch (fault) {
      case Fault::kNone: return true;
      case Fault::kUndefined: return FailWith(ElementText(view, index) + " is read before it is written");
      case Fault::kReadOnly: return FailWith(ElementText(view, index) + " is written, but it is an input");
    }
    QUERN_CHECK(false);
  }

  bool OutOfRange(const View& view, const int64_t* index) {
    return FailWith(absl::StrCat(ElementText(view, index), " is outside ", view.memory->name, "[",
                                 absl::StrJoin(view.size, view.size + view.rank, ", "), "]"));
  }

  Value Load(const Node& node) {
    const View& view = program_.views[node.view];
    if (view.memory == nullptr) {  // an absent operand
      return IsFloat(node.dtype) ? Value{.real = 0} : Value{.integer = 0};
    }
    int64_t index[kMaxRank];
    const bool inside = Inside(view, node.args, index);
    Value value{.integer = 0};
    if (failed_) return value;
    if (!inside && node.otherwise != nullptr) {
      if (IsFloat(node.dtype)) value.real = Real(*node.otherwise);
      else value.integer = Integer(*node.otherwise);
      return value;
    }
    if (!inside) OutOfRange(view, index);
    else Check(ReadElement(view, index, value), view, index);
    return value;
  }

  double DecodeAt(const Node& node) {
    const View& view = program_.views[node.view];
    int64_t index[kMaxRank];
    const bool inside = Inside(view, node.args, index);
    double value = 0;
    if (failed_) return value;
    if (!inside) OutOfRange(view, index);
    else Check(DecodeElementOf(view, index, value), view, index);
    return value;
  }

  double Real(const Node& node) {
    switch (node.kind) {
      case NodeKind::kConst: return node.constant.real;
      case NodeKind::kSlot: return slots_[node.slot].real;
      case NodeKind::kLoad: return Load(node).real;
      case NodeKind::kDecode: return DecodeAt(node);
      case NodeKind::kApply: {
        if (node.op == Op::kSelect) {
          const bool condition = Integer(*node.args[0]) != 0;
          const double yes = Real(*node.args[1]), no = Real(*node.args[2]);
          return condition ? yes : no;
        }
        double args[3] = {};
        for (size_t i = 0; i < node.args.size(); ++i) args[i] = Real(*node.args[i]);
        return Row(node.op).eval(args[0], args[1], args[2]);
      }
      case NodeKind::kCast: {
        const Node& arg = *node.args[0];
        if (IsFloat(arg.dtype)) return RoundReal(node.dtype, RoundReal(arg.dtype, Real(arg)));
        const int64_t value = Integer(arg);
        // Of 64 bits, a double first would round twice.
        if (node.dtype == DType::kF32) {
          return arg.dtype == DType::kU64 ? static_cast<float>(static_cast<uint64_t>(value)) : static_cast<float>(value);
        }
        return RoundReal(node.dtype, arg.dtype == DType::kU64 ? static_cast<double>(static_cast<uint64_t>(value))
                                                              : static_cast<double>(value));
      }
      case NodeKind::kBits: return FromBits(node.dtype, BitsOf(*node.args[0])).real;
      case NodeKind::kReduce: {
        const int64_t low = Integer(*node.args[0]), high = Integer(*node.args[1]);
        double total = Identity(node.reduce);
        for (int64_t i = low; i < high && !failed_; ++i) {
          slots_[node.slot].integer = i;
          total = Row(node.op).eval(total, Real(*node.args[2]), 0);
        }
        return total;
      }
    }
    QUERN_CHECK(false);
  }

  int64_t Integer(const Node& node) {
    switch (node.kind) {
      case NodeKind::kConst: return node.constant.integer;
      case NodeKind::kSlot: return slots_[node.slot].integer;
      case NodeKind::kLoad: return Load(node).integer;
      case NodeKind::kDecode: QUERN_CHECK(false);
      case NodeKind::kApply: {
        const DType operands = node.args.back()->dtype;
        if (IsFloat(operands)) {  // a comparison
          return Row(node.op).eval(Real(*node.args[0]), Real(*node.args[1]), 0) != 0;
        }
        int64_t args[3] = {};
        for (size_t i = 0; i < node.args.size(); ++i) args[i] = Integer(*node.args[i]);
        return WrapInteger(node.dtype, EvalInteger(node.op, operands, args[0], args[1], args[2]));
      }
      case NodeKind::kCast: {
        const Node& arg = *node.args[0];
        if (node.dtype == DType::kBool) return IsFloat(arg.dtype) ? Real(arg) != 0 : Integer(arg) != 0;
        if (IsFloat(arg.dtype)) return RealToInteger(node.dtype, RoundReal(arg.dtype, Real(arg)));
        return WrapInteger(node.dtype, Integer(arg));
      }
      case NodeKind::kBits: return FromBits(node.dtype, BitsOf(*node.args[0])).integer;
      case NodeKind::kReduce: {
        const int64_t low = Integer(*node.args[0]), high = Integer(*node.args[1]);
        int64_t total = IntegerIdentity(node.reduce, node.dtype);
        for (int64_t i = low; i < high && !failed_; ++i) {
          slots_[node.slot].integer = i;
          total = WrapInteger(node.dtype, EvalInteger(node.op, node.dtype, total, Integer(*node.args[2]), 0));
        }
        return total;
      }
    }
    QUERN_CHECK(false);
  }

  uint64_t BitsOf(const Node& node) {
    return ToBits(node.dtype, IsFloat(node.dtype) ? Value{.real = Real(node)} : Value{.integer = Integer(node)});
  }

  Value Evaluate(const Node& node) {
    return IsFloat(node.dtype) ? Value{.real = Real(node)} : Value{.integer = Integer(node)};
  }

  void Execute(const Steps& steps) {
    for (const auto& step : steps) {
      if (failed_) return;
      const Step* outer = step_;
      step_ = step.get();
      ExecuteOne(*step);
      step_ = outer;
    }
  }

  void ExecuteOne(const Step& step) {
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
        const View& view = program_.views[step.view];
        const Value value = Evaluate(*step.value);
        int64_t index[kMaxRank];
        const bool inside = Inside(view, step.index, index);
        if (failed_) return;
        if (!inside) OutOfRange(view, index);
        else Check(WriteElement(view, index, value), view, index);
        return;
      }
      case StepKind::kAlloc: program_.views[step.view].memory->Undefine(); return;
      case StepKind::kTile: {
        const View& view = program_.views[step.view];
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
    }
  }

  // Loops over dimension `dim` and those below it.
  void MapOver(const Step& step, size_t dim) {
    if (dim == step.slots.size()) {
      Execute(step.body);
      return;
    }
    const int64_t live = Integer(*step.index[dim]);
    for (int view : step.views) {
      if (live > program_.views[view].size[dim]) {
        FailWith(absl::StrFormat("extent %d of %s, which has %d", live, program_.views[view].memory->name,
                                 program_.views[view].size[dim]));
      }
    }
    for (int64_t i = 0; i < live && !failed_; ++i) {
      slots_[step.slots[dim]].integer = i;
      MapOver(step, dim + 1);
    }
  }

  // The part of a buffer that a slice names, ranges clipped.
  bool Cut(const SliceNode& slice, View& cut) {
    const View& view = program_.views[slice.view];
    cut = view;
    cut.rank = 0;
    for (int d = 0; d < view.rank; ++d) {
      const RangeNode& range = slice.dims[d];
      const bool last = d == view.rank - 1;
      const int64_t start = range.start == nullptr ? 0 : Integer(*range.start);
      if (start < 0 || start >= view.size[d]) {
        if (range.start != nullptr) {
          return FailWith(absl::StrFormat("%d is outside dimension %d of %s, which has %d", start, d, view.memory->name,
                                          view.size[d]));
        }
      }
      if (view.layout == Layout::kRow || !last) cut.offset += start * view.stride[d];
      else cut.column += start;
      if (range.start != nullptr && range.extent == nullptr) {
        if (view.layout != Layout::kRow && last) return FailWith("a single element of a block format");
        continue;
      }
      int64_t size = view.size[d] - start;
      if (range.extent != nullptr) size = std::min(size, std::max<int64_t>(Integer(*range.extent), 0));
      cut.size[cut.rank] = size;
      cut.stride[cut.rank++] = view.stride[d];
    }
    return !failed_;
  }

  void Call(const Step& step) {
    for (int slot : step.slots) slots_[slot].integer = -1;  // not known yet
    for (const Step::Operand& operand : step.operands) {
      View cut;
      if (!Cut(operand.slice, cut)) return;
      if (static_cast<size_t>(cut.rank) != operand.sizes.size()) {
        FailWith(absl::StrFormat("%s has %d ranged dimensions, not %d", cut.memory->name, cut.rank, operand.sizes.size()));
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
      program_.views[operand.view] = cut;
    }
    for (const Step::TileArgument& tile : step.tiles) {
      View view = program_.views[tile.outer];
      for (int d = 0; d < view.rank; ++d) {
        int64_t& size = slots_[tile.sizes[d]].integer;
        if (size < 0) size = view.size[d];
        if (size > view.size[d]) {
          FailWith(absl::StrFormat("tile %s has %d where the operands have %d", view.memory->name, view.size[d], size));
          return;
        }
        view.size[d] = size;
      }
      program_.views[tile.inner] = view;
    }
    for (const auto& [slot, value] : step.attributes) slots_[slot] = Evaluate(*value);
    calls_.push_back(&step);
    Execute(step.body);
    calls_.pop_back();
  }

  void RunPack(const Step& step) {
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

  Program& program_;
  std::vector<Value> slots_;
  std::vector<const Step*> calls_;  // tile calls whose meaning is running
  const Step* step_ = nullptr;
  int64_t chunk_ = 0;
  bool failed_ = false;
  Status error_;
};

}  // namespace
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
    if (number >= params.size()) {
      memory.storage.assign(static_cast<size_t>(memory.bytes), 0);
      memory.data = memory.storage.data();
      memory.Undefine();
      continue;
    }
    if (static_cast<int64_t>(buffers[number].size()) != memory.bytes) {
      return absl::InvalidArgumentError(absl::StrFormat("kernel %s: %s has %d bytes, not %d", program.kernel, memory.name,
                                                        buffers[number].size(), memory.bytes));
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
