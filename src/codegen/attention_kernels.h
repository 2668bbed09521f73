// The kernels of one attention: what their parts share. attention.cc says what they do.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "codegen/attention_place.h"
#include "codegen/kernel_writer.h"
#include "codegen/loops.h"
#include "ir/attention.h"
#include "kir/build.h"

namespace quern::codegen {

namespace kb = kir::build;
using ir::AttentionShape;
using ir::Value;
using kir::ExprRef;
using kir::Op;

inline constexpr int64_t kKeysPerTile = 128;          // of a step, which reads and writes sums over values once
inline constexpr int64_t kKeysPerTileOfThreads = 64;  // two a lane (block_tiles.cc)
inline constexpr int64_t kKeysPerRun = 512;
inline constexpr int64_t kRowsPerBlock = 64;           // the most that a step takes: keys are turned for all of them
inline constexpr int64_t kRowsPerBlockOfThreads = 32;  // at most

class AttentionKernels {
 public:
  AttentionKernels(const RegionView& view, int root);

  StatusOr<LoweredRegion> Lower();

 private:
  // The buffer of q, k or v, declared as its place has it.
  std::string OperandName(KernelWriter& writer, int operand);
  // A result as [B, S, heads, head_dim] or [B, heads, S, head_dim]: the same bytes as the packed form; and its index.
  void DeclareResult(KernelWriter& writer, const std::string& name);
  kir::Index ElementAt(const ExprRef& b, const ExprRef& s, const ExprRef& h, const ExprRef& c) const;

  // An element of an operand behind q, k and v: of a constant of one element, which is no operand of the region, that.
  // `anywhere`: 0 where the index is outside.
  ExprRef Element(KernelWriter& writer, int operand, kir::Index at, bool anywhere = false);
  // The i64 element of an i32 operand.
  ExprRef Loaded(KernelWriter& writer, int operand, kir::Index at);

  // Ragged: how many sequences end at or before row r; sequences are numbered by that.
  ExprRef EndedBefore(KernelWriter& writer, const ExprRef& r);
  ExprRef AfterStart(KernelWriter& writer, const ExprRef& r);

  struct Sequence {
    ExprRef number;
    ExprRef keys;   // that it has
    ExprRef shift;  // from a row of the queries to its position among them
  };
  // What the operands say of sequence `number`, as lets where it is loaded. `takes_part`: null where there is no doubt.
  Sequence EmitSequence(KernelWriter& writer, const ExprRef& number, const ExprRef& takes_part, kir::Block& block);

  // Keys of a sequence that lie side by side.
  struct Keys {
    ExprRef place;  // batch or slot
    ExprRef at;     // the first of them there
    ExprRef key;    // the same among the keys of the sequence
    ExprRef live;   // how many there are from it on
  };
  // A loop over the tiles that hold the keys low <= key < high. Without slots `low` begins one.
  void EmitKeys(KernelWriter& writer, const Sequence& sequence, const ExprRef& low, const ExprRef& high,
                const std::function<void(const Keys& keys, kir::Block& block)>& step, kir::Block& block);

  // Rows of queries in a step.
  struct Rows {
    kir::Slice q;  // in the dtype of the steps
    int64_t count;
    ExprRef live;      // how many of them exist
    ExprRef first;     // of the queries
    bool consecutive;  // queries from there on, of one head; or one query, and heads from `head` on
    ExprRef head;
  };
  // `rows` queries as the steps take them: where they lie, or in scratch.
  kir::Slice EmitQueries(KernelWriter& writer, kir::SliceDim s, kir::SliceDim h, int64_t rows, const ExprRef& live,
                         kir::Block& block);

  // One flash step. `own`: a buffer of the sequences of the rows, or "" where all are of this one.
  void EmitStep(KernelWriter& writer, const Rows& rows, const Sequence& sequence, const std::string& own,
                const Keys& keys, const ExprRef& kv, kir::Block& block);

  // The mask operand for rows by the keys of a step, in scratch.
  void EmitBias(KernelWriter& writer, int64_t rows, const ExprRef& sequence, const ExprRef& query, const ExprRef& head,
                const ExprRef& first_key, kir::Block& block);

  void EmitTiles(int64_t rows, kir::Block& block) const;

  // The batch is a dimension of every grid, and where there is one alone, none.
  ExprRef Batch() const { return batch_ == Extent(1) ? kb::Int(0) : kb::Ref("b"); }
  std::vector<kir::GridDim> WithBatch(std::vector<kir::GridDim> grid) const;

  // Row kv + run * kv_heads: of one run, which is one dimension of a grid.
  kir::BufferType PartType() const;
  // Runs of keys, ceil(keys / keys_per_run_): a derived symbol.
  void DeclareRuns(KernelWriter& writer) const;

  Status EmitRuns();

  Status EmitBlocks(bool plain);

  // The keys of one sequence that some of these rows may see.
  void EmitBlockOf(KernelWriter& writer, const Rows& rows, const Sequence& sequence, const std::string& own,
                   kir::Block& block);

  // Whole rows [heads * head_dim]: merges the runs, then everything that follows the attention. On blocks of threads a
  // head of a row is a chunk, and its elements are merged each on its own; on CPUs a row is, which may be quantised.
  Status EmitFinish(bool merge);

  const RegionView& view_;
  int root_;
  const ir::Node& node_;
  AttentionShape shape_;
  ir::AttentionOperands operands_;
  std::vector<AttentionPlace> places_;  // of q, k and v
  Extent batch_, queries_, keys_;       // keys that a sequence has room for
  Extent keys_in_place_;                // of a batch, or of a slot
  Extent sequences_;
  int64_t group_ = 1, keys_per_tile_ = kKeysPerTile, keys_per_run_ = kKeysPerRun, rows_per_block_ = kRowsPerBlock;
  double scale_ = 1;
  std::string mask_;
  ExprRef of_nothing_;  // an element of a row that sees no key
  DType q_dtype_, k_dtype_, v_dtype_;
  DType step_dtype_;  // of queries in a step
  LoweredRegion lowered_;
};

}  // namespace quern::codegen
