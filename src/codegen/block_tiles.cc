#include "codegen/block_tiles.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kir/build.h"
#include "kir/rewrite.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using kir::ExprRef;
using kir::Op;

constexpr int64_t kWarp = kir::kWarpThreads;
// Consecutive elements of a row that a lane takes at once: they share the scales of a block, and are one wide load.
constexpr int64_t kRun = 8;
constexpr int64_t kKeys = 64;  // of an attention step: two a lane

ExprRef Thread() { return kb::Ref("t"); }
ExprRef Lane() { return Thread() % static_cast<double>(kWarp); }
ExprRef Warp() { return Thread() / static_cast<double>(kWarp); }
ExprRef Less(ExprRef a, ExprRef b) { return kb::Call(Op::kLt, {std::move(a), std::move(b)}); }
ExprRef Equal(ExprRef a, ExprRef b) { return kb::Call(Op::kEq, {std::move(a), std::move(b)}); }

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// The dimensions of a slice that are no points, and the extent of each: of the buffer, and of the slice before
// clipping.
struct Ranged {
  std::vector<Extent> whole;
  std::vector<ExprRef> asked;  // null: all of it
};
Ranged RangedOf(const kir::Slice& slice, const kir::BufferType& type) {
  Ranged ranged;
  for (size_t d = 0; d < slice.dims.size(); ++d) {
    const kir::SliceDim& dim = slice.dims[d];
    if (dim.start != nullptr && dim.extent == nullptr) continue;
    ranged.whole.push_back(type.dims[d]);
    ranged.asked.push_back(dim.extent);
  }
  return ranged;
}

// How many elements ranged dimension `d` of the slice has after clipping.
ExprRef LiveExtent(const kir::Slice& slice, const kir::BufferType& type, int wanted) {
  int at = 0;
  for (size_t d = 0; d < slice.dims.size(); ++d) {
    const kir::SliceDim& dim = slice.dims[d];
    if (dim.start != nullptr && dim.extent == nullptr) continue;
    if (at++ != wanted) continue;
    const ExprRef whole = kb::FromExtent(type.dims[d]);
    return dim.start == nullptr ? whole : kb::Min(dim.extent, whole - dim.start);
  }
  return nullptr;
}

// An attribute of the call, or its default.
ExprRef Attribute(const kir::TileCall& call, std::string_view name, double otherwise) {
  for (const auto& [key, value] : call.attributes) {
    if (key == name) return value;
  }
  return kb::Num(otherwise);
}

}  // namespace

TileSchedule::TileSchedule(const kir::Kernel& kernel, int64_t threads, kir::Block& shared)
    : threads_(threads), warps_(threads / kWarp), shared_(shared) {
  for (const kir::Param& param : kernel.params) types_[param.name] = param.type;
}

kir::ExprRef TileSchedule::Element(const kir::Slice& slice, const std::vector<ExprRef>& index,
                                   const std::vector<bool>& clamp) const {
  const kir::BufferType& type = types_.at(slice.buffer);
  kir::Index at;
  size_t ranged = 0;
  for (size_t d = 0; d < slice.dims.size(); ++d) {
    const kir::SliceDim& dim = slice.dims[d];
    if (dim.start != nullptr && dim.extent == nullptr) {
      at.push_back(dim.start);
      continue;
    }
    ExprRef place = dim.start == nullptr ? index[ranged] : dim.start + index[ranged];
    if (clamp[ranged]) place = kb::Min(place, kb::FromExtent(type.dims[d]) - 1.0);
    at.push_back(std::move(place));
    ++ranged;
  }
  if (IsBlock(type.dtype)) return kb::DecodeAt(slice.buffer, std::move(at));
  return kb::CastTo(DType::kF32, kb::At(slice.buffer, type.dtype, std::move(at)));
}

void JoinLanes(const std::string& name, DType dtype, Op op, const std::string& other_name, kir::Block& out) {
  const ExprRef own = kb::Ref(name, dtype);
  for (int64_t mask = kWarp / 2; mask > 0; mask /= 2) {
    const std::string other = absl::StrCat(other_name, "_", mask);
    out.push_back(kb::Shuffle(other, kir::ShuffleKind::kXor, own, kb::Int(mask)));
    out.push_back(kb::Assign(name, kir::MakeApply(op, {own, kb::Ref(other, dtype)})));
  }
}

kir::Block TileSchedule::Rectangle(const std::string& row, const ExprRef& rows, const std::string& column,
                                   const ExprRef& columns, int64_t width, kir::Block body) const {
  if (columns == nullptr) return {kb::For(row, Thread(), rows, std::move(body), threads_)};
  // Threads side by side take neighbouring columns: as many as there are, rounded up to a power of two.
  int64_t across = 1;
  while (across < width && across < threads_) across *= 2;
  kir::StmtRef inner = kb::For(column, Thread() % static_cast<double>(across), columns, std::move(body), across);
  return {kb::For(row, Thread() / static_cast<double>(across), rows, {std::move(inner)}, threads_ / across)};
}

void TileSchedule::Add(const kir::Tile& tile, kir::Block& out) {
  TileState state;
  state.init = tile.init;
  for (const Extent& dim : tile.type.dims) state.dims.push_back(dim.constant());
  if (!tiles_.contains(tile.name)) {
    kir::BufferType type = tile.type;
    type.dims[0] = Extent(RoundUp(state.dims[0], warps_));
    types_[tile.name] = type;
    shared_.push_back(kb::Alloc(tile.name, type, kir::Space::kShared));
  }
  tiles_[tile.name] = std::move(state);
  out.push_back(kb::Barrier());  // an earlier iteration of a loop around may still be reading it
}

void TileSchedule::Fill(const std::string& name, kir::Block& out) {
  TileState& state = tiles_.at(name);
  if (state.filled) return;
  state.filled = true;
  const kir::BufferType& type = types_.at(name);
  const int number = number_++;
  const std::string i = absl::StrCat("fi_", number), c = absl::StrCat("fc_", number);
  const bool rows_only = type.dims.size() == 1;
  kir::Index at = {kb::Ref(i)};
  if (!rows_only) at.push_back(kb::Ref(c));
  kir::Block body = Rectangle(i, kb::FromExtent(type.dims[0]), c, rows_only ? nullptr : kb::FromExtent(type.dims[1]),
                              rows_only ? 1 : type.dims[1].constant(), {kb::Store(name, at, state.init)});
  out.insert(out.end(), body.begin(), body.end());
  out.push_back(kb::Barrier());
}

void TileSchedule::FillAll(kir::Block& out) {
  for (const auto& [name, state] : tiles_) Fill(name, out);
}

Status TileSchedule::Add(const kir::TileCall& call, kir::Block& out) {
  const bool known = std::all_of(call.operands.begin(), call.operands.end(),
                                 [&](const kir::Slice& s) { return types_.contains(s.buffer); });
  if (known && call.op.starts_with("flash_step_")) return AddFlash(call, out);
  if (known && call.op.starts_with("dot_") && types_.at(call.operands[1].buffer).dtype == DType::kF32) {
    AddDot(call, out);
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(call.op, ": not for blocks of threads"));
}

void TileSchedule::AddDot(const kir::TileCall& call, kir::Block& out) {
  const std::string& tile = call.tiles[0];
  TileState& state = tiles_.at(tile);
  const kir::Slice &w = call.operands[0], &x = call.operands[1];
  const Ranged columns = RangedOf(w, types_.at(w.buffer)), rows = RangedOf(x, types_.at(x.buffer));
  const int64_t wide = state.dims[1], k = columns.whole[1].constant();
  const bool ragged_columns =
      !columns.whole[0].is_constant() || columns.whole[0].constant() % wide != 0 || wide % warps_ != 0;
  const bool ragged_rows = rows.whole[0] != Extent(state.dims[0]);
  const int64_t run = k % kRun == 0 ? kRun : 1;

  const int number = number_++;
  auto named = [&](const char* what) { return absl::StrCat(what, "_", number); };
  const ExprRef column = kb::Ref(named("j")), g = kb::Ref(named("g")), u = kb::Ref(named("u"));
  const ExprRef depth = g * static_cast<double>(run) + u;
  kir::Block body, step;
  body.push_back(kb::Let(named("j"), kb::Ref(named("jj")) + Warp()));
  step.push_back(kb::Let(named("wv"), Element(w, {column, depth}, {ragged_columns, false})));
  std::vector<std::string> sums;
  for (int64_t m = 0; m < state.dims[0]; ++m) {
    sums.push_back(absl::StrCat(named("a"), "_", m));
    const ExprRef sum = kb::Ref(sums.back(), DType::kF32);
    body.push_back(kb::Var(sums.back(), kb::Num(0)));
    // A row past the last is computed like the last, and not kept.
    const ExprRef value = Element(x, {kb::Int(m), depth}, {ragged_rows && m > 0, false});
    step.push_back(kb::Assign(sums.back(), kb::Contract(sum + kb::Ref(named("wv"), DType::kF32) * value)));
  }
  body.push_back(kb::For(named("g"), Lane(), kb::Int(k / run),
                         {kb::Unroll(named("u"), kb::Int(0), kb::Int(run), std::move(step))}, kWarp));
  kir::Block stores;
  for (int64_t m = 0; m < state.dims[0]; ++m) {
    JoinLanes(sums[m], DType::kF32, Op::kAdd, sums[m], body);
    const ExprRef sum = kb::Ref(sums[m], DType::kF32),
                  before = state.filled ? kb::At(tile, DType::kF32, {kb::Int(m), column}) : state.init;
    stores.push_back(kb::Store(tile, {kb::Int(m), column}, before + sum));
  }
  ExprRef keeps = Equal(Lane(), kb::Int(0));
  if (wide % warps_ != 0) keeps = kb::Call(Op::kAnd, {keeps, Less(column, kb::Int(wide))});
  body.push_back(kb::If(keeps, std::move(stores)));
  out.push_back(kb::For(named("jj"), kb::Int(0), kb::Int(wide), std::move(body), warps_));
  state.filled = true;
}

// Scores of all rows and keys, a pair a thread; then a warp a row: the maximum, weights and their sum; then o, an
// element a thread.
Status TileSchedule::AddFlash(const kir::TileCall& call, kir::Block& out) {
  const std::string &o = call.tiles[0], &m = call.tiles[1], &l = call.tiles[2];
  for (const std::string& tile : call.tiles) Fill(tile, out);
  const kir::Slice &q = call.operands[0], &k = call.operands[1], &v = call.operands[2], &lo = call.operands[3],
                   &hi = call.operands[4];
  const int64_t rows = RoundUp(tiles_.at(o).dims[0], warps_), width = tiles_.at(o).dims[1];
  const std::optional<int64_t> keys = kir::KnownInteger(RangedOf(k, types_.at(k.buffer)).asked[0]);
  if (keys != kKeys || threads_ % kKeys != 0)
    return absl::UnimplementedError(absl::StrCat(call.op, ": not of 64 keys"));

  const int number = number_++;
  auto named = [&](const char* what) { return absl::StrCat(what, "_", number); };
  const std::string scores = named("sc"), shrink = named("sh"), tops = named("tops"), sums = named("sums");
  shared_.push_back(
      kb::Alloc(scores, {DType::kF32, {Extent(rows), Extent(kKeys)}, kir::Layout::kRow}, kir::Space::kShared));
  for (const std::string& name : {shrink, tops, sums}) {
    shared_.push_back(kb::Alloc(name, {DType::kF32, {Extent(rows)}, kir::Layout::kRow}, kir::Space::kShared));
  }
  const ExprRef infinity = kb::Num(-INFINITY);

  // Rows past the last are computed like the last: their keys are none.
  const ExprRef i = kb::Ref(named("i")), j = kb::Ref(named("j")), c = kb::Ref(named("c"));
  auto bound = [&](const kir::Slice& slice) {
    const kir::BufferType& type = types_.at(slice.buffer);
    return kb::CastTo(DType::kI64, kb::At(slice.buffer, type.dtype, {kb::Min(i, kb::FromExtent(type.dims[0]) - 1.0)}));
  };
  const ExprRef live = LiveExtent(q, types_.at(q.buffer), 0);
  const ExprRef row = kb::Min(i, live - 1.0);
  const ExprRef dot =
      kb::ReduceFor(kir::ReduceOp::kSum, named("c"), kb::Int(0), kb::Int(width),
                    kb::Contract(Element(q, {row, c}, {false, false}) * Element(k, {j, c}, {true, false})));
  const ExprRef scaled = Attribute(call, "scale", 1) * dot, softcap = Attribute(call, "softcap", 0);
  const auto* cap = std::get_if<kir::Const>(&softcap->node);
  ExprRef score = scaled;
  if (cap == nullptr || cap->real != 0) {
    score = kb::Select(Equal(softcap, kb::Num(0)), scaled, softcap * kb::Call(Op::kTanh, {scaled / softcap}));
  }
  ExprRef allowed =
      kb::Call(Op::kAnd, {kb::Call(Op::kAnd, {kb::Call(Op::kLe, {bound(lo), j}), Less(j, bound(hi))}), Less(i, live)});
  if (call.operands.size() > 5) {
    const ExprRef bias = kb::At(call.operands[5].buffer, DType::kF32,
                                {kb::Min(i, kb::FromExtent(types_.at(call.operands[5].buffer).dims[0]) - 1.0), j});
    score = score + bias;
    allowed = kb::Call(Op::kAnd, {allowed, kb::Call(Op::kNe, {bias, infinity})});
  }
  out.push_back(kb::Barrier());
  kir::Block pair = {kb::Var(named("s"), infinity), kb::If(allowed, {kb::Assign(named("s"), score)}),
                     kb::Store(scores, {i, j}, kb::Ref(named("s"), DType::kF32))};
  kir::Block all = Rectangle(named("i"), kb::Int(rows), named("j"), kb::Int(kKeys), kKeys, std::move(pair));
  out.insert(out.end(), all.begin(), all.end());
  out.push_back(kb::Barrier());

  // Rows of a warp.
  const ExprRef r = kb::Ref(named("r")), first = kb::At(scores, DType::kF32, {r, Lane()}),
                second = kb::At(scores, DType::kF32, {r, Lane() + 32.0});
  const ExprRef top = kb::Ref(named("top"), DType::kF32), before = kb::Ref(named("was"), DType::kF32),
                now = kb::Ref(named("now"), DType::kF32);
  // 0 says that a key takes no part, so the weight of one that does is more.
  auto weight = [&](const ExprRef& value) {
    return kb::Select(Equal(value, infinity), kb::Num(0), kb::Max(kb::Call(Op::kExp, {value - now}), kb::Num(FLT_MIN)));
  };
  kir::Block line;
  line.push_back(kb::Let(named("r"), kb::Ref(named("rr")) + Warp()));
  line.push_back(kb::Var(named("top"), kb::Max(first, second)));
  JoinLanes(named("top"), DType::kF32, Op::kMax, named("top"), line);
  line.push_back(kb::Let(named("was"), kb::At(m, DType::kF32, {r})));
  line.push_back(kb::Let(named("now"), kb::Max(before, top)));
  line.push_back(kb::Let(named("pa"), weight(first)));
  line.push_back(kb::Let(named("pb"), weight(second)));
  const ExprRef pa = kb::Ref(named("pa"), DType::kF32), pb = kb::Ref(named("pb"), DType::kF32);
  line.push_back(kb::Var(named("sum"), pa + pb));
  JoinLanes(named("sum"), DType::kF32, Op::kAdd, named("sum"), line);
  line.push_back(
      kb::Let(named("less"), kb::Select(Equal(now, infinity), kb::Num(1), kb::Call(Op::kExp, {before - now}))));
  const ExprRef less = kb::Ref(named("less"), DType::kF32);
  line.push_back(kb::Store(scores, {r, Lane()}, pa));
  line.push_back(kb::Store(scores, {r, Lane() + 32.0}, pb));
  line.push_back(kb::If(Equal(Lane(), kb::Int(0)), {kb::Store(sums, {r}, kb::Ref(named("sum"), DType::kF32)),
                                                    kb::Store(shrink, {r}, less), kb::Store(tops, {r}, now)}));
  out.push_back(kb::For(named("rr"), kb::Int(0), kb::Int(rows), std::move(line), warps_));
  out.push_back(kb::Barrier());

  const ExprRef n = kb::Ref(named("n"));
  auto of = [&](const std::string& buffer) { return kb::At(buffer, DType::kF32, {n}); };
  out.push_back(kb::For(named("n"), Thread(), kb::Int(rows),
                        {kb::Store(l, {n}, of(l) * of(shrink) + of(sums)), kb::Store(m, {n}, of(tops))}, threads_));

  // o; a key that takes no part adds nothing, whatever its value.
  const ExprRef x = kb::Ref(named("x")), y = kb::Ref(named("y")), key = kb::Ref(named("key"));
  const ExprRef acc = kb::Ref(named("acc"), DType::kF32), share = kb::At(scores, DType::kF32, {x, key});
  const ExprRef part = kb::Contract(acc + share * Element(v, {key, y}, {false, false}));
  kir::Block element = {kb::Var(named("acc"), kb::At(o, DType::kF32, {x, y}) * kb::At(shrink, DType::kF32, {x})),
                        kb::For(named("key"), kb::Int(0), LiveExtent(v, types_.at(v.buffer), 0),
                                {kb::Assign(named("acc"), kb::Select(Equal(share, kb::Num(0)), acc, part))}),
                        kb::Store(o, {x, y}, acc)};
  kir::Block last = Rectangle(named("x"), kb::Int(rows), named("y"), kb::Int(width), width, std::move(element));
  out.insert(out.end(), last.begin(), last.end());
  return absl::OkStatus();
}

void TileSchedule::Add(const kir::Map& map, kir::Block body, kir::Block& out) {
  for (const std::string& tile : map.tiles) {
    if (!tiles_.at(tile).filled) Fill(tile, out);
  }
  kir::Index at;
  for (const std::string& index : map.indices) at.push_back(kb::Ref(index));
  // A tile's bare name is its element at the index.
  kir::Block lines = kir::Rewrite(body, [&](const ExprRef& node) -> ExprRef {
    const auto* name = std::get_if<kir::NameRef>(&node->node);
    if (name == nullptr || std::find(map.tiles.begin(), map.tiles.end(), name->name) == map.tiles.end()) return nullptr;
    return kb::At(name->name, DType::kF32, at);
  });
  const TileState& shape = tiles_.at(map.tiles[0]);
  out.push_back(kb::Barrier());
  const bool line = map.indices.size() == 1;
  kir::Block all = Rectangle(map.indices[0], map.extents[0], line ? "" : map.indices[1],
                             line ? nullptr : map.extents[1], line ? 1 : shape.dims[1], std::move(lines));
  out.insert(out.end(), all.begin(), all.end());
}

}  // namespace quern::codegen
