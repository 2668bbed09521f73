// Elements of block formats as f32, in the arithmetic of kir/decode.cc: for meanings and for kernels that read a few
// elements of a quantised buffer. Byte by byte, lane by lane; the tiles are the fast way.
#include "codegen/cpu/emitter.h"
#include "kir/decode.h"
#include "llvm/IR/Intrinsics.h"

namespace quern::cpu {
namespace {

// Arithmetic on i64 byte offsets and i32 fields, over lanes or not.
struct BlockReader {
  llvm::IRBuilder<>& b;
  llvm::Type* like;                                                    // i64 or a vector of it
  std::function<llvm::Value*(llvm::Value* offset, DType dtype)> read;  // a little-endian scalar, as held in registers

  llvm::Value* C(int64_t value) { return llvm::ConstantInt::get(like, value); }
  llvm::Value* Add(llvm::Value* a, llvm::Value* c) { return b.CreateAdd(a, c); }
  llvm::Value* Add(llvm::Value* a, int64_t c) { return b.CreateAdd(a, C(c)); }
  llvm::Value* Mul(llvm::Value* a, int64_t c) { return b.CreateMul(a, C(c)); }
  llvm::Value* Div(llvm::Value* a, int64_t c) { return b.CreateUDiv(a, C(c)); }
  llvm::Value* Mod(llvm::Value* a, int64_t c) { return b.CreateURem(a, C(c)); }
  llvm::Value* And(llvm::Value* a, int64_t c) { return b.CreateAnd(a, C(c)); }
  llvm::Value* Wide(llvm::Value* byte, bool is_signed = false) {
    return is_signed ? b.CreateSExt(byte, like) : b.CreateZExt(byte, like);
  }
  llvm::Value* U8(llvm::Value* offset) { return Wide(read(offset, DType::kU8)); }
  llvm::Value* I8(llvm::Value* offset) { return Wide(read(offset, DType::kI8), true); }
  llvm::Value* Half(llvm::Value* offset) { return read(offset, DType::kF16); }
  llvm::Value* F32(llvm::Value* offset) { return read(offset, DType::kF32); }
  llvm::Value* Real(llvm::Value* value) {
    llvm::Type* f32 = b.getFloatTy();
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like)) {
      f32 = llvm::FixedVectorType::get(f32, vector->getNumElements());
    }
    return b.CreateSIToFP(value, f32);
  }

  // Element j of a row of ggml blocks that starts at byte `row`.
  llvm::Value* Blocks(DType dtype, llvm::Value* row, llvm::Value* j) {
    const DTypeRow& format = Row(dtype);
    llvm::Value* block = Add(row, Mul(Div(j, format.block_elements), format.block_bytes));
    llvm::Value* i = Mod(j, format.block_elements);
    if (dtype == DType::kQ8_0) return b.CreateFMul(Real(I8(Add(Add(block, 2), i))), Half(block));
    if (dtype == DType::kQ8_K) return b.CreateFMul(Real(I8(Add(Add(block, 4), i))), F32(block));
    if (dtype == DType::kQ4_0) {
      // Byte i % 16; elements 16 and above are the high nibbles.
      llvm::Value* byte = U8(Add(Add(block, 2), Mod(i, 16)));
      llvm::Value* nibble = And(b.CreateLShr(byte, Mul(Div(i, 16), 4)), 15);
      return b.CreateFMul(Real(Add(nibble, -8)), Half(block));
    }
    if (kir::HasMinimums(dtype)) {
      // d, dmin, 12 bytes of six-bit scales and minimums, q5_K: 32 of fifth bits, bit s for sub-block s; then 128 of
      // nibbles: 32 bytes hold sub-blocks 2c (low), 2c+1 (high).
      const bool fifth = dtype == DType::kQ5_K;
      llvm::Value* sub = Div(i, 32);
      llvm::Value* byte = U8(Add(Add(block, fifth ? 48 : 16), Add(Mul(Div(i, 64), 32), Mod(i, 32))));
      llvm::Value* code = And(b.CreateLShr(byte, Mul(Mod(sub, 2), 4)), 15);
      if (fifth) {
        llvm::Value* bit = And(b.CreateLShr(U8(Add(Add(block, 16), Mod(i, 32))), sub), 1);
        code = b.CreateOr(code, b.CreateShl(bit, C(4)));
      }
      // Sub-blocks 0..3: six bits of bytes s and s+4. 4..7: nibbles of byte s+4, upper two bits from bytes s-4 and s.
      llvm::Value* s = And(sub, 3);
      llvm::Value* first = b.CreateICmpULT(sub, C(4));
      llvm::Value* a = U8(Add(Add(block, 4), s));
      llvm::Value* m = U8(Add(Add(block, 8), s));
      llvm::Value* both = U8(Add(Add(block, 12), s));
      llvm::Value* late_scale = b.CreateOr(And(both, 15), b.CreateShl(b.CreateLShr(a, C(6)), C(4)));
      llvm::Value* late_min = b.CreateOr(b.CreateLShr(both, C(4)), b.CreateShl(b.CreateLShr(m, C(6)), C(4)));
      llvm::Value* scale = b.CreateSelect(first, And(a, 63), late_scale);
      llvm::Value* minimum = b.CreateSelect(first, And(m, 63), late_min);
      llvm::Value* high = b.CreateFMul(b.CreateFMul(Half(block), Real(scale)), Real(code));
      return b.CreateFSub(high, b.CreateFMul(Half(Add(block, 2)), Real(minimum)));
    }
    // q6_K: 128 low nibbles, 64 bytes of upper bit pairs, 16 signed scales, d. Each half of 128 elements has 4 rows of
    // 32.
    llvm::Value* half = Div(i, 128);
    llvm::Value* row32 = Div(Mod(i, 128), 32);
    llvm::Value* l = Mod(i, 32);
    llvm::Value* low = U8(Add(block, Add(Mul(half, 64), Add(Mul(Mod(row32, 2), 32), l))));
    low = And(b.CreateLShr(low, Mul(Div(row32, 2), 4)), 15);
    llvm::Value* top = U8(Add(Add(block, 128), Add(Mul(half, 32), l)));
    top = And(b.CreateLShr(top, Mul(row32, 2)), 3);
    llvm::Value* code = Add(b.CreateOr(low, b.CreateShl(top, C(4))), -32);
    llvm::Value* scale = I8(Add(Add(block, 192), Div(i, 16)));
    return b.CreateFMul(b.CreateFMul(Half(Add(block, 208)), Real(scale)), Real(code));
  }

  llvm::Value* Planar(DType dtype, int64_t k, llvm::Value* row, llvm::Value* j) {
    const kir::PlanarRow layout = kir::PlanarRowOf(dtype, k);
    llvm::Value* scale = F32(Add(row, Add(Mul(Div(j, Row(dtype).block_elements), 4), layout.scales)));
    return b.CreateFMul(Real(I8(Add(row, j))), scale);
  }

  // Row r of the 16 of a panel that starts at byte 0.
  llvm::Value* Panel16(DType dtype, int64_t k, llvm::Value* r, llvm::Value* j) {
    const kir::Panel16 layout = kir::Panel16Of(dtype, k);
    const int64_t group = kir::PanelGroup(dtype);
    llvm::Value* code = U8(Add(Mul(Div(j, 4), 64), Add(Mul(r, 4), Mod(j, 4))));
    llvm::Value* scale = F32(Add(Mul(Add(Mul(Div(j, group), 16), r), 4), layout.scales));
    if (dtype == DType::kQ8_0) return b.CreateFMul(Real(Add(code, -128)), scale);
    if (dtype == DType::kQ4_0) return b.CreateFMul(Real(Add(code, -8)), scale);
    if (dtype == DType::kQ6_K) return b.CreateFMul(Real(Add(code, -32)), scale);
    llvm::Value* block = Div(j, 256);
    llvm::Value* sub = Mod(Div(j, 32), 8);
    llvm::Value* pair = Add(Mul(block, 4), Div(sub, 2));
    llvm::Value* at = Add(Mul(Add(Mul(pair, 16), r), 2), Mod(sub, 2));
    llvm::Value* minimum = Wide(read(Add(Mul(at, 2), layout.mins), DType::kI16), true);
    llvm::Value* dmin = F32(Add(Mul(Add(Mul(block, 16), r), 4), layout.supers));
    return b.CreateFSub(b.CreateFMul(scale, Real(code)), b.CreateFMul(dmin, Real(minimum)));
  }
};

}  // namespace

Val Emitter::EmitDecode(const kir::Decode& decode) {
  Buffer* found = FindBuffer(decode.buffer);
  if (found == nullptr) return Poison(DType::kF32);
  const Buffer buffer = *found;
  std::vector<Val> index = EmitIndex(decode.index);
  const kir::BufferType& type = buffer.type;
  if (index.size() != type.dims.size() || index.empty()) {
    Fail("rank of a decode");
    return Poison(DType::kF32);
  }
  if (!IsBlock(type.dtype)) {
    const Val value = LoadElement(buffer, index);
    if (value.uniform()) return Uniform(DType::kF32, Convert(value.scalar, value.dtype, DType::kF32));
    return FromLanes(DType::kF32, Convert(Lanes(value), value.dtype, DType::kF32));
  }
  bool uniform = true;
  for (const Val& at : index) uniform = uniform && at.uniform();
  auto form = [&](const Val& value) { return uniform ? value.scalar : Lanes(value); };
  auto splat = [&](llvm::Value* scalar) { return uniform ? scalar : b_.CreateVectorSplat(lanes_, scalar); };
  const bool own_panel =
      std::string_view(target_.name) == "amx" && type.layout == kir::Layout::kPanel16 && kir::IsKQuant(type.dtype);
  if (own_panel) {
    Fail("a panel of " + std::string(Row(type.dtype).name) + " at level amx is read by its tile alone");
    return Poison(DType::kF32);
  }
  BlockReader reader{b_, uniform ? static_cast<llvm::Type*>(b_.getInt64Ty()) : LanesOf(b_.getInt64Ty()),
                     [&](llvm::Value* offset, DType dtype) -> llvm::Value* {
                       llvm::Type* element = MemoryType(dtype);
                       llvm::Value* at = b_.CreateGEP(b_.getInt8Ty(), buffer.ptr, offset);
                       llvm::Value* loaded;
                       if (uniform) {
                         loaded = b_.CreateAlignedLoad(element, at, llvm::Align(1));
                       } else {
                         llvm::Type* lanes = LanesOf(element);
                         loaded = b_.CreateMaskedGather(lanes, at, llvm::Align(1), FullMask(),
                                                        llvm::Constant::getNullValue(lanes));
                       }
                       return FromMemory(loaded, dtype);
                     }};
  if (!uniform) ++stats_.gathers;
  llvm::Value* row = splat(b_.getInt64(0));
  const bool panel = type.layout == kir::Layout::kPanel16;
  if (!panel) {
    for (size_t d = 0; d + 1 < index.size(); ++d) {
      row = b_.CreateAdd(row, b_.CreateMul(form(index[d]), splat(buffer.strides[d])));
    }
  }
  const int64_t k = type.dims.back().constant();
  llvm::Value* j = form(index.back());
  llvm::Value* value = nullptr;
  if (type.layout == kir::Layout::kBlocks) {
    value = reader.Blocks(type.dtype, row, j);
  } else if (type.layout == kir::Layout::kPlanar) {
    value = reader.Planar(type.dtype, k, row, j);
  } else {
    value = reader.Panel16(type.dtype, k, form(index[0]), j);
  }
  return FromLanes(DType::kF32, value);
}

}  // namespace quern::cpu
