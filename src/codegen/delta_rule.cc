// The family of the delta rule (ir/delta_rule.h): states [n, m] that each token of a sequence reads and corrects. A
// column of a state sees no other, so that chunks are blocks of columns of a head; the columns are vector loops.
//
// Of one token (decoding) a chunk reads its part of the state once from memory, and writes it over:
//   vec c in 0..W { u[c] = 0; p[c] = 0 }
//   for i in 0..n by 8 { vec c in 0..W { u[c] = u[c] + s[b, h, i, j0 + c] * ke[i] + ..; p[c] = p[c] + .. * qe[i] } }
//   vec c in 0..W { d[c] = (v[b, t, h, j0 + c] - u[c]) * beta; o[..] = (p[c] + d[c] * kq) * scale }
//   for i in n..0 by 8 { vec c in 0..W { s[..] = s[..] * e + d[c] * k[i]; .. } }
// where e is e^g, ke and qe are k and q times it, and kq is the product of k and q. Of more tokens the part stays in
// scratch from the first to the last of them; of many they go in chunks (delta_chunks.cc).

#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/delta_rule.h"
#include "codegen/families.h"
#include "codegen/loops.h"
#include "codegen/recurrence.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

// Rows of a state that one round of a loop takes, so that sums are loaded and stored once: as many as one stream of
// memory bears, and more of what is in the cache.
constexpr int64_t kRows = 4, kRowsKept = 8;
constexpr int64_t kColumns = 128;     // of a chunk, for one token: what runs of memory there are
constexpr int64_t kColumnsKept = 32;  // of a chunk, for more: their part of the state is for the first cache

class DeltaTokens {
 public:
  explicit DeltaTokens(DeltaRule& rule) : rule_(rule), n_(rule.n()), m_(rule.m()) {}

  void Write() {
    const bool one = rule_.length() == Extent(1);
    rows_ = one ? kRows : kRowsKept;
    columns_ = std::min(one ? kColumns : kColumnsKept, m_);
    kir::Block body;
    for (const char* name : {"u", "p", "d"}) body.push_back(Floats(name, columns_));
    for (const char* name : {"kr", "ke", "qe"}) body.push_back(Floats(name, n_));
    if (rule_.by_channel()) body.push_back(Floats("er", n_));
    if (one)
      OneToken(body);
    else
      Tokens(body);
    kir::Kernel& kernel = rule_.writer.kernel;
    kernel.grid = {{"b", kb::Int(0), kb::FromExtent(rule_.batch()), 1},
                   {"h", kb::Int(0), kb::Int(rule_.heads()), 1},
                   {"j0", kb::Int(0), kb::Int(m_), columns_}};
    kernel.body = std::move(body);
  }

 private:
  // Rows that were read last are in the first cache still: who reads them again begins there.
  enum class Order : uint8_t { kOn, kBack };
  using Where = std::function<kir::ExprRef(const kir::ExprRef& i)>;

  kir::StmtRef Floats(const char* name, int64_t count) const {
    return kb::Alloc(name, {DType::kF32, {Extent(count)}, kir::Layout::kRow});
  }
  kir::StmtRef Columns(kir::Block body) const {
    return kb::Vec("c", kb::Int(0), Live(Extent(m_), kb::Ref("j0"), columns_), std::move(body));
  }
  kir::ExprRef Kept(const char* name) const { return kb::At(name, DType::kF32, {kb::Ref("c")}); }
  kir::ExprRef Of(const char* name, const kir::ExprRef& i) const { return kb::At(name, DType::kF32, {i}); }
  kir::Index StateAt(const kir::ExprRef& i) const {
    return {kb::Ref("b"), kb::Ref("h"), i, kb::Ref("j0") + kb::Ref("c")};
  }

  // Loops over all rows of a state, from its first on or from its last back: `make` gives the body for `count` rows
  // from i on. With `ahead`, the other half of the rows of the head after this one from there on is asked for
  // meanwhile: rows are too short for a machine to see that they follow each other.
  template <typename Make>
  void Rows(kir::Block& block, std::optional<int64_t> ahead, Order order, const Make& make) {
    const int64_t whole = n_ / rows_ * rows_;
    if (order == Order::kBack && whole < n_) block.push_back(Columns(make(kb::Int(whole), n_ - whole)));
    if (whole > 0) {
      kir::Block body;
      const kir::ExprRef i = kb::Ref("i");
      if (const std::string state = ahead ? rule_.Buffer(ir::kDeltaState) : ""; !state.empty()) {
        const kir::ExprRef from = i / 2.0 + static_cast<double>(*ahead);
        body.push_back(kb::Prefetch(
            kb::SliceOf(state, {kb::Point(kb::Ref("b")), kb::Point(kb::Ref("h") + 1.0),
                                kb::Range(from, kb::Int(rows_ / 2)), kb::Range(kb::Ref("j0"), kb::Int(columns_))})));
      }
      if (order == Order::kBack) body.push_back(kb::Let("r", static_cast<double>(whole - rows_) - i));
      body.push_back(Columns(make(order == Order::kBack ? kb::Ref("r") : i, rows_)));
      block.push_back(kb::For("i", kb::Int(0), kb::Int(whole), std::move(body), rows_));
    }
    if (order == Order::kOn && whole < n_) block.push_back(Columns(make(kb::Int(whole), n_ - whole)));
  }

  // kr, ke, qe, er and the numbers of token t: e, beta.
  void Token(kir::Block& block, const kir::ExprRef& t) {
    const kir::ExprRef b = kb::Ref("b"), h = kb::Ref("h"), i = kb::Ref("i");
    const kir::ExprRef key = rule_.KeyOf(h);
    kir::Block rows;
    kir::ExprRef decay;
    if (rule_.by_channel()) {
      rows.push_back(kb::Let("e", kb::Call(kir::Op::kExp, {rule_.Read(ir::kDeltaDecay, {b, t, h, i})})));
      rows.push_back(kb::Store("er", {i}, kb::Ref("e", DType::kF32)));
    } else {
      block.push_back(kb::Let("e", kb::Call(kir::Op::kExp, {rule_.Read(ir::kDeltaDecay, {b, t, h})})));
    }
    const kir::ExprRef e = kb::Ref("e", DType::kF32);
    rows.push_back(kb::Let("ki", rule_.Read(ir::kDeltaK, {b, t, key, i})));
    rows.push_back(kb::Store("kr", {i}, kb::Ref("ki", DType::kF32)));
    rows.push_back(kb::Store("ke", {i}, kb::Ref("ki", DType::kF32) * e));
    rows.push_back(kb::Store("qe", {i}, rule_.Read(ir::kDeltaQ, {b, t, key, i}) * e));
    block.push_back(kb::Vec("i", kb::Int(0), kb::Int(n_), std::move(rows)));
    block.push_back(kb::Let("beta", rule_.Read(ir::kDeltaBeta, {b, t, h})));
    const kir::ExprRef product = rule_.Read(ir::kDeltaQ, {b, t, key, kb::Ref("x")}) * Of("kr", kb::Ref("x"));
    block.push_back(kb::Let("kq", kb::SumVec(1, "x", kb::Int(0), kb::Int(n_), kb::Contract(product))));
  }

  // u and p: the columns of the state times ke and qe.
  void Products(kir::Block& block, std::optional<int64_t> ahead, const Where& state) {
    block.push_back(Columns({kb::Store("u", {kb::Ref("c")}, kb::Num(0)), kb::Store("p", {kb::Ref("c")}, kb::Num(0))}));
    Rows(block, ahead, Order::kOn, [&](const kir::ExprRef& i, int64_t count) {
      kir::Block body;
      kir::ExprRef u = Kept("u"), p = Kept("p");
      for (int64_t r = 0; r < count; ++r) {
        const kir::ExprRef row = i + static_cast<double>(r), s = state(row);
        u = u + s * Of("ke", row);
        p = p + s * Of("qe", row);
      }
      body.push_back(kb::Store("u", {kb::Ref("c")}, kb::Contract(u)));
      body.push_back(kb::Store("p", {kb::Ref("c")}, kb::Contract(p)));
      return body;
    });
  }

  // d of the token, and its result.
  void Correction(kir::Block& block, const kir::ExprRef& t) {
    const kir::ExprRef column = kb::Ref("j0") + kb::Ref("c"), b = kb::Ref("b"), h = kb::Ref("h");
    const kir::ExprRef d = kb::Ref("dc", DType::kF32);
    kir::Block body = {
        kb::Let("dc", (rule_.Read(ir::kDeltaV, {b, t, h, column}) - Kept("u")) * kb::Ref("beta", DType::kF32)),
        kb::Store("d", {kb::Ref("c")}, d)};
    if (!rule_.o().empty()) {
      const kir::ExprRef o = kb::Contract(Kept("p") + d * kb::Ref("kq", DType::kF32)) * rule_.scale();
      body.push_back(rule_.Of(kb::Store(rule_.o(), {b, t, h, column}, o)));
    }
    block.push_back(Columns(std::move(body)));
  }

  // The rows of the state after the token.
  void Corrected(kir::Block& block, std::optional<int64_t> ahead, const Where& state, const std::string& to,
                 const std::function<kir::Index(const kir::ExprRef&)>& place) {
    Rows(block, ahead, Order::kBack, [&](const kir::ExprRef& i, int64_t count) {
      kir::Block body;
      for (int64_t r = 0; r < count; ++r) {
        const kir::ExprRef row = i + static_cast<double>(r);
        const kir::ExprRef e = rule_.by_channel() ? Of("er", row) : kb::Ref("e", DType::kF32);
        body.push_back(rule_.Of(kb::Store(to, place(row), kb::Contract(state(row) * e + Kept("d") * Of("kr", row)))));
      }
      return body;
    });
  }

  void OneToken(kir::Block& block) {
    const auto state = [this](const kir::ExprRef& i) { return rule_.Before(StateAt(i)); };
    Token(block, kb::Int(0));
    Products(block, 0, state);
    Correction(block, kb::Int(0));
    if (!rule_.after().empty())
      Corrected(block, n_ / 2, state, rule_.after(), [this](const kir::ExprRef& i) { return StateAt(i); });
  }

  void Tokens(kir::Block& block) {
    block.push_back(kb::Alloc("s", {DType::kF32, {Extent(n_), Extent(columns_)}, kir::Layout::kRow}));
    const auto place = [](const kir::ExprRef& i) { return kir::Index{i, kb::Ref("c")}; };
    const auto state = [&](const kir::ExprRef& i) { return kb::At("s", DType::kF32, place(i)); };
    const kir::ExprRef i = kb::Ref("i");
    block.push_back(
        kb::For("i", kb::Int(0), kb::Int(n_), {Columns({kb::Store("s", place(i), rule_.Before(StateAt(i)))})}));
    kir::Block token;
    Token(token, kb::Ref("t"));
    Products(token, std::nullopt, state);
    Correction(token, kb::Ref("t"));
    Corrected(token, std::nullopt, state, "s", place);
    block.push_back(kb::For("t", kb::Int(0), kb::FromExtent(rule_.length()), std::move(token)));
    if (rule_.after().empty()) return;
    block.push_back(
        kb::For("i", kb::Int(0), kb::Int(n_), {Columns({rule_.Of(kb::Store(rule_.after(), StateAt(i), state(i)))})}));
  }

  DeltaRule& rule_;
  const int64_t n_, m_;
  int64_t columns_ = 0, rows_ = 0;
};

}  // namespace

DeltaRule::DeltaRule(const RegionView& view) : writer(view, "delta_rule"), view_(view), expr_(view.graph) {
  for (const int n : view.nodes()) {
    if (ir::IsRoot(view.node(n), "delta_rule")) root_ = n;
  }
  const ir::Node& node = view.node(root_);
  inputs_ = node.inputs;
  const std::vector<Extent>&q = view.type(inputs_[ir::kDeltaQ]).dims, &v = view.type(inputs_[ir::kDeltaV]).dims;
  batch_ = q[0], length_ = q[1];
  n_ = q[3].constant(), m_ = v[3].constant(), heads_ = v[2].constant();
  group_ = heads_ / q[2].constant();
  by_channel_ = view.type(inputs_[ir::kDeltaDecay]).rank() == 4;
  scale_ = node.attributes.Float("scale");
  if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(n_));
  writer.ProvideInputs(expr_);
  Names();
}

void DeltaRule::Names() {
  const ir::Value state = inputs_[ir::kDeltaState];
  in_place_ = !view_.Has(state.node) && view_.InputIndex(state) >= 0 && view_.scope.IsWritable(state.node);
  in_place_ = in_place_ && std::count(view_.results().begin(), view_.results().end(), ir::Value{root_, 1}) > 0;
  for (size_t r = 0; r < view_.results().size(); ++r) {
    if (view_.results()[r] == ir::Value{root_, 0}) o_ = writer.Result(static_cast<int>(r));
    if (view_.results()[r] == ir::Value{root_, 1})
      after_ = in_place_ ? writer.UpdatedInput(view_.InputIndex(state)) : writer.Result(static_cast<int>(r));
  }
}

kir::ExprRef DeltaRule::KeyOf(const kir::ExprRef& h) const { return group_ == 1 ? h : h / static_cast<double>(group_); }

std::string DeltaRule::Buffer(int operand) {
  if (operand == ir::kDeltaState && in_place_) return after_;
  const int input = view_.InputIndex(inputs_[operand]);
  return input >= 0 ? writer.Input(input) : "";
}

family::Matched MatchDeltaRule(const RegionView& view) { return MatchRecurrence(view, "delta_rule"); }

StatusOr<LoweredRegion> LowerDeltaRule(const RegionView& view, const RegionPlan&) {
  DeltaRule rule(view);
  if (!view.facts.invariant && TakesDeltaChunks(rule, view.UpperBound(rule.length())))
    WriteDeltaChunks(rule);
  else
    DeltaTokens(rule).Write();
  return rule.writer.FinishRegion();
}

}  // namespace quern::codegen
