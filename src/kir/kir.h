// KIR, the kernel language: what is computed and in which loop order, never with which instruction.
//
// A kernel is one grid of independent chunks over named buffers. Bodies are scalar; the kind of a loop says how it
// runs. Nodes are immutable values shared by pointer; what varies (operators, dtypes, layouts, tile ops) is a row of a
// table:
//   operators.h, layout.h, tile_op.h.
// Text form:
//   kernel scale (
//     x : f32[M, 2048] in
//     y : f32[M, 2048] out
//   ) sym M in 1..512 {
//     grid r in 0..M by 1 {
//       vec c in 0..2048 { y[r, c] = x[r, c] * 0.5 }
//     }
//   }
// docs/kir.md is the reference.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/extent.h"
#include "kir/layout.h"
#include "kir/operators.h"

namespace quern::kir {

// ---------------------------------------------------------------------------------------------------------------------
// Types

// Type of a buffer, an alloc or a tile: element type, extents (affine in the kernel's symbols), layout.
struct BufferType {
  DType dtype = DType::kF32;
  std::vector<Extent> dims;  // outermost first; rank 0 is one element
  Layout layout = Layout::kRow;
  bool operator==(const BufferType&) const = default;
};

// ---------------------------------------------------------------------------------------------------------------------
// Expressions. An expression has one scalar dtype; indices and extents are i64.

struct Expr;
using ExprRef = std::shared_ptr<const Expr>;
using Index = std::vector<ExprRef>;

// A typed literal. Floats are kept in `real`, integers and bool in `integer`.
struct Const {
  double real = 0;
  int64_t integer = 0;
};
// A symbol, loop index, let, var, or (inside map) the current element of a tile.
struct NameRef {
  std::string name;
};  // not "Name": that is the function on dtypes
// buffer[index]; with `otherwise`, that value where the index is out of bounds ("else 0"). In f32 tiles too.
struct Load {
  std::string buffer;
  Index index;
  ExprRef otherwise;
};
// An operator of the table applied to its operands. `contract`, on float + - * only, lets a*b+c become one fused
// multiply-add where both nodes have it; a reduction whose body is a contract a*b may fuse it into the accumulation.
struct Apply {
  Op op;
  std::vector<ExprRef> args;
  bool contract = false;
};
// Value conversion to the node's dtype: float to int saturates (NaN to 0), narrowing floats rounds to nearest even.
struct Cast {
  ExprRef value;
};
// Reinterpretation of the same number of bits as the node's dtype.
struct Bits {
  ExprRef value;
};
// Named values, each in scope of those after it.
using Lets = std::vector<std::pair<std::string, ExprRef>>;
// Reduction of body over index in [low, high). vec: `accs` vector accumulators combined in a fixed order
// (accumulator 0..accs-1 pairwise, then lanes pairwise), so the tree is a property of the text, not of the run.
// `lets` are computed anew for each index, and in scope of the body.
struct Reduce {
  ReduceOp op;
  bool vec = true;
  int accs = 1;
  std::string index;
  ExprRef low, high;
  Lets lets;
  ExprRef body;
};
// Element (row, column) of a block-format buffer as f32.
struct Decode {
  std::string buffer;
  Index index;
};

struct Expr {
  using Node = std::variant<Const, NameRef, Load, Apply, Cast, Bits, Reduce, Decode>;
  Node node;
  DType dtype = DType::kF32;
};

// ---------------------------------------------------------------------------------------------------------------------
// Statements

struct Stmt;
using StmtRef = std::shared_ptr<const Stmt>;
using Block = std::vector<StmtRef>;

enum class LoopKind : uint8_t { kFor, kUnroll, kVec, kThread };
// What the index of a thread loop counts: the threads of a block, its warps of 32, its groups of four warps, or the
// lanes of a warp.
enum class ThreadLevel : uint8_t { kBlock, kWarp, kGroup, kLane };
struct ThreadLevelRow {
  const char* name;  // as printed after '@'
  int threads;       // that run an iteration together
};
const ThreadLevelRow& Row(ThreadLevel level);
enum class VecTail : uint8_t { kMask, kPeel, kPad };

// One dimension of a slice: a point (extent null), or `start : +extent`, or everything (`:`, start and extent null).
// A range that reaches past the end of the dimension is clipped: the actual size is what lies inside.
struct SliceDim {
  ExprRef start;
  ExprRef extent;
};
struct Slice {
  std::string buffer;
  std::vector<SliceDim> dims;
};

struct Loop {
  LoopKind kind;
  std::string index;
  ExprRef low, high;
  int64_t step = 1;
  VecTail tail = VecTail::kMask;  // kVec
  Block body;
  ThreadLevel level = ThreadLevel::kBlock;  // kThread
};
// The condition is uniform in the enclosing vec loop.
struct If {
  ExprRef condition;
  Block then_body, else_body;
};
struct Let {
  std::string name;
  ExprRef value;
};
struct Var {
  std::string name;
  ExprRef value;
};  // a scalar register of value's dtype
struct Assign {
  std::string name;
  ExprRef value;
};  // to a Var
// buffer[index] = value; the dtypes agree (a cast is explicit). Tiles may be stored to as well.
struct Store {
  std::string buffer;
  Index index;
  ExprRef value;
};
// Memory for the rest of the enclosing block, in the worker's scratch or shared by the threads of a block. Contents are
// undefined until written.
enum class Space : uint8_t { kScratch, kShared };
struct Alloc {
  std::string name;
  BufferType type;
  Space space = Space::kScratch;
};
// A tile of constant extents, all elements set to `init`.
struct Tile {
  std::string name;
  BufferType type;
  ExprRef init;
};
// NAME tiles += operands attributes. Sizes follow from the slices; see tile_op.h.
struct TileCall {
  std::string op;
  std::vector<std::string> tiles;
  std::vector<Slice> operands;
  std::vector<std::pair<std::string, ExprRef>> attributes;
};
// For every live element of the tiles (all of one shape), in any order. Inside, a tile's name stands for its element at
// the current index, and tile[i, j] for any other. `extents` are the live sizes (at most the tile's); may store, load,
// and use the indices.
struct Map {
  std::vector<std::string> indices;
  std::vector<std::string> tiles;
  std::vector<ExprRef> extents;
  Block body;
};
// Change of format or layout from src to dst, chosen by the two types from the pack table. Row ranges are clipped
// alike. Between dense rows the rows of src become the columns of dst.
struct Pack {
  Slice dst, src;
};
// Hint: the slice will be read soon. May lie outside the buffer.
struct Prefetch {
  Slice slice;
};

// Statements of kernels that are scheduled for blocks of threads (those with a thread loop); docs/kir.md, "Blocks and
// threads".

// All threads of the block arrive before any goes on, and see what the others have stored.
struct Barrier {};
// dst = src, element by element and shared out over the threads of the block. Where src is clipped, the rest of dst is
// 0. Floats may change their dtype, rounding to nearest even, and a block format is decoded: to f32, then to dst's
// dtype.
struct Copy {
  Slice dst, src;
};
// A loop whose iterations `fetch` into shared memory by copies, up to `stages` ahead of their `use`.
struct Pipeline {
  std::string index;
  ExprRef low, high;
  int64_t step = 1;
  int stages = 1;
  Block fetch, use;
};
// A value of another lane of the warp. kXor: of lane ^ `lane`. kDown: of lane + `lane`, or its own past the last lane.
// kAt: of `lane`.
enum class ShuffleKind : uint8_t { kXor, kDown, kAt };
struct Shuffle {
  std::string name;
  ShuffleKind kind;
  ExprRef value, lane;
};

struct Stmt {
  using Node = std::variant<Loop, If, Let, Var, Assign, Store, Alloc, Tile, TileCall, Map, Pack, Prefetch, Barrier,
                            Copy, Pipeline, Shuffle>;
  Node node;
  int origin = -1;  // row of Kernel::origins, or -1
};

// ---------------------------------------------------------------------------------------------------------------------
// Kernels

enum class Mode : uint8_t { kIn, kOut, kInOut };

struct Param {
  std::string name;
  BufferType type;
  Mode mode = Mode::kIn;
  int align = 64;       // bytes the caller guarantees
  std::string inplace;  // for out: the in-parameter it may share memory with, element for element; or ""
};

// A run-time size. Free symbols have a range; a derived one is ceil(numerator / divisor), computed by the caller.
struct SymbolDecl {
  std::string name;
  SymbolRange range;
  std::optional<std::pair<Extent, int64_t>> derived;
};

// What holds of the symbols wherever the kernel runs, beyond their ranges: a polynomial that is not negative. The
// caller has checked it.
using SizeFact = Extent;

struct GridDim {
  std::string index;
  ExprRef low, high;
  int64_t step = 1;
};

struct Kernel {
  std::string name;
  std::vector<Param> params;
  std::vector<SymbolDecl> symbols;
  std::vector<SizeFact> facts;  // "where 64 - PAST_SEQ - SEQ >= 0"
  std::vector<GridDim> grid;    // one to three
  bool sequential = false;      // too short to share: one worker runs every chunk
  Block body;
  std::vector<std::string> origins;  // "layers.3/ffn_up: Silu" for Stmt::origin; not part of the canonical text
};

// Chunks of the whole grid under `binding` (derived symbols are computed here).
StatusOr<int64_t> GridChunks(const Kernel& kernel, const Binding& binding);
// `binding` with the kernel's derived symbols added; errors for an unbound or out-of-range symbol.
StatusOr<Binding> BindSymbols(const Kernel& kernel, const Binding& binding);
// Scratch bytes a worker needs, an upper bound over the ranges when a symbol is not in `binding`. Allocs are laid out
// in the order of their nesting, each 64-aligned; siblings share.
StatusOr<int64_t> ScratchBytes(const Kernel& kernel, const Binding& binding);

// What a block of a kernel needs that is scheduled for threads; all 0 when it has no thread loop.
inline constexpr int kWarpThreads = 32;
struct BlockShape {
  int64_t threads = 0;
  int64_t shared_bytes = 0;  // each alloc at a multiple of 128; those that a pipeline fetches into once a stage
};
// Errors: thread loops that differ in threads, shared memory without a constant size.
StatusOr<BlockShape> ShapeOfBlock(const Kernel& kernel);

// Text. Print is canonical: Parse(Print(k)) equals k, and Print(Parse(t)) is a fixed point.
struct PrintOptions {
  bool origins = true;           // @[...] notes
  bool normalise_names = false;  // buffers b0.., indices i0..: the canonical text that keys deduplication and the cache
  std::map<const Stmt*, int>* lines =
      nullptr;  // when given, filled with the line, from 1, on which each statement starts
};
std::string Print(const Kernel& kernel, const PrintOptions& options = {});
std::string Print(const ExprRef& expr);
std::string Print(const BufferType& type);
// Errors carry line and column and what was expected.
StatusOr<Kernel> ParseKernel(std::string_view text);
StatusOr<std::vector<Kernel>> ParseKernels(std::string_view text);

// Checks everything that can be checked without running: names, dtypes, bounds of each access, divisors, one writer per
// element, written before read, tile operands, slices. On in release builds.
Status Verify(const Kernel& kernel);

}  // namespace quern::kir
