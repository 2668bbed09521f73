// The family of the delta rule (ir/delta_rule.h): states [n, m] that each token of a sequence reads and corrects. A
// column of a state sees no other, so that chunks are blocks of columns of a head; the columns are vector loops.
//
// Of one token (decoding) a chunk has a few heads, and reads the part of each once from memory and writes it over, what
// one head writes beside what the next one reads; neither alone is all that memory and the core bear:
//   vec c in 0..W { u[c] = 0; p[c] = 0 }
//   for i in 0..n by 4 {
//     r = n - 4 - i
//     vec c in 0..W { s[b, h - 1, r, j0 + c] = s[..] * e + d[c] * k[r]; ..
//                     u[c] = u[c] + s[b, h, i, j0 + c] * ke[i] + ..; p[c] = p[c] + .. * qe[i] } }
//   vec c in 0..W { d[c] = (v[b, t, h, j0 + c] - u[c]) * beta; o[..] = (p[c] + d[c] * kq) * scale }
// where e is e^g, ke and qe are k and q times it, and kq is the product of k and q. Of more tokens the part stays in
// scratch from the first to the last of them; of many they go in chunks (delta_chunks.cc).

#include <algorithm>
#include <cmath>
#include <functional>

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
constexpr int64_t kHeads = 8;         // of a chunk, at most, for one token
constexpr int64_t kParts = 4;         // chunks that the heads make at least, where there are as many

class DeltaTokens {
 public:
  explicit DeltaTokens(DeltaRule& rule) : rule_(rule), n_(rule.n()), m_(rule.m()) {}

  void Write() {
    const bool one = rule_.length() == Extent(1);
    rows_ = one ? kRows : kRowsKept;
    columns_ = std::min(one ? kColumns : kColumnsKept, m_);
    const int64_t heads = one ? HeadsTogether() : 1;
    kir::Block body;
    for (const char* name : {"u", "p", "d"}) body.push_back(Floats(name, columns_));
    for (const char* name : {"kr", "ke", "qe"}) body.push_back(Floats(name, n_));
    body.push_back(Floats("er", rule_.by_channel() ? n_ : 1));
    if (one)
      OneToken(body, heads);
    else
      Tokens(body);
    kir::Kernel& kernel = rule_.writer.kernel;
    kernel.grid = {{"b", kb::Int(0), kb::FromExtent(rule_.batch()), 1},
                   {one ? "h0" : "h", kb::Int(0), kb::Int(rule_.heads()), heads},
                   {"j0", kb::Int(0), kb::Int(m_), columns_}};
    kernel.body = std::move(body);
  }

 private:
  // Of the state, by row and the column c.
  using Where = std::function<kir::Index(const kir::ExprRef& i)>;
  using State = std::function<kir::ExprRef(const kir::ExprRef& i)>;

  // Heads of a chunk: so many that they divide all heads, and that enough chunks are left for the threads.
  int64_t HeadsTogether() const {
    int64_t heads = std::clamp<int64_t>(rule_.heads() / kParts, 1, kHeads);
    while (rule_.heads() % heads != 0) --heads;
    return heads;
  }

  kir::StmtRef Floats(const char* name, int64_t count) const {
    return kb::Alloc(name, {DType::kF32, {Extent(count)}, kir::Layout::kRow});
  }
  kir::StmtRef Columns(kir::Block body) const {
    return kb::Vec("c", kb::Int(0), Live(Extent(m_), kb::Ref("j0"), columns_), std::move(body));
  }
  kir::ExprRef Kept(const char* name) const { return kb::At(name, DType::kF32, {kb::Ref("c")}); }
  kir::ExprRef Of(const char* name, const kir::ExprRef& i) const { return kb::At(name, DType::kF32, {i}); }
  kir::Index StateAt(const kir::ExprRef& h, const kir::ExprRef& i) const {
    return {kb::Ref("b"), h, i, kb::Ref("j0") + kb::Ref("c")};
  }

  // A loop over all rows of a state: `make` gives the body of `count` rows, from i on and, of them from the last back,
  // from r on. Rows that were read last are in the first cache still: who reads them again begins there.
  template <typename Make>
  void Rows(kir::Block& block, const Make& make) {
    const int64_t whole = n_ / rows_ * rows_, rest = n_ - whole;
    if (whole > 0) {
      kir::Block body = {kb::Let("r", static_cast<double>(n_ - rows_) - kb::Ref("i"))};
      body.push_back(Columns(make(kb::Ref("i"), kb::Ref("r"), rows_)));
      block.push_back(kb::For("i", kb::Int(0), kb::Int(whole), std::move(body), rows_));
    }
    if (rest > 0) block.push_back(Columns(make(kb::Int(whole), kb::Int(0), rest)));
  }

  kir::ExprRef Decay(kir::Index at) { return kb::Call(kir::Op::kExp, {rule_.Read(ir::kDeltaDecay, std::move(at))}); }

  // What Correction takes beside arrays, by the names that hold it.
  struct Numbers {
    kir::ExprRef beta, kq;
  };

  // What Products and Correction read of token t of head h: ke, qe, and numbers whose names end in `suffix`.
  Numbers Reading(kir::Block& block, const kir::ExprRef& t, const kir::ExprRef& h, const std::string& suffix = "") {
    const kir::ExprRef b = kb::Ref("b"), i = kb::Ref("i"), x = kb::Ref("x"), key = rule_.KeyOf(h);
    kir::Block rows;
    if (rule_.by_channel())
      rows.push_back(kb::Let("e" + suffix, Decay({b, t, h, i})));
    else
      block.push_back(kb::Let("e" + suffix, Decay({b, t, h})));
    const kir::ExprRef e = kb::Ref("e" + suffix, DType::kF32);
    rows.push_back(kb::Store("ke", {i}, rule_.Read(ir::kDeltaK, {b, t, key, i}) * e));
    rows.push_back(kb::Store("qe", {i}, rule_.Read(ir::kDeltaQ, {b, t, key, i}) * e));
    block.push_back(kb::Vec("i", kb::Int(0), kb::Int(n_), std::move(rows)));
    block.push_back(kb::Let("beta" + suffix, rule_.Read(ir::kDeltaBeta, {b, t, h})));
    const kir::ExprRef product = rule_.Read(ir::kDeltaQ, {b, t, key, x}) * rule_.Read(ir::kDeltaK, {b, t, key, x});
    block.push_back(kb::Let("kq" + suffix, kb::SumVec(1, "x", kb::Int(0), kb::Int(n_), kb::Contract(product))));
    block.push_back(Columns({kb::Store("u", {kb::Ref("c")}, kb::Num(0)), kb::Store("p", {kb::Ref("c")}, kb::Num(0))}));
    return {kb::Ref("beta" + suffix, DType::kF32), kb::Ref("kq" + suffix, DType::kF32)};
  }

  // What Corrected reads of it: kr and er, which is one number where a head has one decay.
  void Writing(kir::Block& block, const kir::ExprRef& t, const kir::ExprRef& h) {
    const kir::ExprRef b = kb::Ref("b"), i = kb::Ref("i");
    kir::Block rows = {kb::Store("kr", {i}, rule_.Read(ir::kDeltaK, {b, t, rule_.KeyOf(h), i}))};
    if (rule_.by_channel())
      rows.push_back(kb::Store("er", {i}, Decay({b, t, h, i})));
    else
      block.push_back(kb::Store("er", {kb::Int(0)}, Decay({b, t, h})));
    block.push_back(kb::Vec("i", kb::Int(0), kb::Int(n_), std::move(rows)));
  }

  // u and p: the columns of the state times ke and qe, `count` rows of it from i on.
  void Products(kir::Block& body, const kir::ExprRef& i, int64_t count, const State& state) {
    kir::ExprRef u = Kept("u"), p = Kept("p");
    for (int64_t r = 0; r < count; ++r) {
      const kir::ExprRef row = i + static_cast<double>(r), s = state(row);
      u = u + s * Of("ke", row);
      p = p + s * Of("qe", row);
    }
    body.push_back(kb::Store("u", {kb::Ref("c")}, kb::Contract(u)));
    body.push_back(kb::Store("p", {kb::Ref("c")}, kb::Contract(p)));
  }

  // d of the token, and its result.
  void Correction(kir::Block& block, const kir::ExprRef& t, const kir::ExprRef& h, const Numbers& of) {
    const kir::ExprRef column = kb::Ref("j0") + kb::Ref("c"), b = kb::Ref("b");
    const kir::ExprRef d = kb::Ref("dc", DType::kF32);
    kir::Block body = {kb::Let("dc", (rule_.Read(ir::kDeltaV, {b, t, h, column}) - Kept("u")) * of.beta),
                       kb::Store("d", {kb::Ref("c")}, d)};
    if (!rule_.o().empty()) {
      const kir::ExprRef o = kb::Contract(Kept("p") + d * of.kq) * rule_.scale();
      body.push_back(rule_.Of(kb::Store(rule_.o(), {b, t, h, column}, o)));
    }
    block.push_back(Columns(std::move(body)));
  }

  // `count` rows of the state after the token, from r on.
  void Corrected(kir::Block& body, const kir::ExprRef& r, int64_t count, const State& state, const std::string& to,
                 const Where& place) {
    for (int64_t at = 0; at < count; ++at) {
      const kir::ExprRef row = r + static_cast<double>(at);
      const kir::ExprRef e = Of("er", rule_.by_channel() ? row : kb::Int(0));
      body.push_back(rule_.Of(kb::Store(to, place(row), kb::Contract(state(row) * e + Kept("d") * Of("kr", row)))));
    }
  }

  void OneToken(kir::Block& block, int64_t heads) {
    const kir::ExprRef t = kb::Int(0), h = kb::Ref("h"), first = kb::Ref("h0");
    const kir::ExprRef last = first + static_cast<double>(heads - 1);
    const bool writes = !rule_.after().empty();
    const auto state = [this](const kir::ExprRef& of) {
      return [this, of](const kir::ExprRef& i) { return rule_.Before(StateAt(of, i)); };
    };
    // A loop over the rows of the heads that are written and read, either of which may be null.
    const auto rows = [&](kir::Block& to, const kir::ExprRef& written, const kir::ExprRef& read) {
      Rows(to, [&](const kir::ExprRef& i, const kir::ExprRef& r, int64_t count) {
        kir::Block body;
        if (written)
          Corrected(body, r, count, state(written), rule_.after(),
                    [&](const kir::ExprRef& row) { return StateAt(written, row); });
        if (read) Products(body, i, count, state(read));
        return body;
      });
    };
    const Numbers of = Reading(block, t, first);
    rows(block, nullptr, first);
    Correction(block, t, first, of);
    if (heads > 1) {
      kir::Block head;
      if (writes) Writing(head, t, h - 1.0);
      const Numbers here = Reading(head, t, h, "h");
      rows(head, writes ? h - 1.0 : nullptr, h);
      Correction(head, t, h, here);
      block.push_back(kb::For("h", first + 1.0, first + static_cast<double>(heads), std::move(head)));
    }
    if (!writes) return;
    Writing(block, t, last);
    rows(block, last, nullptr);
  }

  void Tokens(kir::Block& block) {
    block.push_back(kb::Alloc("s", {DType::kF32, {Extent(n_), Extent(columns_)}, kir::Layout::kRow}));
    const kir::ExprRef i = kb::Ref("i"), t = kb::Ref("t"), h = kb::Ref("h");
    const Where place = [](const kir::ExprRef& row) { return kir::Index{row, kb::Ref("c")}; };
    const State state = [&](const kir::ExprRef& row) { return kb::At("s", DType::kF32, place(row)); };
    block.push_back(
        kb::For("i", kb::Int(0), kb::Int(n_), {Columns({kb::Store("s", place(i), rule_.Before(StateAt(h, i)))})}));
    kir::Block token;
    const Numbers of = Reading(token, t, h);
    Rows(token, [&](const kir::ExprRef& row, const kir::ExprRef&, int64_t count) {
      kir::Block body;
      Products(body, row, count, state);
      return body;
    });
    Correction(token, t, h, of);
    Writing(token, t, h);
    Rows(token, [&](const kir::ExprRef&, const kir::ExprRef& row, int64_t count) {
      kir::Block body;
      Corrected(body, row, count, state, "s", place);
      return body;
    });
    block.push_back(kb::For("t", kb::Int(0), kb::FromExtent(rule_.length()), std::move(token)));
    if (rule_.after().empty()) return;
    block.push_back(kb::For("i", kb::Int(0), kb::Int(n_),
                            {Columns({rule_.Of(kb::Store(rule_.after(), StateAt(h, i), state(i)))})}));
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
