// What the threads of a block do together, and tiles: threadgroup memory, barriers, copies, pipelines, shuffles,
// matrices.
//
// Where the elements of a simdgroup_matrix lie among the lanes is not documented, so a map over a warp's tile goes
// through 64 floats of threadgroup memory a simdgroup, one 8 x 8 part after the other.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/copy_runs.h"
#include "codegen/metal/emitter.h"
#include "kir/walk.h"

namespace quern::metal {
namespace {

constexpr int64_t kSide = 8;  // of a matrix

}  // namespace

void Emitter::BlockBarrier() { Line("threadgroup_barrier(@flags);"); }

// Threadgroup memory is declared in the outermost scope of a kernel.
std::string Emitter::DeclareShared(std::string_view name, DType dtype, int64_t count) {
  const std::string pointer = Fresh(name);
  outer_names_.push_back(pointer);
  absl::StrAppend(&shared_, "  threadgroup ", MemoryType(language_, dtype), " ", pointer, "[", count, "];\n");
  shared_bytes_ += (count * ScalarBytes(dtype) + 15) / 16 * 16;
  return pointer;
}

void Emitter::Emit(const kir::Alloc& alloc) {
  if (alloc.space != kir::Space::kShared || alloc.type.layout != kir::Layout::kRow || alloc.type.dtype == DType::kF64) {
    return Unimplemented(absl::StrCat("alloc ", alloc.name, " : ", kir::Print(alloc.type)));
  }
  int64_t count = 1;
  for (const Extent& dim : alloc.type.dims) {
    if (!dim.is_constant()) return Fail("a shared alloc without a constant size");
    count *= dim.constant();
  }
  Define(alloc.name, ViewOf(DeclareShared(alloc.name, alloc.type.dtype, count), alloc.type, Place::kShared));
}

void Emitter::Emit(const kir::Tile& tile) {
  int64_t count = 1;
  std::vector<int64_t> dims;
  for (const Extent& dim : tile.type.dims) {
    dims.push_back(dim.constant());
    count *= dims.back();
  }
  if (tile.type.dtype == DType::kF64) return Unimplemented("a tile of f64");
  const Code init = Value(tile.init);
  const std::string name = Fresh(tile.name);
  View view = ViewOf(name, tile.type, in_warp_ ? Place::kMatrices : Place::kThread);
  if (in_warp_) {
    if (dims.size() != 2 || dims[0] % kSide != 0 || dims[1] % kSide != 0 || tile.type.dtype != DType::kF32) {
      return Unimplemented("a warp's tile that is not of 8 x 8 parts of f32");
    }
    count /= kSide * kSide;
    Line(absl::StrCat("simdgroup_float8x8 ", name, "[", count, "];"));
  } else {
    Line(absl::StrCat(MemoryType(language_, tile.type.dtype), " ", name, "[", count, "];"));
  }
  const Mark mark = Enter();
  const Code i = BeginLoop("part", Number(0), Number(count), 1, /*unroll=*/true);
  const std::string value = in_warp_ ? absl::StrCat("make_filled_simdgroup_matrix<float, 8, 8>(", init.text, ")")
                                     : ToMemory(tile.type.dtype, init);
  Line(absl::StrCat(name, "[", i.text, "] = ", value, ";"));
  EndLoop(mark);
  Define(tile.name, std::move(view));
}

void Emitter::Emit(const kir::Map& map) {
  const std::vector<Code> extents = Values(map.extents);
  std::vector<View> tiles;
  for (const std::string& name : map.tiles) tiles.push_back(FindView(name));
  if (!status_.ok()) return;
  for (const View& tile : tiles) {
    bool same = tile.place == tiles[0].place && tile.sizes.size() == tiles[0].sizes.size();
    for (size_t d = 0; same && d < tile.sizes.size(); ++d) same = tile.sizes[d].literal == tiles[0].sizes[d].literal;
    if (!same || (tile.place != Place::kThread && tile.place != Place::kMatrices))
      return Unimplemented("a map over tiles of several kinds");
  }
  const Mark mark = Enter();
  if (tiles[0].place == Place::kMatrices)
    MapMatrices(map, tiles, extents);
  else
    MapElements(map, tiles[0].sizes, extents, /*unroll=*/true);  // only then are the elements registers
  Leave(mark);
}

void Emitter::MapMatrices(const kir::Map& map, const std::vector<View>& tiles, const std::vector<Code>& extents) {
  const int64_t columns = *tiles[0].sizes[1].literal / kSide, parts = *tiles[0].sizes[0].literal / kSide * columns;
  const int64_t area = kSide * kSide, warps = threads_ / kir::kWarpThreads;
  while (stages_.size() < tiles.size()) stages_.push_back(DeclareShared("stage", DType::kF32, warps * area));
  const std::string barrier = "simdgroup_barrier(mem_flags::mem_threadgroup);";
  auto place = [&](size_t i) { return absl::StrCat(stages_[i], " + thread_id / ", kir::kWarpThreads, " * ", area); };
  const Mark mark = Enter();
  const Code part = BeginLoop("part", Number(0), Number(parts), 1, /*unroll=*/true);
  for (size_t i = 0; i < tiles.size(); ++i) {
    Line(absl::StrCat("simdgroup_store(", tiles[i].pointer, "[", part.text, "], ", place(i), ", ", kSide, ");"));
  }
  Line(barrier);
  const Mark inner = Enter();
  const Code e = BeginLoop("e", Lane(), Number(area), kir::kWarpThreads);
  auto coordinate = [&](kir::Op op, size_t d, int64_t divisor) {
    const Code start = Product(IndexOperator(op, part, Number(columns)), Number(kSide));
    return Constant(map.indices[d], DType::kI64, Sum(start, IndexOperator(op, e, Number(divisor))));
  };
  const std::vector<Code> index = {coordinate(kir::Op::kDiv, 0, kSide), coordinate(kir::Op::kMod, 1, kSide)};
  for (size_t d = 0; d < 2; ++d) Define(map.indices[d], index[d]);
  for (size_t i = 0; i < tiles.size(); ++i) {
    entities_.push_back({.name = map.tiles[i],
                         .view = tiles[i],
                         .element = index,
                         .staged = absl::StrCat("(", place(i), ")[", e.text, "]")});
  }
  const bool in_warp = std::exchange(in_warp_, false);
  MapBody(map, index, tiles[0].sizes, extents);
  in_warp_ = in_warp;
  EndLoop(inner);
  Line(barrier);
  for (size_t i = 0; i < tiles.size(); ++i) {
    if (!kir::Writes(map.body, map.tiles[i])) continue;
    Line(absl::StrCat("simdgroup_load(", tiles[i].pointer, "[", part.text, "], ", place(i), ", ", kSide, ");"));
    Line(barrier);
  }
  EndLoop(mark);
}

// One run of a thread, or zeros where that is outside.
void Emitter::Emit(const kir::Copy& copy) {
  const codegen::CopiedRun run = codegen::RunOf(copy);
  const Cut dst = CutOf(copy.dst), src = CutOf(copy.src);
  const Code inside = run.inside == nullptr ? Code{} : Value(run.inside);
  if (!status_.ok()) return;
  const bool same = dst.view.dtype == src.view.dtype;
  const std::string zero = absl::StrCat(MemoryType(language_, dst.view.dtype), "(0)");
  auto at = [&](const Cut& cut, const Code& u) {
    std::vector<Code> index = cut.starts;
    if (!cut.ranged.empty()) index[cut.ranged.back()] = Sum(index[cut.ranged.back()], u);
    return index;
  };
  auto value = [&](const Code& u) {
    return same ? Target(src.view, at(src, u)) : ToMemory(dst.view.dtype, Element(src.view, at(src, u)));
  };
  if (same && src.view.place == Place::kMemory && src.view.writable) reads_back_ = true;
  if (run.length == 1) {
    const Code one = Number(0);
    const std::string chosen =
        inside.text.empty() ? value(one) : absl::StrCat(Wrapped(inside, Level::kSum), " ? ", value(one), " : ", zero);
    return Line(absl::StrCat(Target(dst.view, at(dst, one)), " = ", chosen, ";"));
  }
  auto all = [&](bool zeros) {
    const Mark mark = Enter();
    const Code u = BeginLoop("u", Number(0), Number(run.length), 1, /*unroll=*/true);
    Line(absl::StrCat(Target(dst.view, at(dst, u)), " = ", zeros ? zero : value(u), ";"));
    EndLoop(mark);
  };
  if (inside.text.empty()) return all(false);
  Open(absl::StrCat("if (", inside.text, ") {"));
  all(false);
  Else();
  all(true);
  Close();
}

void Emitter::Emit(const kir::Pipeline& pipeline) {
  const Code low = Value(pipeline.low), high = Value(pipeline.high);
  const Mark mark = Enter();
  BeginLoop(pipeline.index, low, high, pipeline.step);
  EmitBlock(pipeline.fetch);
  BlockBarrier();
  EmitBlock(pipeline.use);
  BlockBarrier();
  EndLoop(mark);
}

void Emitter::Emit(const kir::Shuffle& shuffle) {
  const DType dtype = shuffle.value->dtype;
  const Code value = Value(shuffle.value), by = Value(shuffle.lane);
  // 64 bits go as two words, a bool as an integer.
  const bool pair = ScalarBytes(dtype) == 8;
  std::string sent = value.text;
  if (pair)
    sent = absl::StrCat("as_type<uint2>(", dtype == DType::kI64 ? Wide(value).text : value.text, ")");
  else if (!IsFloat(dtype))
    sent = CallText(dtype == DType::kU32 ? "uint" : "int", {value.text});
  std::string moved;
  // Mask and distance must be one value for the whole simdgroup, the number of a lane need not.
  if (shuffle.kind == kir::ShuffleKind::kXor && by.literal) {
    moved = CallText("simd_shuffle_xor", {sent, absl::StrCat("ushort(", by.text, ")")});
  } else {
    std::string lane = by.text;
    if (shuffle.kind == kir::ShuffleKind::kXor) lane = Infix("^", Level::kOther, Lane(), by).text;
    // Past the last lane one's own.
    if (shuffle.kind == kir::ShuffleKind::kDown) {
      const Code other = Constant("from", DType::kI64, Sum(Lane(), by));
      lane = absl::StrCat(other.text, " < ", kir::kWarpThreads, " ? ", other.text, " : ", Lane().text);
    }
    moved = CallText("simd_shuffle", {sent, absl::StrCat("ushort(", lane, ")")});
  }
  if (pair)
    moved = absl::StrCat("as_type<", Type(dtype), ">(", moved, ")");
  else if (!IsFloat(dtype))
    moved = CallText(Type(dtype), {moved});
  Define(shuffle.name, Constant(shuffle.name, dtype, {moved}));
}

// c[m, n] += x[m, k] w[n, k]^T in 8 x 8 parts.
void Emitter::Emit(const kir::TileCall& call) {
  const char* const matrix = call.op == "mma_f16" ? "simdgroup_half8x8" : "simdgroup_bfloat8x8";
  if (!in_warp_ || (call.op != "mma_f16" && call.op != "mma_bf16")) return Unimplemented("the tile op " + call.op);
  const View tile = FindView(call.tiles[0]);
  const Cut x = CutOf(call.operands[0]), w = CutOf(call.operands[1]);
  if (!status_.ok()) return;
  auto whole = [&](const Cut& cut, const Code& rows) {
    bool fits = cut.asked[0].literal == rows.literal && cut.asked[1].literal && *cut.asked[1].literal % kSide == 0;
    for (size_t r = 0; r < 2; ++r) fits = fits && cut.live[r].text == cut.asked[r].text;
    return fits && cut.ranged[1] + 1 == cut.view.sizes.size();
  };
  if (tile.place != Place::kMatrices || !whole(x, tile.sizes[0]) || !whole(w, tile.sizes[1])) {
    return Unimplemented(call.op + " of slices that are not whole 8 x 8 parts");
  }
  const int64_t columns = *tile.sizes[1].literal / kSide, rows = *tile.sizes[0].literal / kSide;
  Open("{");
  const Mark mark = Enter();
  const Code first_x = Constant("x_start", DType::kI64, Position(x.view, x.starts));
  const Code first_w = Constant("w_start", DType::kI64, Position(w.view, w.starts));
  const Mark depth = Enter();
  const Code k = BeginLoop("k", Number(0), x.asked[1], kSide, /*unroll=*/true);
  // The matrices of one operand along its side, each from row 8 i of the slice and column k.
  auto load = [&](const char* name, const Cut& cut, const Code& first, int64_t count, const char* order) {
    const std::string parts = Fresh(name);
    Line(absl::StrCat(matrix, " ", parts, "[", count, "];"));
    const Mark loop = Enter();
    const Code i = BeginLoop("i", Number(0), Number(count), 1, /*unroll=*/true);
    const Code& stride = cut.view.strides[cut.ranged[0]];
    const Code at = Sum(Sum(first, Product(i, Product(Number(kSide), stride))), k);
    Line(absl::StrCat("simdgroup_load(", parts, "[", i.text, "], ", cut.view.pointer, " + ", Wrapped(at, Level::kSum),
                      ", ", stride.text, order, ");"));
    EndLoop(loop);
    return parts;
  };
  const std::string left = load("left", x, first_x, rows, "");
  const std::string right = load("right", w, first_w, columns, ", ulong2(0, 0), true");
  const Mark inner = Enter();
  const Code m = BeginLoop("m", Number(0), Number(rows), 1, /*unroll=*/true);
  const Mark innermost = Enter();
  const Code n = BeginLoop("n", Number(0), Number(columns), 1, /*unroll=*/true);
  const std::string sum = absl::StrCat(tile.pointer, "[", Sum(Product(m, Number(columns)), n).text, "]");
  Line(absl::StrCat("simdgroup_multiply_accumulate(", sum, ", ", left, "[", m.text, "], ", right, "[", n.text, "], ",
                    sum, ");"));
  EndLoop(innermost);
  EndLoop(inner);
  EndLoop(depth);
  EndLoop(mark);
}

}  // namespace quern::metal
