// The delta rule (ir/delta_rule.h) of a prompt, in chunks of C tokens: the WY form, whose products are tiles while the
// state of a head stays in scratch, as panels of 32 columns. With D_ts the decay from token s to token t of a chunk,
// s <= t, E_t that from its start, S the state before it:
//
//   A_ts = beta_t D_ts (k_t k_s), s < t    P_ts = D_ts (q_t k_s), s <= t    T = (1 + A)^-1
//   d = T (beta (v - E (k S)))    o = scale (E (q S) + P d)    S <- E_C S + sum_s D_Cs k_s d_s
//
//   for t0 in 0..S by C {
//     x = q and k of the chunk; dm, ec: D and E
//     mma_f32 g += x, kp; map in g { pm = ..; am = .. }; tm: T, row by row
//     for f in panels {
//       mma_f32 rq += x[q], st[f]; mma_f32 rk += x[k], st[f]; map in rk { r = .. }
//       mma_f32 dt += tm, r; map in dt { d = dt }; mma_f32 ot += pm, d; map in ot, rq { o = .. }
//       for i0 in 0..n by 24 { mma_f32 ut += kt[i0 : +24, :], d; map in ut { st = st * E + ut } } } }
//
// Decays are running products of e^g, as token by token, not quotients or differences of sums: of a gate that forgets
// all, g = -inf, nothing is left of what was before it, and nothing else changes. A chunk that is not full is filled up
// with tokens of which k, q and beta are 0 and e^g is 1: they leave the state as it is.

#include <algorithm>

#include "codegen/delta_rule.h"
#include "codegen/loops.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr int64_t kChunk = 16;     // tokens: of 12, 24 and 32 states of 128 x 128 take 3 to 10 % longer
constexpr int64_t kPanel = 32;     // columns
constexpr int64_t kColumns = 128;  // of a chunk of the grid: what k k, q k and T of a head's tokens are shared by
constexpr int64_t kRows = 24;      // of a state that a tile corrects

constexpr DType kF32 = DType::kF32;

kir::ExprRef F(const char* name, kir::Index at) { return kb::At(name, kF32, std::move(at)); }

class Chunks {
 public:
  explicit Chunks(DeltaRule& rule)
      : rule_(rule), n_(rule.n()), columns_(std::min(kColumns, (rule.m() + kPanel - 1) / kPanel * kPanel)) {}

  void Write() {
    kir::Block body;
    Allocate(body);
    State(body);
    kir::Block chunk = {kb::Let("live", kb::Min(kb::FromExtent(rule_.length()) - kb::Ref("t0"), kb::Int(kChunk)))};
    Tokens(chunk);
    Decays(chunk);
    Triangles(chunk);
    Panels(chunk);
    body.push_back(kb::For("t0", kb::Int(0), kb::FromExtent(rule_.length()), std::move(chunk), kChunk));
    if (!rule_.after().empty()) {
      body.push_back(OverState([&](const kir::Index& at, const kir::Index& kept) {
        return rule_.Of(kb::Store(rule_.after(), at, F("st", kept)));
      }));
    }
    kir::Kernel& kernel = rule_.writer.kernel;
    kernel.grid = {{"b", kb::Int(0), kb::FromExtent(rule_.batch()), 1},
                   {"h", kb::Int(0), kb::Int(rule_.heads()), 1},
                   {"j0", kb::Int(0), kb::Int(rule_.m()), columns_}};
    kernel.body = std::move(body);
  }

 private:
  static void Floats(kir::Block& block, const char* name, std::vector<int64_t> dims,
                     kir::Layout layout = kir::Layout::kRow) {
    block.push_back(kb::Alloc(name, {kF32, {dims.begin(), dims.end()}, layout}));
  }
  void Allocate(kir::Block& block) const {
    Floats(block, "st", {kPanel, columns_ / kPanel * n_}, kir::Layout::kKn32);
    Floats(block, "kp", {kPanel, n_}, kir::Layout::kKn32);
    for (const char* name : {"r", "d"}) Floats(block, name, {kPanel, kChunk}, kir::Layout::kKn32);
    Floats(block, "x", {2 * kChunk, n_});
    Floats(block, "kd", {kChunk, n_});
    Floats(block, "kt", {n_, kChunk});
    for (const char* name : {"dm", "am", "pm", "tm"}) Floats(block, name, {kChunk, kChunk});
    for (const char* name : {"ev", "ec", "bt"}) Floats(block, name, {kChunk});
  }

  // The columns of panel f that there are.
  kir::ExprRef Columns() const { return kb::Min(kb::Int(rule_.m()) - First(), kb::Int(kPanel)); }
  kir::ExprRef First() const { return kb::Ref("j0") + kb::Ref("f") * static_cast<double>(kPanel); }
  kir::StmtRef OverPanels(kir::Block body) const {
    // Of a last chunk of the grid that has fewer columns, fewer panels.
    const kir::ExprRef left = (kb::Int(rule_.m() + kPanel - 1) - kb::Ref("j0")) / static_cast<double>(kPanel);
    return kb::For("f", kb::Int(0), kb::Min(left, kb::Int(columns_ / kPanel)), std::move(body));
  }
  // make(where an element is in memory, where it is in panels) for all of the state.
  template <typename Make>
  kir::StmtRef OverState(const Make& make) const {
    const kir::ExprRef i = kb::Ref("i"), c = kb::Ref("c");
    const kir::StmtRef one = make({kb::Ref("b"), kb::Ref("h"), i, First() + c}, {c, Row(i)});
    return OverPanels({kb::For("i", kb::Int(0), kb::Int(n_), {kb::Vec("c", kb::Int(0), Columns(), {one})})});
  }
  kir::ExprRef Row(const kir::ExprRef& i) const { return kb::Ref("f") * static_cast<double>(n_) + i; }

  void State(kir::Block& block) {
    if (rule_.m() % kPanel != 0) {  // panels are multiplied whole
      const auto zero = [&](const char* name, int64_t rows) {
        const kir::Index at = {kb::Ref("c"), kb::Ref("i")};
        block.push_back(kb::For("i", kb::Int(0), kb::Int(rows),
                                {kb::Vec("c", kb::Int(0), kb::Int(kPanel), {kb::Store(name, at, kb::Num(0))})}));
      };
      zero("st", columns_ / kPanel * n_);
      zero("r", kChunk);
    }
    block.push_back(OverState(
        [&](const kir::Index& at, const kir::Index& kept) { return kb::Store("st", kept, rule_.Before(at)); }));
  }

  // x, bt and ev: q and k, beta and e^g of the tokens, of which those that are not there leave the state alone.
  void Tokens(kir::Block& block) {
    const kir::ExprRef t = kb::Ref("t"), i = kb::Ref("i"), b = kb::Ref("b"), h = kb::Ref("h"),
                       token = kb::Ref("t0") + t, live = kb::Ref("live"), key = rule_.KeyOf(h),
                       k = t + static_cast<double>(kChunk);
    const auto rows = [&](const kir::ExprRef& q_row, const kir::ExprRef& k_row) {
      return kb::Vec("i", kb::Int(0), kb::Int(n_), {kb::Store("x", {t, i}, q_row), kb::Store("x", {k, i}, k_row)});
    };
    block.push_back(
        kb::For("t", kb::Int(0), live,
                {kb::Store("ev", {t}, kb::Call(kir::Op::kExp, {rule_.Read(ir::kDeltaDecay, {b, token, h})})),
                 kb::Store("bt", {t}, rule_.Read(ir::kDeltaBeta, {b, token, h})),
                 rows(rule_.Read(ir::kDeltaQ, {b, token, key, i}), rule_.Read(ir::kDeltaK, {b, token, key, i}))}));
    block.push_back(kb::For("t", live, kb::Int(kChunk),
                            {kb::Store("ev", {t}, kb::Num(1)), kb::Store("bt", {t}, kb::Num(0)),
                             kb::Vec("c", kb::Int(0), kb::Int(kPanel), {kb::Store("r", {kb::Ref("c"), t}, kb::Num(0))}),
                             rows(kb::Num(0), kb::Num(0))}));
    block.push_back(kb::Pack(Part("kp", kb::Int(0), kPanel), Part("x", kb::Int(kChunk), kChunk)));
  }

  // 1 where s is `row`, or 0.
  static kir::ExprRef Same(const kir::ExprRef& row) {
    return kb::Select(kb::Call(kir::Op::kEq, {kb::Ref("s"), row}), kb::Num(1), kb::Num(0));
  }
  // dm, ec, and kt: the keys by the decay from them to the end of the chunk.
  void Decays(kir::Block& block) const {
    const kir::ExprRef t = kb::Ref("t"), s = kb::Ref("s"), i = kb::Ref("i");
    const auto row = [&](const kir::ExprRef& at, const kir::ExprRef& value) {
      return kb::Vec("s", kb::Int(0), kb::Int(kChunk), {kb::Store("dm", {at, s}, value)});
    };
    block.push_back(row(kb::Int(0), Same(kb::Int(0))));
    block.push_back(kb::Store("ec", {kb::Int(0)}, F("ev", {kb::Int(0)})));
    block.push_back(
        kb::For("t", kb::Int(1), kb::Int(kChunk),
                {row(t, kb::Select(kb::Call(kir::Op::kLt, {s, t}), F("dm", {t - 1.0, s}) * F("ev", {t}), Same(t))),
                 kb::Store("ec", {t}, F("ec", {t - 1.0}) * F("ev", {t}))}));
    const kir::ExprRef left = F("dm", {kb::Int(kChunk - 1), t});
    block.push_back(kb::For(
        "t", kb::Int(0), kb::Int(kChunk),
        {kb::Let("left", left),
         kb::Vec("i", kb::Int(0), kb::Int(n_),
                 {kb::Store("kd", {t, i}, F("x", {t + static_cast<double>(kChunk), i}) * kb::Ref("left", kF32))})}));
    block.push_back(kb::Pack(kb::Whole("kt", 2), kb::Whole("kd", 2)));
  }

  // pm, am and tm.
  void Triangles(kir::Block& block) const {
    const kir::ExprRef t = kb::Ref("t"), s = kb::Ref("s"), z = kb::Ref("z"), decay = F("dm", {t, s});
    block.push_back(kb::Tile("g", {2 * kChunk, kChunk}));
    block.push_back(kb::CallTile("mma_f32", {"g"}, {kb::Whole("x", 2), Part("kp", kb::Int(0), kChunk)}));
    block.push_back(kb::Map(
        {"t", "s"}, {"g"}, {kb::Int(kChunk), kb::Int(kChunk)},
        {kb::Store("pm", {t, s}, decay * kb::Ref("g", kF32)),
         kb::Store("am", {t, s}, decay * F("bt", {t}) * kb::At("g", kF32, {t + static_cast<double>(kChunk), s}))}));
    const kir::ExprRef before =
        kb::ReduceFor(kir::ReduceOp::kSum, "z", kb::Int(0), t, kb::Contract(F("am", {t, z}) * F("tm", {z, s})));
    const auto row = [&](const kir::ExprRef& at, const kir::ExprRef& value) {
      return kb::Vec("s", kb::Int(0), kb::Int(kChunk), {kb::Store("tm", {at, s}, value)});
    };
    block.push_back(row(kb::Int(0), Same(kb::Int(0))));
    block.push_back(kb::For("t", kb::Int(1), kb::Int(kChunk), {row(t, Same(t) - before)}));
  }

  static kir::Slice Part(const char* name, const kir::ExprRef& first, int64_t rows) {
    return kb::SliceOf(name, {kb::Range(first, kb::Int(rows)), kb::All()});
  }

  // Corrections, results and the state after the chunk, panel by panel.
  void Panels(kir::Block& chunk) {
    const kir::ExprRef t = kb::Ref("t"), c = kb::Ref("c"), i = kb::Ref("i"), b = kb::Ref("b"), h = kb::Ref("h"),
                       token = kb::Ref("t0") + t, column = First() + c, live = kb::Ref("live"), zero = kb::Int(0);
    const kir::Slice state = kb::SliceOf("st", {kb::Range(zero, kb::Int(kPanel)), kb::Range(Row(zero), kb::Int(n_))});
    const auto tile = [](const char* name, int64_t rows) { return kb::Tile(name, {rows, kPanel}); };
    const auto multiply = [](const char* name, kir::Slice x, kir::Slice w) {
      return kb::CallTile("mma_f32", {name}, {std::move(x), std::move(w)});
    };
    kir::Block block = {tile("rk", kChunk), multiply("rk", Part("x", kb::Int(kChunk), kChunk), state)};
    const kir::ExprRef given = rule_.Read(ir::kDeltaV, {b, token, h, column}) - F("ec", {t}) * kb::Ref("rk", kF32);
    block.push_back(
        kb::Map({"t", "c"}, {"rk"}, {live, Columns()}, {kb::Store("r", {c, t}, kb::Contract(given) * F("bt", {t}))}));
    block.push_back(tile("dt", kChunk));
    block.push_back(multiply("dt", kb::Whole("tm", 2), kb::Whole("r", 2)));
    block.push_back(
        kb::Map({"t", "c"}, {"dt"}, {kb::Int(kChunk), kb::Int(kPanel)}, {kb::Store("d", {c, t}, kb::Ref("dt", kF32))}));
    if (!rule_.o().empty()) {
      block.push_back(tile("rq", kChunk));
      block.push_back(multiply("rq", Part("x", zero, kChunk), state));
      block.push_back(tile("ot", kChunk));
      block.push_back(multiply("ot", kb::Whole("pm", 2), kb::Whole("d", 2)));
      const kir::ExprRef o = kb::Contract(F("ec", {t}) * kb::Ref("rq", kF32) + kb::Ref("ot", kF32)) * rule_.scale();
      block.push_back(kb::Map({"t", "c"}, {"rq", "ot"}, {live, Columns()},
                              {rule_.Of(kb::Store(rule_.o(), {b, token, h, column}, o))}));
    }
    const kir::ExprRef i0 = kb::Ref("i0");
    const kir::Index at = {c, Row(i0 + i)};
    kir::Block rows = {tile("ut", kRows), multiply("ut", Part("kt", i0, kRows), kb::Whole("d", 2))};
    const kir::ExprRef next = F("st", at) * F("ec", {kb::Int(kChunk - 1)}) + kb::Ref("ut", kF32);
    rows.push_back(kb::Map({"i", "c"}, {"ut"}, {kb::Min(kb::Int(n_) - i0, kb::Int(kRows)), kb::Int(kPanel)},
                           {kb::Store("st", at, kb::Contract(next))}));
    block.push_back(kb::For("i0", zero, kb::Int(n_), std::move(rows), kRows));
    chunk.push_back(OverPanels(std::move(block)));
  }

  DeltaRule& rule_;
  const int64_t n_, columns_;
};

}  // namespace

// Fitted to 32 heads of 128 x 128: a chunk takes as long as 11 or 12 tokens by themselves, full or not. It counts how
// long a sequence may be, so that 9 tokens of up to 256 take a chunk too.
bool TakesDeltaChunks(const DeltaRule& rule, int64_t length) { return !rule.by_channel() && length >= 2 * kChunk; }

void WriteDeltaChunks(DeltaRule& rule) { Chunks(rule).Write(); }

}  // namespace quern::codegen
