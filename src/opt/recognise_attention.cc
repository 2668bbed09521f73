// Attention spelled out in ops becomes an Attention, so that no matrix of scores is in memory:
//
//   %4 = MatMul(%0, %1) {transpose_b = true}   %4 = Attention(%0, %1, %2, %3) {mask = "bias", scale = 0.125, ..}
//   %5 = Mul(%4, 0.125)                     =>
//   %6 = Add(%5, %3)
//   %7 = .. the ops of a Softmax(%6) ..
//   %8 = MatMul(%7, %2)
//
// The scores: one factor for all of them, or one on q or k; c tanh(x / c); a mask that is added, or a choice by bools
// with a very negative number, or a constant that hides later keys (causal). Batches and heads lie along any leading
// dimensions, kv heads are shared by broadcasts or copies; Transposes of q, k, v and the result are undone where
// Attention reads and writes what is behind them. Nobody else reads what lies between.
//
// The result is that of the ops but for roundings, with one difference: what a key holds that -inf hides from a row is
// not looked at, while 0 times a NaN or an infinity there is a NaN. Scores and weights that are stored as halves are
// left alone, for they are rounded there. A chain that is nearly one is reported with what it lacks. An Attention that
// is there already becomes one over rows where its result is turned to them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "family/family.h"
#include "ir/attention.h"
#include "ir/interpret.h"
#include "ir/product.h"
#include "ir/spelled_out.h"
#include "opt/attention_operand.h"
#include "opt/attention_rows.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using family::No;
using ir::Value;

// A score that is this far down is nothing beside others, and they are nothing beside it: a row that has none but such
// weighs all of them alike, whether they were put there or added.
constexpr double kHidden = -1e30;

// What an Attention does faster than the ops. Measured on Zen 5, f32, one thread, 2026-11-23: heads of 64 to 128 gain 0
// to 10 % over 192 and 256 keys, 4 to 18 % over 512, as few as 9 rows of them 16 %. 128 keys are equal; 8 rows, 77 keys
// and heads of 13 lose a third to a half, heads of 256 and 512 3 %.
constexpr int64_t kRows = 9, kKeys = 192, kLeastWidth = 64, kMostWidth = 128, kWidthStep = 16;
// Where sizes are known when a graph runs, so many are possible: what few lose is little in time.
constexpr int64_t kLong = 512;

// Not an attention at all: nothing to report.
Status Unlike() { return absl::NotFoundError(""); }

struct Chain {
  int product = -1, scores = -1;  // the second product, and the first
  std::set<int> inside = {};      // the nodes from the first on that are to go
  double scale = 1, softcap = 0;
  // What is added, or a condition: of bools, `fill` where it says so.
  Value mask = {};
  bool chosen = false, hides = false;  // by a condition; that it is true hides
  double fill = 0;
  std::vector<Extent> masked = {};  // extents of the scores there

  bool has_mask() const { return mask.node >= 0; }
};

class Recogniser {
 public:
  Recogniser(const ir::Graph& graph, const RecogniseOptions& options, Rewriter& rewriter)
      : graph_(graph), options_(options), rewriter_(rewriter), readers_(graph) {}

  const Readers& readers() const { return readers_; }

  // The Attention in the place of node n. Errors: Unlike, or what it lacks.
  StatusOr<Value> Recognise(int n, std::string* what);

 private:
  const ir::Node& Node(Value value) const { return graph_.node(value.node); }
  const std::vector<Extent>& Dims(Value value) const { return graph_.type(value).dims; }
  std::string Describe(int n) const { return absl::StrCat(graph_.node(n).op->name, " %", n); }

  StatusOr<Chain> Match(int n) const;
  Status WalkScores(Value value, Chain& chain, bool nested) const;
  Status WalkMasked(Value value, Chain& chain) const;
  Status CheckReaders(const Chain& chain) const;
  Status CheckWorth(const Chain& chain, int64_t width) const;
  StatusOr<LeadGroups> Groups(const Chain& chain) const;
  // The mask: attributes, and an operand where there is one.
  StatusOr<std::vector<Value>> Mask(const Chain& chain, const LeadGroups& groups, ir::Attributes& attributes);
  bool IsCausal(const Chain& chain) const;
  StatusOr<Value> Number(const Chain& chain, double value);

  const ir::Graph& graph_;
  const RecogniseOptions& options_;
  Rewriter& rewriter_;
  const Readers readers_;
};

bool SameMatrices(const std::vector<Extent>& a, const std::vector<Extent>& b) {
  return a.size() >= 2 && b.size() >= 2 && std::equal(a.end() - 2, a.end(), b.end() - 2);
}

// From a value of the scores back to the product. `nested`: behind a mask that came too early.
Status Recogniser::WalkScores(Value value, Chain& chain, bool nested) const {
  while (true) {
    const ir::Node& node = Node(value);
    if (ir::IsLeaf(node)) return Unlike();
    chain.inside.insert(value.node);
    if (ir::IsMatMul(node)) {
      chain.scores = value.node;
      if (chain.softcap < 0) return No("its cap is %g", chain.softcap);
      if (chain.softcap > 0) chain.scale *= chain.softcap;
      return absl::OkStatus();
    }
    if (const std::optional<ir::Scaled> scaled = ir::AsScaled(graph_, node)) {
      chain.scale *= scaled->factor;
      value = scaled->x;
    } else if (ir::IsTanh(node) && chain.softcap == 0 && chain.scale != 0) {
      chain.softcap = chain.scale, chain.scale = 1;
      value = node.inputs[0];
    } else if (ir::IsReshape(graph_, node) && SameMatrices(Dims(value), Dims(node.inputs[0]))) {
      value = node.inputs[0];
    } else if (ir::IsSum(node) && !nested) {
      // It is nearly an attention where a product is behind, and nothing like one otherwise.
      for (const Value& operand : node.inputs) {
        Chain behind = chain;
        if (!absl::IsNotFound(WalkScores(operand, behind, /*nested=*/true)))
          return No("%s is not the one mask behind all factors", Describe(value.node));
      }
      return Unlike();
    } else {
      return Unlike();
    }
  }
}

// The same from behind the mask, if there is one.
Status Recogniser::WalkMasked(Value value, Chain& chain) const {
  while (ir::IsReshape(graph_, Node(value)) && SameMatrices(Dims(value), Dims(Node(value).inputs[0]))) {
    chain.inside.insert(value.node);
    value = Node(value).inputs[0];
  }
  const ir::Node& node = Node(value);
  const bool sum = ir::IsSum(node);
  if (!sum && !ir::IsChoice(node)) return WalkScores(value, chain, /*nested=*/false);
  Status reason = Unlike();
  for (size_t i = sum ? 0 : 1; i < node.inputs.size(); ++i) {
    const Value scores = node.inputs[i], other = node.inputs[sum ? 1 - i : 3 - i];
    Chain candidate = chain;
    candidate.inside.insert(value.node);
    Status status = WalkScores(scores, candidate, /*nested=*/false);
    if (absl::IsNotFound(status)) continue;
    if (status.ok() && Dims(scores) != Dims(value))
      status = No("%s gives the scores other extents", Describe(value.node));
    candidate.masked = Dims(value);
    candidate.mask = sum ? other : node.inputs[0];
    candidate.chosen = !sum;
    candidate.hides = !sum && i == 2;
    if (const std::optional<double> fill = ir::UniformConstant(graph_, other); !sum && status.ok()) {
      if (!fill || !(*fill <= kHidden))
        status = No("%s may put %s, which can be seen", Describe(value.node), fill ? absl::StrCat(*fill) : "numbers");
      candidate.fill = fill.value_or(0);
    }
    if (status.ok()) {
      chain = std::move(candidate);
      return status;
    }
    reason = status;
  }
  return reason;
}

StatusOr<Chain> Recogniser::Match(int n) const {
  Chain chain{.product = n};
  Value weights = graph_.node(n).inputs[0];
  const auto pass = [&] {
    chain.inside.insert(weights.node);
    weights = Node(weights).inputs[0];
  };
  while (ir::IsReshape(graph_, Node(weights)) && SameMatrices(Dims(weights), Dims(Node(weights).inputs[0]))) pass();
  DType stored = graph_.type(weights).dtype;
  if (ir::IsCast(Node(weights))) weights = Node(weights).inputs[0];
  const std::optional<ir::SpelledSoftmax> softmax = ir::AsSoftmax(graph_, Node(weights));
  if (!softmax) return Unlike();
  chain.inside.insert(weights.node);
  chain.inside.insert(softmax->inside.begin(), softmax->inside.end());
  Value x = softmax->x;
  if (ir::IsCast(Node(x))) x = Node(x).inputs[0];
  QUERN_RETURN_IF_ERROR(WalkMasked(x, chain));
  if (stored == DType::kF32) stored = graph_.type(x).dtype;
  if (stored != DType::kF32) return No("its scores or weights are stored as %s", std::string(Name(stored)));
  if (softmax->axis != static_cast<int64_t>(Dims(x).size()) - 1)
    return No("its softmax is along axis %d of %d", softmax->axis, Dims(x).size());
  QUERN_RETURN_IF_ERROR(CheckReaders(chain));
  return chain;
}

Status Recogniser::CheckReaders(const Chain& chain) const {
  for (const int n : chain.inside) {
    const bool seen = readers_.outputs.contains(n) ||
                      std::any_of(readers_.users[n].begin(), readers_.users[n].end(), [&](const auto& user) {
                        return user.first != chain.product && !chain.inside.contains(user.first);
                      });
    if (seen) return No("%s is read elsewhere too", Describe(n));
  }
  // The weights of themselves are no attention.
  if (chain.inside.contains(graph_.node(chain.product).inputs[1].node)) return No("its values are its weights");
  return absl::OkStatus();
}

// Whether an Attention is faster than the ops.
Status Recogniser::CheckWorth(const Chain& chain, int64_t width) const {
  if (options_.always) return absl::OkStatus();
  const std::vector<Extent>& dims = Dims({chain.scores, 0});
  const auto enough = [&](const Extent& extent, int64_t least) {
    if (extent.is_constant()) return extent.constant() >= least;
    return extent.UpperBound(graph_.symbols).value_or(INT64_MAX) >= kLong;
  };
  if (!enough(dims.end()[-2], kRows) || !enough(dims.end()[-1], kKeys))
    return No("scores of %s are faster as they are", ir::ToString(dims));
  if (width < kLeastWidth || width > kMostWidth || width % kWidthStep != 0)
    return No("heads of %d are faster as they are", width);
  return absl::OkStatus();
}

// Which leading dimensions are batches, which are heads, and which share a kv head.
StatusOr<LeadGroups> Recogniser::Groups(const Chain& chain) const {
  const std::vector<Extent>& made = Dims({chain.scores, 0});
  const std::vector<Extent>& last = Dims({chain.product, 0});
  LeadGroups groups;
  groups.leads = chain.has_mask() ? chain.masked : made;
  groups.leads.resize(groups.leads.size() - 2);
  const std::vector<Extent>& leads = groups.leads;
  const size_t rank = leads.size();
  // Whether an operand has the leading dimension; those that it lacks are 1.
  const auto full = [&](const std::vector<Extent>& dims, size_t axis) {
    const size_t missing = rank + 2 - dims.size();
    return leads[axis] == Extent(1) || (axis >= missing && dims[axis - missing] == leads[axis]);
  };
  const auto all_full = [&](const std::vector<Extent>& dims) {
    if (dims.size() > rank + 2) return false;
    for (size_t axis = 0; axis < rank; ++axis) {
      if (!full(dims, axis)) return false;
    }
    return true;
  };
  const std::vector<Extent>& q = Dims(graph_.node(chain.scores).inputs[0]);
  const std::vector<Extent>& k = Dims(graph_.node(chain.scores).inputs[1]);
  const std::vector<Extent>& v = Dims(graph_.node(chain.product).inputs[1]);
  const auto complete = [](const std::vector<Extent>& dims, const std::vector<Extent>& result) {
    return dims.size() == result.size() && std::equal(dims.begin(), dims.end() - 2, result.begin());
  };
  const bool regrouped = !all_full(made) || made.size() != rank + 2;
  if (regrouped && (!complete(q, made) || !complete(k, made)))
    return No("its batches are broadcast and have other extents later");
  const bool v_regrouped = !all_full(last) || last.size() != rank + 2;
  if (v_regrouped && !complete(v, last)) return No("its values are broadcast and have other extents later");
  if (!regrouped && !all_full(q)) return No("its queries are broadcast");
  int kv_end = static_cast<int>(rank);
  if (!regrouped) {
    for (kv_end = 0; kv_end < static_cast<int>(rank) && full(k, kv_end); ++kv_end) continue;
    for (int axis = kv_end; axis < static_cast<int>(rank); ++axis) {
      const size_t missing = rank + 2 - k.size();
      const bool one = static_cast<size_t>(axis) < missing || k[axis - missing] == Extent(1);
      if (!one) return No("its keys are shared along other dimensions than the last of the heads");
    }
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    if (leads[axis] != Extent(1) && (regrouped || full(k, axis)) != (v_regrouped || full(v, axis)))
      return No("its keys and its values are not shared alike");
  }
  const auto fits = [&](int batch_end) {
    if (batch_end > kv_end) return false;
    groups.batch_end = batch_end, groups.kv_end = kv_end;
    if (!groups.Heads().is_constant() || !groups.KvHeads().is_constant() || groups.KvHeads() == Extent(0)) return false;
    if (!chain.has_mask()) return true;
    // The mask has all batches or one, all heads or one.
    const std::vector<Extent>& mask = Dims(chain.mask);
    const auto alike = [&](int from, int to) {
      bool any_full = false, any_one = false;
      for (int axis = from; axis < to; ++axis) {
        if (leads[axis] == Extent(1)) continue;
        (full(mask, axis) ? any_full : any_one) = true;
      }
      return !any_full || !any_one;
    };
    return alike(0, batch_end) && alike(batch_end, static_cast<int>(rank));
  };
  for (const int batch_end : {1, 0, 2, 3, 4, 5, 6}) {
    if (batch_end <= static_cast<int>(rank) && fits(batch_end)) return groups;
  }
  return No("its batches and heads are not known apart: %s", ir::ToString(leads));
}

// Whether the mask is a constant by which row i sees the keys up to i + Sk - Sq.
bool Recogniser::IsCausal(const Chain& chain) const {
  const ir::Node& node = Node(chain.mask);
  const std::vector<Extent>& dims = node.results[0].dims;
  if (!ir::IsConstant(node) || !SameMatrices(dims, chain.masked)) return false;
  std::vector<int64_t> sizes;
  for (const Extent& dim : dims) {
    if (!dim.is_constant()) return false;
    sizes.push_back(dim.constant());
  }
  const int64_t rows = sizes.end()[-2], keys = sizes.end()[-1];
  const StatusOr<ir::RefTensor> mask = ir::RefTensorFromBytes(node.results[0].dtype, sizes, *node.data);
  // A row that sees nothing tells -inf from what is very negative.
  const double hidden = keys >= rows ? kHidden : -INFINITY;
  if (!mask.ok() || (chain.chosen && chain.fill > hidden)) return false;
  for (int64_t at = 0; at < mask->elements(); ++at) {
    const bool seen = at % keys <= at / keys % rows + keys - rows;
    const double value = mask->Real(at);
    if (chain.chosen ? (value != 0) != (seen != chain.hides) : seen ? value != 0 : !(value <= hidden)) return false;
  }
  return true;
}

StatusOr<Value> Recogniser::Number(const Chain& chain, double value) {
  return rewriter_.to.AddConstant({DType::kF32, {}}, ir::BytesOf({DType::kF32, {}, {value}}),
                                  rewriter_.OriginOf(chain.product));
}

StatusOr<std::vector<Value>> Recogniser::Mask(const Chain& chain, const LeadGroups& groups,
                                              ir::Attributes& attributes) {
  if (!chain.has_mask()) return std::vector<Value>{};
  const Extent &rows = chain.masked.end()[-2], &keys = chain.masked.end()[-1];
  if (!keys.ProvablyAtLeast(1, graph_.symbols)) return No("there may be no key, and so no mask");
  const bool causal = IsCausal(chain);
  if (!causal || !keys.ProvablyAtLeast(rows, graph_.symbols)) attributes.Set("empty_rows", std::string("nan"));
  if (causal) {
    attributes.Set("mask", std::string("causal"));
    return std::vector<Value>{};
  }
  attributes.Set("mask", std::string("bias"));
  const ir::MakeNode make = rewriter_.Maker(chain.product);
  Value mask = rewriter_.Now(chain.mask);
  if (chain.chosen && chain.fill == -INFINITY && chain.hides) {
    QUERN_ASSIGN(mask, ir::MakeNot(make, mask));
  } else if (chain.chosen && chain.fill != -INFINITY) {
    QUERN_ASSIGN(const Value zero, Number(chain, 0));
    QUERN_ASSIGN(const Value fill, Number(chain, chain.fill));
    QUERN_ASSIGN(mask, ir::MakeChoice(make, mask, chain.hides ? fill : zero, chain.hides ? zero : fill));
  }
  // As [batches or 1, heads or 1, rows or 1, keys or 1].
  std::vector<Extent> dims = Dims(chain.mask);
  dims.insert(dims.begin(), chain.masked.size() - dims.size(), Extent(1));
  const auto product = [&](int from, int to) {
    Extent all(1);
    for (int axis = from; axis < to; ++axis) all = all * dims[axis];
    return all;
  };
  const int leads = static_cast<int>(groups.leads.size());
  const std::vector<Extent> wanted = {product(0, groups.batch_end), product(groups.batch_end, leads), dims[leads],
                                      dims[leads + 1]};
  if (wanted != rewriter_.to.type(mask).dims) {
    QUERN_ASSIGN(mask, ir::MakeReshaped(make, mask, wanted));
  }
  return std::vector<Value>{mask};
}

StatusOr<Value> Recogniser::Recognise(int n, std::string* what) {
  if (!ir::IsMatMul(graph_.node(n))) return Unlike();
  QUERN_ASSIGN(Chain chain, Match(n));
  QUERN_ASSIGN(const LeadGroups groups, Groups(chain));
  const ir::Node &scores = graph_.node(chain.scores), &product = graph_.node(n);
  const DType q_dtype = graph_.type(scores.inputs[0]).dtype, k_dtype = graph_.type(scores.inputs[1]).dtype,
              v_dtype = graph_.type(product.inputs[1]).dtype;
  if (q_dtype != DType::kF32 || !ir::AttentionShape::Computes(k_dtype) || !ir::AttentionShape::Computes(v_dtype))
    return No("there is no attention of %s, %s and %s", std::string(Name(q_dtype)), std::string(Name(k_dtype)),
              std::string(Name(v_dtype)));
  const Extent &width = Dims(scores.inputs[0]).back(), &values = Dims({n, 0}).back();
  if (!width.is_constant() || width != values)
    return No("its keys are of %s elements, its values of %s", width.ToString(), values.ToString());
  QUERN_RETURN_IF_ERROR(CheckWorth(chain, width.constant()));
  const auto regrouped = [&](const std::vector<Extent>& dims) {
    return dims.size() != groups.leads.size() + 2 ||
           !std::equal(groups.leads.begin(), groups.leads.end(), dims.begin());
  };
  const bool k_turned = !ir::ReadsRows(scores), v_turned = ir::ReadsRows(product);
  const auto operands = [&](bool repeats) {
    const bool first = regrouped(Dims({chain.scores, 0}));
    return std::vector<AttentionOperand>{
        OperandBehind(graph_, scores.inputs[0], groups, {.regrouped = first, .factors = true}),
        OperandBehind(graph_, scores.inputs[1], groups,
                      {.turned = k_turned, .regrouped = first, .repeats = repeats, .factors = true, .stored = true}),
        OperandBehind(graph_, product.inputs[1], groups,
                      {.turned = v_turned, .regrouped = regrouped(Dims({n, 0})), .repeats = repeats, .stored = true})};
  };
  std::vector<AttentionOperand> parts = operands(/*repeats=*/true);
  const auto divides = [&](const Extent& heads) {
    return heads.is_constant() && heads.constant() > 0 && groups.Heads().constant() % heads.constant() == 0;
  };
  if (parts[1].heads() != parts[2].heads() || !divides(parts[1].heads())) parts = operands(/*repeats=*/false);
  if (parts[1].heads() != parts[2].heads() || !divides(parts[1].heads()))
    return No("its keys are of %s heads, its values of %s", parts[1].heads().ToString(), parts[2].heads().ToString());
  const double scale = chain.scale * parts[0].factor * parts[1].factor;
  if (scale == 0 || !std::isfinite(scale)) return No("its scale is %g", scale);
  // The layout that moves less: k and v may be longer than q and the result.
  const auto moved = [&](bool heads_first) {
    const bool result = WantsRowsFirst(graph_, readers_, n, groups.Batch(), groups.Heads()) == heads_first;
    return (parts[0].Moves(heads_first) ? 2 : 0) + (parts[1].Moves(heads_first) ? 3 : 0) +
           (parts[2].Moves(heads_first) ? 3 : 0) + (result ? 2 : 0);
  };
  const bool heads_first = moved(true) <= moved(false);
  ir::Attributes attributes = {
      {"heads", groups.Heads().constant()}, {"kv_heads", parts[1].heads().constant()},
      {"head_dim", width.constant()},       {"scale", scale},
      {"softcap", chain.softcap},           {"layout", std::string(heads_first ? "bhsd" : "bshd")}};
  QUERN_ASSIGN(const std::vector<Value> mask, Mask(chain, groups, attributes));
  const ir::MakeNode make = rewriter_.Maker(n);
  std::vector<Value> inputs;
  for (const AttentionOperand& part : parts) {
    QUERN_ASSIGN(const Value input, part.Make(rewriter_, make, heads_first));
    inputs.push_back(input);
  }
  inputs.insert(inputs.end(), mask.begin(), mask.end());
  QUERN_ASSIGN(Value result, ir::MakeAttention(make, std::move(inputs), attributes));
  *what = absl::StrFormat("%d heads of %d, %s", groups.Heads().constant(), width.constant(),
                          rewriter_.to.node(result.node).attributes.String("mask"));
  if (!heads_first) {
    QUERN_ASSIGN(result, ir::MakePermuted(make, result, {0, 2, 1, 3}));
  }
  if (rewriter_.to.type(result).dims == Dims({n, 0})) return result;
  return ir::MakeReshaped(make, result, Dims({n, 0}));
}

}  // namespace

StatusOr<ir::Graph> RecogniseAttention(const ir::Graph& graph, const RecogniseOptions& options, FusionReport* report) {
  Rewriter rewriter(graph, "recognise_attention",
                    [&](const ir::Graph& body) { return RecogniseAttention(body, options, report); });
  Recogniser recogniser(graph, options, rewriter);
  bool any = false;
  for (int n = 0; n < rewriter.size(); ++n) {
    if (IsTurnedToRows(graph, recogniser.readers(), n)) {
      QUERN_ASSIGN(const Value rows, OverRows(rewriter, n));
      rewriter.Replace({n, 0}, rows);
      any = true;
      continue;
    }
    std::string what;
    const StatusOr<Value> attention = recogniser.Recognise(n, &what);
    if (attention.ok()) {
      rewriter.Replace({n, 0}, *attention);
      any = true;
    } else {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
    }
    if (report == nullptr || absl::IsNotFound(attention.status())) continue;
    report->recognised.push_back({"attention", absl::StrCat(graph.node(n).op->name, " %", n), attention.ok(),
                                  attention.ok() ? what : std::string(attention.status().message())});
  }
  QUERN_ASSIGN(ir::Graph recognised, rewriter.Finish());
  if (!any) return recognised;
  return Simplify(recognised);  // Transposes that meet what undoes them
}

}  // namespace quern::opt
