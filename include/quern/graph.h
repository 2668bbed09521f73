// The public interface for graphs: build one from blocks and ops, compile it, run it on memory of the caller's.
//
//   quern::Graph g("ffn");
//   g.Symbol("BATCH", 1, 64);                                     // a size that each run may choose
//   const quern::Value x = g.Input("x", "f32[BATCH, 48]");
//   const quern::Value w = g.Param("w", "f32[48, 80]", weights);  // a std::vector<float> that outlives the program
//   g.Output("y", g.Block("Linear", {x, w}, {{"act", "Silu"}}));
//   quern::Result<quern::Program> program = g.Compile();
//   if (!program.ok()) return Complain(program.error());
//   quern::Result<void> ran = program->Run({quern::In("x", xs, {3, 48})}, {quern::Out("y", ys, {3, 80})});  // BATCH 3
//
// Types are text, as `quern dump` prints them: "f32[BATCH, 48]", "i32[2*SEQ + 1]", "q4_K[512, 256]", "f32[]" for one
// element. Memory is dense and row-major, the last dimension innermost; bools are bytes of 0 and 1; a parameter of a
// block format lies as it does in a GGUF file. docs/ops.md lists blocks and ops with their operands and attributes.
//
// Nothing throws but what the standard library does without memory. The first error of a Graph sticks: everything after
// it does nothing, values that it returns lead nowhere, and Compile returns it.
// A Graph and a Program are movable (one that was moved from may only be assigned to or destroyed) and for one thread
// at a time; different ones are independent, and a Program does not need its Graph any more. A Program that is run
// while it is running says so (ErrorCode::kBusy) and does nothing. While kernels run, denormals count as zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

struct CompileOptions;  // quern/compile.h
struct CompiledFiles;
class Graph;
namespace compiler {
struct GraphAccess;
}

// A value inside a graph. Value{} stands for an optional operand that is absent.
struct Value {
  int node = -1;
  int result = 0;
};

// An attribute of a block or op. Dtypes are strings ("f16"); sizes that may name symbols are lists of strings; a whole
// number will do where a float is wanted.
struct Attribute {
  std::string name;
  std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>> value;
};

// Memory of the caller's, with the name and shape of the input or output it is for. Not owned, and used during the call
// alone. Aligned to its elements. `dtype` is that of its elements ("f32"), null where the bytes speak for themselves.
struct ConstTensor {
  std::string_view name;
  const void* data = nullptr;
  size_t bytes = 0;
  const char* dtype = nullptr;
  std::vector<int64_t> shape;
};
struct MutableTensor {
  std::string_view name;
  void* data = nullptr;
  size_t bytes = 0;
  const char* dtype = nullptr;
  std::vector<int64_t> shape;
};

// The dtype of a C++ element; null for types that only carry bytes (std::byte, and uint16_t, which may hold any half).
template <typename T>
constexpr const char* DTypeName() {
  if constexpr (std::is_same_v<T, float>)
    return "f32";
  else if constexpr (std::is_same_v<T, double>)
    return "f64";
  else if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_same_v<T, uint16_t> || std::is_same_v<T, std::byte>)
    return nullptr;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
    return std::is_signed_v<T> ? "i8" : "u8";
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 2)
    return "i16";
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
    return std::is_signed_v<T> ? "i32" : "u32";
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
    return std::is_signed_v<T> ? "i64" : "u64";
  else
    static_assert(sizeof(T) == 0, "no dtype has this element type: pass bytes");
}

// `range`: anything contiguous, such as a std::vector<float>. In and Out of named memory.
template <std::ranges::contiguous_range Range>
ConstTensor In(std::string_view name, const Range& range, std::vector<int64_t> shape) {
  using T = std::remove_cv_t<std::ranges::range_value_t<Range>>;
  return {name, std::ranges::data(range), std::ranges::size(range) * sizeof(T), DTypeName<T>(), std::move(shape)};
}
template <std::ranges::contiguous_range Range>
MutableTensor Out(std::string_view name, Range&& range, std::vector<int64_t> shape) {
  using T = std::ranges::range_value_t<Range>;
  return {name, std::ranges::data(range), std::ranges::size(range) * sizeof(T), DTypeName<T>(), std::move(shape)};
}

// An input, output, parameter or state of a program.
struct TensorInfo {
  std::string name;
  std::string type;  // "f32[BATCH, 80]"
};

// A compiled graph with its parameters, its state and its threads. Destroying it gives all of that back.
class Program {
 public:
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  // Names and types, in the order of the graph.
  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  const std::vector<TensorInfo>& params() const;
  const std::vector<TensorInfo>& states() const;

  // Gives a parameter its memory, instead of what Graph::Param gave it. It is read in place by every run, so it must
  // outlive the program and stay as it is; bytes not aligned to their elements (of blocks: to 32) are copied. Work that
  // depends on this parameter alone is done again. Errors: kUnknownName, kShapeMismatch (the number of bytes), kBusy.
  Result<void> Bind(std::string_view param, std::span<const std::byte> bytes);
  template <std::ranges::contiguous_range Range>
  Result<void> Bind(std::string_view param, const Range& range) {
    return Bind(param, std::as_bytes(std::span(range)));
  }
  // The same with an end: the program calls `release` once, when it no longer reads the bytes, so that weights of which
  // it makes a packed copy are not held twice. For those that is in the next Run, which compiles every variant; for
  // others when they are bound again, or when the program goes. It is called on the thread that uses the program, and
  // must not use it. After an error it is not called. With Options::check every parameter is read to the end. Where a
  // later Bind asks for bytes that were released (a value made of both), the run says so: kMissing.
  Result<void> Bind(std::string_view param, std::span<const std::byte> bytes, std::function<void()> release);

  // Computes every output from the inputs, each given once, in any order. Symbols follow from the shapes; those that
  // are in no input's type are given in `symbols`. Outputs overlap neither each other nor an input. Memory is not kept
  // after the call. Sizes for which nothing was compiled yet are compiled first: sizes within one variant never are
  // again. Errors, after which no output and no state has changed: kMissing, kUnknownName, kShapeMismatch,
  // kDTypeMismatch, kOutOfRange, kSizeConflict, kInvalid (memory that is not aligned, or overlaps), kUnsupported,
  // kResource, kBusy. A While that needs more trips than its `max` is kOutOfRange as well: no state has changed, the
  // outputs may hold anything. After kCancelled outputs and states may hold anything (ResetState).
  Result<void> Run(const std::vector<ConstTensor>& inputs, const std::vector<MutableTensor>& outputs,
                   const std::map<std::string, int64_t>& symbols = {});

  // The shape that each output has, in their order, in a run on inputs of these shapes, whose memory is not looked at.
  // Where only data decide a size (Counted), it is the most that there may be, which is what Run is given memory for.
  // Errors: those of Run about names, shapes, dtypes and symbols.
  Result<std::vector<std::vector<int64_t>>> OutputShapes(const std::vector<ConstTensor>& inputs,
                                                         const std::map<std::string, int64_t>& symbols = {}) const;
  // The shape that each output had in the last run that went well, with the sizes that it found. The elements lie dense
  // at the start of the output's memory; what is behind them is not written. Error: kMissing, before the first run.
  Result<std::vector<std::vector<int64_t>>> LastShapes() const;

  // The memory of a carried input (Graph::Carry), of the largest size its type may have; zero at first. Valid until the
  // program goes. Not to be used during a run. Error: kUnknownName.
  Result<std::span<std::byte>> State(std::string_view name);
  // Every state back to zero.
  void ResetState();

  // What the program holds and what its last run took. Not to be read during a run.
  struct Counters {
    int variants = 0;          // compiled so far
    int kernels = 0;           // distinct ones among them
    int64_t code_bytes = 0;    // of their object files
    int launches = 0;          // of kernels in the last run, each as often as it ran
    int64_t arena_bytes = 0;   // held for intermediate values
    int64_t packed_bytes = 0;  // held for what depends on parameters alone, such as packed weights; of all variants
    double compile = 0;        // seconds so far: passes, planning, machine code
    double bind = 0, run = 0;  // seconds of the last run: following sizes and pointers, and kernels
  };
  Counters counters() const;

  // A variant: sizes that have kernels of their own, and what it holds while it is compiled. What several hold together
  // is counted in each.
  struct VariantInfo {
    std::string guard;  // "SEQ in 2..8", "" for all other sizes
    uint64_t key = 0;   // that of VariantPlan (quern/plan.h)
    bool compiled = false;
    int64_t runs = 0;  // since it was compiled, or since the last DropUnused
    int launches = 0;  // of a run, those of bodies once
    int64_t code_bytes = 0, packed_bytes = 0, constant_bytes = 0, scratch_bytes = 0;  // scratch: of each thread
  };
  // In the order in which they are tried.
  std::vector<VariantInfo> Variants() const;
  // Compiles the variant for these sizes, so that the first run of them does not. Every symbol has a size. Errors:
  // those of Run.
  Result<void> Precompile(const std::map<std::string, int64_t>& symbols);
  // Gives back what variants hold that no run has used since the last call, or since they were compiled, but for what
  // others use; and the arena, which the next run takes as large as it needs. A run that needs one compiles it again.
  // What was made of parameters that were released stays. How many there were. Errors: kBusy, during a run, or while a
  // profiler is attached.
  Result<int> DropUnused();
  // Held now, in bytes.
  struct Memory {
    int64_t states = 0, packed = 0, constants = 0, code = 0;
    int64_t arena = 0, arena_used = 0;  // reserved, and what of it the last run used
    int64_t scratch = 0;                // of all threads
    int64_t copied = 0;                 // parameters whose bytes were not aligned
  };
  Memory memory() const;
  // What Options::check has looked at so far, in a sentence; empty without.
  std::string CheckSummary() const;

  struct State_;  // of the implementation

 private:
  friend class Graph;
  friend class Profiler;  // quern/profile.h
  explicit Program(std::unique_ptr<State_> state);
  std::unique_ptr<State_> state_;
};

// How blocks become ops: as the fused ops that they are, or as plain ones in which passes find what belongs together
// (what differentiation takes). Kernels come out the same.
enum class FusionPolicy : uint8_t { kDirect, kFusable };

// Sizes that many models have: how many sequences a step has, how many tokens of each, and how many came before.
// kRows, tokens of all sequences together, is no symbol: types and attributes may say "ROWS" for BATCH*SEQ where it is
// not declared as one.
inline constexpr const char *kBatch = "BATCH", *kSeq = "SEQ", *kPastSeq = "PAST_SEQ", *kRows = "ROWS";

// What is added to a graph while it lives is labelled "NAME/..". It goes before the graph does, and the inner one of
// two first.
class [[nodiscard]] LabelScope {
 public:
  LabelScope(LabelScope&& other) noexcept;
  LabelScope& operator=(LabelScope&&) = delete;
  ~LabelScope();

 private:
  friend class Graph;
  LabelScope(void* module, size_t scope) : module_(module), scope_(scope) {}
  void* module_;  // of the implementation; null: nothing to close
  size_t scope_;
};

// What counts where two graphs or plans are compared.
struct DiffOptions {
  bool names = true;      // of inputs, parameters, outputs and states
  bool constants = true;  // their bytes
  bool origins = false;   // labels
};

class Graph {
 public:
  explicit Graph(std::string name = "graph");
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  // A graph of text (docs/graph-files.md): of ops, as `quern dump --dump-after PASS` prints it, or of blocks, as Text
  // gives it. Its parameters are bound here or on the program; outputs without a name are called "0", "1", ....
  // Errors: kInvalid with line and column; those of the blocks and ops in it.
  static Result<Graph> Parse(std::string_view text);
  // The same of bytes that Binary made, here or on another machine (docs/graph-files.md). They are not trusted. Errors:
  // kInvalid with the byte, of a wrong hash too; another version, by number; those of the ops.
  static Result<Graph> FromBinary(std::span<const std::byte> bytes);

  // Declares a size that types may name, and the values it may have: 0 <= low <= high <= 2^31.
  void Symbol(std::string_view name, int64_t low = 1, int64_t high = int64_t{1} << 20);
  // Also compiles a variant for `symbol` in low..high alone, which runs with such sizes use. A graph with one symbol
  // has them for 1 and for 2..8 by itself.
  void Specialise(std::string_view symbol, int64_t low, int64_t high);

  Value Input(std::string_view name, std::string_view type);
  // "DTYPE[BATCH, SEQ, ..inner]"; the two symbols are declared (from 1 on) where they are not yet.
  Value InputBatchSeq(std::string_view name, std::string_view dtype, const std::vector<std::string>& inner = {});
  // Weights, dense or in rows of blocks, of constant sizes. The bytes are read in place and must outlive the graph's
  // programs (those that are not aligned to their elements, of blocks to 32, are copied when a program is made);
  // without them, see Program::Bind. `dtype`: that of the bytes, null for any.
  Value Param(std::string_view name, std::string_view type);
  Value Param(std::string_view name, std::string_view type, std::span<const std::byte> bytes,
              const char* dtype = nullptr);
  template <std::ranges::contiguous_range Range>
  Value Param(std::string_view name, std::string_view type, const Range& range) {
    return Param(name, type, std::as_bytes(std::span(range)),
                 DTypeName<std::remove_cv_t<std::ranges::range_value_t<Range>>>());
  }
  // Gives a parameter its bytes, one of a body or of a parsed graph too, under the same terms. Errors: kUnknownName,
  // kShapeMismatch (the number of bytes).
  Result<void> Bind(std::string_view param, std::span<const std::byte> bytes);
  // Data that is part of the graph: little-endian, dense, copied.
  Value Constant(std::string_view type, std::span<const std::byte> bytes);
  Value Scalar(float value);

  // A block (Linear, SwiGLU, RmsNorm, ...), an extension (quern/extend.h) or an op (Add, MatMul, Softmax, ...), by
  // name. `label` names it in errors and dumps. The first of its results, or all of them.
  Value Block(std::string_view block, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes = {},
              std::string_view label = "");
  std::vector<Value> Blocks(std::string_view block, const std::vector<Value>& inputs,
                            const std::vector<Attribute>& attributes = {}, std::string_view label = "");
  Value Op(std::string_view op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes = {},
           std::string_view label = "");
  // All results of an op, and its bodies where it has some (If: then, else; While: cond, body; Scan: body): graphs of
  // their own, in that order, which are read now and not needed afterwards. A body's Inputs stand for operands of the
  // op, in the order in which they were made, and its Outputs are what the body returns. A Param of a body is the one
  // of that name of the whole graph; its bytes may be given in either. A body's symbols are declared outside too, with
  // the same ranges.
  std::vector<Value> Ops(std::string_view op, const std::vector<Value>& inputs,
                         const std::vector<Attribute>& attributes = {}, std::string_view label = "",
                         const std::vector<const Graph*>& bodies = {});

  // An op over operands of several dtypes: those that its table wants to be of one (not conditions, indices, weights in
  // blocks) are cast to their common one, by Casts that the graph then has. The plain Op refuses such operands.
  Value Promoted(std::string_view op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes = {},
                 std::string_view label = "");
  // Blocks, but that an error does not stick: the graph is as it was before, and goes on.
  Result<std::vector<Value>> Extend(std::string_view block, const std::vector<Value>& inputs,
                                    const std::vector<Attribute>& attributes = {}, std::string_view label = "");
  // Another graph inside this one: `values` take the place of its inputs, in their order; its outputs are returned. A
  // symbol that is a dimension of an input by itself becomes the size that the value has there, which must lie in its
  // range; others are symbols of this graph. Parameters are shared by name. Labels have `label` (the graph's name where
  // it is empty) in front. Errors, after which nothing has been added: that of `graph`; kInputCount, kShapeMismatch,
  // kDTypeMismatch, kOutOfRange; kDuplicateName (one parameter of two types or with two memories); kUnsupported (a
  // graph that carries state).
  std::vector<Value> Inline(const Graph& graph, const std::vector<Value>& values, std::string_view label = "");
  // Names of sub-blocks: const quern::LabelScope layer = g.Scope("layers.3");
  LabelScope Scope(std::string_view name);

  void Output(std::string_view name, Value value);
  // `value` becomes what the Input called `input` holds in the next run: state, such as a cache of keys. Neither is
  // given to Run. The types must be equal.
  void Carry(std::string_view input, Value value);

  // How its blocks become ops; direct at first.
  void Fusion(FusionPolicy policy);
  // This graph with the ops that its blocks are under the fusable policy, none of them a name for others: what
  // differentiation starts from. Inputs, outputs, parameters and their bytes are the same. Errors: that of the graph.
  Result<Graph> LowerForAutodiff() const;

  // "f32[BATCH, 80]" of a value of this graph; empty after an error.
  std::string TypeOf(Value value) const;
  // The graph as text of blocks ("module NAME .. { .. }"), without the bytes of parameters.
  // Parse reads it back, as a graph that has the same text.
  std::string Text() const;
  // The graph as bytes, its blocks as the ops that they are; without the bytes of parameters. Equal graphs give equal
  // bytes. Errors: that of the graph.
  Result<std::string> Binary() const;
  // 32 hexadecimal digits that tell graphs apart on every machine and in every run: an attribute, a byte of a constant
  // or a range that differs changes them; labels and the name of the graph do not. Errors: that of the graph.
  Result<std::string> Fingerprint() const;
  // The first error so far.
  Result<void> status() const;
  // The same, after which the graph goes on without it, for who asks after every step: what failed has added nothing,
  // but for a Param whose bytes were wrong, which stays without them.
  Result<void> Recover();

  // Checks and compiles. With every parameter bound, machine code for the smallest sizes is ready when this returns;
  // other variants compile when a run first needs them. The graph can be compiled again, with other options.
  // Errors: that of the graph; kUnsupported; kInvalid (an unknown cpu level); kResource.
  Result<Program> Compile(const Options& options = {}) const;
  // The text of a stage of that: see DumpOptions. `tokens` there is the value of the first symbol, for its variant.
  // Errors: that of the graph; kInvalid for a stage or pass there is not.
  Result<std::string> Dump(const DumpOptions& dump, const Options& options = {}) const;

 private:
  friend struct compiler::GraphAccess;
  friend Result<CompiledFiles> CompileGraph(const Graph& graph, const Options& options, const CompileOptions& compile);
  struct State;
  explicit Graph(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quern
