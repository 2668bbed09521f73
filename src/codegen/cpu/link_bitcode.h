// Links what a module still lacks out of the level's bitcode of src/simd. Internal to codegen/cpu.
#pragma once

#include "base/status.h"
#include "codegen/cpu/target.h"
#include "llvm/IR/Module.h"

namespace quern::cpu {

// After this the module's declarations of inline primitives (and, with `tiles`, of tiles) are internal, always-inline
// definitions, and every function carries the level's features. Only functions that are used are read.
Status LinkBitcode(llvm::Module& module, const Target& target, bool tiles);

}  // namespace quern::cpu
