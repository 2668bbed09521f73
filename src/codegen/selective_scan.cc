// The family of selective scans (ir/ops/selective_scan.cc): states of n numbers, one a channel, along a sequence. No
// channel sees another: chunks are blocks of channels, which are vector loops over states that are kept in scratch with
// channels last from the first token to the last.
//
//   for t in 0..S { vec c in 0..W {
//     let dt = delta[b, t, h0 + c]; let dx = dt * x[b, t, h0 + c]
//     let s0 = exp(dt * at[0, c]) * st[0, c] + dx * br[0]; st[0, c] = s0; ..
//     y[b, t, h0 + c] = s0 * cr[0] + .. + d[h0 + c] * x[b, t, h0 + c] } }
//
// Of one token (decoding) nothing is kept: the numbers of a channel are a vector loop, where they lie. A decay that all
// numbers of a channel share (Mamba-2) is computed once a token and channel, into `ed`, before either loop.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/families.h"
#include "codegen/loops.h"
#include "codegen/recurrence.h"
#include "ir/selective_scan.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::Value;

constexpr int64_t kChannels = 64;  // of a chunk
constexpr int64_t kKept = 4096;    // numbers of the states of a chunk, for the first cache beside what else is read
constexpr int64_t kNumbersAtOnce = 16;  // of a state that one pass over the channels takes

class ScanWriter {
 public:
  explicit ScanWriter(const RegionView& view) : view_(view), writer_(view, "selective_scan"), expr_(view.graph) {
    for (const int n : view.nodes()) {
      if (ir::IsRoot(view.node(n), "selective_scan")) root_ = n;
    }
    inputs_ = view.node(root_).inputs;
    const std::vector<Extent>& x = view.type(inputs_[ir::kScanX]).dims;
    batch_ = x[0], length_ = x[1], channels_ = x[2];
    n_ = view.type(inputs_[ir::kScanB]).dims[2].constant();
    shared_ = n_ > 1 && view.type(inputs_[ir::kScanA]).dims[1] == Extent(1);
    if (shared_ && length_ != Extent(1)) wide_ = std::clamp<int64_t>(kKept / n_ / 16 * 16, 16, kChannels);
  }

  StatusOr<LoweredRegion> Run() {
    writer_.ProvideInputs(expr_);
    const Value state = inputs_[ir::kScanState];
    in_place_ = !view_.Has(state.node) && view_.InputIndex(state) >= 0 && view_.scope.IsWritable(state.node);
    in_place_ = in_place_ && std::count(view_.results().begin(), view_.results().end(), Value{root_, 1}) > 0;
    for (size_t r = 0; r < view_.results().size(); ++r) {
      if (view_.results()[r] == Value{root_, 0}) y_ = writer_.Result(static_cast<int>(r));
      if (view_.results()[r] == Value{root_, 1})
        after_ = in_place_ ? writer_.UpdatedInput(view_.InputIndex(state)) : writer_.Result(static_cast<int>(r));
    }
    kir::Kernel& kernel = writer_.kernel;
    kernel.grid = {{"b", kb::Int(0), kb::FromExtent(batch_), 1}, {"h0", kb::Int(0), kb::FromExtent(channels_), wide_}};
    kernel.body = length_ == Extent(1) ? OneToken() : Tokens();
    return writer_.FinishRegion();
  }

 private:
  kir::StmtRef Floats(const std::string& name, std::vector<Extent> dims) const {
    return kb::Alloc(name, {DType::kF32, std::move(dims), kir::Layout::kRow});
  }
  kir::ExprRef Read(int operand, kir::Index at) { return expr_.Element(inputs_[operand], at); }
  kir::ExprRef Before(kir::Index at) {
    if (in_place_) return kb::At(after_, DType::kF32, std::move(at));
    return Read(ir::kScanState, std::move(at));
  }
  static kir::ExprRef F(const std::string& name) { return kb::Ref(name, DType::kF32); }
  // e^(dt a) s + dx b
  kir::ExprRef Next(const kir::ExprRef& a, const kir::ExprRef& s, const kir::ExprRef& b) const {
    return kb::Contract((shared_ ? F("e") : kb::Call(kir::Op::kExp, {F("dt") * a})) * s + F("dx") * b);
  }
  // ed and dx of token t: the decays of the channels, and what they add of b.
  void Shared(kir::Block& block, const kir::ExprRef& t) {
    const kir::ExprRef b = kb::Ref("b"), c = kb::Ref("c"), h = kb::Ref("h0") + c;
    const kir::ExprRef decay = kb::Call(kir::Op::kExp, {F("dt") * Read(ir::kScanA, {h, kb::Int(0)})});
    block.push_back(Channels({kb::Let("dt", Read(ir::kScanDelta, {b, t, h})), kb::Store("ed", {c}, decay),
                              kb::Store("dxs", {c}, F("dt") * Read(ir::kScanX, {b, t, h}))}));
  }
  void AllocateShared(kir::Block& block) const {
    for (const char* name : {"ed", "dxs"}) block.push_back(Floats(name, {Extent(wide_)}));
  }
  // The numbers of channel h, the c-th of the chunk, that a state's next ones are made of.
  kir::Block OfChannel(const kir::ExprRef& t, const kir::ExprRef& h, const kir::ExprRef& c) {
    const kir::ExprRef b = kb::Ref("b");
    kir::Block block = {kb::Let("xh", Read(ir::kScanX, {b, t, h}))};
    if (shared_) {
      block.push_back(kb::Let("e", kb::At("ed", DType::kF32, {c})));
      block.push_back(kb::Let("dx", kb::At("dxs", DType::kF32, {c})));
    } else {
      block.push_back(kb::Let("dt", Read(ir::kScanDelta, {b, t, h})));
      block.push_back(kb::Let("dx", F("dt") * F("xh")));
    }
    return block;
  }
  kir::ExprRef Decay(const kir::ExprRef& h, const kir::ExprRef& i) {
    return shared_ ? nullptr : Read(ir::kScanA, {h, i});
  }

  kir::Block OneToken() {
    const kir::ExprRef b = kb::Ref("b"), h = kb::Ref("h"), i = kb::Ref("i"), t = kb::Int(0);
    const kir::Index place = {b, h, i};
    kir::Block channel = OfChannel(t, h, h - kb::Ref("h0"));
    kir::Block numbers = {kb::Let("s", Next(Decay(h, i), Before(place), Read(ir::kScanB, {b, t, i})))};
    numbers.push_back(kb::Store("st", {i}, F("s")));
    if (!after_.empty()) numbers.push_back(kb::WithOrigin(kb::Store(after_, place, F("s")), writer_.Origin(root_)));
    channel.push_back(kb::Vec("i", kb::Int(0), kb::Int(n_), std::move(numbers)));
    if (!y_.empty()) {
      const kir::ExprRef term = kb::At("st", DType::kF32, {kb::Ref("k")}) * Read(ir::kScanC, {b, t, kb::Ref("k")});
      const kir::ExprRef sum = kb::SumVec(1, "k", kb::Int(0), kb::Int(n_), kb::Contract(term));
      channel.push_back(kb::WithOrigin(kb::Store(y_, {b, t, h}, sum + kb::Contract(Read(ir::kScanD, {h}) * F("xh"))),
                                       writer_.Origin(root_)));
    }
    const kir::ExprRef first = kb::Ref("h0");
    kir::Block block = {Floats("st", {Extent(n_)})};
    if (shared_) {
      AllocateShared(block);
      Shared(block, t);
    }
    block.push_back(kb::For("h", first, kb::Min(first + static_cast<double>(wide_), kb::FromExtent(channels_)),
                            std::move(channel)));
    return block;
  }

  kir::StmtRef Channels(kir::Block body) const {
    return kb::Vec("c", kb::Int(0), Live(channels_, kb::Ref("h0"), wide_), std::move(body));
  }

  kir::Block Tokens() {
    const kir::ExprRef b = kb::Ref("b"), t = kb::Ref("t"), i = kb::Ref("i"), c = kb::Ref("c");
    const kir::ExprRef h = kb::Ref("h0") + c;
    const std::vector<Extent> kept = {Extent(n_), Extent(wide_)};
    kir::Block block = {Floats("st", kept), Floats("br", {Extent(n_)}), Floats("cr", {Extent(n_)}),
                        Floats("sum", {Extent(wide_)})};
    kir::Block start = {kb::Store("st", {i, c}, Before({b, h, i}))};
    if (shared_) {
      AllocateShared(block);
    } else {
      block.push_back(Floats("at", kept));
      start.push_back(kb::Store("at", {i, c}, Decay(h, i)));
    }
    block.push_back(kb::For("i", kb::Int(0), kb::Int(n_), {Channels(std::move(start))}));
    kir::Block token = {kb::Vec(
        "i", kb::Int(0), kb::Int(n_),
        {kb::Store("br", {i}, Read(ir::kScanB, {b, t, i})), kb::Store("cr", {i}, Read(ir::kScanC, {b, t, i}))})};
    if (shared_) Shared(token, t);
    for (int64_t first = 0; first < n_; first += kNumbersAtOnce) {
      kir::Block body = OfChannel(t, h, c);
      kir::ExprRef sum = first == 0 ? Read(ir::kScanD, {h}) * F("xh") : kb::At("sum", DType::kF32, {c});
      const int64_t end = std::min(n_, first + kNumbersAtOnce);
      for (int64_t k = first; k < end; ++k) {
        const kir::ExprRef row = kb::Int(k);
        const std::string s = absl::StrCat("next", k);
        const auto at = [&](const char* name) { return kb::At(name, DType::kF32, {row, c}); };
        body.push_back(kb::Let(s, Next(shared_ ? nullptr : at("at"), at("st"), kb::At("br", DType::kF32, {row}))));
        body.push_back(kb::Store("st", {row, c}, F(s)));
        sum = sum + F(s) * kb::At("cr", DType::kF32, {row});
      }
      sum = kb::Contract(sum);
      if (end < n_)
        body.push_back(kb::Store("sum", {c}, sum));
      else if (!y_.empty())
        body.push_back(kb::WithOrigin(kb::Store(y_, {b, t, h}, sum), writer_.Origin(root_)));
      token.push_back(Channels(std::move(body)));
    }
    block.push_back(kb::For("t", kb::Int(0), kb::FromExtent(length_), std::move(token)));
    if (!after_.empty()) {
      kir::StmtRef store = kb::Store(after_, {b, h, i}, kb::At("st", DType::kF32, {i, c}));
      block.push_back(
          kb::For("i", kb::Int(0), kb::Int(n_), {Channels({kb::WithOrigin(store, writer_.Origin(root_))})}));
    }
    return block;
  }

  const RegionView& view_;
  KernelWriter writer_;
  FusedExpr expr_;
  int root_ = -1;
  std::vector<Value> inputs_;
  Extent batch_, length_, channels_;
  int64_t n_ = 0, wide_ = kChannels;
  bool in_place_ = false, shared_ = false;  // shared_: a has one decay a channel
  std::string y_, after_;
};

}  // namespace

family::Matched MatchSelectiveScan(const RegionView& view) { return MatchRecurrence(view, "selective_scan"); }

StatusOr<LoweredRegion> LowerSelectiveScan(const RegionView& view, const RegionPlan&) { return ScanWriter(view).Run(); }

}  // namespace quern::codegen
