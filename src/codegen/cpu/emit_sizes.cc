// What a launch needs to know of the sizes: the kernel's symbols and the number of its chunks, as code that runs before
// it.
#include <algorithm>

#include "codegen/cpu/emitter.h"

namespace quern::cpu {
namespace {

StatusOr<llvm::Value*> ValueOf(std::string_view name, std::span<const std::string> names,
                               std::span<llvm::Value* const> values) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return absl::InternalError(absl::StrFormat("symbol %s has no value", std::string(name)));
  return values[found - names.begin()];
}

// Toward plus infinity; `by` > 0.
llvm::Value* CeilDiv(llvm::Value* value, int64_t by, llvm::IRBuilder<>& b) {
  if (by == 1) return value;
  llvm::Value* divisor = b.getInt64(by);
  llvm::Value* more = b.CreateICmpSGT(b.CreateSRem(value, divisor), b.getInt64(0));
  return b.CreateAdd(b.CreateSDiv(value, divisor), b.CreateZExt(more, b.getInt64Ty()));
}

}  // namespace

StatusOr<llvm::Value*> EmitExtent(const Extent& extent, std::span<const std::string> names,
                                  std::span<llvm::Value* const> values, llvm::IRBuilder<>& builder) {
  llvm::Value* sum = builder.getInt64(0);
  for (const Extent::Term& term : extent.terms()) {
    llvm::Value* product = builder.getInt64(term.coefficient);
    for (const std::string& factor : term.symbols) {
      llvm::Value* value = nullptr;
      if (const std::optional<Quotient> quotient = Quotient::Of(factor)) {
        QUERN_ASSIGN(llvm::Value * numerator, EmitExtent(quotient->numerator, names, values, builder));
        value = CeilDiv(numerator, quotient->divisor, builder);
      } else {
        QUERN_ASSIGN(value, ValueOf(factor, names, values));
      }
      product = builder.CreateMul(product, value);
    }
    sum = builder.CreateAdd(sum, product);
  }
  return sum;
}

StatusOr<SizeValues> Emitter::EmitSizes(const kir::Kernel& kernel, std::span<const std::string> names,
                                        std::span<llvm::Value* const> values, llvm::IRBuilder<>& builder) {
  kernel_ = &kernel;
  b_.SetInsertPoint(builder.GetInsertBlock(), builder.GetInsertPoint());
  SizeValues sizes;
  std::vector<std::string> own;
  for (const kir::SymbolDecl& decl : kernel.symbols) {
    llvm::Value* value = nullptr;
    if (decl.derived) {
      QUERN_ASSIGN(llvm::Value * numerator, EmitExtent(decl.derived->first, own, sizes.table, b_));
      value = CeilDiv(numerator, decl.derived->second, b_);
    } else {
      QUERN_ASSIGN(value, ValueOf(decl.name, names, values));
    }
    own.push_back(decl.name);
    sizes.table.push_back(value);
    BindSymbol(decl.name, value);
  }
  sizes.chunks = b_.getInt64(1);
  for (const kir::GridDim& dim : kernel.grid) {
    llvm::Value* span = b_.CreateSub(UniformScalar(dim.high, "grid bound"), UniformScalar(dim.low, "grid bound"));
    span = b_.CreateSelect(b_.CreateICmpSLT(span, b_.getInt64(0)), b_.getInt64(0), span);
    sizes.chunks = b_.CreateMul(sizes.chunks, CeilDiv(span, dim.step, b_));
  }
  QUERN_RETURN_IF_ERROR(status_);
  builder.SetInsertPoint(b_.GetInsertBlock(), b_.GetInsertPoint());
  return sizes;
}

StatusOr<SizeValues> EmitSizes(const kir::Kernel& kernel, std::span<const std::string> names,
                               std::span<llvm::Value* const> values, llvm::IRBuilder<>& builder) {
  // Bounds of a grid are scalar integers: neither the level nor the options matter.
  const EmitOptions options;
  EmitStats stats;
  Emitter emitter(*builder.GetInsertBlock()->getModule(), Targets()[0], options, stats);
  return emitter.EmitSizes(kernel, names, values, builder);
}

}  // namespace quern::cpu
