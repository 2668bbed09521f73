// The attention family: online softmax over the keys, 64 at a time; no matrix of scores is ever in memory.
//
// Few query rows (decode): the keys are split into runs of 64 to 512, one chunk for each (batch, run and kv head, row).
// A second kernel merges the runs in ascending order, so the split, which depends on numbers of keys and heads alone,
// gives the same bits on any number of threads. Many rows (a prompt): a chunk is 64 rows of one head; tiles of keys
// that the mask empties are skipped. What follows the attention (elementwise ops, quantisation) runs on whole rows in
// the last kernel.
//
// Sequences of different lengths: bounds of loops over keys are loaded. A row finds its sequence by counting the
// q_start that are not past it; a chunk of many rows goes through the sequences that they may belong to, and shows each
// row the keys of its own. Tiles begin at multiples of their keys (of a slot, where keys lie in slots) whoever else is
// in a chunk. Whatever the operands hold: sequences, lengths and slots are clamped to what there is.

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "codegen/attention_kernels.h"
#include "codegen/families.h"
#include "family/work.h"
#include "kir/flash_steps.h"

namespace quern::codegen {
namespace {

using namespace kir::build::operators;

constexpr int64_t kFewRows = 8;
constexpr int64_t kManyKeys = 2048, kThreads = 64;
constexpr int64_t kKeysPerBlockRun = 64;  // on blocks of threads, which are many

struct AttentionPlan : RegionPlan {
  int root = -1;
};

bool IsAttention(const ir::Node& node) { return ir::IsRoot(node, "attention"); }

// Operands lie in memory: q, k and v as parts of what is there, in any order that has steps.
Status CheckOperands(const RegionView& view, int root) {
  const std::vector<Value>& inputs = view.node(root).inputs;
  std::map<Value, std::vector<Extent>> declared;  // what they are parts of, each of which is declared once
  for (size_t operand = 0; operand < inputs.size(); ++operand) {
    std::optional<AttentionPlace> place;
    if (operand < 3) {
      place = AttentionPlace::Find(view, root, static_cast<int>(operand));
      if (!place) return family::No("%s is no part of what lies in memory", view.Describe(inputs[operand].node));
    } else if (view.Has(inputs[operand].node)) {
      return family::No("operands of an attention lie in memory");
    }
    const Value source = place ? place->source : inputs[operand];
    const std::vector<Extent>& dims = place ? place->dims : view.type(source).dims;
    if (declared.emplace(source, dims).first->second != dims)
      return family::No("%s is read in two ways", view.Describe(source.node));
  }
  return absl::OkStatus();
}

}  // namespace

AttentionKernels::AttentionKernels(const RegionView& view, int root)
    : view_(view), root_(root), node_(view.node(root)), shape_(node_.attributes), operands_(node_.attributes) {
  const ir::TensorType &q = view.type(node_.inputs[0]), &k = view.type(node_.inputs[1]);
  for (int operand = 0; operand < 3; ++operand) places_.push_back(*AttentionPlace::Find(view, root, operand));
  batch_ = q.dims[0];
  queries_ = q.dims[shape_.sequence_axis()];
  keys_in_place_ = keys_ = k.dims[shape_.sequence_axis()];
  if (operands_.paged()) keys_ = view.type(node_.inputs[operands_.blocks]).dims[1] * keys_in_place_;
  if (operands_.lengths()) sequences_ = view.type(node_.inputs[operands_.kv_len]).dims[0];
  group_ = shape_.heads / shape_.kv_heads;
  scale_ = node_.attributes.Float("scale");
  if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(shape_.head_dim));
  mask_ = node_.attributes.String("mask");
  of_nothing_ = kb::Num(node_.attributes.String("empty_rows") == "nan" ? NAN : 0);
  q_dtype_ = q.dtype, k_dtype_ = k.dtype, v_dtype_ = view.type(node_.inputs[2]).dtype;
  step_dtype_ = kir::FlashQueries(q_dtype_, k_dtype_);
  // From kManyKeys on there is a run for each of kThreads, whatever the batch.
  const int64_t shared = kManyKeys * shape_.kv_heads / kThreads / kKeysPerTile * kKeysPerTile;
  keys_per_run_ = view.facts.blocks ? kKeysPerBlockRun : std::clamp(shared, kKeysPerTile, kKeysPerRun);
  if (operands_.paged()) {
    const int64_t slot = keys_in_place_.constant();
    keys_per_run_ = std::max<int64_t>(1, keys_per_run_ / slot) * slot;
  }
  if (!view.facts.blocks) return;
  keys_per_tile_ = kKeysPerTileOfThreads, rows_per_block_ = kRowsPerBlockOfThreads;
  // Output, scores and mask of the rows of a block are in shared memory, with a few numbers a row, and queries that are
  // another dtype there.
  const int64_t widened = q_dtype_ == step_dtype_ ? 0 : shape_.head_dim;
  const int64_t row_bytes = (shape_.head_dim + widened + 2 * keys_per_tile_ + 8) * ScalarBytes(DType::kF32);
  while (rows_per_block_ > 1 && rows_per_block_ * row_bytes > view.facts.blocks->shared_bytes) rows_per_block_ /= 2;
}

StatusOr<LoweredRegion> AttentionKernels::Lower() {
  if (view_.UpperBound(queries_) <= kFewRows) {
    QUERN_RETURN_IF_ERROR(EmitRuns());
    QUERN_RETURN_IF_ERROR(EmitFinish(/*merge=*/true));
    return std::move(lowered_);
  }
  const bool plain = view_.results().size() == 1 && view_.BeforeReshapes(view_.results()[0]).node == root_;
  QUERN_RETURN_IF_ERROR(EmitBlocks(plain));
  if (!plain) QUERN_RETURN_IF_ERROR(EmitFinish(/*merge=*/false));
  return std::move(lowered_);
}

Status AttentionKernels::EmitRuns() {
  lowered_.temporaries.push_back(PartType());
  KernelWriter writer(view_, "attention");
  DeclareRuns(writer);
  OperandName(writer, 0);
  const std::string part = writer.Temporary(0, PartType(), true);
  const ExprRef s = kb::Ref("s"), r = kb::Ref("r"), b = Batch();
  const double kv_heads = static_cast<double>(shape_.kv_heads);
  const ExprRef kv = s % kv_heads, first_head = kv * static_cast<double>(group_);
  kir::Block& body = writer.kernel.body;
  ExprRef number = b, takes_part;
  if (operands_.ragged()) {
    const ExprRef ended = kb::Ref("ended"), sequences = kb::FromExtent(sequences_);
    body.push_back(kb::Let("ended", EndedBefore(writer, r)));
    number = kb::Max(kb::Int(0), kb::Min(ended, sequences - 1.0));
    takes_part = kb::Call(Op::kAnd, {AfterStart(writer, r), kb::Call(Op::kLt, {ended, sequences})});
  }
  const Sequence sequence = EmitSequence(writer, number, takes_part, body);
  EmitTiles(group_, body);
  const Rows rows = {
      EmitQueries(writer, kb::Point(r), kb::Range(first_head, kb::Int(group_)), group_, kb::Int(group_), body),
      group_,
      kb::Int(group_),
      r,
      false,
      first_head};
  const ExprRef start = s / kv_heads * static_cast<double>(keys_per_run_);
  EmitKeys(
      writer, sequence, start, kb::Min(sequence.keys, start + static_cast<double>(keys_per_run_)),
      [&](const Keys& keys, kir::Block& block) { EmitStep(writer, rows, sequence, "", keys, kv, block); }, body);
  const ExprRef i = kb::Ref("i"), c = kb::Ref("c");
  body.push_back(kb::Map({"i", "c"}, {"o"}, {kb::Int(group_), kb::Int(shape_.head_dim)},
                         {kb::Store(part, {b, r, s, i, c}, kb::Ref("o", DType::kF32))}));
  body.push_back(kb::Map({"i"}, {"m", "l"}, {kb::Int(group_)},
                         {kb::Store(part, {b, r, s, i, kb::Int(shape_.head_dim)}, kb::Ref("m", DType::kF32)),
                          kb::Store(part, {b, r, s, i, kb::Int(shape_.head_dim + 1)}, kb::Ref("l", DType::kF32))}));
  writer.kernel.grid =
      WithBatch({{"s", kb::Int(0), kb::Ref("RUNS") * kv_heads, 1}, {"r", kb::Int(0), kb::FromExtent(queries_), 1}});
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered_.kernels.push_back(std::move(use));
  return absl::OkStatus();
}

Status AttentionKernels::EmitBlocks(bool plain) {
  KernelWriter writer(view_, "attention");
  OperandName(writer, 0);
  std::string out;
  if (plain) {
    out = writer.Result(0);
    DeclareResult(writer, out);
  } else {
    lowered_.temporaries.push_back(
        {DType::kF32, {batch_, queries_, Extent(shape_.heads), Extent(shape_.head_dim)}, kir::Layout::kRow});
    out = writer.Temporary(0, lowered_.temporaries[0], true);
  }
  const ExprRef r0 = kb::Ref("r0"), h = kb::Ref("h"), b = Batch(), i = kb::Ref("i"), c = kb::Ref("c");
  kir::Block& body = writer.kernel.body;
  EmitTiles(rows_per_block_, body);
  const ExprRef live = kb::Min(kb::Int(rows_per_block_), kb::FromExtent(queries_) - r0);
  const kir::Slice queries = EmitQueries(writer, kb::Range(r0, live), kb::Point(h), rows_per_block_, live, body);
  const Rows rows = {queries, rows_per_block_, live, r0, true, h};
  if (operands_.ragged()) {
    const ExprRef sequences = kb::FromExtent(sequences_);
    const ExprRef ended = EndedBefore(writer, r0 + i);
    body.push_back(kb::Alloc("own", {DType::kI32, {Extent(rows_per_block_)}, kir::Layout::kRow}));
    body.push_back(kb::Vec(
        "i", kb::Int(0), kb::Int(rows_per_block_),
        {kb::Store("own", {i}, kb::CastTo(DType::kI32, kb::Select(AfterStart(writer, r0 + i), ended, sequences)))}));
    body.push_back(kb::Let("first", EndedBefore(writer, r0)));
    body.push_back(kb::Let("last", EndedBefore(writer, r0 + live - 1.0)));
    kir::Block each;
    EmitBlockOf(writer, rows, EmitSequence(writer, kb::Ref("seq"), nullptr, each), "own", each);
    body.push_back(kb::For("seq", kb::Max(kb::Int(0), kb::Ref("first")),
                           kb::Min(kb::Ref("last"), sequences - 1.0) + 1.0, std::move(each)));
  } else {
    EmitBlockOf(writer, rows, EmitSequence(writer, b, nullptr, body), "", body);
  }
  const ExprRef sum = kb::At("l", DType::kF32, {i});
  // Nothing to see leaves a sum of 0; one of NaN is a NaN.
  const ExprRef value = kb::Select(kb::Call(Op::kEq, {sum, kb::Num(0)}), of_nothing_, kb::Ref("o", DType::kF32) / sum);
  const kir::Index at = plain ? ElementAt(b, r0 + i, h, c) : kir::Index{b, r0 + i, h, c};
  body.push_back(kb::Map({"i", "c"}, {"o"}, {live, kb::Int(shape_.head_dim)},
                         {kb::Store(out, at, plain ? kb::CastTo(q_dtype_, value) : value)}));
  writer.kernel.grid = WithBatch(
      {{"h", kb::Int(0), kb::Int(shape_.heads), 1}, {"r0", kb::Int(0), kb::FromExtent(queries_), rows_per_block_}});
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered_.kernels.push_back(std::move(use));
  return absl::OkStatus();
}

void AttentionKernels::EmitBlockOf(KernelWriter& writer, const Rows& rows, const Sequence& sequence,
                                   const std::string& own, kir::Block& block) {
  const ExprRef first = rows.first + sequence.shift;
  ExprRef low = kb::Int(0), high = sequence.keys;
  if (mask_ == "causal" || mask_ == "sliding") high = kb::Min(high, first + static_cast<double>(rows.count));
  if (mask_ == "sliding") {
    const double tile = static_cast<double>(keys_per_tile_);
    low = kb::Max(kb::Int(0), first - static_cast<double>(node_.attributes.Int("window")));
    if (!operands_.paged()) low = low / tile * tile;
  }
  EmitKeys(
      writer, sequence, low, high,
      [&](const Keys& keys, kir::Block& step) {
        EmitStep(writer, rows, sequence, own, keys, rows.head / static_cast<double>(group_), step);
      },
      block);
}

family::Matched MatchAttention(const RegionView& view) {
  const std::vector<bool> depends = view.DependsOn(IsAttention);
  int root = -1;
  for (const int n : view.nodes()) {
    if (!IsAttention(view.node(n))) continue;
    if (root >= 0) return family::No("a region has one attention");
    root = n;
  }
  const AttentionShape shape(view.node(root).attributes);
  const std::vector<Extent>& dims = view.node(root).results[0].dims;
  QUERN_RETURN_IF_ERROR(CheckOperands(view, root));
  std::vector<bool> named(view.nodes().size());
  for (size_t i = 0; i < view.nodes().size(); ++i) {
    const int n = view.nodes()[i];
    const ir::Node& node = view.node(n);
    if (n == root) continue;
    const bool elementwise = node.op->kind == ir::OpKind::kElementwise;
    if (!depends[i]) {
      if (!elementwise && node.op->kind != ir::OpKind::kIndex)
        return family::No("%s is not elementwise", view.Describe(n));
    } else if (elementwise) {
      if (node.results[0].dims != dims) return family::No("%s has other extents than the attention", view.Describe(n));
      named[i] = true;
    } else if (node.op->kind == ir::OpKind::kPack) {
      const bool rows = shape.layout != AttentionShape::Layout::kBhsd &&
                        node.results[0].dims.back() == Extent(shape.heads * shape.head_dim);
      if (!rows || view.IsReadInside(n)) return family::No("%s is not over rows of all heads", view.Describe(n));
    } else if (ir::IsReshape(view.graph, node)) {
      for (const auto& [user, operand] : view.users(n)) {
        const ir::Node& reader = view.node(user);
        if (!view.Has(user) || ir::IsReshape(view.graph, reader) || reader.op->kind == ir::OpKind::kPack) continue;
        return family::No("%s follows a Reshape", view.Describe(user));
      }
    } else {
      return family::No("%s is not elementwise", view.Describe(n));
    }
  }
  for (const Value& result : view.results()) {
    if (!depends[view.set().Position(result.node)])
      return family::No("%s is used outside and is no result of the attention", view.Describe(result.node));
    const Value before = view.BeforeReshapes(result);
    if (before != result && view.IsReadOutside(before.node))
      return family::No("%s is a view of a result", view.Describe(result.node));
    const Value finished = view.node(before.node).op->kind == ir::OpKind::kPack
                               ? view.BeforeReshapes(view.node(before.node).inputs[0])
                               : before;
    if (view.type(finished).dims != dims) return family::No("what follows an attention works element by element");
  }
  QUERN_RETURN_IF_ERROR(family::NoWorkTwice(view, named, /*own_operands=*/true));
  auto plan = std::make_unique<AttentionPlan>();
  plan->root = root;
  return family::Matched(std::move(plan));
}

StatusOr<LoweredRegion> LowerAttention(const RegionView& view, const RegionPlan& plan) {
  return AttentionKernels(view, static_cast<const AttentionPlan&>(plan).root).Lower();
}

}  // namespace quern::codegen
