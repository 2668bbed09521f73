// Products of a group of four warps: c[64, n] += x[64, k] w[n, k]^T by wgmma, both operands from shared memory.
//
// The operands lie in parts of 8 x 8 halves, 128 bytes one after the other, parts of one row of parts side by side: the
// layout of the PTX ISA without swizzling ("Matrix-descriptor", K-major). A descriptor holds where the first part is,
// how far it is to the next one along k (128 bytes) and how far to the next eight rows (16 k bytes), all over 16. Sums
// lie in the threads as those of mma.m16n8k16, warp w having rows 16 w to 16 w + 15.
//
// The unit reads shared memory past the caches of ordinary stores: who has stored fences before the barrier
// (FenceForGroups).
#include "absl/strings/str_cat.h"
#include "codegen/ptx/products.h"
#include "llvm/IR/InlineAsm.h"

namespace quern::ptx {

void FenceForGroups(llvm::IRBuilder<>& b) {
  auto* type = llvm::FunctionType::get(b.getVoidTy(), false);
  b.CreateCall(type, llvm::InlineAsm::get(type, "fence.proxy.async.shared::cta;", "~{memory}", true));
}

void MultiplyByGroup(llvm::IRBuilder<>& b, const Product& product) {
  auto descriptor = [&](const SharedRows& rows) {
    llvm::Value* address = b.CreatePtrToInt(rows.first, b.getInt64Ty());
    llvm::Value* first = b.CreateLShr(b.CreateAnd(address, 0x3ffff), 4);
    return b.CreateOr(first, b.getInt64((int64_t{128} >> 4) << 16 | (rows.pitch * 16 >> 4) << 32));
  };
  // One text for the whole depth: 16 columns of both operands are two parts further on.
  const size_t count = product.sums.size();
  std::string sums,
      text =
          "{\n\t.reg .pred more;\n\t.reg .b64 left, right;\n\tsetp.ne.b32 more, 1, 0;\n\twgmma.fence.sync.aligned;\n\t";
  std::string constraints;
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(&sums, i == 0 ? "$" : ", $", i);
    absl::StrAppend(&constraints, "=f,");
  }
  for (size_t i = 0; i < count; ++i) absl::StrAppend(&constraints, i, ",");
  absl::StrAppend(&constraints, "l,l,~{memory}");
  const char* const dtype = product.f16 ? "f16" : "bf16";
  for (int64_t k = 0; k < product.depth; k += 16) {
    absl::StrAppend(&text, "add.s64 left, $", 2 * count, ", ", k, ";\n\tadd.s64 right, $", 2 * count + 1, ", ", k,
                    ";\n\t");
    absl::StrAppend(&text, "wgmma.mma_async.sync.aligned.m64n", product.columns, "k16.f32.", dtype, ".", dtype, " {",
                    sums, "}, left, right, more, 1, 1, 0, 0;\n\t");
  }
  absl::StrAppend(&text, "wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n\t}");
  std::vector<llvm::Value*> args;
  for (llvm::AllocaInst* slot : product.sums) args.push_back(b.CreateLoad(b.getFloatTy(), slot));
  args.push_back(descriptor(product.x));
  args.push_back(descriptor(product.w));
  std::vector<llvm::Type*> types;
  for (const llvm::Value* arg : args) types.push_back(arg->getType());
  llvm::Type* result = llvm::StructType::get(b.getContext(), std::vector<llvm::Type*>(count, b.getFloatTy()));
  auto* type = llvm::FunctionType::get(result, types, false);
  llvm::Value* made = b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, true), args);
  for (size_t i = 0; i < count; ++i)
    b.CreateStore(b.CreateExtractValue(made, static_cast<unsigned>(i)), product.sums[i]);
}

}  // namespace quern::ptx
