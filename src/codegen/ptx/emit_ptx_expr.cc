// Expressions, with the exact meaning of kir/operators.cc at the edges. 16-bit floats are computed in f32 and rounded where
// they are stored or cast.
#include "base/check.h"
#include "codegen/ptx/emitter.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace quern::ptx {

using kir::Op;

llvm::Type* Emitter::MemoryType(DType dtype) {
  switch (dtype) {
    case DType::kF32: return b_.getFloatTy();
    case DType::kF64: return b_.getDoubleTy();
    case DType::kF16: return b_.getHalfTy();
    case DType::kBF16: return b_.getInt16Ty();
    case DType::kBool: return b_.getInt8Ty();
    default: return b_.getIntNTy(8 * static_cast<unsigned>(ScalarBytes(dtype)));
  }
}

llvm::Type* Emitter::ValueType(DType dtype) {
  if (dtype == DType::kF16 || dtype == DType::kBF16) return b_.getFloatTy();
  return dtype == DType::kBool ? b_.getInt1Ty() : MemoryType(dtype);
}

llvm::Value* Emitter::FromMemory(llvm::Value* value, DType dtype) {
  if (dtype == DType::kF16) return b_.CreateFPExt(value, b_.getFloatTy());
  if (dtype == DType::kBF16) return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(value, b_.getInt32Ty()), 16), b_.getFloatTy());
  return dtype == DType::kBool ? b_.CreateICmpNE(value, b_.getInt8(0)) : value;
}

llvm::Value* Emitter::ToMemory(llvm::Value* value, DType dtype) {
  if (dtype == DType::kF16) return b_.CreateFPTrunc(value, b_.getHalfTy());
  if (dtype == DType::kBool) return b_.CreateZExt(value, b_.getInt8Ty());
  if (dtype != DType::kBF16) return value;
  return b_.CreateBitCast(b_.CreateIntrinsic(llvm::Intrinsic::nvvm_f2bf16_rn, {}, {value}), b_.getInt16Ty());
}

llvm::Value* Emitter::Address(const Buffer& buffer, const std::vector<llvm::Value*>& index) {
  if (buffer.core) {
    auto part = [&](llvm::Value* at) { return b_.CreateLShr(at, 3); };
    auto inside = [&](llvm::Value* at) { return b_.CreateAnd(at, 7); };
    llvm::Value* number = b_.CreateNSWAdd(b_.CreateNSWMul(part(index[0]), part(buffer.dims[1])), part(index[1]));
    llvm::Value* element = b_.CreateOr(b_.CreateShl(inside(index[0]), 3), inside(index[1]));
    return b_.CreateGEP(MemoryType(buffer.dtype), buffer.pointer, b_.CreateOr(b_.CreateShl(number, 6), element));
  }
  llvm::Value* at = I64(0);
  for (size_t d = 0; d < index.size(); ++d) {
    if (d > 0) at = b_.CreateNSWMul(at, buffer.dims[d]);
    at = b_.CreateNSWAdd(at, index[d]);
  }
  return b_.CreateGEP(MemoryType(buffer.dtype), buffer.pointer, at);
}

llvm::AllocaInst* Emitter::TileSlot(const TileValue& tile, const std::vector<llvm::Value*>& index) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(index[d]);
    if (tile.together > 1 || constant == nullptr || constant->getSExtValue() < 0 || constant->getSExtValue() >= tile.dims[d]) {
      Fail("an element of a tile is not at constant indices");
      return tile.slots[0];
    }
    at = at * tile.dims[d] + constant->getSExtValue();
  }
  return tile.slots[at];
}

llvm::Value* Emitter::LoadElement(const Buffer& buffer, const std::vector<llvm::Value*>& index) {
  return FromMemory(b_.CreateLoad(MemoryType(buffer.dtype), Address(buffer, index)), buffer.dtype);
}

llvm::Value* Emitter::LoadFrom(const kir::Load& load, DType dtype) {
  llvm::Value* const none = llvm::Constant::getNullValue(ValueType(dtype));
  std::vector<llvm::Value*> index;
  for (const kir::ExprRef& at : load.index) index.push_back(Value(at));
  const auto found = names_.find(load.buffer);
  if (found == names_.end() || !status_.ok()) return none;
  if (found->second.tile >= 0) {
    llvm::AllocaInst* slot = TileSlot(tiles_[found->second.tile], index);
    return b_.CreateLoad(slot->getAllocatedType(), slot);
  }
  if (found->second.value != nullptr && index.empty()) return found->second.value;  // an operand of a function
  if (found->second.buffer < 0) {
    Fail(load.buffer + " is no buffer");
    return none;
  }
  const Buffer buffer = buffers_[found->second.buffer];
  if (load.otherwise == nullptr) return LoadElement(buffer, index);
  llvm::AllocaInst* result = Slot(ValueType(dtype));
  b_.CreateStore(Value(load.otherwise), result);
  llvm::Value* inside = b_.getTrue();
  for (size_t d = 0; d < index.size(); ++d) inside = b_.CreateAnd(inside, b_.CreateICmpULT(index[d], buffer.dims[d]));
  Guarded(inside, [&] { b_.CreateStore(LoadElement(buffer, index), result); });
  return b_.CreateLoad(result->getAllocatedType(), result);
}

llvm::Value* Emitter::Constant(const kir::Const& constant, DType dtype) {
  if (IsFloat(dtype)) return llvm::ConstantFP::get(ValueType(dtype), constant.real);
  return llvm::ConstantInt::get(ValueType(dtype), static_cast<uint64_t>(constant.integer), true);
}

llvm::Value* Emitter::Value(const kir::ExprRef& expr) {
  llvm::Value* const none = llvm::Constant::getNullValue(ValueType(expr->dtype));
  if (const auto* constant = std::get_if<kir::Const>(&expr->node)) return Constant(*constant, expr->dtype);
  if (const auto* ref = std::get_if<kir::NameRef>(&expr->node)) {
    const auto found = names_.find(ref->name);
    if (found == names_.end()) {
      Fail(ref->name + " is not defined");
      return none;
    }
    const Name& name = found->second;
    if (name.element >= 0) {
      llvm::AllocaInst* slot = tiles_[name.tile].slots[name.element];
      return b_.CreateLoad(slot->getAllocatedType(), slot);
    }
    if (name.slot != nullptr) return b_.CreateLoad(name.slot->getAllocatedType(), name.slot);
    return name.value == nullptr ? none : name.value;
  }
  if (const auto* load = std::get_if<kir::Load>(&expr->node)) return LoadFrom(*load, expr->dtype);
  if (const auto* apply = std::get_if<kir::Apply>(&expr->node)) return Operator(*apply);
  if (const auto* cast = std::get_if<kir::Cast>(&expr->node)) return Convert(Value(cast->value), cast->value->dtype, expr->dtype);
  if (const auto* bits = std::get_if<kir::Bits>(&expr->node)) {
    const DType from = bits->value->dtype;
    return FromMemory(b_.CreateBitCast(ToMemory(Value(bits->value), from), MemoryType(expr->dtype)), expr->dtype);
  }
  if (const auto* reduce = std::get_if<kir::Reduce>(&expr->node)) return Reduction(*reduce, expr->dtype);
  return DecodeOf(std::get<kir::Decode>(expr->node));
}

llvm::Value* Emitter::Reduction(const kir::Reduce& reduce, DType dtype) {
  const bool is_unsigned = IsUnsigned(dtype);
  const unsigned bits = 8 * static_cast<unsigned>(ScalarBytes(dtype));
  kir::Const identity{.real = kir::Identity(reduce.op), .integer = reduce.op == kir::ReduceOp::kProd ? 1 : 0};
  if (reduce.op == kir::ReduceOp::kMax && !is_unsigned) identity.integer = llvm::APInt::getSignedMinValue(bits).getSExtValue();
  if (reduce.op == kir::ReduceOp::kMin) {
    identity.integer = (is_unsigned ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getSignedMaxValue(bits)).getSExtValue();
  }
  llvm::AllocaInst* total = Slot(ValueType(dtype));
  b_.CreateStore(Constant(identity, dtype), total);
  const Names outer = names_;
  LoopOver(Value(reduce.low), Value(reduce.high), I64(1), [&](llvm::Value* i) {
    names_[reduce.index] = {.value = i};
    llvm::Value* element = Value(reduce.body);
    llvm::Value* so_far = b_.CreateLoad(total->getAllocatedType(), total);
    const Op op = kir::CombineOp(reduce.op);
    const auto* product = std::get_if<kir::Apply>(&reduce.body->node);
    llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
    llvm::FastMathFlags flags;
    flags.setAllowContract(product != nullptr && product->contract);
    b_.setFastMathFlags(flags);
    b_.CreateStore(IsFloat(dtype) ? FloatOperator(op, dtype, {so_far, element}) : IntegerOperator(op, dtype, {so_far, element}), total);
  });
  names_ = outer;
  return b_.CreateLoad(total->getAllocatedType(), total);
}

llvm::Value* Emitter::Convert(llvm::Value* value, DType from, DType to) {
  if (to == DType::kBool) {
    llvm::Value* zero = llvm::Constant::getNullValue(value->getType());
    return IsFloat(from) ? b_.CreateFCmpUNE(value, zero) : b_.CreateICmpNE(value, zero);
  }
  llvm::Type* type = ValueType(to);
  const bool from_unsigned = IsUnsigned(from) || from == DType::kBool;
  if (!IsFloat(from)) {
    if (!IsFloat(to)) return b_.CreateIntCast(value, type, !from_unsigned);
    if (ScalarBytes(to) == 2 && ScalarBytes(from) > 2) {
      // Through f64, exactly: of 64 bits the low ones become one that says whether any was set, which is all that rounding asks.
      if (ScalarBytes(from) == 8) {
        llvm::Value* wide = b_.CreateICmpUGT(b_.CreateAdd(value, I64(int64_t{1} << 52)), I64(int64_t{1} << 53));
        llvm::Value* lost = b_.CreateICmpNE(b_.CreateAnd(value, I64(0x7ff)), I64(0));
        llvm::Value* kept = b_.CreateOr(b_.CreateAnd(value, I64(~int64_t{0x7ff})), b_.CreateShl(b_.CreateZExt(lost, value->getType()), 11));
        value = b_.CreateSelect(wide, kept, value);
      }
      value = from_unsigned ? b_.CreateUIToFP(value, b_.getDoubleTy()) : b_.CreateSIToFP(value, b_.getDoubleTy());
      return Convert(value, DType::kF64, to);
    }
    value = from_unsigned ? b_.CreateUIToFP(value, type) : b_.CreateSIToFP(value, type);
  } else if (!IsFloat(to)) {
    return b_.CreateIntrinsic(IsUnsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat, {type, value->getType()},
                              {value});
  } else if (from == DType::kF64 && ScalarBytes(to) == 2) {
    // To f32 toward an odd last bit: rounded once more, the result is that of rounding once.
    llvm::Value* narrow = b_.CreateFPTrunc(value, b_.getFloatTy());
    llvm::Value* back = b_.CreateFPExt(narrow, b_.getDoubleTy());
    llvm::Value* bits = b_.CreateBitCast(narrow, b_.getInt32Ty());
    llvm::Value* over = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back), b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value));
    llvm::Value* odd = b_.CreateOr(b_.CreateSub(bits, b_.CreateZExt(over, bits->getType())), 1);
    value = b_.CreateBitCast(b_.CreateSelect(b_.CreateFCmpONE(back, value), odd, bits), b_.getFloatTy());
  } else {
    value = b_.CreateFPCast(value, type);
  }
  return ScalarBytes(to) == 2 ? FromMemory(ToMemory(value, to), to) : value;
}

llvm::Value* Emitter::Operator(const kir::Apply& apply) {
  std::vector<llvm::Value*> args;
  for (const kir::ExprRef& arg : apply.args) args.push_back(Value(arg));
  const DType dtype = apply.args.back()->dtype;
  llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags;
  flags.setAllowContract(apply.contract);
  b_.setFastMathFlags(flags);
  if (apply.op == Op::kSelect) return b_.CreateSelect(args[0], args[1], args[2]);
  if (apply.op == Op::kEq || apply.op == Op::kNe || apply.op == Op::kLt || apply.op == Op::kLe) {
    return Compare(apply.op, dtype, args[0], args[1]);
  }
  return IsFloat(dtype) ? FloatOperator(apply.op, dtype, args) : IntegerOperator(apply.op, dtype, args);
}

llvm::Value* Emitter::Compare(Op op, DType dtype, llvm::Value* a, llvm::Value* b) {
  const bool is_unsigned = IsUnsigned(dtype) || dtype == DType::kBool;
  if (op == Op::kEq) return IsFloat(dtype) ? b_.CreateFCmpOEQ(a, b) : b_.CreateICmpEQ(a, b);
  if (op == Op::kNe) return IsFloat(dtype) ? b_.CreateFCmpUNE(a, b) : b_.CreateICmpNE(a, b);
  const bool less = op == Op::kLt;
  if (IsFloat(dtype)) return less ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOLE(a, b);
  if (is_unsigned) return less ? b_.CreateICmpULT(a, b) : b_.CreateICmpULE(a, b);
  return less ? b_.CreateICmpSLT(a, b) : b_.CreateICmpSLE(a, b);
}

llvm::Value* Emitter::MinMax(bool max, DType dtype, llvm::Value* a, llvm::Value* b) {
  if (!IsFloat(dtype)) {
    const bool is_unsigned = IsUnsigned(dtype);
    return b_.CreateBinaryIntrinsic(max ? (is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax)
                                        : (is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin), a, b);
  }
  if (a->getType()->isFloatTy()) return b_.CreateBinaryIntrinsic(max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  llvm::Value* chosen = b_.CreateSelect(max ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b), a, b);
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, chosen);  // a NaN in b is b
}

// The statements of a function of the library, with `args` as its parameters.
llvm::Value* Emitter::Called(Op op, DType dtype, const std::vector<llvm::Value*>& args) {
  const StatusOr<const kir::Kernel*> function = math_.Find(op, dtype);
  if (!function.ok()) {
    Unimplemented(std::string(function.status().message()));
    return args[0];
  }
  Names inner;
  for (size_t i = 0; i < args.size(); ++i) inner[(*function)->params[i].name] = {.value = args[i]};
  llvm::AllocaInst* result = Slot(args[0]->getType());
  inner["y"] = {.slot = result};
  std::swap(names_, inner);
  llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
  b_.setFastMathFlags({});
  Block((*function)->body);
  std::swap(names_, inner);
  return b_.CreateLoad(result->getAllocatedType(), result);
}

llvm::Value* Emitter::FloatOperator(Op op, DType dtype, const std::vector<llvm::Value*>& args) {
  llvm::Value* a = args[0];
  llvm::Value* b = args.size() > 1 ? args[1] : nullptr;
  llvm::Constant* one = llvm::ConstantFP::get(a->getType(), 1);
  switch (op) {
    case Op::kNeg: return b_.CreateFNeg(a);
    case Op::kAbs: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
    case Op::kFloor: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a);
    case Op::kCeil: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a);
    case Op::kTrunc: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, a);
    case Op::kRound: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, a);
    case Op::kSqrt: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Op::kRsqrt: return b_.CreateFDiv(one, b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a));
    case Op::kAdd: return b_.CreateFAdd(a, b);
    case Op::kSub: return b_.CreateFSub(a, b);
    case Op::kMul: return b_.CreateFMul(a, b);
    case Op::kDiv: return b_.CreateFDiv(a, b);
    case Op::kMin: return MinMax(false, dtype, a, b);
    case Op::kMax: return MinMax(true, dtype, a, b);
    case Op::kFma: return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, args[2]});
    case Op::kExp2:
      if (dtype != DType::kF64) return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_f, {}, {a});
      break;
    default: break;
  }
  return Called(op, dtype == DType::kF64 ? dtype : DType::kF32, args);
}

llvm::Value* Emitter::DivMod(bool mod, DType dtype, llvm::Value* a, llvm::Value* b) {
  llvm::Type* type = a->getType();
  llvm::Constant* zero = llvm::ConstantInt::get(type, 0);
  llvm::Constant* one = llvm::ConstantInt::get(type, 1);
  llvm::Value* by_zero = b_.CreateICmpEQ(b, zero);
  if (IsUnsigned(dtype)) {
    llvm::Value* safe = b_.CreateSelect(by_zero, one, b);
    return b_.CreateSelect(by_zero, zero, mod ? b_.CreateURem(a, safe) : b_.CreateUDiv(a, safe));
  }
  // Neither zero nor -1, by which the lowest number has no quotient, may reach the division.
  llvm::Value* by_minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
  llvm::Value* safe = b_.CreateSelect(b_.CreateOr(by_zero, by_minus_one), one, b);
  llvm::Value* value;
  if (mod) {
    llvm::Value* remainder = b_.CreateSRem(a, safe);
    llvm::Value* other_sign = b_.CreateICmpSLT(b_.CreateXor(remainder, safe), zero);
    value = b_.CreateSelect(b_.CreateAnd(other_sign, b_.CreateICmpNE(remainder, zero)), b_.CreateAdd(remainder, safe), remainder);
  } else {
    value = b_.CreateSelect(by_minus_one, b_.CreateNeg(a), b_.CreateSDiv(a, safe));
  }
  return b_.CreateSelect(by_zero, zero, value);
}

llvm::Value* Emitter::IntegerOperator(Op op, DType dtype, const std::vector<llvm::Value*>& args) {
  llvm::Value* a = args[0];
  llvm::Value* b = args.size() > 1 ? args[1] : nullptr;
  llvm::Type* type = a->getType();
  switch (op) {
    case Op::kNeg: return b_.CreateNeg(a);
    case Op::kAbs: return IsUnsigned(dtype) ? a : b_.CreateIntrinsic(llvm::Intrinsic::abs, {type}, {a, b_.getFalse()});
    case Op::kNot: return b_.CreateNot(a);
    case Op::kAdd: return b_.CreateAdd(a, b);
    case Op::kSub: return b_.CreateSub(a, b);
    case Op::kMul: return b_.CreateMul(a, b);
    case Op::kDiv: return DivMod(false, dtype, a, b);
    case Op::kMod: return DivMod(true, dtype, a, b);
    case Op::kMin: return MinMax(false, dtype, a, b);
    case Op::kMax: return MinMax(true, dtype, a, b);
    case Op::kAnd: return b_.CreateAnd(a, b);
    case Op::kOr: return b_.CreateOr(a, b);
    case Op::kXor: return b_.CreateXor(a, b);
    case Op::kShl: case Op::kShr: {
      // Counts outside the width give 0, or the sign of a signed value shifted right.
      const unsigned width = type->getIntegerBitWidth();
      const bool arithmetic = op == Op::kShr && !IsUnsigned(dtype);
      llvm::Value* outside = b_.CreateICmpUGE(b, llvm::ConstantInt::get(type, width));
      llvm::Value* count = b_.CreateSelect(outside, llvm::ConstantInt::get(type, arithmetic ? width - 1 : 0), b);
      if (arithmetic) return b_.CreateAShr(a, count);
      llvm::Value* shifted = op == Op::kShl ? b_.CreateShl(a, count) : b_.CreateLShr(a, count);
      return b_.CreateSelect(outside, llvm::ConstantInt::get(type, 0), shifted);
    }
    default: break;  // of floats
  }
  Fail("an operator of floats");
  return a;
}

}  // namespace quern::ptx
