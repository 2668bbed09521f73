// LLVM IR and assembly as people read them beside the KIR they were made from: debug locations become links, and what
// only the assembler needs goes.
//
//   LinkedIr("  %3 = fadd float %1, %2, !dbg !7\n...!7 = !DILocation(line: 4, scope: !5)\n")
//       text "  %3 = fadd float %1, %2\n", lines {4}
//   LinkedAssembly("\t.loc\t1 4 0\n\tvaddps\t%zmm0, %zmm1, %zmm0\n")
//       text "\tvaddps\t%zmm0, %zmm1, %zmm0\n", lines {4}
#pragma once

#include <string_view>

#include "profile/stages.h"

namespace quern::profile {

// Metadata goes, with its uses; a vector of equal elements is written as newer LLVM does: splat (float 1.0).
KirLines LinkedIr(std::string_view ir);

// Debug sections, locations and frame notes go. Instructions that no location says anything about are linked to
// nothing.
KirLines LinkedAssembly(std::string_view assembly);

}  // namespace quern::profile
