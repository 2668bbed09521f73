// The straight line of code that writes a list of launches as dispatches. Internal to aot.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "aot/kernel_table.h"
#include "aot/model.h"
#include "aot/workspace.h"
#include "base/hash.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace quern::aot {

// Bytes in the object, equal ones once.
class ConstantPool {
 public:
  explicit ConstantPool(llvm::Module& module) : module_(module) {}
  llvm::Constant* Add(std::span<const uint8_t> bytes);

 private:
  llvm::Module& module_;
  std::map<Hash128, llvm::Constant*> known_;
};

// What the code of a list may use.
struct FillContext {
  const Model& model;
  const Workspace& workspace;
  ConstantPool& constants;
  std::vector<std::string> names;    // of the symbols
  std::vector<llvm::Value*> values;  // theirs, i64
  llvm::Value* self = nullptr;       // start of the workspace
  llvm::Value* weights = nullptr;    // start of the model file
  llvm::Value* inputs = nullptr;     // const void* const*
  llvm::Value* outputs = nullptr;    // void* const*
};

// Pointers of dispatches that the steps of loops write: by buffer of Home::kLoop.
struct LoopSlot {
  int64_t at;           // in the workspace
  llvm::Value* offset;  // from the buffer's base
};
using LoopSlots = std::map<int, std::vector<LoopSlot>>;

// Appends to the builder's block. The dispatches are those of runtime/dispatch_list.cc. Returns what it leaves open.
StatusOr<LoopSlots> EmitFill(const FillContext& context, const lir::Plan& plan,
                             const std::vector<lir::Launch>& launches, const KernelTable& kernels,
                             std::span<const int> rows, llvm::IRBuilder<>& builder);

// The address of a buffer, which is not a loop's.
StatusOr<llvm::Value*> EmitBase(const FillContext& context, const lir::Buffer& buffer, llvm::IRBuilder<>& builder);

}  // namespace quern::aot
