// Expressions and slices of the interpreter.
#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/half.h"
#include "kir/describe.h"
#include "kir/interpret_machine.h"

namespace quern::kir::interpret {
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

// An integer that a double holds and that rounds to 32 bits and fewer as `value` does: of more than 53 bits the low 11
// become one that says whether any was set.
int64_t KeepRounding(int64_t value, DType dtype) {
  constexpr int64_t kExact = int64_t{1} << 53, kLow = 0x7ff;
  const bool exact =
      dtype == DType::kU64 ? static_cast<uint64_t>(value) <= kExact : value >= -kExact && value <= kExact;
  return exact ? value : (value & ~kLow) | ((value & kLow) != 0 ? kLow + 1 : 0);
}

}  // namespace

bool Machine::FailWith(const std::string& message) {
  if (!failed_) {
    failed_ = true;
    std::string where;
    const Watch& watch = program_.watch;
    const std::string who = watch.threads == 0 ? "" : ", " + ThreadsText(watch.first, watch.count);
    for (const Step* step : calls_) absl::StrAppend(&where, Describe(*step->source), ": ");
    if (step_ != nullptr) absl::StrAppend(&where, Describe(*step_->source), ": ");
    error_ = absl::InvalidArgumentError(
        absl::StrFormat("kernel %s, chunk %d%s: %s%s", program_.kernel, chunk_, who, where, message));
  }
  return false;
}

std::string Machine::ElementText(const View& view, const int64_t* index) const {
  return absl::StrCat(view.memory->name, "[", absl::StrJoin(index, index + view.rank, ", "), "]");
}

// Evaluates indices; false when outside the view.
bool Machine::Inside(const View& view, const std::vector<NodeRef>& nodes, int64_t* index) {
  bool inside = true;
  for (int d = 0; d < view.rank; ++d) {
    index[d] = Integer(*nodes[d]);
    inside = inside && index[d] >= 0 && index[d] < view.size[d];
  }
  return inside;
}

bool Machine::Check(Fault fault, const View& view, const int64_t* index) {
  switch (fault) {
    case Fault::kNone: return true;
    case Fault::kUndefined:
      if (!forgives_) return FailWith(ElementText(view, index) + " is read before it is written" + forgiven_);
      if (forgiven_.empty())
        forgiven_ = absl::StrCat("; ", Describe(*calls_.back()->source), " read ", ElementText(view, index), " before");
      return vague_ = true;
    case Fault::kReadOnly: return FailWith(ElementText(view, index) + " is written, but it is an input");
    case Fault::kRace: return FailWith(absl::StrCat(ElementText(view, index), " ", view.memory->race));
  }
  QUERN_CHECK(false);
}

bool Machine::OutOfRange(const View& view, const int64_t* index) {
  return FailWith(absl::StrCat(ElementText(view, index), " is outside ", view.memory->name, "[",
                               absl::StrJoin(view.size, view.size + view.rank, ", "), "]"));
}

Value Machine::Load(const Node& node) {
  const View& view = views_[node.view];
  if (view.memory == nullptr) {  // an absent operand
    return IsFloat(node.dtype) ? Value{.real = 0} : Value{.integer = 0};
  }
  int64_t index[kMaxRank];
  const bool inside = Inside(view, node.args, index);
  Value value{.integer = 0};
  if (failed_) return value;
  if (!inside && node.otherwise != nullptr) {
    if (IsFloat(node.dtype))
      value.real = Real(*node.otherwise);
    else
      value.integer = Integer(*node.otherwise);
    return value;
  }
  if (!inside)
    OutOfRange(view, index);
  else
    Check(ReadElement(view, index, value), view, index);
  return value;
}

double Machine::DecodeAt(const Node& node) {
  const View& view = views_[node.view];
  int64_t index[kMaxRank];
  const bool inside = Inside(view, node.args, index);
  double value = 0;
  if (failed_) return value;
  if (!inside)
    OutOfRange(view, index);
  else
    Check(DecodeElementOf(view, index, value), view, index);
  return value;
}

double Machine::Real(const Node& node) {
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
      if (IsFloat(arg.dtype)) {
        // What was loaded or cast is a value of its dtype already; most of all casts are of halves just loaded.
        const bool rounded = arg.kind == NodeKind::kLoad || arg.kind == NodeKind::kCast;
        const double value = Real(arg);
        return RoundReal(node.dtype, rounded ? value : RoundReal(arg.dtype, value));
      }
      // Of 64 bits, a double first would round twice.
      const int64_t value = node.dtype == DType::kF64 ? Integer(arg) : KeepRounding(Integer(arg), arg.dtype);
      return RoundReal(node.dtype, arg.dtype == DType::kU64 ? static_cast<double>(static_cast<uint64_t>(value))
                                                            : static_cast<double>(value));
    }
    case NodeKind::kBits: return FromBits(node.dtype, BitsOf(*node.args[0])).real;
    case NodeKind::kReduce: {
      const int64_t low = Integer(*node.args[0]), high = Integer(*node.args[1]);
      double total = Identity(node.reduce);
      for (int64_t i = low; i < high && !failed_; ++i) {
        slots_[node.slot].integer = i;
        for (const auto& [slot, value] : node.lets) slots_[slot] = Evaluate(*value);
        total = Row(node.op).eval(total, Real(*node.args[2]), 0);
      }
      return total;
    }
  }
  QUERN_CHECK(false);
}

int64_t Machine::Integer(const Node& node) {
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
        for (const auto& [slot, value] : node.lets) slots_[slot] = Evaluate(*value);
        total = WrapInteger(node.dtype, EvalInteger(node.op, node.dtype, total, Integer(*node.args[2]), 0));
      }
      return total;
    }
  }
  QUERN_CHECK(false);
}

uint64_t Machine::BitsOf(const Node& node) {
  return ToBits(node.dtype, IsFloat(node.dtype) ? Value{.real = Real(node)} : Value{.integer = Integer(node)});
}

Value Machine::Evaluate(const Node& node) {
  return IsFloat(node.dtype) ? Value{.real = Real(node)} : Value{.integer = Integer(node)};
}

// The part of a buffer that a slice names, ranges clipped.
bool Machine::Cut(const SliceNode& slice, View& cut) {
  const View& view = views_[slice.view];
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
    if (view.layout == Layout::kRow || !last)
      cut.offset += start * view.stride[d];
    else
      cut.column += start;
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

}  // namespace quern::kir::interpret
