// PTX text of kernels for blocks of threads (codegen/block_schedule.h makes them), through LLVM.
//
// A kernel becomes one entry: a pointer for each parameter, then an i64 for each symbol, derived ones included; a block of
// ShapeOfBlock(kernel).threads threads for each chunk of the grid, numbered by the first dimension of the launch. Tiles
// are registers, pipelines fetch by all threads between two barriers.
//
//   QUERN_ASSIGN(PtxKernel made, EmitPtx(kernel, "layers_3_norm", *FindPtxTarget("sm_80")));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "codegen/block_schedule.h"
#include "kir/kir.h"

namespace quern::ptx {

struct PtxTarget {
  const char* name;      // "sm_80"
  const char* features;  // of the text, for LLVM
  codegen::BlockFacts facts;
};
std::span<const PtxTarget> PtxTargets();
const PtxTarget* FindPtxTarget(std::string_view name);

struct PtxKernel {
  std::string text;
  int64_t threads = 0;       // of a block
  int64_t shared_bytes = 0;  // static, in the text
};

// Deterministic. Errors: Unimplemented for block formats, packs, and math functions without an expansion (all but exp,
// exp2, sigmoid, sqrt and rsqrt, of f32 and the halves; sqrt and rsqrt of f64 too).
StatusOr<PtxKernel> EmitPtx(const kir::Kernel& kernel, const std::string& symbol, const PtxTarget& target);

}  // namespace quern::ptx
