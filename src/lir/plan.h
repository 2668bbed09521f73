// LIR: the ordered steps of one variant of a graph, and where every value lives.
//
//   plan llama where SEQ in 1..1  arena 163840 bytes
//     kernel k0 map  2 uses
//     buffer b0 param token_embd.weight q4_K[32000, 2048] @blocks
//     buffer b3 arena +4096 f32[1, 2048]  8192 bytes
//     launch 0  k0 map (b0, b1 -> b3)  seq  tokens: Gather
//     launch 1  k1 reduce (b3+64*SEQ, b4 -> b5)  layers.0/attn_norm: RmsNorm
//     ...
// A view (Reshape, Narrow of leading rows) is no buffer: it is an argument with a byte offset into one.
//
// Launches are one table, in the order in which they stand; what runs when is a tree over ranges of it. A graph without
// If, While, Scan and Counted is one Run. Bodies share kernels, buffers and the arena with what is around them:
//     if b3  choose
//       then
//         launch 1  k1 map (b0 -> b4)  choose/then/Exp
//       else
//         launch 2  k2 map (b0 -> b4)  choose/else/Neg
//     launch 3  ...
//     while b9, b5 -> b6 from b2 by b7 b8  generate
//       cond
//         launch 4  k3 map (b5 -> b9)
//       body
//         launch 5  k4 map (b5 -> b6)
//     count N in 0..37 from b11  chosen
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "codegen/region.h"
#include "ir/custom.h"
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
  kLoop,      // what the step of a loop says: a carry, or the row of a trip. Changes between trips
};
std::string_view Name(Home home);

// Every buffer of an arena starts at a multiple of this, and so does the memory the executable allocates.
inline constexpr int64_t kBufferAlign = 64;
// What a weight in blocks has at least, GGUF's default alignment, and any weight where it was put by the runtime of a
// device.
inline constexpr int64_t kParamAlign = 32;
// What the memory that a program is given for a Param of this dtype has at least: that of its elements. Protobufs give
// no more, safetensors 8, allocators 16.
inline int64_t GivenParamAlign(DType dtype) { return IsBlock(dtype) ? kParamAlign : ScalarBytes(dtype); }

struct Buffer {
  std::string name;  // kInput, kParam, kState: of the leaf; others: a label for dumps
  Home home = Home::kArena;
  int index = -1;  // kOutput: of the graph's outputs
  kir::BufferType type;
  Extent bytes;   // what the type needs; derived symbols of kernels count as their upper bound
  Extent offset;  // kArena, kOnce: bytes from the start of that memory
  std::shared_ptr<const std::vector<uint8_t>> data;  // kConstant
  int64_t align = 0;  // kParam, kLoop: what all memory that it stands for is aligned to, at least
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
  int region = -1;  // node of its body's fused graph that it computes, all of its launches in a row; -1: a copy
  int body = 0;     // of Plan::bodies
};

// Launches [first, end) of the plan, one after the other.
struct Run {
  int first = 0, end = 0;
};

// One of two bodies, as the byte at `predicate` says.
struct If {
  Argument predicate = {};
  int then = -1, otherwise = -1;  // of Plan::bodies
  int node = -1;                  // of the fused graph that the step stands in
  std::string label = {};
};

// A value that a loop hands from trip to trip. Before the first, `current` is where the operand lies; each trip reads
// `current` and writes `next`, and then the two change places: `next` is one of `places` by turns, the first one first,
// so that nothing is copied. After the last trip `current` is the result. Carries that bodies return unchanged, or
// write in place, need none of this.
struct Carry {
  Argument initial = {};
  int current = -1, next = -1;     // buffers of Home::kLoop
  std::array<int, 2> places = {};  // buffers
};

// `cond`, and while the byte at `predicate` is not 0 then: `body`, the carries change places, `cond`.
struct While {
  Argument predicate = {};
  int cond = -1, body = -1;  // of Plan::bodies
  std::vector<Carry> carries = {};
  int64_t max = 0;  // trips; a run that needs more fails. 0: any number
  int node = -1;
  std::string label = {};
};

// The part of a larger value that one trip of a Scan reads or writes: `stride` bytes further each time.
struct Row {
  int buffer = -1;  // of Home::kLoop
  Argument whole;   // row 0
  Extent stride;
};

// `body` for rows 0..length - 1, or the other way round; the carries change places after each.
struct Scan {
  int body = -1;  // of Plan::bodies
  Extent length = {};
  bool reverse = false;
  std::vector<Carry> carries = {};
  std::vector<Row> rows = {};
  int node = -1;
  std::string label = {};
};

// What the ranges alone do not prove: checked whenever symbols are bound.
struct Requirement {
  Extent value;  // must be >= 0 (exact: == 0)
  bool exact = false;
  std::string text;  // "512 >= PAST_SEQ + SEQ"
};

// The i64 at `count` is the value of `symbol` from here on. Until then no launch names it; memory that depends on it
// has room for the most that it may be. In a body it is so anew in each trip.
struct Count {
  Argument count = {};
  std::string symbol = {};
  SymbolRange range = {};
  std::vector<Requirement> requirements = {};  // that name it, and no symbol of a later step: checked then
  int node = -1;
  std::string label = {};
};

// Visited with std::visit and an Overloaded of all kinds (base/overloaded.h): docs/add-a-step.md.
using Step = std::variant<Run, If, While, Scan, Count>;

// A graph as steps: that of the plan, or one of a node of another body.
struct Body {
  std::string name;  // "then", "body"; empty: the plan's own graph
  int parent = -1;   // of Plan::bodies; -1: none
  int node = -1;     // of the parent's fused graph: whose body this is,
  int position = 0;  // and which one of them
  std::vector<Step> steps;
  // Where each result of each node of the fused graph lies: what checks and profiles look up. Right from the last
  // launch of the value's region until the last one that reads it.
  std::vector<std::vector<Argument>> values;
};

struct Sealed;  // lir/sealed.h

struct Plan {
  std::string name;
  SymbolRanges ranges;               // the guard: the plan is right for these values of the symbols
  std::vector<kir::Kernel> kernels;  // identical kernels once, by canonical text and symbols
  // Kernels whose code is a C function of the caller's. They have no body.
  std::map<int, const ir::CustomDef*> calls;
  std::vector<Buffer> buffers;
  std::vector<Launch> once;      // parameter-only work, run when parameters are bound
  std::vector<Launch> launches;  // of all bodies, in the order in which they stand
  std::vector<Body> bodies;      // the first is the graph itself
  std::vector<Requirement> requirements;
  Extent arena_bytes;
  Extent once_bytes, once_kept_bytes;  // of Home::kOnce; the second, the first so many of these, is what runs read
  // Of a plan that was kept from an earlier start: what there is to know of its kernels, which have no bodies. Else
  // null.
  std::shared_ptr<const Sealed> sealed;
};

// Lowers every region of a fused graph (leaves, Region nodes, views, nodes with bodies of the same) and gives every
// value its memory. `ranges` narrows the graph's symbols. The plan verifies.
// Errors: Unimplemented for a region that no family takes, or a donated input that is read after it is overwritten.
StatusOr<Plan> BuildPlan(const ir::Graph& graph, const SymbolRanges& ranges, const family::TargetFacts& facts);

// Checks what the executable relies on: arguments fit the kernels' parameters (count, alignment), no two buffers that
// are live at once share memory, offsets are aligned and inside, nothing is read before it is written.
Status Verify(const Plan& plan);

std::string Print(const Plan& plan);

// Of the fused graph that the plan was built from, the graph of one of its bodies.
const ir::Graph& GraphOf(const ir::Graph& fused, const Plan& plan, int body);

// What is known of the memory of a buffer before a caller says more: its alignment.
int64_t AlignmentOf(const Buffer& buffer);

// The largest power of two, at most `most`, that divides `offset` for all values of the symbols.
int64_t AlignmentOf(const Extent& offset, int64_t most);

}  // namespace quern::lir
