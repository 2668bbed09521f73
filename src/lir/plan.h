// LIR: the ordered kernel launches of one variant of a graph, and where every value lives.
//
//   plan llama where SEQ in 1..1  arena 163840 bytes
//     kernel k0 map  2 uses
//     buffer b0 param token_embd.weight q4_K[32000, 2048] @blocks
//     buffer b3 arena +4096 f32[1, 2048]  8192 bytes
//     launch 0  k0 map (b0, b1 -> b3)  seq  tokens: Gather
//     launch 1  k1 reduce (b3+64*SEQ, b4 -> b5)  layers.0/attn_norm: RmsNorm
//     ...
// A view (Reshape, Narrow of leading rows) is no buffer: it is an argument with a byte offset into one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codegen/region.h"
#include "ir/graph.h"
#include "kir/kir.h"

namespace quern::lir {

enum class Home : uint8_t {
  kArena,     // at `offset` in the arena
  kInput,     // the caller's memory for the Input `name`
  kOutput,    // the caller's memory for output `index`
  kParam,     // the mapped weights of the Param `name`
  kConstant,  // bytes kept by the plan
  kState,     // memory that lives across runs, owned by the executable: the donated Input `name` and its output
  kOnce,      // at `offset` in memory that is filled once per binding of the parameters
};
std::string_view Name(Home home);

// Every buffer of an arena starts at a multiple of this, and so does the memory the executable allocates.
inline constexpr int64_t kBufferAlign = 64;
// What a mapped weight has at least: GGUF's default alignment.
inline constexpr int64_t kParamAlign = 32;

struct Buffer {
  std::string name;  // kInput, kParam, kState: of the leaf; others: a label for dumps
  Home home = Home::kArena;
  int index = -1;  // kOutput: of the graph's outputs
  kir::BufferType type;
  Extent bytes;   // what the type needs; derived symbols of kernels count as their upper bound
  Extent offset;  // kArena, kOnce: bytes from the start of that memory
  std::shared_ptr<const std::vector<uint8_t>> data;  // kConstant
};

// A buffer, or what lies `offset` bytes inside it: a view.
struct Argument {
  int buffer = -1;
  Extent offset;
  bool operator==(const Argument&) const = default;
};

struct Launch {
  int kernel = -1;                  // of Plan::kernels
  std::vector<Argument> arguments;  // in the order of the kernel's parameters
  std::string label;                // "layers.3/ffn_down: MatMul"
  int region = -1;  // node of the fused graph that it computes, all of its launches in a row; -1: a copy
};

// What the ranges alone do not prove: checked whenever symbols are bound.
struct Requirement {
  Extent value;  // must be >= 0 (exact: == 0)
  bool exact = false;
  std::string text;  // "Update: SEQ elements from PAST_SEQ lie in 512"
};

struct Plan {
  std::string name;
  SymbolRanges ranges;               // the guard: the plan is right for these values of the symbols
  std::vector<kir::Kernel> kernels;  // identical kernels once, by canonical text and symbols
  std::vector<Buffer> buffers;
  std::vector<Launch> once;      // parameter-only work, run when parameters are bound
  std::vector<Launch> launches;  // every run, in order
  std::vector<Requirement> requirements;
  // Where each result of each node of the fused graph lies: what checks and profiles look up. Right from the last
  // launch of the value's region until the last one that reads it.
  std::vector<std::vector<Argument>> values;
  Extent arena_bytes, once_bytes;
};

// Lowers every region of a fused graph (leaves, Region nodes, views) and gives every value its memory. `ranges` narrows
// the graph's symbols. The plan verifies.
// Errors: Unimplemented for a region that no family takes, or a donated input that is read after it is overwritten.
StatusOr<Plan> BuildPlan(const ir::Graph& graph, const SymbolRanges& ranges, const family::TargetFacts& facts);

// Checks what the executable relies on: arguments fit the kernels' parameters (count, alignment), no two buffers that
// are live at once share memory, offsets are aligned and inside, nothing is read before it is written.
Status Verify(const Plan& plan);

std::string Print(const Plan& plan);

// The largest power of two, at most `most`, that divides `offset` for all values of the symbols.
int64_t AlignmentOf(const Extent& offset, int64_t most);

}  // namespace quern::lir
