#include "ir/spell_attention.h"

#include <cmath>
#include <optional>

namespace quern::ir {
namespace {

// A tensor of `heads` heads as [B, heads, S, head_dim].
Term ByHead(const Term& x, const AttentionShape& shape, int64_t heads) {
  if (!x.e->ok()) return x;
  const std::vector<Extent> dims = x.e->type(x.value).dims;
  if (shape.layout == AttentionShape::Layout::kBhsd) return x;
  return x.Sized({dims[0], dims[1], Extent(heads), Extent(shape.head_dim)}).Transposed({0, 2, 1, 3});
}

// Whether query i may see key j, of [Sq, Sk]; with a custom mask of [B, 1, 1, 1, Sk]. Nothing hides any: none.
std::optional<Term> Seen(Expansion& e, const Node& node, std::span<const Value> inputs, const Extent& sq,
                         const Extent& sk) {
  const std::string& mask = node.attributes.String("mask");
  if (mask == "custom") {
    if (!e.ok()) return std::nullopt;
    const bool floats = IsFloat(e.type(inputs[3]).dtype);  // or bools and integers
    const Term given(e, floats ? e.Wide(inputs[3]) : e.Stored(inputs[3], DType::kF32));
    const Extent batch = e.type(inputs[0]).dims[0];
    return given.Like(0.5).Join("Le", given).Sized({batch, 1, 1, 1, sk});
  }
  if (mask != "causal" && mask != "sliding") return std::nullopt;
  const auto count = [&](const Extent& n, std::vector<Extent> dims, int64_t axis) {
    dims[axis] = n;
    return Term(e, e.Iota(std::move(dims), axis));
  };
  const Term j = count(sk, {1, 1}, 1);
  const Term shift(e, e.Add("Sub", {e.Add("Size", {}, {{"extent", std::vector<Extent>{sk}}}),
                                    e.Add("Size", {}, {{"extent", std::vector<Extent>{sq}}})}));
  const Term at = count(sq, {1, 1}, 0) + shift;
  const Term before = j.Join("Le", at);
  if (mask == "causal") return before;
  const Term least = at - Term(e, IntegerOf(e, node.attributes.Int("window")));
  return before.Join("BitAnd", least.Join("Le", j));
}

}  // namespace

SpelledAttention SpellWeights(Expansion& e, const Node& node, std::span<const Value> inputs) {
  const AttentionShape shape(node.attributes);
  const int64_t kv = shape.kv_heads, group = shape.heads / kv, d = shape.head_dim;
  const std::vector<Extent> q_dims = e.type(inputs[0]).dims, k_dims = e.type(inputs[1]).dims;
  const Extent batch = q_dims[0], sq = q_dims[shape.sequence_axis()], sk = k_dims[shape.sequence_axis()];
  double scale = node.attributes.Float("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(d));
  const double softcap = node.attributes.Float("softcap");
  const std::vector<Extent> rows = {batch, kv, group, sq, d}, keys = {batch, kv, 1, sk, d};
  const Term q = ByHead(Term::Wide(e, inputs[0]), shape, shape.heads).Sized(rows),
             k = ByHead(Term::Wide(e, inputs[1]), shape, kv).Sized(keys),
             v = ByHead(Term::Wide(e, inputs[2]), shape, kv).Sized(keys);
  Term s = q.Times(k, /*rows=*/true) * scale;
  const Term bent = softcap > 0 ? (s / softcap).Call("Tanh") : s;
  if (softcap > 0) s = bent * softcap;
  const bool bias = node.attributes.String("mask") == "bias";
  std::optional<Term> seen = Seen(e, node, inputs, sq, sk);
  std::vector<Extent> bias_dims;
  if (bias) {
    // [B, heads, Sq, Sk], or what broadcasts to it, with the heads apart.
    bias_dims = e.type(inputs[3]).dims;
    std::vector<Extent> full(4 - bias_dims.size(), Extent(1));
    full.insert(full.end(), bias_dims.begin(), bias_dims.end());
    const bool by_head = full[1] == Extent(shape.heads) && shape.heads != 1;
    bias_dims = {full[0], by_head ? Extent(kv) : Extent(1), by_head ? Extent(group) : Extent(1), full[2], full[3]};
    if (e.ok() && e.type(inputs[3]).dtype == DType::kBool)
      seen = Term(e, inputs[3]).Sized(bias_dims);
    else
      s = s + Term(e, e.Stored(inputs[3], e.ok() ? e.type(s.value).dtype : DType::kF32)).Sized(bias_dims);
  }
  if (seen) s = Term::Choose(*seen, s, s.Like(-INFINITY));
  const Term largest(e, e.Reduced("max", s.value, {4}));
  const Term base = Term::Choose(largest.Join("Eq", largest.Like(-INFINITY)), largest.Like(0), largest);
  const Term weight = (s - base).Call("Exp"), sum = weight.Sum({4});
  const Term p = weight / Term::Choose(sum.Join("Eq", sum.Like(0)), sum.Like(1), sum);
  return {shape, batch, sq, sk, scale, q, k, v, bent, p, bias_dims};
}

Term QueryHeads(Expansion& e, const SpelledAttention& a, Value x) {
  const int64_t kv = a.shape.kv_heads;
  return ByHead(Term::Wide(e, x), a.shape, a.shape.heads)
      .Sized({a.batch, kv, a.shape.heads / kv, a.sq, a.shape.head_dim});
}

Term FromHeads(const Term& x, const AttentionShape& shape, const std::vector<Extent>& dims) {
  if (shape.layout == AttentionShape::Layout::kBhsd) return x.Sized(dims);
  return x.Transposed({0, 2, 1, 3}).Sized(dims);
}

const char* WantedBeside(DType q, DType operand) {
  if (q == DType::kF64) return operand == DType::kF64 ? nullptr : "f64, as q";
  return AttentionShape::Computes(operand) ? nullptr : AttentionShape::kComputed;
}

bool IsSpellable(const Attributes& attention) {
  return attention.String("sequences") == "none" && attention.String("empty_rows") == "zeros";
}

StatusOr<std::vector<Value>> SpellAttention(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const SpelledAttention a = SpellWeights(e, node, inputs);
  const Term y = a.weights.Times(a.v).Sized({a.batch, a.shape.heads, a.sq, a.shape.head_dim});
  return e.Finish({e.Stored(FromHeads(y, a.shape, node.results[0].dims).value, node.results[0].dtype)});
}

}  // namespace quern::ir
