// Bytes are read as parts of aligned words, and all but the place in a run of eight neighbours is computed from the
// run: a thread which decodes k, k+1, ... k+7 of a row, k a multiple of 8, loads each word and makes each scale once,
// because LLVM finds what is written alike.
#include "codegen/ptx/block_reader.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "codegen/llvm/block_reader.h"

namespace quern::ptx {
namespace {

using kir::BlockStep;
using kir::Op;

// Of eight neighbours, whether all have one value; whether each has one more than that before it.
bool SameInRun(const BlockStep& step) { return step.OverRun(8) == std::vector<int>(8, 0); }
bool CountsInRun(const BlockStep& step) { return step.OverRun(8) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}; }

// Integers are i32.
class Reader : public codegen::BlockReader {
 public:
  Reader(llvm::IRBuilder<>& b, DType format, llvm::Value* block, llvm::Value* run, llvm::Value* at, int align)
      : BlockReader(b, format, b.getInt32Ty()),
        block_(block),
        run_(run),
        at_(at),
        word_(std::gcd(std::gcd(FormatOf(format).bytes, 4), align)) {}

 protected:
  llvm::Value* Load(const BlockStep& load) override {
    if (load.dtype == DType::kF32 && word_ == 4) {
      return b_.CreateBitCast(Read(Run(load.args[0])), b_.getFloatTy());
    }
    if (IsFloat(load.dtype)) {
      llvm::Value* const address = Run(load.args[0]);
      const int bytes = ScalarBytes(load.dtype);
      llvm::Value* bits = C(0);
      for (int part = 0; part < bytes; part += std::min(word_, bytes)) {
        llvm::Value* read = Read(And(Add(address, part), -word_));
        if (word_ > bytes) read = b_.CreateLShr(read, b_.CreateShl(And(address, word_ - 1), C(3)));
        bits = b_.CreateOr(bits, b_.CreateShl(read, C(8 * part)));
      }
      if (load.dtype == DType::kF32) return b_.CreateBitCast(bits, b_.getFloatTy());
      return b_.CreateFPExt(b_.CreateBitCast(b_.CreateTrunc(bits, b_.getInt16Ty()), b_.getHalfTy()), b_.getFloatTy());
    }
    llvm::Value* byte = Bits(load, nullptr, 255);
    if (load.dtype == DType::kU8) return byte;
    return b_.CreateSExt(b_.CreateTrunc(byte, b_.getInt8Ty()), b_.getInt32Ty());
  }

  // In global memory, as threads look up words far apart.
  llvm::Value* Word(llvm::Value* index) override {
    return b_.CreateZExt(b_.CreateLoad(b_.getInt16Ty(), WordAddress(index, 1)), b_.getInt32Ty());
  }

  llvm::Value* Step(int number) override {
    const BlockStep& step = fields_.steps[number];
    runs_.resize(fields_.steps.size());
    if (!step.values.empty()) {  // of i alone: from the run where that gives all eight
      std::vector<llvm::Value*> args;
      for (const int arg : step.args) {
        if (arg >= 0) args.push_back(Run(arg));
      }
      runs_[number] = step.kind == BlockStep::Kind::kConst ? C(step.constant) : Apply(step.op, args);
      if (SameInRun(step)) return runs_[number];
      if (CountsInRun(step)) return Add(runs_[number], at_);
    }
    if (llvm::Value* bits = MaskedShift(step)) return bits;
    return BlockReader::Step(number);
  }

  // Exact below 2^23, and without the slow conversion: the low bits of 2^23 are ones.
  llvm::Value* Natural(llvm::Value* value, int zero) override {
    llvm::Value* sum = b_.CreateBitCast(b_.CreateOr(value, C(0x4b000000)), b_.getFloatTy());
    return b_.CreateFSub(sum, llvm::ConstantFP::get(b_.getFloatTy(), 8388608 + zero));
  }

 private:
  llvm::Value* And(llvm::Value* a, int64_t mask) { return b_.CreateAnd(a, C(mask)); }
  llvm::Value* Add(llvm::Value* a, llvm::Value* c) { return b_.CreateAdd(a, c, "", true, true); }
  llvm::Value* Add(llvm::Value* a, int64_t c) { return Add(a, C(c)); }

  // What a step of i alone is for the first of the eight.
  llvm::Value* Run(int step) { return fields_.steps[step].kind == BlockStep::Kind::kIndex ? run_ : runs_[step]; }

  // The word at `offset`, a multiple of its size, in the low bits.
  llvm::Value* Read(llvm::Value* offset) {
    llvm::Value* at = b_.CreateInBoundsGEP(b_.getInt8Ty(), block_, b_.CreateZExt(offset, b_.getInt64Ty()));
    return b_.CreateZExt(b_.CreateAlignedLoad(b_.getIntNTy(8 * word_), at, llvm::Align(word_)), b_.getInt32Ty());
  }

  // (byte >> shift) & mask, where those bits are the byte's own. The shift is that of all eight and comes first, the
  // place of the byte in its word is each one's own.
  llvm::Value* Bits(const BlockStep& load, llvm::Value* shift, int64_t mask) {
    const BlockStep& address = fields_.steps[load.args[0]];
    bool counts = CountsInRun(address);
    for (size_t i = 0; counts && i < address.values.size(); i += 8) counts = address.values[i] % word_ == 0;
    llvm::Value* const place = counts ? at_ : made_[load.args[0]];
    llvm::Value* const aligned = And(place, -static_cast<int64_t>(word_));
    llvm::Value* read = Read(counts ? Add(Run(load.args[0]), aligned) : aligned);
    if (shift != nullptr) read = b_.CreateLShr(read, shift);
    return And(b_.CreateLShr(read, b_.CreateShl(And(place, word_ - 1), C(3))), mask);
  }

  // u8[..] >> shift & constant, or null.
  llvm::Value* MaskedShift(const BlockStep& step) {
    if (step.kind != BlockStep::Kind::kApply || step.op != Op::kAnd) return nullptr;
    const BlockStep &shifted = fields_.steps[step.args[0]], &mask = fields_.steps[step.args[1]];
    if (shifted.kind != BlockStep::Kind::kApply || shifted.op != Op::kShr || mask.kind != BlockStep::Kind::kConst)
      return nullptr;
    const BlockStep &load = fields_.steps[shifted.args[0]], &shift = fields_.steps[shifted.args[1]];
    if (load.kind != BlockStep::Kind::kLoad || load.dtype != DType::kU8 || !SameInRun(shift)) return nullptr;
    const int most = *std::max_element(shift.values.begin(), shift.values.end());
    if (most + std::bit_width(static_cast<uint64_t>(mask.constant)) > 8) return nullptr;
    return Bits(load, made_[shifted.args[1]], mask.constant);
  }

  llvm::Value* const block_;
  llvm::Value* const run_;
  llvm::Value* const at_;
  const int word_;                  // bytes that are read at once: 4 or less
  std::vector<llvm::Value*> runs_;  // by step
};

}  // namespace

llvm::Value* DecodedElement(llvm::IRBuilder<>& b, DType format, llvm::Value* block, llvm::Value* run, llvm::Value* at,
                            int align) {
  return Reader(b, format, block, run, at, align).Decoded(b.CreateAdd(run, at, "", true, true));
}

}  // namespace quern::ptx
