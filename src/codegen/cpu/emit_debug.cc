// Line tables: every instruction belongs to a line of the kernel's printed text, which is the source file that
// debuggers and profilers show.
#include "codegen/cpu/emitter.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DebugInfoMetadata.h"

namespace quern::cpu {

void Emitter::StartLines(const kir::Kernel& kernel, const std::string& symbol) {
  if (!options_.debug_lines) return;
  kir::Print(kernel, {.lines = &lines_});
  if (module_.getModuleFlag("Debug Info Version") == nullptr) {
    module_.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    module_.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
  }
  llvm::DIBuilder debug(module_);
  llvm::DIFile* file = debug.createFile(symbol + ".kir", options_.kir_folder);
  // A language that debuggers know, and that has no notion of what is not there.
  llvm::DICompileUnit* unit = debug.createCompileUnit(llvm::dwarf::DW_LANG_C99, file, "quern", true, "", 0, "",
                                                      llvm::DICompileUnit::LineTablesOnly);
  llvm::DISubroutineType* type = debug.createSubroutineType(debug.getOrCreateTypeArray({}));
  llvm::DISubprogram* subprogram =
      debug.createFunction(unit, symbol, "", file, 1, type, 1, llvm::DINode::FlagZero,
                           llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  function_->setSubprogram(subprogram);
  debug.finalizeSubprogram(subprogram);
  debug.finalize();
  b_.SetCurrentDebugLocation(llvm::DILocation::get(context_, 1, 0, subprogram));
}

llvm::DebugLoc Emitter::EnterLine(const kir::Stmt& stmt) {
  const llvm::DebugLoc before = b_.getCurrentDebugLocation();
  const auto line = lines_.find(&stmt);
  if (line != lines_.end())
    b_.SetCurrentDebugLocation(
        llvm::DILocation::get(context_, static_cast<unsigned>(line->second), 0, function_->getSubprogram()));
  return before;
}

}  // namespace quern::cpu
