// A kernel resolved for the interpreter: names are slots, dtypes are known, tile ops are expanded to their meanings.
// Built once per (kernel, binding) by Resolve, run by the Machine. Private to the interpreter.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kir/interpret_memory.h"
#include "kir/kir.h"

namespace quern::kir::interpret {

enum class NodeKind : uint8_t { kConst, kSlot, kLoad, kDecode, kApply, kCast, kBits, kReduce };

struct Node {
  NodeKind kind = NodeKind::kConst;
  DType dtype = DType::kF32;
  Value constant{.integer = 0};
  int slot = -1;     // kSlot, kReduce: of the index
  int view = -1;     // kLoad, kDecode
  Op op = Op::kAdd;  // kApply; kReduce: what combines
  ReduceOp reduce = ReduceOp::kSum;
  std::vector<std::unique_ptr<Node>> args;                  // operands or index; kReduce: low, high, body
  std::unique_ptr<Node> otherwise;                          // kLoad
  std::vector<std::pair<int, std::unique_ptr<Node>>> lets;  // kReduce: slots, set before the body is evaluated
};
using NodeRef = std::unique_ptr<Node>;

// A range of a dimension: a point, a start and an extent, or all of it.
struct RangeNode {
  NodeRef start, extent;
};
struct SliceNode {
  int view = -1;
  std::vector<RangeNode> dims;
};

struct Step {
  const Stmt* source = nullptr;  // whose kind says what is in use of the rest
  int slot = -1;                 // an index; the variable of a let, var, assign or shuffle
  int view = -1;                 // what a store, alloc or tile is of
  int64_t step = 1;
  NodeRef low, high, value;    // bounds; a condition is a value
  std::vector<NodeRef> index;  // of a store; extents of a map
  std::vector<int> slots;      // indices of a map, sizes of a tile call
  std::vector<int> views;      // tiles of a map
  std::vector<std::unique_ptr<Step>> body, else_body;

  // A tile call: each operand slice becomes a view, sizes follow, attributes are set, then the body runs.
  struct Operand {
    SliceNode slice;
    int view = -1;
    std::vector<int> sizes;
  };  // sizes: slot of each ranged dimension
  struct TileArgument {
    int outer = -1, inner = -1;
    std::vector<int> sizes;
  };
  std::vector<Operand> operands;
  std::vector<TileArgument> tiles;
  std::vector<std::pair<int, NodeRef>> attributes;
  SliceNode dst, src;  // of a pack or copy

  // Kernels of threads. Collective: this or something inside needs the agents to go together.
  bool collective = false;
  ThreadLevel level = ThreadLevel::kBlock;  // of a thread loop, whose count is `high`
  std::vector<int> privates;                // tiles that each of its agents has of its own
  ShuffleKind shuffle = ShuffleKind::kXor;  // of `value`, at `low`
};
using Steps = std::vector<std::unique_ptr<Step>>;

struct Program {
  std::string kernel;
  int slot_count = 0;
  std::vector<View> views;            // params, allocs and tiles are whole; operands are set by their call
  std::deque<Memory> memories;        // params first, in order; then one an alloc or tile
  std::vector<bool> undefined_param;  // out: nothing is written yet when a run starts
  struct Dim {
    int slot;
    int64_t low, step, count;
  };
  std::vector<Dim> grid;
  int64_t chunks = 0;
  std::vector<std::pair<int, int64_t>> symbols;  // slots with their values
  Steps body;
  Watch watch;                  // threads 0: a CPU kernel
  std::vector<Block> meanings;  // keeps the statements of expanded tile ops alive
};

StatusOr<Program> Resolve(const Kernel& kernel, const Binding& binding);

}  // namespace quern::kir::interpret
