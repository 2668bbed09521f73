// Kernels as an LLVM module, and a module as machine code: what the JIT's objects and ahead-of-time objects share. For
// the folders that may see LLVM's headers.
//
//   QUERN_ASSIGN(auto machine, MakeMachine(target, true));
//   ModuleEmitter emitter(target, options, *machine);
//   QUERN_ASSIGN(auto module, emitter.Emit(context, kernels, symbols, report));
//   QUERN_ASSIGN(std::string object, Generate(*machine, *module, llvm::CodeGenFileType::ObjectFile));
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/cpu/object.h"
#include "codegen/cpu/optimise.h"
#include "kir/kir.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace quern::cpu {

// A machine for the level's instructions. Errors: no code was built for the level.
StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target, bool optimise);

// Changes the module: it is good for nothing but another Generate of a clone made before.
StatusOr<std::string> Generate(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type);
std::string Text(const llvm::Module& module);

// What one module's emission tells; the fields mean the same as in Object.
struct ModuleReport {
  std::vector<EmitStats> stats;
  CompileTimes times;
  std::string ir_before;
};

// Set up once, used for many modules.
class ModuleEmitter {
 public:
  ModuleEmitter(const Target& target, const EmitOptions& options, llvm::TargetMachine& machine)
      : target_(target), options_(options), machine_(machine), optimiser_(&machine) {}

  // One optimised function a kernel; inline primitives are in, tiles are declared (or, with options.specialise, in
  // too).
  StatusOr<std::unique_ptr<llvm::Module>> Emit(llvm::LLVMContext& context, std::span<const kir::Kernel> kernels,
                                               std::span<const std::string> symbols, ModuleReport& report);
  // Defines the tiles that the module declares, as functions of its own.
  Status AddTiles(llvm::Module& module);

 private:
  const Target& target_;
  const EmitOptions& options_;
  llvm::TargetMachine& machine_;
  Optimiser optimiser_;
};

// What a launch of one kernel needs to know of the sizes, as values computed at the end of `builder`'s block.
struct SizeValues {
  std::vector<llvm::Value*> table;  // i64, one a symbol of the kernel, derived symbols included
  llvm::Value* chunks = nullptr;    // i64, of the whole grid
};
// `values[i]` is the value of the symbol `names[i]`. Errors: a symbol that is not named, or a bound that is no
// expression of symbols.
StatusOr<SizeValues> EmitSizes(const kir::Kernel& kernel, std::span<const std::string> names,
                               std::span<llvm::Value* const> values, llvm::IRBuilder<>& builder);
// The same for one size. Wraps, like the run-time form.
StatusOr<llvm::Value*> EmitExtent(const Extent& extent, std::span<const std::string> names,
                                  std::span<llvm::Value* const> values, llvm::IRBuilder<>& builder);

}  // namespace quern::cpu
