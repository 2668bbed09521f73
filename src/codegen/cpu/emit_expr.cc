// Expressions over the lanes of a loop; the operators themselves are those of codegen/llvm.
#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "codegen/llvm/operators.h"
#include "kir/parts.h"
#include "llvm/IR/Intrinsics.h"

namespace quern::cpu {

using kir::Op;

Val Emitter::Emit(const kir::ExprRef& expr) {
  const DType dtype = expr->dtype;
  return std::visit(kir::Overloaded{
                        [&](const kir::Const& constant) {
                          llvm::Type* type = ScalarType(dtype);
                          if (!IsFloat(dtype))
                            return Uniform(dtype, llvm::ConstantInt::get(type, constant.integer, true));
                          // The literal's nearest value of its dtype; f16 and bf16 are rounded by the constant folder.
                          llvm::Value* f64 = FloatConstant(b_.getDoubleTy(), constant.real);
                          return Uniform(dtype, Convert(f64, DType::kF64, dtype));
                        },
                        [&](const kir::NameRef& name) { return EmitName(*expr, name); },
                        [&](const kir::Load& load) {
                          Buffer* found = FindBuffer(load.buffer);
                          if (found == nullptr) return Poison(dtype);
                          const Buffer buffer = *found;
                          const std::vector<Val> index = EmitIndex(load.index);
                          return load.otherwise == nullptr ? LoadElement(buffer, index)
                                                           : LoadOr(buffer, index, Emit(load.otherwise));
                        },
                        [&](const kir::Apply& apply) { return EmitApply(*expr, apply); },
                        [&](const kir::Cast& cast) {
                          const Val value = Emit(cast.value);
                          const bool index = dtype == DType::kI64 && value.dtype == DType::kI64;
                          if (index) return value;  // keeps the linear form
                          if (value.uniform()) return Uniform(dtype, Convert(value.scalar, value.dtype, dtype));
                          return FromLanes(dtype, Convert(Lanes(value), value.dtype, dtype));
                        },
                        [&](const kir::Bits& bits) {
                          const Val value = Emit(bits.value);
                          if (value.uniform()) return Uniform(dtype, BitCast(value.scalar, value.dtype, dtype));
                          return FromLanes(dtype, BitCast(Lanes(value), value.dtype, dtype));
                        },
                        [&](const kir::Reduce& reduce) { return EmitReduce(*expr, reduce); },
                        [&](const kir::Decode& decode) { return EmitDecode(decode); },
                    },
                    expr->node);
}

Val Emitter::EmitName(const kir::Expr& expr, const kir::NameRef& name) {
  const Binding* binding = Lookup(name.name);
  if (binding == nullptr) {
    Fail(absl::StrFormat("no value named %s", name.name));
    return Poison(expr.dtype);
  }
  switch (binding->kind) {
    case Binding::kValue: return binding->value;
    case Binding::kVar: {
      if (lanes_ != 1 && running_.contains(name.name)) return EmitRunning(name.name);
      llvm::Value* loaded = b_.CreateLoad(binding->slot->getAllocatedType(), binding->slot);
      return FromLanes(binding->value.dtype, loaded);
    }
    case Binding::kTileElement: {
      const std::vector<Val> index = binding->index;
      Buffer* buffer = FindBuffer(name.name);
      return buffer == nullptr ? Poison(expr.dtype) : LoadElement(*buffer, index);
    }
  }
  QUERN_CHECK(false);
}

Val Emitter::EmitApply(const kir::Expr& expr, const kir::Apply& apply) {
  std::vector<Val> args;
  for (const kir::ExprRef& arg : apply.args) args.push_back(Emit(arg));
  const DType dtype = args.back().dtype;
  if (dtype == DType::kI64) {
    if (std::optional<Val> pattern = PatternOf(apply.op, args)) return *std::move(pattern);
  }
  bool uniform = true;
  for (const Val& arg : args) uniform = uniform && arg.uniform();
  std::vector<llvm::Value*> values;
  for (const Val& arg : args) values.push_back(uniform ? arg.scalar : Lanes(arg));

  Builder::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags;
  flags.setAllowContract(apply.contract);
  b_.setFastMathFlags(flags);
  llvm::Value* value;
  if (apply.op == Op::kSelect) {
    value = b_.CreateSelect(values[0], values[1], values[2]);
  } else if (apply.op == Op::kEq || apply.op == Op::kNe || apply.op == Op::kLt || apply.op == Op::kLe) {
    value = codegen::Compare(b_, apply.op, dtype, values[0], values[1]);
  } else if (IsFloat(dtype)) {
    value = FloatOp(apply.op, dtype, values);
  } else {
    value = IntegerOp(apply.op, dtype, values);
  }
  return FromLanes(expr.dtype, value);
}

llvm::Value* Emitter::FloatOp(Op op, DType dtype, std::span<llvm::Value* const> args) {
  if (op == Op::kRound) {
    if (llvm::Value* value = RoundedQuotient(args[0])) return value;
  }
  if (llvm::Value* value = codegen::FloatOperator(b_, op, args)) return value;
  llvm::Value* a = args[0];
  if (op == Op::kFma && target_.fma)
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, args[1], args[2]});
  if (op == Op::kFma) return LibmPerLane("fma", args);
  if (op != Op::kMod) return MathCall(op, dtype, args);
  llvm::Value* remainder = Fmod(args);
  llvm::Constant* zero = FloatConstant(a->getType(), 0);
  llvm::Value* other_sign = b_.CreateXor(b_.CreateFCmpOLT(remainder, zero), b_.CreateFCmpOLT(args[1], zero));
  llvm::Value* adjust = b_.CreateAnd(other_sign, b_.CreateFCmpUNE(remainder, zero));
  return b_.CreateSelect(adjust, b_.CreateFAdd(remainder, args[1]), remainder);
}

llvm::Value* Emitter::IntegerOp(Op op, DType dtype, std::span<llvm::Value* const> args) {
  if (llvm::Value* value = codegen::IntegerOperator(b_, op, dtype, args)) return value;
  Fail(absl::StrFormat("operator %s on %s", kir::Row(op).name, Row(dtype).name));
  return args[0];
}

llvm::Value* Emitter::Combine(kir::ReduceOp op, DType dtype, llvm::Value* a, llvm::Value* b, bool contract) {
  Builder::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags;
  flags.setAllowContract(contract);
  b_.setFastMathFlags(flags);
  return codegen::Combine(b_, op, dtype, a, b);
}

}  // namespace quern::cpu
