// Index arithmetic that keeps patterns (Val): what lanes lie apart is known here, so that it needs no vector of 64-bit
// numbers at run time.
//
// A multiple is a power of two, so that what follows from it holds when 64 bits overflow too.
#include <algorithm>
#include <array>

#include "base/divide.h"
#include "codegen/cpu/emitter.h"
#include "codegen/llvm/operators.h"

namespace quern::cpu {
namespace {

using kir::Op;

const llvm::ConstantInt* ConstantOf(const Val& value) {
  return value.uniform() ? llvm::dyn_cast<llvm::ConstantInt>(value.scalar) : nullptr;
}

// a + b, or a - b.
Range Sum(const Range& a, const Range& b, bool subtract) {
  int64_t low = 0, high = 0;
  if (!a || !b) return std::nullopt;
  const bool over =
      subtract
          ? __builtin_sub_overflow(a->first, b->second, &low) || __builtin_sub_overflow(a->second, b->first, &high)
          : __builtin_add_overflow(a->first, b->first, &low) || __builtin_add_overflow(a->second, b->second, &high);
  return over ? std::nullopt : Range(std::pair(low, high));
}

Range Scaled(const Range& a, int64_t factor) {
  int64_t low = 0, high = 0;
  if (!a || factor < 0 || __builtin_mul_overflow(a->first, factor, &low) ||
      __builtin_mul_overflow(a->second, factor, &high)) {
    return std::nullopt;
  }
  return std::pair(low, high);
}

// Whether no lane can be negative.
bool AtLeastZero(const Val& value) {
  const Range range = RangeOf(value);
  return range && range->first + *std::min_element(value.offsets.begin(), value.offsets.end()) >= 0;
}

std::vector<int64_t> Combined(const Val& a, const Val& b, int64_t sign) {
  std::vector<int64_t> offsets = a.offsets;
  offsets.resize(std::max(a.offsets.size(), b.offsets.size()));
  for (size_t lane = 0; lane < b.offsets.size(); ++lane) offsets[lane] += sign * b.offsets[lane];
  return offsets;
}

}  // namespace

int64_t MultipleOf(const Val& value) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value.scalar);
  return constant != nullptr ? PowerIn(constant->getSExtValue()) : value.multiple;
}

Range RangeOf(const Val& value) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value.scalar);
  if (constant == nullptr) return value.range;
  return std::pair(constant->getSExtValue(), constant->getSExtValue());
}

bool Emitter::MayBeLive(llvm::Value* mask, size_t lane) {
  const auto* known = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  const llvm::Constant* bit = known == nullptr ? nullptr : known->getAggregateElement(static_cast<unsigned>(lane));
  return bit == nullptr || !bit->isNullValue();
}

std::pair<int64_t, int64_t> Emitter::LiveOffsets(const Val& value, llvm::Value* mask) {
  std::vector<int64_t> live;
  for (size_t lane = 0; lane < value.offsets.size(); ++lane) {
    if (MayBeLive(mask, lane)) live.push_back(value.offsets[lane]);
  }
  if (live.empty()) return {0, 0};
  const auto [least, most] = std::minmax_element(live.begin(), live.end());
  return {*least, *most};
}

bool Emitter::IsWithin(const Val& index, llvm::Value* extent) const {
  const auto* limit = llvm::dyn_cast<llvm::ConstantInt>(extent);
  if (limit == nullptr || index.varying()) return false;
  const Range range = RangeOf(index);
  if (!range) return false;
  const auto [least, most] = LiveOffsets(index, mask_);
  return range->first + least >= 0 && range->second + most < limit->getSExtValue();
}

Val Emitter::FromFirst(Val value) {
  if (value.offsets.empty() || value.offsets[0] == 0) return value;
  const int64_t first = value.offsets[0];
  for (int64_t& offset : value.offsets) offset -= first;
  value.multiple = std::min(MultipleOf(value), PowerIn(first));
  value.range = Sum(RangeOf(value), std::pair(first, first), /*subtract=*/false);
  value.scalar = b_.CreateAdd(value.scalar, b_.getInt64(first));
  return value;
}

// Lanes that hold the same are uniform.
Val Emitter::Normal(Val value) {
  const bool same = std::all_of(value.offsets.begin(), value.offsets.end(),
                                [&](int64_t offset) { return offset == value.offsets[0]; });
  if (!same) return value;
  value = FromFirst(std::move(value));
  value.offsets.clear();
  return value;
}

std::optional<Val> Emitter::WithinUnit(const Val& value, int64_t unit) {
  if (value.offsets.empty()) return std::nullopt;
  const auto [least, most] = std::minmax_element(value.offsets.begin(), value.offsets.end());
  const int64_t first = FloorDiv(*least, unit) * unit;
  if (*most - first >= unit) return std::nullopt;
  Val moved = value;
  for (int64_t& offset : moved.offsets) offset -= first;
  moved.scalar = b_.CreateAdd(value.scalar, b_.getInt64(first));
  moved.range = Sum(RangeOf(value), std::pair(first, first), /*subtract=*/false);
  moved.multiple = unit;
  return moved;
}

// To the offsets, so that the scalar stays the multiple that it is.
Val Emitter::AddConstant(Val value, int64_t constant) {
  for (int64_t& offset : value.offsets) offset += constant;
  return value;
}

Val Emitter::AddI64(const Val& a, const Val& b) {
  if (a.varying() || b.varying()) return FromLanes(DType::kI64, b_.CreateAdd(Lanes(a), Lanes(b)));
  for (const auto& [pattern, constant] : {std::pair(&a, ConstantOf(b)), std::pair(&b, ConstantOf(a))}) {
    if (constant != nullptr && !pattern->uniform()) return AddConstant(*pattern, constant->getSExtValue());
  }
  return Normal({DType::kI64, b_.CreateAdd(a.scalar, b.scalar), nullptr, Combined(a, b, 1),
                 std::min(MultipleOf(a), MultipleOf(b)), Sum(RangeOf(a), RangeOf(b), /*subtract=*/false)});
}

Val Emitter::SubI64(const Val& a, const Val& b) {
  if (a.varying() || b.varying()) return FromLanes(DType::kI64, b_.CreateSub(Lanes(a), Lanes(b)));
  if (const llvm::ConstantInt* constant = ConstantOf(b); constant != nullptr && !a.uniform())
    return AddConstant(a, -constant->getSExtValue());
  return Normal({DType::kI64, b_.CreateSub(a.scalar, b.scalar), nullptr, Combined(a, b, -1),
                 std::min(MultipleOf(a), MultipleOf(b)), Sum(RangeOf(a), RangeOf(b), /*subtract=*/true)});
}

Val Emitter::MulI64(const Val& a, const Val& b) {
  // A pattern times a constant stays one; times a run-time stride its lanes lie apart by unknown steps.
  for (const auto& [pattern, factor] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const llvm::ConstantInt* constant = ConstantOf(*factor);
    if (constant == nullptr || pattern->varying()) continue;
    const int64_t times = constant->getSExtValue();
    std::vector<int64_t> offsets = pattern->offsets;
    for (int64_t& offset : offsets) offset *= times;
    return Normal({DType::kI64, b_.CreateMul(pattern->scalar, factor->scalar), nullptr, std::move(offsets),
                   std::min(PowerIn(0), MultipleOf(*pattern) * PowerIn(times)), Scaled(RangeOf(*pattern), times)});
  }
  if (a.uniform() && b.uniform()) {
    Val product = Uniform(DType::kI64, b_.CreateMul(a.scalar, b.scalar));
    product.multiple = std::max(MultipleOf(a), MultipleOf(b));
    return product;
  }
  return FromLanes(DType::kI64, b_.CreateMul(Lanes(a), Lanes(b)));
}

// a / divisor, toward zero, and a % divisor, at least 0.
std::optional<Val> Emitter::QuotientOf(Op op, const Val& a, int64_t divisor) {
  const int64_t multiple = MultipleOf(a), common = std::min(multiple, PowerIn(divisor));
  if (op == Op::kMod && multiple % divisor == 0) {
    // The scalar leaves nothing.
    Val rest = I64(0);
    for (const int64_t offset : a.offsets) rest.offsets.push_back(offset - FloorDiv(offset, divisor) * divisor);
    return Normal(std::move(rest));
  }
  // Otherwise scalar and divisor are multiples of `common`, and offsets below it do not reach the next multiple of the
  // divisor.
  const bool exact = multiple % divisor == 0;
  if (op == Op::kDiv && !a.uniform() && !AtLeastZero(a)) return std::nullopt;
  std::optional<Val> result = exact || a.uniform() ? a : WithinUnit(a, common);
  if (!result) return std::nullopt;
  const Range range = RangeOf(*result);
  const std::vector<llvm::Value*> operands = {result->scalar, b_.getInt64(divisor)};
  result->scalar = codegen::IntegerOperator(b_, op, DType::kI64, operands);
  if (op == Op::kMod) {
    result->multiple = common;
    result->range = std::pair(int64_t{0}, divisor - 1);
    return Normal(*std::move(result));
  }
  result->multiple = exact ? multiple / divisor : 1;
  for (int64_t& offset : result->offsets) offset = FloorDiv(offset, divisor);
  if (range) result->range = std::pair(range->first / divisor, range->second / divisor);
  return Normal(*std::move(result));
}

std::optional<Val> Emitter::PatternOf(Op op, std::span<const Val> args) {
  if (op == Op::kAdd) return AddI64(args[0], args[1]);
  if (op == Op::kSub) return SubI64(args[0], args[1]);
  if (op == Op::kMul) return MulI64(args[0], args[1]);
  if (args.size() != 2) return std::nullopt;
  const llvm::ConstantInt* constant = ConstantOf(args[1]);
  if ((op == Op::kMin || op == Op::kMax) && constant == nullptr && ConstantOf(args[0]) != nullptr)
    return PatternOf(op, std::array{args[1], args[0]});
  if (args[0].varying() || constant == nullptr) return std::nullopt;
  const Val& a = args[0];
  const int64_t limit = constant->getSExtValue();
  switch (op) {
    case Op::kDiv:
    case Op::kMod: return limit > 0 ? QuotientOf(op, a, limit) : std::nullopt;
    case Op::kMin:
    case Op::kMax: {
      // A limit that no lane reaches.
      const auto [least, most] = std::minmax_element(a.offsets.begin(), a.offsets.end());
      const Val ends = a.uniform() ? I64(0) : I64(op == Op::kMin ? *most : *least);
      const Range range = Sum(RangeOf(a), RangeOf(ends), /*subtract=*/false);
      if (range && (op == Op::kMin ? range->second <= limit : range->first >= limit)) return a;
      if (!range || !a.uniform()) return std::nullopt;
      const auto bounded = [&](int64_t end) { return op == Op::kMin ? std::min(end, limit) : std::max(end, limit); };
      const std::vector<llvm::Value*> operands = {a.scalar, args[1].scalar};
      Val result = Uniform(DType::kI64, codegen::IntegerOperator(b_, op, DType::kI64, operands));
      result.range = {bounded(range->first), bounded(range->second)};
      return result;
    }
    case Op::kLt: {
      // All lanes lie on the same side of a multiple of what the scalar is a multiple of.
      const std::optional<Val> same = WithinUnit(a, std::min(MultipleOf(a), PowerIn(limit)));
      if (!same) return std::nullopt;
      return Uniform(DType::kBool, b_.CreateICmpSLT(same->scalar, args[1].scalar));
    }
    default: return std::nullopt;
  }
}

}  // namespace quern::cpu
