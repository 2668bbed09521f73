// The attention family: online softmax over the keys, 64 at a time; no matrix of scores is ever in memory.
//
// Few query rows (decode): the keys are split into runs of 512, one chunk for each (batch, run and kv head, row). A
// second kernel merges the runs in ascending order, so the split, which depends on the number of keys alone, gives the
// same bits on any number of threads. Many rows (a prompt): a chunk is 32 rows of one head; tiles of keys that the mask
// empties are skipped. What follows the attention (elementwise ops, quantisation) runs on whole rows in the last kernel.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "codegen/families.h"
#include "codegen/loops.h"
#include "family/work.h"
#include "ir/attention.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::AttentionShape;
using ir::Value;
using kir::ExprRef;
using kir::Op;

constexpr int64_t kFewRows = 8;
constexpr int64_t kKeysPerTile = 64;
constexpr int64_t kKeysPerRun = 512;
constexpr int64_t kKeysPerBlockRun = 64;  // on blocks of threads, which are many
constexpr int64_t kRowsPerBlock = 32;

struct AttentionPlan : RegionPlan {
  int root = -1;
};

bool IsAttention(const ir::Node& node) { return ir::IsRoot(node, "attention"); }

class AttentionKernels {
 public:
  AttentionKernels(const RegionView& view, int root)
      : view_(view), root_(root), node_(view.node(root)), shape_(node_.attributes) {
    const ir::TensorType &q = view.type(node_.inputs[0]), &k = view.type(node_.inputs[1]);
    batch_ = q.dims[0];
    queries_ = q.dims[shape_.sequence_axis()];
    keys_ = k.dims[shape_.sequence_axis()];
    group_ = shape_.heads / shape_.kv_heads;
    scale_ = node_.attributes.Float("scale");
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(shape_.head_dim));
    mask_ = node_.attributes.String("mask");
    kv_dtype_ = k.dtype;
    if (!view.facts.blocks) return;
    keys_per_run_ = kKeysPerBlockRun;
    // Output, scores and mask of the rows of a block are in shared memory, with a few numbers a row.
    const int64_t row_bytes = (shape_.head_dim + 2 * kKeysPerTile + 8) * ScalarBytes(DType::kF32);
    while (rows_per_block_ > 1 && rows_per_block_ * row_bytes > view.facts.blocks->shared_bytes) rows_per_block_ /= 2;
  }

  StatusOr<LoweredRegion> Lower() {
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

 private:
  // Operand i as [B, S, heads, head_dim] or [B, heads, S, head_dim]: the same bytes as the packed form.
  std::string Heads(KernelWriter& writer, int operand, int64_t heads) {
    const std::string name = writer.Input(view_.InputIndex(node_.inputs[operand]));
    Redeclare(writer, name, view_.type(node_.inputs[operand]).dims[shape_.sequence_axis()], heads);
    return name;
  }
  void Redeclare(KernelWriter& writer, const std::string& name, const Extent& length, int64_t heads) {
    for (kir::Param& param : writer.kernel.params) {
      if (param.name != name) continue;
      if (shape_.layout == AttentionShape::Layout::kBhsd)
        param.type.dims = {batch_, Extent(heads), length, Extent(shape_.head_dim)};
      else
        param.type.dims = {batch_, length, Extent(heads), Extent(shape_.head_dim)};
    }
  }
  // A slice [.., head_dim] with the dimensions of batch, position and head as given.
  kir::Slice At(const std::string& buffer, kir::SliceDim b, kir::SliceDim s, kir::SliceDim h) const {
    if (shape_.layout == AttentionShape::Layout::kBhsd) return kb::SliceOf(buffer, {b, h, s, kb::All()});
    return kb::SliceOf(buffer, {b, s, h, kb::All()});
  }
  kir::Index ElementAt(const ExprRef& b, const ExprRef& s, const ExprRef& h, const ExprRef& c) const {
    if (shape_.layout == AttentionShape::Layout::kBhsd) return {b, h, s, c};
    return {b, s, h, c};
  }

  // One flash step of `rows` query rows, of which `live` exist, all at position `at` in the keys (per_row: row i at
  // `at` + i), over keys [t, t + 64). row_head(i) is the query head of row i.
  void EmitStep(KernelWriter& writer, const kir::Slice& q, int64_t rows, const ExprRef& live, const ExprRef& b,
                const ExprRef& position, bool per_row, const ExprRef& kv, const ExprRef& head, const ExprRef& t,
                kir::Block& block) {
    const ExprRef i = kb::Ref("i"), tile = kb::Int(kKeysPerTile);
    const ExprRef n = kb::FromExtent(keys_);
    const ExprRef here = per_row ? position + i : position;            // of the row, among the queries
    const ExprRef absolute = here + kb::FromExtent(keys_ - queries_);  // among the keys
    ExprRef low = kb::Int(0), high = n - t;
    if (mask_ == "causal" || mask_ == "sliding") high = kb::Min(high, absolute + 1.0 - t);
    if (mask_ == "sliding") low = absolute - static_cast<double>(node_.attributes.Int("window")) - t;
    auto bound = [&](const ExprRef& value) {
      return kb::CastTo(DType::kI32, kb::Max(kb::Int(0), kb::Min(value, tile)));
    };
    block.push_back(
        kb::Vec("i", kb::Int(0), kb::Int(rows), {kb::Store("lo", {i}, bound(low)), kb::Store("hi", {i}, bound(high))}));
    std::vector<kir::Slice> operands = {
        q, At(Heads(writer, 1, shape_.kv_heads), kb::Point(b), kb::Range(t, tile), kb::Point(kv)),
        At(Heads(writer, 2, shape_.kv_heads), kb::Point(b), kb::Range(t, tile), kb::Point(kv)),
        kb::SliceOf("lo", {kb::Range(kb::Int(0), live)}), kb::SliceOf("hi", {kb::Range(kb::Int(0), live)})};
    if (mask_ == "custom" || mask_ == "bias") {
      EmitBias(writer, rows, b, here, per_row ? head : head + i, t, block);
      operands.push_back(
          kb::SliceOf("bias", {kb::Range(kb::Int(0), live), kb::Range(kb::Int(0), kb::Min(tile, n - t))}));
    }
    block.push_back(kb::WithOrigin(
        kb::CallTile(kv_dtype_ == DType::kF16 ? "flash_step_f16" : "flash_step_f32", {"o", "m", "l"},
                     std::move(operands),
                     {{"scale", kb::Num(scale_)}, {"softcap", kb::Num(node_.attributes.Float("softcap"))}}),
        writer.Origin(root_)));
  }

  // The mask operand for rows x 64 keys, in scratch.
  void EmitBias(KernelWriter& writer, int64_t rows, const ExprRef& b, const ExprRef& position, const ExprRef& head,
                const ExprRef& t, kir::Block& block) {
    const int input = view_.InputIndex(node_.inputs[3]);
    const ir::TensorType& type = view_.type(node_.inputs[3]);
    const std::string name = writer.Input(input);
    const ExprRef i = kb::Ref("i"), j = kb::Ref("j"), key = t + j;
    ExprRef value;
    if (mask_ == "custom") {
      const ExprRef given = kb::At(name, type.dtype, {b, key}, kb::CastTo(type.dtype, kb::Int(0)));
      const ExprRef keep =
          type.dtype == DType::kBool ? given : kb::Call(Op::kLe, {kb::Num(0.5), kb::CastTo(DType::kF32, given)});
      value = kb::Select(keep, kb::Num(0), kb::Num(-INFINITY));
    } else {
      const kir::Index full = {b, head, position, key};
      kir::Index at;
      for (size_t d = 0; d < type.dims.size(); ++d) {
        at.push_back(type.dims[d] == Extent(1) ? kb::Int(0) : full[4 - type.dims.size() + d]);
      }
      value = kb::CastTo(DType::kF32, kb::At(name, type.dtype, at, kb::CastTo(type.dtype, kb::Int(0))));
    }
    block.push_back(kb::For("i", kb::Int(0), kb::Int(rows),
                            {kb::Vec("j", kb::Int(0), kb::Int(kKeysPerTile), {kb::Store("bias", {i, j}, value)})}));
  }

  void EmitTiles(int64_t rows, kir::Block& block) const {
    block.push_back(kb::Alloc("lo", {DType::kI32, {Extent(rows)}, kir::Layout::kRow}));
    block.push_back(kb::Alloc("hi", {DType::kI32, {Extent(rows)}, kir::Layout::kRow}));
    if (mask_ == "custom" || mask_ == "bias")
      block.push_back(kb::Alloc("bias", {DType::kF32, {Extent(rows), Extent(kKeysPerTile)}, kir::Layout::kRow}));
    block.push_back(kb::Tile("o", {rows, shape_.head_dim}));
    block.push_back(kb::Tile("m", {rows}, -INFINITY));
    block.push_back(kb::Tile("l", {rows}));
  }

  // The batch is a dimension of every grid, and where there is one alone, none.
  ExprRef Batch() const { return batch_ == Extent(1) ? kb::Int(0) : kb::Ref("b"); }
  std::vector<kir::GridDim> WithBatch(std::vector<kir::GridDim> grid) const {
    if (batch_ != Extent(1)) grid.insert(grid.begin(), {"b", kb::Int(0), kb::FromExtent(batch_), 1});
    return grid;
  }

  // Row kv + run * kv_heads: of one run, which is one dimension of a grid.
  kir::BufferType PartType() const {
    return {DType::kF32,
            {batch_, queries_, Extent::Symbol("RUNS") * Extent(shape_.kv_heads), Extent(group_),
             Extent(shape_.head_dim + 2)},
            kir::Layout::kRow};
  }
  // Runs of keys, ceil(keys / keys_per_run_): a derived symbol.
  void DeclareRuns(KernelWriter& writer) const {
    std::vector<kir::SymbolDecl> free;
    for (const auto& [name, range] : view_.ranges) free.push_back({name, range, std::nullopt});
    writer.kernel.symbols.push_back(kir::DerivedSymbol("RUNS", keys_, keys_per_run_, free));
  }

  Status EmitRuns() {
    lowered_.temporaries.push_back(PartType());
    KernelWriter writer(view_, "attention");
    DeclareRuns(writer);
    const std::string q = Heads(writer, 0, shape_.heads), part = writer.Temporary(0, PartType(), true);
    const ExprRef s = kb::Ref("s"), r = kb::Ref("r"), b = Batch(), t = kb::Ref("kt");
    const double kv_heads = static_cast<double>(shape_.kv_heads);
    const ExprRef kv = s % kv_heads, first_head = kv * static_cast<double>(group_);
    kir::Block& body = writer.kernel.body;
    kir::Block step;
    EmitTiles(group_, body);
    EmitStep(writer, At(q, kb::Point(b), kb::Point(r), kb::Range(first_head, kb::Int(group_))), group_, kb::Int(group_),
             b, r, false, kv, first_head, t, step);
    const ExprRef start = s / kv_heads * static_cast<double>(keys_per_run_);
    body.push_back(kb::For("kt", start, kb::Min(kb::FromExtent(keys_), start + static_cast<double>(keys_per_run_)),
                           std::move(step), kKeysPerTile));
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

  Status EmitBlocks(bool plain) {
    KernelWriter writer(view_, "attention");
    const std::string q = Heads(writer, 0, shape_.heads);
    std::string out;
    if (plain) {
      out = writer.Result(0);
      Redeclare(writer, out, queries_, shape_.heads);
    } else {
      lowered_.temporaries.push_back(
          {DType::kF32, {batch_, queries_, Extent(shape_.heads), Extent(shape_.head_dim)}, kir::Layout::kRow});
      out = writer.Temporary(0, lowered_.temporaries[0], true);
    }
    const ExprRef r0 = kb::Ref("r0"), h = kb::Ref("h"), b = Batch(), t = kb::Ref("kt"), i = kb::Ref("i"),
                  c = kb::Ref("c");
    const ExprRef n = kb::FromExtent(keys_), offset = kb::FromExtent(keys_ - queries_);
    kir::Block& body = writer.kernel.body;
    kir::Block step;
    EmitTiles(rows_per_block_, body);
    const ExprRef live = kb::Min(kb::Int(rows_per_block_), kb::FromExtent(queries_) - r0);
    EmitStep(writer, At(q, kb::Point(b), kb::Range(r0, live), kb::Point(h)), rows_per_block_, live, b, r0, true,
             h / static_cast<double>(group_), h, t, step);
    // Keys that some row of the block may see.
    ExprRef low = kb::Int(0), high = n;
    if (mask_ == "causal" || mask_ == "sliding") high = kb::Min(n, r0 + offset + static_cast<double>(rows_per_block_));
    if (mask_ == "sliding") {
      low = kb::Max(kb::Int(0), r0 + offset - static_cast<double>(node_.attributes.Int("window")));
    }
    body.push_back(kb::For("kt", low, high, std::move(step), kKeysPerTile));
    const ExprRef sum = kb::At("l", DType::kF32, {i});
    // Nothing to see leaves a sum of 0; one of NaN is a NaN.
    const ExprRef value = kb::Select(kb::Call(Op::kEq, {sum, kb::Num(0)}), kb::Num(0), kb::Ref("o", DType::kF32) / sum);
    const kir::Index at = plain ? ElementAt(b, r0 + i, h, c) : kir::Index{b, r0 + i, h, c};
    body.push_back(kb::Map({"i", "c"}, {"o"}, {live, kb::Int(shape_.head_dim)}, {kb::Store(out, at, value)}));
    writer.kernel.grid = WithBatch(
        {{"h", kb::Int(0), kb::Int(shape_.heads), 1}, {"r0", kb::Int(0), kb::FromExtent(queries_), rows_per_block_}});
    QUERN_ASSIGN(KernelUse use, writer.Finish());
    lowered_.kernels.push_back(std::move(use));
    return absl::OkStatus();
  }

  // Whole rows [heads * head_dim]: merges the runs, then everything that follows the attention. On blocks of threads a
  // head of a row is a chunk, and its elements are merged each on its own; on CPUs a row is, which may be quantised.
  Status EmitFinish(bool merge) {
    const bool by_head = view_.facts.blocks.has_value();
    KernelWriter writer(view_, "attention_finish");
    if (merge) DeclareRuns(writer);
    FusedExpr expr(view_.graph);
    writer.ProvideInputs(expr);
    const int64_t width = shape_.heads * shape_.head_dim;
    const ExprRef r = kb::Ref("r"), b = Batch(), h = kb::Ref("h"), c = kb::Ref("c");
    const std::string from = writer.Temporary(0, lowered_.temporaries[0], false);
    const ExprRef place = h * static_cast<double>(shape_.head_dim) + c;
    kir::Block block, head;
    ExprRef merged;  // an element of the attention
    if (merge) {
      const ExprRef s = kb::Ref("s"), runs = kb::Ref("RUNS");
      const double kv_heads = static_cast<double>(shape_.kv_heads), group = static_cast<double>(group_);
      auto part = [&](const ExprRef& element) {
        return kb::At(from, DType::kF32, {b, r, s * kv_heads + h / group, h % group, element});
      };
      const ExprRef largest = part(kb::Int(shape_.head_dim)), sum = part(kb::Int(shape_.head_dim + 1));
      head.push_back(kb::Let("top", kb::ReduceFor(kir::ReduceOp::kMax, "s", kb::Int(0), runs, largest)));
      // Runs without any allowed key have m = -inf; a row without any has top = -inf, and then everything is 0.
      const ExprRef top = kb::Ref("top", DType::kF32);
      const ExprRef weight =
          kb::Select(kb::Call(Op::kEq, {largest, kb::Num(-INFINITY)}), kb::Num(0), kb::Call(Op::kExp, {largest - top}));
      head.push_back(kb::Let("total", kb::ReduceFor(kir::ReduceOp::kSum, "s", kb::Int(0), runs, weight * sum)));
      const ExprRef total = kb::Ref("total", DType::kF32);
      head.push_back(kb::Let("inverse", kb::Select(kb::Call(Op::kEq, {total, kb::Num(0)}), kb::Num(0), 1.0 / total)));
      const ExprRef share = weight * kb::Ref("inverse", DType::kF32);
      if (by_head) {
        merged = kb::ReduceFor(kir::ReduceOp::kSum, "s", kb::Int(0), runs, part(c) * share);
      } else {
        block.push_back(kb::Alloc("row", {DType::kF32, {Extent(width)}, kir::Layout::kRow}));
        head.push_back(kb::Vec("c", kb::Int(0), kb::Int(shape_.head_dim), {kb::Store("row", {place}, kb::Num(0))}));
        kir::Block run;
        run.push_back(kb::Let("weight", share));
        run.push_back(
            kb::Vec("c", kb::Int(0), kb::Int(shape_.head_dim),
                    {kb::Store("row", {place},
                               kb::At("row", DType::kF32, {place}) + part(c) * kb::Ref("weight", DType::kF32))}));
        head.push_back(kb::For("s", kb::Int(0), runs, std::move(run)));
        head = {kb::For("h", kb::Int(0), kb::Int(shape_.heads), std::move(head))};
        merged = kb::At("row", DType::kF32, {place});
      }
      for (const kir::StmtRef& stmt : head) block.push_back(kb::WithOrigin(stmt, writer.Origin(root_)));
    }
    expr.Provide({root_, 0}, [&](const kir::Index&, const ExprRef&) {
      return merge ? merged : kb::At(from, DType::kF32, {b, r, h, c});
    });
    const bool packed = shape_.layout == AttentionShape::Layout::kPacked;
    kir::Block body, packs;
    for (size_t o = 0; o < view_.results().size(); ++o) {
      const Value output = view_.results()[o];
      const ir::Node& node = view_.node(output.node);
      const bool quantised = node.op->kind == ir::OpKind::kPack;
      const Value value = view_.BeforeReshapes(quantised ? node.inputs[0] : output);
      const ExprRef element = expr.Element(value, packed ? kir::Index{b, r, place} : ElementAt(b, r, h, c));
      const std::string name = writer.Result(static_cast<int>(o));
      if (quantised) {
        const std::string hidden = absl::StrCat("q", o);
        block.push_back(kb::Alloc(hidden, {DType::kF32, {Extent(1), Extent(width)}, kir::Layout::kRow}));
        body.push_back(kb::WithOrigin(kb::Store(hidden, {kb::Int(0), place}, element), writer.Origin(value.node)));
        for (kir::Param& param : writer.kernel.params) {
          if (param.name == name) param.type.dims = {batch_, queries_, Extent(width)};
        }
        packs.push_back(kb::WithOrigin(
            kb::Pack(kb::SliceOf(name, {kb::Point(b), kb::Range(r, kb::Int(1)), kb::All()}), kb::Whole(hidden, 2)),
            writer.Origin(output.node)));
      } else {
        Redeclare(writer, name, queries_, shape_.heads);
        body.push_back(kb::WithOrigin(kb::Store(name, ElementAt(b, r, h, c), element), writer.Origin(value.node)));
      }
    }
    const kir::StmtRef elements = kb::Vec("c", kb::Int(0), kb::Int(shape_.head_dim), std::move(body));
    block.push_back(by_head ? elements : kb::For("h", kb::Int(0), kb::Int(shape_.heads), {elements}));
    block.insert(block.end(), packs.begin(), packs.end());
    writer.kernel.grid = WithBatch({{"r", kb::Int(0), kb::FromExtent(queries_), 1}});
    if (by_head) writer.kernel.grid.push_back({"h", kb::Int(0), kb::Int(shape_.heads), 1});
    writer.kernel.body = std::move(block);
    writer.kernel.sequential = BoundedElements({batch_, queries_, Extent(width)}, view_.ranges) <= kSequentialElements;
    QUERN_ASSIGN(KernelUse use, writer.Finish());
    lowered_.kernels.push_back(std::move(use));
    return absl::OkStatus();
  }

  const RegionView& view_;
  int root_;
  const ir::Node& node_;
  AttentionShape shape_;
  Extent batch_, queries_, keys_;
  int64_t group_ = 1, keys_per_run_ = kKeysPerRun, rows_per_block_ = kRowsPerBlock;
  double scale_ = 1;
  std::string mask_;
  DType kv_dtype_ = DType::kF32;
  LoweredRegion lowered_;
};

}  // namespace

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
  for (const Value& input : view.node(root).inputs) {
    if (view.Has(input.node)) return family::No("operands of an attention lie in memory");
  }
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
