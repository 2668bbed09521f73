// The straight line of code that writes a list of launches as dispatches. Internal to aot.
#pragma once

#include <map>
#include <set>
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
  std::vector<std::string> names;    // of the symbols, behind those that are given those that a step finds
  std::vector<llvm::Value*> values;  // theirs, i64; where one is still to be found, any
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

// The dispatches are those of runtime/dispatch_list.cc. A list is written in parts where steps find sizes: each launch,
// and the sizes of each kernel, where the last size that they name is found, so within a loop again in each trip.
class Filler {
 public:
  Filler(const FillContext& context, const lir::Plan& plan, const std::vector<lir::Launch>& launches,
         const KernelTable& kernels, std::span<const int> rows, llvm::IRBuilder<>& builder);

  // Appends to the builder's block what is not written yet and names none of `unknown`. Returns what it leaves open.
  StatusOr<LoopSlots> Fill(const std::set<std::string>& unknown = {});

 private:
  struct Sizes {
    int64_t table = 0;  // offset of its symbol values; 0: not written
    llvm::Value* chunks = nullptr;
  };
  // Of a dispatch: what the hints of those before it need.
  struct Written {
    llvm::Value* sequential;         // i64
    llvm::Value* weights = nullptr;  // its largest parameter, or null
    int64_t weight_bytes = 0;
  };

  llvm::Value* At(int64_t offset);
  void Store(llvm::Value* value, int64_t offset);
  void NextBlock();
  // The sizes of kernels.
  Status FillSizes(const std::set<std::string>& unknown);
  llvm::Function* Kernel(const std::string& symbol);
  bool Names(int kernel, const std::set<std::string>& symbols) const;
  bool Names(const lir::Launch& launch, const std::set<std::string>& symbols) const;
  StatusOr<Written> Dispatch(const lir::Launch& launch, size_t index, const Sizes& sizes, llvm::Function* kernel,
                             LoopSlots& open);
  // `written`: by launch.
  void Hints(const std::map<size_t, Written>& written);

  const FillContext& c_;
  const lir::Plan& plan_;
  const std::vector<lir::Launch>& launches_;
  const KernelTable& table_;
  const std::span<const int> rows_;  // of `table_`, by kernel of the plan
  llvm::IRBuilder<>& b_;
  std::vector<Sizes> kernels_;
  std::vector<bool> written_;   // by launch
  int64_t sizes_at_, slot_at_;  // where in the workspace the next symbol values and pointers go
};

// The address of a buffer, which is not a loop's.
StatusOr<llvm::Value*> EmitBase(const FillContext& context, const lir::Buffer& buffer, llvm::IRBuilder<>& builder);

}  // namespace quern::aot
