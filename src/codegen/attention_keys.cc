// Whose keys a row sees, where they lie, and the steps over them.
#include "codegen/attention_kernels.h"
#include "codegen/fused_expr.h"
#include "kir/flash_steps.h"

namespace quern::codegen {

using namespace kir::build::operators;

std::string AttentionKernels::OperandName(KernelWriter& writer, int operand) {
  const std::string name = writer.Input(view_.InputIndex(places_[operand].source));
  writer.Redeclare(name, places_[operand].dims);
  return name;
}

void AttentionKernels::DeclareResult(KernelWriter& writer, const std::string& name) {
  const Extent heads(shape_.heads), columns(shape_.head_dim);
  if (shape_.layout == AttentionShape::Layout::kBhsd)
    writer.Redeclare(name, {batch_, heads, queries_, columns});
  else
    writer.Redeclare(name, {batch_, queries_, heads, columns});
}

kir::Index AttentionKernels::ElementAt(const ExprRef& b, const ExprRef& s, const ExprRef& h, const ExprRef& c) const {
  if (shape_.layout == AttentionShape::Layout::kBhsd) return {b, h, s, c};
  return {b, s, h, c};
}

ExprRef AttentionKernels::Element(KernelWriter& writer, int operand, kir::Index at, bool anywhere) {
  const ir::Value value = node_.inputs[operand];
  const int input = view_.InputIndex(value);
  if (input < 0) return Literal(view_.node(value.node));
  const DType dtype = view_.type(value).dtype;
  return kb::At(writer.Input(input), dtype, std::move(at), anywhere ? kb::CastTo(dtype, kb::Int(0)) : nullptr);
}

ExprRef AttentionKernels::Loaded(KernelWriter& writer, int operand, kir::Index at) {
  return kb::CastTo(DType::kI64, Element(writer, operand, std::move(at)));
}

ExprRef AttentionKernels::EndedBefore(KernelWriter& writer, const ExprRef& r) {
  const ExprRef ended = kb::Call(Op::kLe, {Loaded(writer, operands_.q_start, {kb::Ref("e")}), r});
  return kb::ReduceFor(kir::ReduceOp::kSum, "e", kb::Int(1), kb::FromExtent(sequences_) + 1.0,
                       kb::Select(ended, kb::Int(1), kb::Int(0)));
}

ExprRef AttentionKernels::AfterStart(KernelWriter& writer, const ExprRef& r) {
  return kb::Call(Op::kLe, {Loaded(writer, operands_.q_start, {kb::Int(0)}), r});
}

AttentionKernels::Sequence AttentionKernels::EmitSequence(KernelWriter& writer, const ExprRef& number,
                                                          const ExprRef& takes_part, kir::Block& block) {
  const ExprRef room = kb::FromExtent(keys_);
  if (!operands_.lengths()) return {number, room, kb::FromExtent(keys_ - queries_)};
  const ExprRef length = kb::Ref("length");
  const ExprRef end = operands_.ragged() ? Loaded(writer, operands_.q_start, {number + 1.0}) : kb::FromExtent(queries_);
  ExprRef live = kb::Max(kb::Int(0), kb::Min(length, room));
  if (takes_part != nullptr) live = kb::Select(takes_part, live, kb::Int(0));
  block.push_back(kb::Let("length", Loaded(writer, operands_.kv_len, {number})));
  block.push_back(kb::Let("live", live));
  block.push_back(kb::Let("shift", length - end));
  return {number, kb::Ref("live"), kb::Ref("shift")};
}

void AttentionKernels::EmitKeys(KernelWriter& writer, const Sequence& sequence, const ExprRef& low, const ExprRef& high,
                                const std::function<void(const Keys& keys, kir::Block& block)>& step,
                                kir::Block& block) {
  const ExprRef t = kb::Ref("kt");
  kir::Block tile;
  if (!operands_.paged()) {
    step({sequence.number, t, t, sequence.keys - t}, tile);
    block.push_back(kb::For("kt", low, high, std::move(tile), keys_per_tile_));
    return;
  }
  const double each = static_cast<double>(keys_in_place_.constant()), tile_keys = static_cast<double>(keys_per_tile_);
  const ExprRef n = kb::Ref("n"), slot = kb::Ref("slot"), first = n * each;
  const ExprRef slots = kb::FromExtent(view_.type(node_.inputs[1]).dims[0]);
  const ExprRef exists = kb::Call(Op::kAnd, {kb::Call(Op::kLe, {kb::Int(0), slot}), kb::Call(Op::kLt, {slot, slots})});
  step({kb::Max(kb::Int(0), kb::Min(slot, slots - 1.0)), t, first + t, kb::Ref("end") - t}, tile);
  const ExprRef from = kir::KnownInteger(low) == 0 ? low : kb::Max(kb::Int(0), low - first) / tile_keys * tile_keys;
  kir::Block run = {
      kb::Let("slot", Loaded(writer, operands_.blocks, {sequence.number, n})),
      kb::Let("end", kb::Select(exists, kb::Min(kb::FromExtent(keys_in_place_), sequence.keys - first), kb::Int(0))),
      kb::For("kt", from, kb::Min(kb::Ref("end"), high - first), std::move(tile), keys_per_tile_)};
  block.push_back(kb::For("n", low / each, (kb::Max(kb::Int(0), high) + (each - 1)) / each, std::move(run)));
}

kir::Slice AttentionKernels::EmitQueries(KernelWriter& writer, kir::SliceDim s, kir::SliceDim h, int64_t rows,
                                         const ExprRef& live, kir::Block& block) {
  const std::string name = OperandName(writer, 0);
  if (q_dtype_ == step_dtype_) return places_[0].At(name, {kb::Point(Batch()), s, h});
  const ExprRef i = kb::Ref("i"), c = kb::Ref("c");
  const auto of_row = [&](const kir::SliceDim& dim) { return dim.extent == nullptr ? dim.start : dim.start + i; };
  block.push_back(kb::Alloc("queries", {step_dtype_, {Extent(rows), Extent(shape_.head_dim)}, kir::Layout::kRow}));
  const ExprRef given = kb::At(name, q_dtype_, places_[0].ElementAt({Batch(), of_row(s), of_row(h)}, c));
  block.push_back(kb::For("i", kb::Int(0), live,
                          {kb::Vec("c", kb::Int(0), kb::Int(shape_.head_dim),
                                   {kb::Store("queries", {i, c}, kb::CastTo(step_dtype_, given))})}));
  return kb::SliceOf("queries", {kb::Range(kb::Int(0), live), kb::All()});
}

void AttentionKernels::EmitStep(KernelWriter& writer, const Rows& rows, const Sequence& sequence,
                                const std::string& own, const Keys& keys, const ExprRef& kv, kir::Block& block) {
  const ExprRef i = kb::Ref("i"), tile = kb::Int(keys_per_tile_);
  const ExprRef here = rows.consecutive ? rows.first + i : rows.first;
  const ExprRef position = here + sequence.shift;
  ExprRef low = kb::Int(0), high = keys.live;
  if (mask_ == "causal" || mask_ == "sliding") high = kb::Min(high, position + 1.0 - keys.key);
  if (mask_ == "sliding") low = position - static_cast<double>(node_.attributes.Int("window")) - keys.key;
  if (!own.empty()) {
    const ExprRef mine = kb::CastTo(DType::kI64, kb::At(own, DType::kI32, {i}));
    high = kb::Select(kb::Call(Op::kEq, {mine, sequence.number}), high, kb::Int(0));
  }
  auto bound = [&](const ExprRef& value) { return kb::CastTo(DType::kI32, kb::Max(kb::Int(0), kb::Min(value, tile))); };
  block.push_back(kb::Vec("i", kb::Int(0), kb::Int(rows.count),
                          {kb::Store("lo", {i}, bound(low)), kb::Store("hi", {i}, bound(high))}));
  auto of_keys = [&](int operand) {
    return places_[operand].At(OperandName(writer, operand),
                               {kb::Point(keys.place), kb::Range(keys.at, tile), kb::Point(kv)});
  };
  std::vector<kir::Slice> operands = {rows.q, of_keys(1), of_keys(2),
                                      kb::SliceOf("lo", {kb::Range(kb::Int(0), rows.live)}),
                                      kb::SliceOf("hi", {kb::Range(kb::Int(0), rows.live)})};
  if (operands_.mask >= 0) {
    EmitBias(writer, rows.count, sequence.number, here, rows.consecutive ? rows.head : rows.head + i, keys.key, block);
    operands.push_back(
        kb::SliceOf("bias", {kb::Range(kb::Int(0), rows.live),
                             kb::Range(kb::Int(0), kb::Min(tile, kb::FromExtent(keys_in_place_) - keys.at))}));
  }
  std::vector<std::pair<std::string, ExprRef>> attributes = {{"scale", kb::Num(scale_)},
                                                             {"softcap", kb::Num(node_.attributes.Float("softcap"))}};
  if (rows.consecutive) attributes.emplace_back("many", kb::Int(1));
  block.push_back(kb::WithOrigin(kb::CallTile(kir::FlashStepName(step_dtype_, k_dtype_, v_dtype_), {"o", "m", "l"},
                                              std::move(operands), std::move(attributes)),
                                 writer.Origin(root_)));
}

void AttentionKernels::EmitBias(KernelWriter& writer, int64_t rows, const ExprRef& sequence, const ExprRef& query,
                                const ExprRef& head, const ExprRef& first_key, kir::Block& block) {
  const ir::TensorType& type = view_.type(node_.inputs[operands_.mask]);
  const ExprRef i = kb::Ref("i"), j = kb::Ref("j"), key = first_key + j;
  ExprRef value;
  if (mask_ == "custom") {
    const ExprRef given = Element(writer, operands_.mask, {sequence, key}, /*anywhere=*/true);
    const ExprRef keep =
        type.dtype == DType::kBool ? given : kb::Call(Op::kLe, {kb::Num(0.5), kb::CastTo(DType::kF32, given)});
    value = kb::Select(keep, kb::Num(0), kb::Num(-INFINITY));
  } else {
    const kir::Index full = {Batch(), head, query, key};
    kir::Index at;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      at.push_back(type.dims[d] == Extent(1) ? kb::Int(0) : full[4 - type.dims.size() + d]);
    }
    const ExprRef given = Element(writer, operands_.mask, std::move(at), /*anywhere=*/true);
    value =
        type.dtype == DType::kBool ? kb::Select(given, kb::Num(0), kb::Num(-INFINITY)) : kb::CastTo(DType::kF32, given);
  }
  block.push_back(kb::For("i", kb::Int(0), kb::Int(rows),
                          {kb::Vec("j", kb::Int(0), kb::Int(keys_per_tile_), {kb::Store("bias", {i, j}, value)})}));
}

void AttentionKernels::EmitTiles(int64_t rows, kir::Block& block) const {
  block.push_back(kb::Alloc("lo", {DType::kI32, {Extent(rows)}, kir::Layout::kRow}));
  block.push_back(kb::Alloc("hi", {DType::kI32, {Extent(rows)}, kir::Layout::kRow}));
  if (operands_.mask >= 0)
    block.push_back(kb::Alloc("bias", {DType::kF32, {Extent(rows), Extent(keys_per_tile_)}, kir::Layout::kRow}));
  block.push_back(kb::Tile("o", {rows, shape_.head_dim}));
  block.push_back(kb::Tile("m", {rows}, -INFINITY));
  block.push_back(kb::Tile("l", {rows}));
}

std::vector<kir::GridDim> AttentionKernels::WithBatch(std::vector<kir::GridDim> grid) const {
  if (batch_ != Extent(1)) grid.insert(grid.begin(), {"b", kb::Int(0), kb::FromExtent(batch_), 1});
  return grid;
}

kir::BufferType AttentionKernels::PartType() const {
  return {
      DType::kF32,
      {batch_, queries_, Extent::Symbol("RUNS") * Extent(shape_.kv_heads), Extent(group_), Extent(shape_.head_dim + 2)},
      kir::Layout::kRow};
}

void AttentionKernels::DeclareRuns(KernelWriter& writer) const {
  std::vector<kir::SymbolDecl> free;
  for (const auto& [name, range] : view_.ranges) free.push_back({name, range, std::nullopt});
  writer.kernel.symbols.push_back(kir::DerivedSymbol("RUNS", keys_, keys_per_run_, free));
}

}  // namespace quern::codegen
