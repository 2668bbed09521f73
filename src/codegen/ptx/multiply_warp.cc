// Products of a warp's tiles: c[m, n] += x[m, k] w[n, k]^T by m16n8k16, its fragments from shared memory by ldmatrix.
//
// Lane l holds of x the rows l / 4 and l / 4 + 8 and the columns 2 (l % 4) and those 8 behind, two neighbours a
// register; of w the row l / 4 likewise (PTX ISA, "Matrix fragments for mma.m16n8k16"). ldmatrix gives four such parts
// of 8 x 8 at once: lane l says where row l % 8 of part l / 8 is, 16 bytes. Eight rows lie in different banks where the
// rows of the buffer are an odd number of 16 bytes long, as the schedules pad them.
#include "codegen/ptx/products.h"

#include <array>

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace quern::ptx {
void MultiplyByWarp(llvm::IRBuilder<>& b, llvm::Value* lane, const Product& product) {
  const SharedRows &x = product.x, &w = product.w;
  llvm::Type* type =
      product.f16 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(b.getHalfTy(), 2)) : b.getInt32Ty();
  const bool by_rows = x.apart >= 8 && w.apart >= 8;  // rows of 16 bytes are aligned
  auto bit = [&](int number, int64_t step) {
    return b.CreateMul(b.CreateAnd(b.CreateLShr(lane, static_cast<uint64_t>(number)), 1), b.getInt64(step));
  };
  // Where the lane's element is; the rest of each address is constant. Four parts of 8 x 8, those of x by columns
  // first, those of w by rows.
  auto base = [&](const SharedRows& rows, bool left) {
    llvm::Value* row = by_rows ? b.CreateAdd(b.CreateAnd(lane, 7), bit(left ? 3 : 4, 8)) : b.CreateLShr(lane, 2);
    llvm::Value* column = by_rows ? bit(left ? 4 : 3, 8) : b.CreateShl(b.CreateAnd(lane, 3), 1);
    return b.CreateGEP(b.getInt16Ty(), rows.first, b.CreateNSWAdd(b.CreateNSWMul(row, b.getInt64(rows.pitch)), column));
  };
  auto at = [&](llvm::Value* from, const SharedRows& rows, int64_t row, int64_t column) {
    return b.CreateInBoundsGEP(b.getInt16Ty(), from, b.getInt64(row * rows.pitch + column));
  };
  llvm::Value* const left_base = base(x, true);
  llvm::Value* const right_base = base(w, false);
  auto parts = [&](const SharedRows& rows, bool left, int64_t row, int64_t k, bool half) {
    std::array<llvm::Value*, 4> made = {};
    llvm::Value* from = left ? left_base : right_base;
    if (by_rows) {
      llvm::Value* all = b.CreateIntrinsic(half ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16
                                                : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                                           {from->getType()}, {at(from, rows, row, k)});
      for (unsigned i = 0; i < (half ? 2 : 4); ++i) made[i] = b.CreateBitCast(b.CreateExtractValue(all, i), type);
      return made;
    }
    for (int i = 0; i < (half ? 2 : 4); ++i) {
      const int64_t down = left ? i % 2 : i / 2, right = left ? i / 2 : i % 2;
      made[i] = b.CreateAlignedLoad(type, at(from, rows, row + 8 * down, k + 8 * right), llvm::Align(4));
    }
    return made;
  };
  const int64_t columns = product.columns / 8;
  for (int64_t k = 0; k < product.depth; k += 16) {
    std::vector<std::array<llvm::Value*, 2>> rights;
    for (int64_t n = 0; n < columns; n += 2) {
      const std::array<llvm::Value*, 4> two = parts(w, false, 8 * n, k, n + 1 == columns);
      rights.push_back({two[0], two[1]});
      rights.push_back({two[2], two[3]});
    }
    for (int64_t m = 0; m < product.rows / 16; ++m) {
      const std::array<llvm::Value*, 4> left = parts(x, true, 16 * m, k, false);
      for (int64_t n = 0; n < columns; ++n) {
        std::vector<llvm::Value*> args = {left[0], left[1], left[2], left[3], rights[n][0], rights[n][1]};
        llvm::AllocaInst* const* slots = &product.sums[4 * (m * columns + n)];
        for (int r = 0; r < 4; ++r) args.push_back(b.CreateLoad(b.getFloatTy(), slots[r]));
        llvm::Value* sums = b.CreateIntrinsic(product.f16 ? llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32
                                                          : llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16,
                                              {}, args);
        for (unsigned r = 0; r < 4; ++r) b.CreateStore(b.CreateExtractValue(sums, r), slots[r]);
      }
    }
  }
}

}  // namespace quern::ptx
