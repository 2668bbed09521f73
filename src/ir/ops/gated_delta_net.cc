// GatedDeltaNet: linear attention over a state that decays, and that each token corrects where its key points
// (ir/delta_rule.h). State is f32 whatever the operands are.
//
// It is DeltaRule. With `chunk` C it is products (the WY form): with c the running sum of g in a chunk
// and S the state before it, the corrections d_t of all of its tokens are what solves
//   d_t + sum_{s<t} beta_t e^(c_t - c_s) (k_t k_s) d_s = beta_t v_t - beta_t e^(c_t) k_t S
// of which the right side and the matrix know nothing of S but the last term: u and w solve the system for the two
// parts, for all chunks at once, and what goes from chunk to chunk is
//   d = u - w S    o_t = e^(c_t) q_t S + sum_{s<=t} e^(c_t - c_s) (q_t k_s) d_s
//   S <- e^(c_C) S + sum_s e^(c_C - c_s) k_s d_s
// A last chunk that is not full is filled up with tokens of which g, beta and k are 0: they leave the state as it is.
// Without it is the default: the kernel of a DeltaRule takes long sequences in chunks of its own
// (codegen/delta_chunks.cc), whose matrices do not go through memory.

#include <cmath>

#include "ir/chunks.h"
#include "ir/composite.h"
#include "ir/delta_rule.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const int64_t chunk = context.attributes.Int("chunk");
  const bool per_channel = context.attributes.Bool("per_channel");
  if (chunk < 0 || (per_channel && chunk != 0))
    return context.AttributeError("chunk", per_channel ? "0 beside per_channel" : "0 or more");
  return InferDeltaRule(context, per_channel);
}

using Dims = std::vector<Extent>;

// The WY form over f32 operands, with a state.
class Chunked {
 public:
  Chunked(Graph& graph, const Node& node, std::span<const Value> operands, int origin)
      : e_(graph, origin),
        operands_(operands),
        chunks_(e_, graph.type(operands[kDeltaQ]).dims[0], graph.type(operands[kDeltaQ]).dims[1],
                node.attributes.Int("chunk")) {
    const Dims &q = graph.type(operands[kDeltaQ]).dims, &v = graph.type(operands[kDeltaV]).dims;
    batch_ = q[0], groups_ = q[2], n_ = q[3], m_ = v[3];
    each_ = v[2].constant() / q[2].constant();
    chunk_ = chunks_.size();
  }

  StatusOr<std::vector<Value>> Run() {
    const Value q = OfKeys(kDeltaQ), k = OfKeys(kDeltaK), beta = Rows(OfHeads(kDeltaBeta));
    const Value sum = Add("CumSum", {OfHeads(kDeltaDecay)}, {{"axis", int64_t{-1}}});
    const Value rows = Rows(sum), columns = Shape(sum, {Extent(1), chunk_});
    const Value decay =
        Add("Trilu", {Add("Exp", {Add("Sub", {rows, columns})})}, {{"upper", false}, {"k", int64_t{0}}});
    const Attributes transposed = {{"transpose_b", true}};
    const Value kk = ForHeads(Add("MatMul", {k, k}, transposed), chunk_, chunk_);
    const Value qk = ForHeads(Add("MatMul", {q, k}, transposed), chunk_, chunk_);
    const Value system = Add("Mul", {Add("Mul", {decay, kk}), beta}), grown = Add("Exp", {rows});
    const Value keys = ForHeads(k, chunk_, n_);
    const auto solved = [&](Value right) { return Add("TriangularSolve", {system, right}, {{"unit", true}}); };
    const Value w = solved(Add("Mul", {keys, Add("Mul", {beta, grown})}));
    const Value u = solved(Add("Mul", {OfHeads(kDeltaV), beta}));
    const Value total = Add("Narrow", {rows},
                            {{"axis", int64_t{-2}}, {"start", Dims{chunk_ - Extent(1)}}, {"length", Dims{Extent(1)}}});
    const Value left = Add("Mul", {keys, Add("Exp", {Add("Sub", {total, rows})})});
    const std::vector<Value> xs = {u,
                                   w,
                                   Add("Mul", {ForHeads(q, chunk_, n_), grown}),
                                   Add("Mul", {decay, qk}),
                                   Add("Transpose", {left}, {{"perm", std::vector<int64_t>{0, 1, 2, 3, 5, 4}}}),
                                   Add("Exp", {total})};
    const std::vector<Value> states = AlongChunks(xs);
    return e_.Finish({chunks_.Joined(states[1]), e_.Sized(states[0], {batch_, groups_ * Extent(each_), n_, m_})});
  }

 private:
  Value Add(std::string_view op, std::vector<Value> inputs, Attributes attributes = {}) {
    return e_.Add(op, std::move(inputs), std::move(attributes));
  }
  Value OfKeys(int operand) { return chunks_.Split(operands_[operand], {groups_, n_}, 1); }
  Value OfHeads(int operand) {
    Dims inside = {groups_, Extent(each_)};
    if (operand == kDeltaV) inside.push_back(m_);
    return chunks_.Split(operands_[operand], std::move(inside), 2);
  }
  // Of values [chunks, B, G, H / G, ..] the last extents.
  Value Shape(Value x, Dims last) {
    Dims dims = {chunks_.count(), batch_, groups_, Extent(each_)};
    dims.insert(dims.end(), last.begin(), last.end());
    return e_.Sized(x, std::move(dims));
  }
  Value Rows(Value x) { return Shape(x, {chunk_, Extent(1)}); }
  // What the heads of a key share.
  Value ForHeads(Value x, const Extent& rows, const Extent& columns) {
    return e_.Sized(x, {chunks_.count(), batch_, groups_, Extent(1), rows, columns});
  }

  // The state after all chunks, and o of each.
  std::vector<Value> AlongChunks(const std::vector<Value>& xs) {
    const Value start = e_.Sized(operands_[kDeltaState], {batch_, groups_, Extent(each_), n_, m_});
    return e_.Scan(chunks_.count(), {start}, xs, [](Expansion& b, std::span<const Value> in) -> std::vector<Value> {
      enum { kState, kU, kW, kQ, kP, kK, kE };
      const auto product = [&](Value x, Value y) { return b.Add("MatMul", {x, y}); };
      const Value d = b.Add("Sub", {in[kU], product(in[kW], in[kState])});
      const Value o = b.Add("Add", {product(in[kQ], in[kState]), product(in[kP], d)});
      const Value next = b.Add("Add", {b.Add("Mul", {in[kState], in[kE]}), product(in[kK], d)});
      return {next, o};
    });
  }

  Expansion e_;
  const std::span<const Value> operands_;
  const Chunks chunks_;
  Extent batch_, groups_, n_, m_, chunk_;
  int64_t each_ = 1;
};

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  std::vector<Value> operands;
  for (const Value& input : inputs) operands.push_back(e.Wide(input));
  if (operands.size() == kDeltaState) {
    const Value zero = e.Scalar(0, DType::kF32);
    operands.push_back(e.Add("Expand", {zero}, {{"shape", node.results[1].dims}}));
  }
  const double scale = node.attributes.Float("scale");
  if (!e.ok() || node.attributes.Int("chunk") == 0) {
    const Value o = e.Add("DeltaRule", operands, {{"scale", scale}});
    return e.Finish({e.Stored(o, node.results[0].dtype), {o.node, 1}});
  }
  QUERN_ASSIGN(const std::vector<Value> made, Chunked(graph, node, operands, origin).Run());
  const double n = static_cast<double>(e.type(operands[kDeltaQ]).dims[3].constant());
  const Value o = e.Add("Mul", {made[0], e.Scalar(scale != 0 ? scale : 1 / std::sqrt(n), DType::kF32)});
  return e.Finish({e.Stored(o, node.results[0].dtype), made[1]});
}

}  // namespace

const OpDef& Op_gated_delta_net() {
  static const OpDef* const op = Make({
      .name = "GatedDeltaNet",
      .doc = "linear attention with a state that decays and is corrected by each token: o and the state",
      .kind = OpKind::kComposite,
      .operands = {{.name = "q", .kind = OperandKind::kFloat, .shape = "[B, S, G, n]"},
                   {.name = "k", .kind = OperandKind::kFloat, .shape = "[B, S, G, n]"},
                   {.name = "v", .kind = OperandKind::kFloat, .shape = "[B, S, H, m], H a multiple of G"},
                   {.name = "g",
                    .kind = OperandKind::kFloat,
                    .shape = "[B, S, H], log of the decay; per_channel [B, S, H, n]",
                    .own_dtype = true},
                   {.name = "beta", .kind = OperandKind::kFloat, .shape = "[B, S, H]", .own_dtype = true},
                   {.name = "state",
                    .kind = OperandKind::kFloat,
                    .shape = "f32 [B, H, n, m]; absent: zeros",
                    .optional = true,
                    .own_dtype = true}},
      .attributes =
          {{.name = "per_channel",
            .kind = AttrKind::kBool,
            .default_value = false,
            .doc = "g has a decay of each channel of the keys"},
           {.name = "chunk",
            .kind = AttrKind::kInt,
            .default_value = int64_t{0},
            .doc = "how many tokens products are made of; 0: token by token"},
           {.name = "scale", .kind = AttrKind::kFloat, .default_value = 0.0, .doc = "of the result; 0: 1 / sqrt(n)"}},
      .infer = Infer,
      .reference = [](RefContext& c) { return ReferenceDeltaRule(c, c.node.attributes.Float("scale")); },
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = [](RefContext& c) { return MagnitudeOfDeltaRule(c, c.node.attributes.Float("scale")); },
      .examples = {{{"f32[2, 3, 1, 5]", "f32[2, 3, 1, 5]", "f32[2, 3, 2, 7]", "f32[2, 3, 2]", "f32[2, 3, 2]"}},
                   {{"f16[S, 2, 3, 5]", "f16[S, 2, 3, 5]", "f16[S, 2, 3, 2]", "f32[S, 2, 3, 5]", "f32[S, 2, 3]",
                     "f32[S, 3, 5, 2]"},
                    {{"per_channel", true}, {"scale", 1.0}}},
                   {{"f32[2, S, 1, 3]", "f32[2, S, 1, 3]", "f32[2, S, 2, 5]", "f32[2, S, 2]", "f32[2, S, 2]",
                     "f32[2, 2, 3, 5]"},
                    {{"chunk", int64_t{2}}}}},
  });
  return *op;
}

}  // namespace quern::ir
