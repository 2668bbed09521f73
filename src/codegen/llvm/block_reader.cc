#include "codegen/llvm/block_reader.h"

#include "base/check.h"
#include "codegen/llvm/operators.h"

namespace quern::codegen {

using kir::BlockStep;
using kir::Op;

llvm::Value* BlockReader::Apply(Op op, const std::vector<llvm::Value*>& args) {
  // Of numbers that are not negative, and shifts that are no wider than these.
  switch (op) {
    case Op::kAdd: return b_.CreateAdd(args[0], args[1]);
    case Op::kSub: return b_.CreateSub(args[0], args[1]);
    case Op::kMul: return b_.CreateMul(args[0], args[1]);
    case Op::kDiv: return b_.CreateUDiv(args[0], args[1]);
    case Op::kMod: return b_.CreateURem(args[0], args[1]);
    case Op::kShl: return b_.CreateShl(args[0], args[1]);
    case Op::kShr: return b_.CreateLShr(args[0], args[1]);
    case Op::kAnd: return b_.CreateAnd(args[0], args[1]);
    case Op::kOr: return b_.CreateOr(args[0], args[1]);
    case Op::kXor: return b_.CreateXor(args[0], args[1]);
    case Op::kSelect: return b_.CreateSelect(args[0], args[1], args[2]);
    default: return Compare(b_, op, DType::kI64, args[0], args[1]);
  }
}

llvm::Value* BlockReader::Step(int number) {
  const BlockStep& step = fields_.steps[number];
  if (step.kind == BlockStep::Kind::kConst) return C(step.constant);
  if (step.kind == BlockStep::Kind::kLoad) return Load(step);
  if (step.kind == BlockStep::Kind::kPower) return Power(made_[step.args[0]]);
  if (step.kind == BlockStep::Kind::kHalf) {
    llvm::Value* bits = made_[step.args[0]];
    return Half(b_.CreateTrunc(bits, WithLanesOf(b_.getInt16Ty(), bits)));
  }
  if (step.kind == BlockStep::Kind::kGrid) return Word(made_[step.args[0]]);
  if (step.kind == BlockStep::Kind::kTimes) {
    llvm::Value* real = made_[step.args[0]];
    return b_.CreateFMul(real, llvm::ConstantFP::get(real->getType(), step.factor));
  }
  std::vector<llvm::Value*> args;
  for (const int arg : step.args) {
    if (arg >= 0) args.push_back(made_[arg]);
  }
  return Apply(step.op, args);
}

llvm::Value* BlockReader::Decoded(llvm::Value* i) {
  made_.clear();
  for (size_t s = 0; s < fields_.steps.size(); ++s) {
    const bool index = fields_.steps[s].kind == BlockStep::Kind::kIndex;
    made_.push_back(index ? i : Step(static_cast<int>(s)));
  }
  Fields fields{.code = made_[fields_.code], .d = made_[fields_.d]};
  if (fields_.scale >= 0) {
    llvm::Value* scale = made_[fields_.scale];
    fields.scale = IsSigned(fields_.scale) ? Signed(scale) : Natural(scale, 0);
  }
  if (fields_.dmin >= 0) fields.dmin = made_[fields_.dmin], fields.minimum = Natural(made_[fields_.minimum], 0);
  if (fields_.added >= 0) fields.added = made_[fields_.added];
  return ValueOf(fields);
}

// 2 to the power of a byte less 128.
llvm::Value* BlockReader::Power(llvm::Value* byte) {
  llvm::Value* bits = b_.CreateSelect(b_.CreateICmpULT(byte, C(2)), b_.CreateShl(C(0x200000), byte),
                                      b_.CreateShl(b_.CreateSub(byte, C(1)), C(23)));
  bits = b_.CreateTrunc(bits, WithLanesOf(b_.getInt32Ty(), byte));
  return b_.CreateBitCast(bits, WithLanesOf(b_.getFloatTy(), byte));
}

llvm::Value* BlockReader::Half(llvm::Value* bits) {
  llvm::Value* half = b_.CreateBitCast(bits, WithLanesOf(b_.getHalfTy(), bits));
  return b_.CreateFPExt(half, WithLanesOf(b_.getFloatTy(), bits));
}

llvm::Value* BlockReader::WordAddress(llvm::Value* index, unsigned address_space) {
  llvm::Module& module = *b_.GetInsertBlock()->getModule();
  const std::string name = std::string("grid_") + format_.name;
  llvm::GlobalVariable* grid = module.getGlobalVariable(name, true);
  if (grid == nullptr) {
    auto* words =
        llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef(format_.grid.data(), format_.grid.size()));
    grid = new llvm::GlobalVariable(module, words->getType(), true, llvm::GlobalValue::PrivateLinkage, words, name,
                                    nullptr, llvm::GlobalValue::NotThreadLocal, address_space);
    grid->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    grid->setAlignment(llvm::Align(64));
  }
  return b_.CreateInBoundsGEP(b_.getInt16Ty(), grid, index);
}

llvm::Value* BlockReader::Word(llvm::Value* index) {
  llvm::Value* at = WordAddress(index, 0);
  if (!index->getType()->isVectorTy()) return b_.CreateZExt(b_.CreateLoad(b_.getInt16Ty(), at), integer_);
  llvm::Type* words = WithLanesOf(b_.getInt16Ty(), index);
  return b_.CreateZExt(b_.CreateMaskedGather(words, at, llvm::Align(2)), integer_);
}

llvm::Value* BlockReader::ValueOf(const Fields& fields) {
  llvm::Value* level = format_.levels.empty() ? Natural(fields.code, format_.zero) : Signed(Level(fields.code));
  llvm::Value* scale = fields.scale == nullptr ? fields.d : b_.CreateFMul(fields.d, fields.scale);
  llvm::Value* product = b_.CreateFMul(scale, level);
  if (fields.added != nullptr) return b_.CreateFAdd(product, fields.added);
  return fields.dmin == nullptr ? product : b_.CreateFSub(product, b_.CreateFMul(fields.dmin, fields.minimum));
}

// The table as words of four levels each, of which bits of the code choose one: no memory, and the same for lanes.
llvm::Value* BlockReader::Level(llvm::Value* code) {
  std::vector<llvm::Value*> words;
  for (size_t first = 0; first < format_.levels.size(); first += 4) {
    uint32_t word = 0;
    for (size_t l = 0; l < 4 && first + l < format_.levels.size(); ++l) {
      word |= static_cast<uint32_t>(static_cast<uint8_t>(format_.levels[first + l])) << 8 * l;
    }
    words.push_back(C(word));
  }
  for (size_t bit = 4; words.size() > 1; bit *= 2) {
    llvm::Value* second = b_.CreateICmpNE(b_.CreateAnd(code, C(static_cast<int64_t>(bit))), C(0));
    std::vector<llvm::Value*> halves;
    for (size_t w = 0; w < words.size(); w += 2) {
      halves.push_back(w + 1 < words.size() ? b_.CreateSelect(second, words[w + 1], words[w]) : words[w]);
    }
    words = std::move(halves);
  }
  llvm::Value* level = b_.CreateLShr(words[0], b_.CreateShl(b_.CreateAnd(code, C(3)), C(3)));
  return b_.CreateSExt(b_.CreateTrunc(level, WithLanesOf(b_.getInt8Ty(), code)), integer_);
}

llvm::Value* BlockReader::Signed(llvm::Value* value) {
  return b_.CreateSIToFP(value, WithLanesOf(b_.getFloatTy(), value));
}

llvm::Value* BlockReader::Natural(llvm::Value* value, int zero) {
  return Signed(zero == 0 ? value : b_.CreateSub(value, C(zero)));
}

bool BlockReader::IsSigned(int step) const {
  const BlockStep& made = fields_.steps[step];
  if (made.kind == BlockStep::Kind::kLoad) return made.dtype == DType::kI8;
  if (made.kind == BlockStep::Kind::kApply && made.op == Op::kSub) return true;
  for (const int arg : made.args) {
    if (made.kind == BlockStep::Kind::kApply && arg >= 0 && IsSigned(arg)) return true;
  }
  return false;
}

}  // namespace quern::codegen
