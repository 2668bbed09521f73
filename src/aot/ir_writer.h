// Short words for the LLVM IR that the driver is made of. Internal to aot.
//
//   IrWriter w(module, model);
//   llvm::Function* f = w.Define("step.avx2", w.i64, {w.ptr}, false);
//   w.ReturnIf(w.b.CreateIsNull(f->getArg(0)), w.b.getInt64(-1));
#pragma once

#include <string>
#include <vector>

#include "aot/fill.h"
#include "aot/model.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace quern::aot {

struct IrWriter {
  IrWriter(llvm::Module& to, const Model& model);

  // A function whose first block the builder now writes to. It runs before the processor is known.
  llvm::Function* Define(const std::string& name, llvm::Type* result, const std::vector<llvm::Type*>& parameters,
                         bool external);
  // A read-only global of eight-byte alignment.
  llvm::Constant* Global(llvm::Constant* value, const std::string& name, bool external = false);
  llvm::Constant* String(const std::string& text);
  llvm::Constant* Null() { return llvm::ConstantPointerNull::get(b.getPtrTy()); }
  // A call of a function of support.c.
  llvm::Value* Call(const char* name, llvm::Type* result, const std::vector<llvm::Value*>& arguments);
  // Returns `value` from the function when `condition` holds, and goes on in a new block.
  void ReturnIf(llvm::Value* condition, llvm::Value* value);
  // Goes on in a block of its own that runs when `condition` holds, and returns the block to go on in afterwards.
  llvm::BasicBlock* Branch(llvm::Value* condition);
  // The table of symbol values as values, but for found ones.
  std::vector<llvm::Value*> LoadValues(llvm::Value* table);
  // Arguments of the function from `first` on, as a table of symbol values, behind which found ones have room.
  llvm::Value* Spill(llvm::Function* function, unsigned first);

  llvm::Module& module;
  llvm::IRBuilder<> b;
  ConstantPool pool;
  std::vector<std::string> names;  // of the symbols that a step is given, in the order of the signature
  std::vector<std::string> found;  // of those that it finds and tells,
  std::vector<std::string> inner;  // and of those that its trips and branches find
  llvm::Type *ptr, *i32, *i64;

 private:
  const cpu::Platform& platform_;
};

}  // namespace quern::aot
