// Expressions, with the exact meaning of kir/operators.cc at the edges. 16-bit floats are computed in f32 and rounded
// where they are stored or cast.
#include "codegen/llvm/operators.h"
#include "codegen/ptx/block_reader.h"
#include "codegen/ptx/emitter.h"
#include "kir/parts.h"
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
  if (dtype == DType::kBF16)
    return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(value, b_.getInt32Ty()), 16), b_.getFloatTy());
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
    if (tile.together > 1 || constant == nullptr || constant->getSExtValue() < 0 ||
        constant->getSExtValue() >= tile.dims[d]) {
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
  const DType dtype = expr->dtype;
  return std::visit(kir::Overloaded{
                        [&](const kir::Const& constant) -> llvm::Value* { return Constant(constant, dtype); },
                        [&](const kir::NameRef& ref) { return ValueOf(ref, dtype); },
                        [&](const kir::Load& load) { return LoadFrom(load, dtype); },
                        [&](const kir::Apply& apply) { return Operator(apply); },
                        [&](const kir::Cast& cast) { return Convert(Value(cast.value), cast.value->dtype, dtype); },
                        [&](const kir::Bits& bits) {
                          const DType from = bits.value->dtype;
                          llvm::Value* memory = ToMemory(Value(bits.value), from);
                          return FromMemory(b_.CreateBitCast(memory, MemoryType(dtype)), dtype);
                        },
                        [&](const kir::Reduce& reduce) { return Reduction(reduce, dtype); },
                        [&](const kir::Decode& decode) { return DecodeOf(decode); },
                    },
                    expr->node);
}

llvm::Value* Emitter::ValueOf(const kir::NameRef& ref, DType dtype) {
  llvm::Value* const none = llvm::Constant::getNullValue(ValueType(dtype));
  const auto found = names_.find(ref.name);
  if (found == names_.end()) {
    Fail(ref.name + " is not defined");
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

llvm::Value* Emitter::Reduction(const kir::Reduce& reduce, DType dtype) {
  llvm::AllocaInst* total = Slot(ValueType(dtype));
  b_.CreateStore(codegen::Identity(reduce.op, dtype, ValueType(dtype)), total);
  const Names outer = names_;
  LoopOver(Value(reduce.low), Value(reduce.high), I64(1), [&](llvm::Value* i) {
    names_[reduce.index] = {.value = i};
    for (const auto& [name, value] : reduce.lets) DefineLet(name, value);
    llvm::Value* element = Value(reduce.body);
    llvm::Value* so_far = b_.CreateLoad(total->getAllocatedType(), total);
    const Op op = kir::CombineOp(reduce.op);
    const auto* product = std::get_if<kir::Apply>(&reduce.body->node);
    llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
    llvm::FastMathFlags flags;
    flags.setAllowContract(product != nullptr && product->contract);
    b_.setFastMathFlags(flags);
    b_.CreateStore(Arithmetic(op, dtype, {so_far, element}), total);
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
  if (!IsFloat(to)) {
    if (!IsFloat(from)) return codegen::ConvertInteger(b_, value, from, type);
    return b_.CreateIntrinsic(IsUnsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat,
                              {type, value->getType()}, {value});
  }
  if (ScalarBytes(to) == 2) return FromMemory(ToMemory(codegen::FloatBeforeHalf(b_, value, from), to), to);
  return IsFloat(from) ? b_.CreateFPCast(value, type) : codegen::FloatOfInteger(b_, value, from, type);
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
    return codegen::Compare(b_, apply.op, dtype, args[0], args[1]);
  }
  return Arithmetic(apply.op, dtype, args);
}

llvm::Value* Emitter::Arithmetic(Op op, DType dtype, const std::vector<llvm::Value*>& args) {
  if (IsFloat(dtype)) return FloatOperator(op, dtype, args);
  if (llvm::Value* value = codegen::IntegerOperator(b_, op, dtype, args)) return value;
  Fail(absl::StrFormat("operator %s on %s", kir::Row(op).name, quern::Name(dtype)));
  return args[0];
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
  llvm::Type* type = args[0]->getType();
  if (type->isFloatTy() && (op == Op::kMin || op == Op::kMax)) {
    return b_.CreateBinaryIntrinsic(op == Op::kMax ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, args[0],
                                    args[1]);
  }
  if (llvm::Value* value = codegen::FloatOperator(b_, op, args)) return value;
  if (op == Op::kFma) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, args);
  if (op == Op::kExp2 && dtype != DType::kF64) return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_f, {}, args);
  return Called(op, dtype == DType::kF64 ? dtype : DType::kF32, args);
}

// The element at `index` with the last coordinate `run + at`, run a multiple of 8 and at below 8.
llvm::Value* Emitter::Decoded(const Buffer& buffer, const std::vector<llvm::Value*>& index, llvm::Value* run,
                              llvm::Value* at) {
  const DTypeRow& format = Row(buffer.dtype);
  const unsigned shift = llvm::Log2_32(static_cast<uint32_t>(format.block_elements));
  // Blocks before this one, in a buffer whose rows are blocks end to end.
  llvm::Value* rows = I64(0);
  for (size_t d = 0; d + 1 < index.size(); ++d) rows = b_.CreateNSWAdd(b_.CreateNSWMul(rows, buffer.dims[d]), index[d]);
  llvm::Value* blocks =
      b_.CreateNSWAdd(b_.CreateNSWMul(rows, b_.CreateLShr(buffer.dims.back(), shift)), b_.CreateLShr(run, shift));
  llvm::Value* base =
      b_.CreateInBoundsGEP(b_.getInt8Ty(), buffer.pointer, b_.CreateNSWMul(blocks, I64(format.block_bytes)));
  llvm::Value* inside = b_.CreateTrunc(b_.CreateAnd(run, I64(format.block_elements - 8)), b_.getInt32Ty());
  return DecodedElement(b_, buffer.dtype, base, inside, b_.CreateTrunc(at, b_.getInt32Ty()), buffer.align);
}

llvm::Value* Emitter::DecodeOf(const kir::Decode& decode) {
  const auto found = names_.find(decode.buffer);
  std::vector<llvm::Value*> index;
  for (const kir::ExprRef& at : decode.index) index.push_back(Value(at));
  if (found == names_.end() || found->second.buffer < 0) Fail(decode.buffer + " is no buffer");
  if (!status_.ok()) return llvm::Constant::getNullValue(b_.getFloatTy());
  const Buffer buffer = buffers_[found->second.buffer];
  if (MultipleOf(decode.index.back()) >= 8) return Decoded(buffer, index, index.back(), I64(0));
  // k + u, as loops over runs of eight write it.
  const auto* apply = std::get_if<kir::Apply>(&decode.index.back()->node);
  if (apply != nullptr && apply->op == kir::Op::kAdd && MultipleOf(apply->args[0]) >= 8) {
    llvm::Value* run = Value(apply->args[0]);
    llvm::Value* at = Value(apply->args[1]);
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(at);
    if (constant != nullptr && constant->getZExtValue() < 8) return Decoded(buffer, index, run, at);
  }
  return Decoded(buffer, index, b_.CreateAnd(index.back(), I64(-8)), b_.CreateAnd(index.back(), I64(7)));
}

int64_t Emitter::MultipleOf(const kir::ExprRef& expr) const {
  return kir::MultipleOf(expr, [this](const std::string& name) {
    const auto found = names_.find(name);
    return found == names_.end() ? 1 : found->second.multiple;
  });
}

}  // namespace quern::ptx
