// The family of orders: Sort and TopK along the last axis. Elements are compared as keys, signed integers that have the
// order of the values: bits of floats with the sign taken off them, NaN above everything, both zeros one key, and all
// of it the other way round where values descend. Keys of integers compare alike whatever becomes of denormals. Three
// kernels, all of loops, each line by one chunk:
//
//   short lines    an element's place is the number of those before it, which vectors count:
//                    for i in 0..n { let place = sum vec j in 0..i { key[j] <= key[i] } + sum vec j in i..n { .. } }
//   a few of many  the best so far lie in order; a part of the line whose best is no better than the last of them is
//                  passed over by one vector reduction, which is what nearly all parts are
//   the others     digits of 8 bits, lowest first: each pass counts and moves, and keeps the order of the one before.
//                  2 passes of halves, 4 of 32 bits; a line that a core's cache does not hold has its buffers in memory

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "codegen/families.h"
#include "codegen/loops.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using kir::Block;
using kir::ExprRef;
using kir::Index;
using kir::Op;

constexpr int64_t kShort = 128;   // elements of a line whose places are counted
constexpr int64_t kBlock = 1024;  // the same by a block of threads, which has no other form
constexpr int64_t kFew = 128;     // elements that are kept in order while a line goes by
constexpr int64_t kPart = 64;     // elements that are passed over at once
constexpr int64_t kDigits = 256;  // values of a digit

ExprRef Less(ExprRef a, ExprRef b) { return kb::Call(Op::kLt, {std::move(a), std::move(b)}); }
ExprRef LessOrEqual(ExprRef a, ExprRef b) { return kb::Call(Op::kLe, {std::move(a), std::move(b)}); }
ExprRef Both(ExprRef a, ExprRef b) { return kb::Call(Op::kAnd, {std::move(a), std::move(b)}); }

// The largest finite value and above: bits of an infinity of the float dtype without its sign.
int64_t InfinityBits(DType dtype) {
  switch (ScalarBytes(dtype)) {
    case 2: return dtype == DType::kF16 ? 0x7c00 : 0x7f80;
    case 4: return 0x7f800000;
    default: return 0x7ff0000000000000;
  }
}

class SortKernel {
 public:
  explicit SortKernel(const RegionView& view)
      : view_(view),
        node_(view.node(view.nodes()[0])),
        type_(view.type(node_.inputs[0])),
        n_(type_.dims.back()),
        k_(node_.results[0].dims.back()),
        most_(view.UpperBound(n_)),
        bits_(8 * ScalarBytes(type_.dtype)),
        key_(bits_ == 64 ? DType::kI64 : DType::kI32),
        place_(most_ > INT32_MAX ? DType::kI64 : DType::kI32),
        writer_(view, "sort"),
        expr_(view.graph) {
    writer_.ProvideInputs(expr_);
  }

  StatusOr<LoweredRegion> Run() {
    const std::vector<Extent> outer(type_.dims.begin(), type_.dims.end() - 1);
    EmitGrid(view_, writer_.kernel, outer, std::min<int64_t>(most_, kChunkElements) * 8,
             [&](const Index& index, Block& block) {
               outer_ = index;
               block = view_.facts.blocks || most_ <= kShort ? Counted() : IsFew() ? Kept() : Unless0(ByDigits());
             });
    QUERN_ASSIGN(KernelUse use, writer_.Finish());
    lowered_.kernels.push_back(std::move(use));
    return std::move(lowered_);
  }

 private:
  bool IsFew() const { return k_.is_constant() && k_.constant() >= 1 && k_.constant() <= kFew; }
  ExprRef N() const { return kb::FromExtent(n_); }
  ExprRef K() const { return kb::FromExtent(k_); }
  Index At(const ExprRef& i) const {
    Index at = outer_;
    at.push_back(i);
    return at;
  }
  ExprRef X(const ExprRef& i) { return expr_.Element(node_.inputs[0], At(i)); }

  // Of an element of x.
  ExprRef KeyOf(const ExprRef& x) const {
    const DType dtype = type_.dtype;
    ExprRef key;
    const auto number = [&](int64_t value) { return kb::Int(value, key_); };
    if (IsFloat(dtype)) {
      const int64_t mask = bits_ == 64 ? INT64_MAX : (int64_t{1} << (bits_ - 1)) - 1;
      const ExprRef bits = kb::CastTo(key_, kb::BitsTo(bits_ == 16   ? DType::kI16
                                                       : bits_ == 32 ? DType::kI32
                                                                     : DType::kI64,
                                                       x));
      const ExprRef size = Both(bits, number(mask));
      const ExprRef ordered = kb::Select(Less(bits, number(0)), number(0) - size, bits);
      key = kb::Select(Less(number(InfinityBits(dtype)), size), number(mask), ordered);
    } else if (IsUnsigned(dtype) && bits_ >= 32) {
      const int64_t sign = bits_ == 64 ? INT64_MIN : int64_t{1} << 31;
      key = kb::BitsTo(key_, kb::Call(Op::kXor, {x, kb::Int(sign, dtype)}));
    } else {
      key = kb::CastTo(key_, x);
      if (IsUnsigned(dtype)) key = key - number(int64_t{1} << (bits_ - 1));
    }
    return node_.op->sort->descending(node_) ? kb::Call(Op::kXor, {key, number(-1)}) : key;
  }

  // No place is inside of a line that has none.
  Block Unless0(Block block) const {
    if (n_.LowerBound(view_.ranges).value_or(0) > 0) return block;
    return {kb::If(Less(kb::Int(0), N()), std::move(block))};
  }

  // The element of x at `from` is the one at `to` of the results.
  Block Put(const ExprRef& to, const ExprRef& from) {
    Block block;
    for (size_t r = 0; r < view_.results().size(); ++r) {
      const ExprRef value = view_.results()[r].result == 0 ? X(from) : from;
      block.push_back(kb::WithOrigin(kb::Store(writer_.Result(static_cast<int>(r)), At(to), value),
                                     writer_.Origin(view_.nodes()[0])));
    }
    return block;
  }

  // `value`, an integer that is an index below `size` in fact, as one that is seen to be.
  static ExprRef Inside(const ExprRef& value, const ExprRef& size) {
    return kb::Max(kb::Int(0), kb::Min(kb::CastTo(DType::kI64, value), size - 1.0));
  }

  void Alloc(Block& block, const char* name, DType dtype, Extent extent) const {
    block.push_back(kb::Alloc(name, {dtype, {std::move(extent)}, kir::Layout::kRow}));
  }

  // How many of the first `count` keys of `buffer` lie before key i, `own`, in the order.
  ExprRef PlaceOf(const char* buffer, const ExprRef& i, const ExprRef& own, const ExprRef& count) const {
    const auto counted = [&](ExprRef low, ExprRef high, ExprRef before) {
      return kb::ReduceVec(kir::ReduceOp::kSum, 1, "j", std::move(low), std::move(high),
                           kb::Select(std::move(before), kb::Int(1, DType::kI32), kb::Int(0, DType::kI32)));
    };
    const ExprRef key = kb::At(buffer, key_, {kb::Ref("j")});
    return counted(kb::Int(0), i, LessOrEqual(key, own)) + counted(i, count, Less(key, own));
  }

  Block Counted() {
    Block block;
    Alloc(block, "key", key_, n_);
    const ExprRef c = kb::Ref("c"), i = kb::Ref("i"), own = kb::Ref("own", key_), place = kb::Ref("place");
    block.push_back(kb::Vec("c", kb::Int(0), N(), {kb::Store("key", {c}, KeyOf(X(c)))}));
    block.push_back(kb::For("i", kb::Int(0), N(),
                            {kb::Let("own", kb::At("key", key_, {i})),
                             kb::Let("place", kb::CastTo(DType::kI64, PlaceOf("key", i, own, N()))),
                             kb::If(Both(LessOrEqual(kb::Int(0), place), Less(place, K())), Put(place, i))}));
    return block;
  }

  // The best k so far are best[1..k], in order; best[0] lies before all.
  Block Kept() {
    Block block;
    const int64_t k = k_.constant();
    const ExprRef c = kb::Ref("c"), i = kb::Ref("i"), own = kb::Ref("own", key_), b = kb::Ref("b"), j = kb::Ref("j"),
                  last = kb::At("best", key_, {kb::Int(k)});
    for (const char* name : {"best", "next", "first"}) Alloc(block, name, key_, k + 1);
    for (const char* name : {"from", "nextfrom"}) Alloc(block, name, place_, k + 1);
    block.push_back(kb::Vec("c", kb::Int(0), kb::Int(k), {kb::Store("first", {c}, KeyOf(X(c)))}));
    block.push_back(kb::Store("best", {kb::Int(0)}, kb::Int(key_ == DType::kI64 ? INT64_MIN : INT32_MIN, key_)));
    block.push_back(kb::Store("from", {kb::Int(0)}, kb::Int(0, place_)));
    const ExprRef place = kb::Ref("place");
    block.push_back(kb::For("i", kb::Int(0), kb::Int(k),
                            {kb::Let("own", kb::At("first", key_, {i})),
                             kb::Let("place", Inside(PlaceOf("first", i, own, kb::Int(k)), kb::Int(k)) + 1.0),
                             kb::Store("best", {place}, own), kb::Store("from", {place}, kb::CastTo(place_, i))}));

    // One more: all behind its place move by one, and the last is gone.
    const auto best = [&](const ExprRef& at) { return kb::At("best", key_, {at}); };
    const auto from = [&](const ExprRef& at) { return kb::At("from", place_, {at}); };
    const ExprRef stays = kb::Ref("stays", DType::kBool), follows = kb::Ref("follows", DType::kBool);
    const Block insert = {
        kb::Vec("j", kb::Int(1), kb::Int(k + 1),
                {kb::Let("stays", LessOrEqual(best(j), own)), kb::Let("follows", LessOrEqual(best(j - 1.0), own)),
                 kb::Store("next", {j}, kb::Select(stays, best(j), kb::Select(follows, own, best(j - 1.0)))),
                 kb::Store("nextfrom", {j},
                           kb::Select(stays, from(j), kb::Select(follows, kb::CastTo(place_, c), from(j - 1.0))))}),
        kb::Vec("j", kb::Int(1), kb::Int(k + 1),
                {kb::Store("best", {j}, kb::At("next", key_, {j})),
                 kb::Store("from", {j}, kb::At("nextfrom", place_, {j}))})};
    const ExprRef end = kb::Min(b + static_cast<double>(kPart), N());
    Block each = {kb::Let("own", KeyOf(X(c))), kb::If(Less(own, last), insert)};
    const ExprRef any = kb::ReduceVec(kir::ReduceOp::kMin, 4, "c", b, end, KeyOf(X(c)));
    block.push_back(kb::For(
        "b", kb::Int(k), N(),
        {kb::Let("any", any), kb::If(Less(kb::Ref("any", key_), last), {kb::For("c", b, end, std::move(each))})},
        kPart));
    Block out = {kb::Let("at", Inside(from(c + 1.0), N()))};
    for (kir::StmtRef& stmt : Put(c, kb::Ref("at"))) out.push_back(std::move(stmt));
    block.push_back(kb::Vec("c", kb::Int(0), kb::Int(k), std::move(out)));
    return block;
  }

  // A buffer of an element for each of the line: scratch, or memory where it would be too large.
  struct Buffer {
    std::string name;
    DType dtype;
    bool in_memory;
  };
  Buffer MakeBuffer(Block& block, const char* name, DType dtype, bool in_memory) {
    if (!in_memory) {
      Alloc(block, name, dtype, n_);
      return {name, dtype, false};
    }
    const kir::BufferType type = {dtype, type_.dims, kir::Layout::kRow};
    lowered_.temporaries.push_back(type);
    return {writer_.Temporary(static_cast<int>(lowered_.temporaries.size()) - 1, type, true), dtype, true};
  }
  Index Place(const Buffer& buffer, const ExprRef& i) const { return buffer.in_memory ? At(i) : Index{i}; }
  ExprRef Load(const Buffer& buffer, const ExprRef& i) const {
    return kb::At(buffer.name, buffer.dtype, Place(buffer, i));
  }
  kir::StmtRef Store(const Buffer& buffer, const ExprRef& i, ExprRef value) const {
    return kb::Store(buffer.name, Place(buffer, i), std::move(value));
  }

  Block ByDigits() {
    Block block;
    const DType word = bits_ == 64 ? DType::kU64 : DType::kU32;
    const int passes = bits_ / 8;
    const int64_t bytes = 2 * (ScalarBytes(word) + ScalarBytes(place_));
    const bool in_memory = most_ > view_.facts.scratch() / bytes;
    // What the last pass leaves is in the first of each pair.
    const std::array<Buffer, 2> keys = {MakeBuffer(block, "keys", word, in_memory),
                                        MakeBuffer(block, "turned", word, in_memory)};
    const std::array<Buffer, 2> from = {MakeBuffer(block, "from", place_, in_memory),
                                        MakeBuffer(block, "turnedfrom", place_, in_memory)};
    block.push_back(kb::Alloc("count", {place_, {Extent(passes), Extent(kDigits)}, kir::Layout::kRow}));
    const ExprRef c = kb::Ref("c"), p = kb::Ref("p"), d = kb::Ref("d"), own = kb::Ref("own", word);
    const auto count = [&](const ExprRef& pass, const ExprRef& digit) {
      return kb::At("count", place_, {pass, digit});
    };
    const auto digit = [&](int pass) {
      const ExprRef low = kb::CastTo(DType::kU32, pass == 0 ? own : kb::Call(Op::kShr, {own, kb::Int(8 * pass, word)}));
      return kb::CastTo(DType::kI64, Both(low, kb::Int(kDigits - 1, DType::kU32)));
    };
    block.push_back(
        kb::For("p", kb::Int(0), kb::Int(passes),
                {kb::Vec("d", kb::Int(0), kb::Int(kDigits), {kb::Store("count", {p, d}, kb::Int(0, place_))})}));
    const int start = passes % 2;
    const ExprRef unsigned_key =
        kb::BitsTo(word, KeyOf(X(c))) + kb::Int(bits_ == 64 ? INT64_MIN : int64_t{1} << (bits_ - 1), word);
    block.push_back(kb::Vec("c", kb::Int(0), N(),
                            {Store(keys[start], c, unsigned_key), Store(from[start], c, kb::CastTo(place_, c))}));
    Block counting = {kb::Let("own", Load(keys[start], c))};
    for (int pass = 0; pass < passes; ++pass) {
      const std::string name = absl::StrCat("d", pass);
      counting.push_back(kb::Let(name, digit(pass)));
      counting.push_back(
          kb::Store("count", {kb::Int(pass), kb::Ref(name)}, count(kb::Int(pass), kb::Ref(name)) + kb::Int(1, place_)));
    }
    block.push_back(kb::For("c", kb::Int(0), N(), std::move(counting)));
    // Where the first element of each digit goes.
    block.push_back(kb::For("p", kb::Int(0), kb::Int(passes),
                            {kb::Var("sum", kb::Int(0, place_)),
                             kb::For("d", kb::Int(0), kb::Int(kDigits),
                                     {kb::Let("many", count(p, d)), kb::Store("count", {p, d}, kb::Ref("sum", place_)),
                                      kb::Assign("sum", kb::Ref("sum", place_) + kb::Ref("many", place_))})}));
    for (int pass = 0; pass < passes; ++pass) {
      const int have = (start + pass) % 2, want = 1 - have;
      const ExprRef to = kb::Ref("to", place_), at = kb::Ref("at");
      Block move = {
          kb::Let("own", Load(keys[have], c)),    kb::Let("d", digit(pass)),
          kb::Let("to", count(kb::Int(pass), d)), kb::Store("count", {kb::Int(pass), d}, to + kb::Int(1, place_)),
          kb::Let("at", Inside(to, N())),         Store(from[want], at, Load(from[have], c))};
      if (pass + 1 < passes) move.push_back(Store(keys[want], at, own));
      block.push_back(kb::For("c", kb::Int(0), N(), std::move(move)));
    }
    Block out = {kb::Let("at", Inside(Load(from[0], c), N()))};
    for (kir::StmtRef& stmt : Put(c, kb::Ref("at"))) out.push_back(std::move(stmt));
    block.push_back(kb::Vec("c", kb::Int(0), K(), std::move(out)));
    return block;
  }

  const RegionView& view_;
  const ir::Node& node_;
  const ir::TensorType& type_;
  const Extent n_, k_;
  const int64_t most_;  // elements of a line
  const int bits_;      // of an element
  const DType key_, place_;
  KernelWriter writer_;
  FusedExpr expr_;
  Index outer_;
  LoweredRegion lowered_;
};

}  // namespace

family::Matched MatchSort(const RegionView& view) {
  const int n = view.nodes()[0];
  if (view.nodes().size() != 1) return family::No("%s is a kernel of its own", view.Describe(n));
  const int64_t most = view.UpperBound(view.type(view.node(n).inputs[0]).dims.back());
  if (view.facts.blocks && most > kBlock)
    return family::No("%s: a block of threads orders lines of %d at most, not %d", view.Describe(n), kBlock, most);
  return family::Matched(std::make_unique<RegionPlan>());
}

StatusOr<LoweredRegion> LowerSort(const RegionView& view, const RegionPlan&) { return SortKernel(view).Run(); }

}  // namespace quern::codegen
