// Products of a warp's tiles: c[m, n] += x[m, k] w[n, k]^T by m16n8k16, its fragments from shared memory by ldmatrix.
//
// Lane l holds of x the rows l / 4 and l / 4 + 8 and the columns 2 (l % 4) and those 8 behind, two neighbours a register; of w
// the row l / 4 likewise (PTX ISA, "Matrix fragments for mma.m16n8k16"). ldmatrix gives four such parts of 8 x 8 at once: lane l
// says where row l % 8 of part l / 8 is, 16 bytes. Eight rows lie in different banks where the rows of the buffer are an odd
// number of 16 bytes long, as the schedules pad them.
#include <array>

#include "codegen/ptx/emitter.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace quern::ptx {
namespace {

bool IsConstant(llvm::Value* value, int64_t size) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant != nullptr && constant->getSExtValue() == size;
}

}  // namespace

// Where the element of the slice is to which `row` and `column` add: the rest of the address is constant.
llvm::Value* Emitter::FragmentBase(const Region& region, llvm::Value* row, llvm::Value* column) {
  std::vector<llvm::Value*> at = region.starts;
  at[region.ranged[0]] = b_.CreateNSWAdd(at[region.ranged[0]], row);
  at[region.ranged[1]] = b_.CreateNSWAdd(at[region.ranged[1]], column);
  return Address(region.buffer, at);
}

llvm::Value* Emitter::FragmentAt(llvm::Value* base, const Region& region, int64_t row, int64_t column) {
  const int64_t pitch = llvm::cast<llvm::ConstantInt>(region.buffer.dims.back())->getSExtValue();
  return b_.CreateInBoundsGEP(b_.getInt16Ty(), base, I64(row * pitch + column));
}

void Emitter::Emit(const kir::TileCall& call) {
  const bool f16 = call.op == "mma_f16";
  if ((!f16 && call.op != "mma_bf16") || together_ == 1) return Unimplemented("the tile op " + call.op);
  const TileValue& tile = tiles_[names_[call.tiles[0]].tile];
  const Region x = Cut(call.operands[0]), w = Cut(call.operands[1]);
  if (!status_.ok()) return;
  const auto* depth = llvm::dyn_cast<llvm::ConstantInt>(x.asked[1]);
  auto fits = [&](const Region& region, int64_t rows) {
    return IsConstant(region.asked[0], rows) && region.rows && region.apart >= 2 && llvm::isa<llvm::ConstantInt>(region.buffer.dims.back()) &&
           region.ranged[0] + 1 == region.ranged[1] && region.buffer.pointer->getType()->getPointerAddressSpace() == 3;
  };
  if (depth == nullptr || depth->getSExtValue() % 16 != 0 || !fits(x, tile.dims[0]) || !fits(w, tile.dims[1])) {
    return Unimplemented(call.op + " of slices that are not whole 16 x 16 parts of shared memory");
  }
  if (together_ == kir::kWarpThreads) MultiplyByWarp(tile, x, w, depth->getSExtValue(), f16);
  else MultiplyByGroup(tile, x, w, depth->getSExtValue(), f16);
}

void Emitter::MultiplyByWarp(const TileValue& tile, const Region& x, const Region& w, int64_t depth, bool f16) {
  llvm::Type* type = f16 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(b_.getHalfTy(), 2)) : b_.getInt32Ty();
  llvm::Value* lane = b_.CreateAnd(thread_, 31);
  const bool by_rows = x.apart >= 8 && w.apart >= 8;  // rows of 16 bytes are aligned
  auto bit = [&](int number, int64_t step) { return b_.CreateMul(b_.CreateAnd(b_.CreateLShr(lane, static_cast<uint64_t>(number)), 1), I64(step)); };
  // Four parts of 8 x 8, those of x by columns first, those of w by rows.
  auto base = [&](const Region& region, bool left) {
    if (!by_rows) return FragmentBase(region, b_.CreateLShr(lane, 2), b_.CreateShl(b_.CreateAnd(lane, 3), 1));
    llvm::Value* row = b_.CreateAdd(b_.CreateAnd(lane, 7), bit(left ? 3 : 4, 8));
    return FragmentBase(region, row, bit(left ? 4 : 3, 8));
  };
  llvm::Value* const left_base = base(x, true);
  llvm::Value* const right_base = base(w, false);
  auto parts = [&](const Region& region, bool left, int64_t row, int64_t k, bool half) {
    std::array<llvm::Value*, 4> made = {};
    llvm::Value* from = left ? left_base : right_base;
    if (by_rows) {
      llvm::Value* all = b_.CreateIntrinsic(half ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16
                                                 : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                                            {from->getType()}, {FragmentAt(from, region, row, k)});
      for (unsigned i = 0; i < (half ? 2 : 4); ++i) made[i] = b_.CreateBitCast(b_.CreateExtractValue(all, i), type);
      return made;
    }
    for (int i = 0; i < (half ? 2 : 4); ++i) {
      const int64_t down = left ? i % 2 : i / 2, right = left ? i / 2 : i % 2;
      made[i] = b_.CreateAlignedLoad(type, FragmentAt(from, region, row + 8 * down, k + 8 * right), llvm::Align(4));
    }
    return made;
  };
  const int64_t columns = tile.dims[1] / 8;
  for (int64_t k = 0; k < depth; k += 16) {
    std::vector<std::array<llvm::Value*, 2>> rights;
    for (int64_t n = 0; n < columns; n += 2) {
      const std::array<llvm::Value*, 4> two = parts(w, false, 8 * n, k, n + 1 == columns);
      rights.push_back({two[0], two[1]});
      rights.push_back({two[2], two[3]});
    }
    for (int64_t m = 0; m < tile.dims[0] / 16; ++m) {
      const std::array<llvm::Value*, 4> left = parts(x, true, 16 * m, k, false);
      for (int64_t n = 0; n < columns; ++n) {
        std::vector<llvm::Value*> args = {left[0], left[1], left[2], left[3], rights[n][0], rights[n][1]};
        llvm::AllocaInst* const* slots = &tile.slots[4 * (m * columns + n)];
        for (int r = 0; r < 4; ++r) args.push_back(b_.CreateLoad(b_.getFloatTy(), slots[r]));
        llvm::Value* sums = b_.CreateIntrinsic(f16 ? llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32
                                                   : llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16, {}, args);
        for (unsigned r = 0; r < 4; ++r) b_.CreateStore(b_.CreateExtractValue(sums, r), slots[r]);
      }
    }
  }
}

}  // namespace quern::ptx
