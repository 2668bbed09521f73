// Kernels that the emitters of targets with blocks of threads are tested on: maps, rows, products, block formats.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/target_facts.h"
#include "kir/kir.h"

namespace quern {

struct BlockKernel {
  const char* name;
  std::string text;  // plain, or with threads already
};
std::vector<BlockKernel> BlockKernels();

// c = a b^T of f32, f16 or bf16 rows of `depth` elements, a symbol or a number.
std::string ProductOf(const char* dtype, const char* depth = "K");
// c = x w^T, both made halves as they are copied to shared memory: w has blocks of `format`.
std::string MixedProductOf(const char* format, const char* half);
// A row of a matrix of blocks times a vector, by a warp: each lane takes eight neighbours at a time.
std::string GemvOf(const char* format);

// The kernel of a text, scheduled for blocks unless it has threads already; it verifies.
StatusOr<kir::Kernel> Scheduled(const std::string& text, const codegen::BlockFacts& facts);

}  // namespace quern
