// Links what a module still lacks out of the level's bitcode of src/simd. Internal to codegen/cpu.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "codegen/cpu/target.h"
#include "llvm/IR/Module.h"

namespace quern::cpu {

enum class Link : uint8_t {
  kInline,  // the inline primitives, always-inline; tiles stay declarations
  kTiles,   // tiles and packs as functions of their own, never inlined and not touched otherwise: their code is that of
            // the library's object form
  kSpecialise,  // tiles too, always-inline: specialised by the kernel's constants
};

// After this the module's declarations of the functions that `link` names are internal definitions, and every function
// carries the level's features. Only functions that are used are read.
Status LinkBitcode(llvm::Module& module, const Target& target, Link link);

}  // namespace quern::cpu
