// Kernels that the emitters of targets with blocks of threads are tested on: maps, rows, products, block formats.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "family/target_facts.h"
#include "kir/kir.h"

namespace quern {

struct BlockKernel {
  std::string name;
  std::string text;  // a plain kernel, one with threads already, or a graph of one region
};
std::vector<BlockKernel> BlockKernels();

// c = a b^T of f32, f16 or bf16 rows of `depth` elements, a symbol or a number.
std::string ProductOf(const char* dtype, const char* depth = "K");
// c = x w^T, both made halves as they are copied to shared memory: w has blocks of `format`.
std::string MixedProductOf(const char* format, const char* half);
// c = a b^T of 64 x 64 halves by a group of four warps, behind a copy and a barrier rather than in a pipeline.
std::string GroupProduct();
// A row of a matrix of blocks times a vector, by a warp: each lane takes eight neighbours at a time.
std::string GemvOf(const char* format);

// A graph of four heads of queries over two of keys, of 16, in a cache of halves; each query sees those up to its own
// place. `rows` of queries: a number or "S".
std::string AttentionOf(const char* rows);

// The kernels of a text of BlockKernels, scheduled for blocks unless they have threads already; they verify.
StatusOr<std::vector<kir::Kernel>> ScheduledAll(const std::string& text, const family::BlockFacts& facts);
// Of a text with one.
StatusOr<kir::Kernel> Scheduled(const std::string& text, const family::BlockFacts& facts);
// What their entries are called: NAME, NAME_1, ...
std::vector<std::string> EntryNames(const std::string& name, size_t count);

}  // namespace quern
