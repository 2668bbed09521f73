// Bytes are read as parts of aligned words, and all but the place in a run of eight neighbours is computed from the
// run: a thread which decodes k, k+1, ... k+7 of a row, k a multiple of 8, loads each word and makes each scale once,
// because LLVM finds what is written alike. (The CPU's decoder gathers bytes by lanes, and computes on i64: another
// shape, so the two share no code.)
#include "codegen/ptx/block_reader.h"

#include <numeric>

namespace quern::ptx {
namespace {

// A block at `base`: of element `i + at` with `i` a multiple of 8 and `at` below 8. Offsets and fields are i32.
struct BlockReader {
  llvm::IRBuilder<>& b;
  llvm::Value* base;
  llvm::Value* i;
  llvm::Value* at;
  unsigned word;  // bytes that are read at once: 4 or less

  llvm::Value* C(int64_t value) { return b.getInt32(static_cast<uint32_t>(value)); }
  llvm::Value* And(llvm::Value* a, int64_t mask) { return b.CreateAnd(a, C(mask)); }
  llvm::Value* Shr(llvm::Value* a, int64_t count) { return b.CreateLShr(a, C(count)); }
  llvm::Value* Add(llvm::Value* a, int64_t c) { return b.CreateAdd(a, C(c), "", true, true); }
  llvm::Value* Add(llvm::Value* a, llvm::Value* c) { return b.CreateAdd(a, c, "", true, true); }
  llvm::Value* Mul(llvm::Value* a, int64_t c) { return b.CreateMul(a, C(c), "", true, true); }

  // The word at `offset`, a multiple of its size, in the low bits.
  llvm::Value* Word(llvm::Value* offset) {
    llvm::Value* at = b.CreateInBoundsGEP(b.getInt8Ty(), base, b.CreateZExt(offset, b.getInt64Ty()));
    return b.CreateZExt(b.CreateAlignedLoad(b.getIntNTy(8 * word), at, llvm::Align(word)), b.getInt32Ty());
  }
  // `bits` bits, from bit `shift` on, of the byte `place` after `run`, a multiple of a word's size.
  llvm::Value* Field(llvm::Value* run, llvm::Value* place, llvm::Value* shift, int bits) {
    llvm::Value* read = Word(Add(run, And(place, -static_cast<int64_t>(word))));
    // The shift is that of all neighbours, the place of the byte each one's own.
    if (shift != nullptr) read = b.CreateLShr(read, shift);
    return And(b.CreateLShr(read, b.CreateShl(And(place, word - 1), C(3))), (1 << bits) - 1);
  }
  llvm::Value* U8(llvm::Value* run, llvm::Value* place) { return Field(run, place, nullptr, 8); }
  // At an even offset.
  llvm::Value* Half(int64_t offset) {
    llvm::Value* read = Word(C(offset / word * word));
    if (offset % word != 0) read = Shr(read, 16);
    return b.CreateFPExt(b.CreateBitCast(b.CreateTrunc(read, b.getInt16Ty()), b.getHalfTy()), b.getFloatTy());
  }
  // code - zero, code below 256: exact, and without the slow conversion: the low bits of 2^23 are ones.
  llvm::Value* Real(llvm::Value* code, int zero) {
    llvm::Value* sum = b.CreateBitCast(b.CreateOr(code, C(0x4b000000)), b.getFloatTy());
    return b.CreateFSub(sum, llvm::ConstantFP::get(b.getFloatTy(), 8388608 + zero));
  }

  llvm::Value* Q8_0() {
    llvm::Value* code = U8(Add(i, 2), at);
    return b.CreateFMul(Real(b.CreateXor(code, C(128)), 128), Half(0));
  }

  llvm::Value* Q8_K() {
    llvm::Value* code = U8(Add(i, 4), at);
    return b.CreateFMul(b.CreateBitCast(Word(C(0)), b.getFloatTy()), Real(b.CreateXor(code, C(128)), 128));
  }

  // Byte i % 16; elements 16 and above are the high nibbles.
  llvm::Value* Q4_0() { return b.CreateFMul(Real(Field(Add(And(i, 8), 2), at, And(Shr(i, 2), 4), 4), 8), Half(0)); }

  // d, dmin, 12 bytes of six-bit scales and minimums, q5_K: 32 of fifth bits, bit s for sub-block s; then 128 of
  // nibbles: 32 bytes hold sub-blocks 2c (low), 2c+1 (high).
  llvm::Value* WithMinimum(bool fifth) {
    llvm::Value* sub = Shr(i, 5);
    llvm::Value* run = And(i, 24);
    llvm::Value* code =
        Field(Add(Add(Mul(Shr(i, 6), 32), run), fifth ? 48 : 16), at, b.CreateShl(And(sub, 1), C(2)), 4);
    if (fifth) code = b.CreateOr(code, b.CreateShl(Field(Add(run, 16), at, sub, 1), C(4)));
    // Sub-blocks 0..3: six bits of bytes s and s+4. 4..7: nibbles of byte s+4, upper two bits from bytes s-4 and s.
    llvm::Value* s = And(sub, 3);
    llvm::Value* first = b.CreateICmpULT(sub, C(4));
    llvm::Value* a = U8(C(4), s);
    llvm::Value* m = U8(C(8), s);
    llvm::Value* both = U8(C(12), s);
    llvm::Value* scale = b.CreateSelect(first, And(a, 63), b.CreateOr(And(both, 15), b.CreateShl(Shr(a, 6), C(4))));
    llvm::Value* minimum = b.CreateSelect(first, And(m, 63), b.CreateOr(Shr(both, 4), b.CreateShl(Shr(m, 6), C(4))));
    llvm::Value* high = b.CreateFMul(b.CreateFMul(Half(0), Real(scale, 0)), Real(code, 0));
    return b.CreateFSub(high, b.CreateFMul(Half(2), Real(minimum, 0)));
  }

  // 128 low nibbles, 64 bytes of upper bit pairs, 16 signed scales, d. Each half of 128 elements has 4 rows of 32.
  llvm::Value* Q6_K() {
    llvm::Value* half = Shr(i, 7);
    llvm::Value* row = And(Shr(i, 5), 3);
    llvm::Value* run = And(i, 24);
    llvm::Value* low = Field(Add(Add(Mul(half, 64), And(i, 32)), run), at, b.CreateShl(Shr(row, 1), C(2)), 4);
    llvm::Value* high = Field(Add(Add(Mul(half, 32), run), 128), at, b.CreateShl(row, C(1)), 2);
    llvm::Value* group = Shr(i, 4);
    llvm::Value* scale = b.CreateTrunc(U8(Add(And(group, 14), 192), And(group, 1)), b.getInt8Ty());
    llvm::Value* real = b.CreateSIToFP(b.CreateSExt(scale, b.getInt32Ty()), b.getFloatTy());
    return b.CreateFMul(b.CreateFMul(Half(208), real), Real(b.CreateOr(low, b.CreateShl(high, C(4))), 32));
  }
};

}  // namespace

llvm::Value* DecodedElement(llvm::IRBuilder<>& b, DType format, llvm::Value* block, llvm::Value* run, llvm::Value* at,
                            int align) {
  BlockReader reader{b, block, run, at, static_cast<unsigned>(std::gcd(std::gcd(Row(format).block_bytes, 4), align))};
  switch (format) {
    case DType::kQ8_0: return reader.Q8_0();
    case DType::kQ4_0: return reader.Q4_0();
    case DType::kQ4_K: return reader.WithMinimum(false);
    case DType::kQ5_K: return reader.WithMinimum(true);
    case DType::kQ6_K: return reader.Q6_K();
    case DType::kQ8_K: return reader.Q8_K();
    default: return nullptr;
  }
}

}  // namespace quern::ptx
