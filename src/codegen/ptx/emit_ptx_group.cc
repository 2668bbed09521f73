// Products of a group of four warps: c[64, n] += x[64, k] w[n, k]^T by wgmma, both operands from shared memory.
//
// The operands lie in parts of 8 x 8 halves, 128 bytes one after the other, parts of one row of parts side by side: the layout of the
// PTX ISA without swizzling ("Matrix-descriptor", K-major). A descriptor holds where the first part is, how far it is to the next
// one along k (128 bytes) and how far to the next eight rows (16 k bytes), all over 16. Sums lie in the threads as those of
// mma.m16n8k16, warp w having rows 16 w to 16 w + 15.
//
// The unit reads shared memory past the caches of ordinary stores: who has stored fences before the barrier (FenceForGroups).
#include "absl/strings/str_cat.h"
#include "codegen/ptx/emitter.h"
#include "llvm/IR/InlineAsm.h"

namespace quern::ptx {

// Only copies and products know where elements of these lie, so no layout of theirs is seen from outside.
void Emitter::FindCores(const kir::Block& block, bool in_group) {
  for (const kir::StmtRef& stmt : block) {
    if (const auto* loop = std::get_if<kir::Loop>(&stmt->node)) {
      FindCores(loop->body, loop->kind == kir::LoopKind::kThread ? loop->level == kir::ThreadLevel::kGroup : in_group);
    } else if (const auto* branch = std::get_if<kir::If>(&stmt->node)) {
      FindCores(branch->then_body, in_group);
      FindCores(branch->else_body, in_group);
    } else if (const auto* pipeline = std::get_if<kir::Pipeline>(&stmt->node)) {
      FindCores(pipeline->use, in_group);
    } else if (const auto* call = std::get_if<kir::TileCall>(&stmt->node); call != nullptr && in_group) {
      for (const kir::Slice& slice : call->operands) cores_.insert(slice.buffer);
    }
  }
}

void Emitter::FenceForGroups() {
  if (cores_.empty()) return;
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), false);
  b_.CreateCall(type, llvm::InlineAsm::get(type, "fence.proxy.async.shared::cta;", "~{memory}", true));
}

void Emitter::MultiplyByGroup(const TileValue& tile, const Region& x, const Region& w, int64_t depth, bool f16) {
  if (!groups_) return Unimplemented("a product of a group of warps, which the machine does not have");
  const int64_t columns = tile.dims[1];
  auto parts = [&](const Region& region) {
    return region.buffer.core && llvm::cast<llvm::ConstantInt>(region.buffer.dims.back())->getSExtValue() % 8 == 0 && region.apart >= 8;
  };
  if (tile.dims[0] != 64 || columns > 256 || !parts(x) || !parts(w)) return Unimplemented("a product of a group that is not 64 rows by at most 256");
  auto descriptor = [&](const Region& region) {
    const int64_t pitch = llvm::cast<llvm::ConstantInt>(region.buffer.dims.back())->getSExtValue();
    llvm::Value* address = b_.CreatePtrToInt(Address(region.buffer, region.starts), b_.getInt64Ty());
    llvm::Value* first = b_.CreateLShr(b_.CreateAnd(address, I64(0x3ffff)), 4);
    return b_.CreateOr(first, I64((int64_t{128} >> 4) << 16 | (pitch * 16 >> 4) << 32));
  };
  // One text for the whole depth: 16 columns of both operands are two parts further on.
  const size_t count = tile.slots.size();
  std::string sums, text = "{\n\t.reg .pred more;\n\t.reg .b64 left, right;\n\tsetp.ne.b32 more, 1, 0;\n\twgmma.fence.sync.aligned;\n\t";
  std::string constraints;
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(&sums, i == 0 ? "$" : ", $", i);
    absl::StrAppend(&constraints, "=f,");
  }
  for (size_t i = 0; i < count; ++i) absl::StrAppend(&constraints, i, ",");
  absl::StrAppend(&constraints, "l,l,~{memory}");
  const char* const dtype = f16 ? "f16" : "bf16";
  for (int64_t k = 0; k < depth; k += 16) {
    absl::StrAppend(&text, "add.s64 left, $", 2 * count, ", ", k, ";\n\tadd.s64 right, $", 2 * count + 1, ", ", k, ";\n\t");
    absl::StrAppend(&text, "wgmma.mma_async.sync.aligned.m64n", columns, "k16.f32.", dtype, ".", dtype, " {", sums, "}, left, right, more, 1, 1, 0, 0;\n\t");
  }
  absl::StrAppend(&text, "wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n\t}");
  std::vector<llvm::Value*> args;
  for (llvm::AllocaInst* slot : tile.slots) args.push_back(b_.CreateLoad(b_.getFloatTy(), slot));
  args.push_back(descriptor(x));
  args.push_back(descriptor(w));
  std::vector<llvm::Type*> types;
  for (const llvm::Value* arg : args) types.push_back(arg->getType());
  llvm::Type* result = llvm::StructType::get(b_.getContext(), std::vector<llvm::Type*>(count, b_.getFloatTy()));
  auto* type = llvm::FunctionType::get(result, types, false);
  llvm::Value* made = b_.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, true), args);
  for (size_t i = 0; i < count; ++i) b_.CreateStore(b_.CreateExtractValue(made, static_cast<unsigned>(i)), tile.slots[i]);
}

}  // namespace quern::ptx
