// Attention: softmax(q k^T scale + mask) v per head, with grouped heads; no S x S matrix is ever in memory.
//
//   layout packed: q [B, Sq, heads * head_dim], k, v [B, Sk, kv_heads * head_dim]; bshd: [B, S, heads, head_dim];
//   bhsd: [B, heads, S, head_dim]. Query head h reads kv head h / (heads / kv_heads).
//   mask none; causal: key j for query i iff j <= i + Sk - Sq; sliding(w): i' - w <= j <= i' with i' = i + Sk - Sq;
//   custom: operand mask [B, Sk], below 0.5 is masked; bias: operand added after scale and softcap, broadcast to
//   [B, heads, Sq, Sk]; of bools one that is false hides, as -inf does. softcap c > 0: s <- c tanh(s / c).
//   sequences lengths: kv_len i32[B], keys of each that are live, of the Sk that there is room for; the last query of
//   sequence b is the last of them: query i is at position kv_len[b] - (Sq - i), and masks use positions.
//   ragged: the queries of all sequences follow each other, q [1, rows, ..], those of b from q_start[b] to
//   q_start[b + 1], i32[B + 1], ascending: row r is at kv_len[b] - (q_start[b + 1] - r).
//   paged: k and v [slots, block, ..], any sequence's keys n block .. in slot blocks[b, n], i32[B, ceil(Sk / block)].
//   No key at or past kv_len is read, or one whose slot there is not; rows of no sequence see no keys. The operands may
//   hold anything: row r belongs to the sequence before which q_start[1..] is at most r, and to none before q_start[0].
// A key that a mask or a bias of -inf hides takes no part, whatever it holds; a row without any other gives zeros, or
// NaN with `empty_rows = "nan"`, as a softmax of nothing does. A NaN in anything else that a row reads makes the row
// NaN.
// q, k and v may have f32, f16 or bf16 each: a half-precision cache, or a part of one. The result has that of q. All of
// f64, they are computed in f64, with weights in memory.

#include <algorithm>
#include <cmath>

#include "ir/attention.h"
#include "ir/shape.h"
#include "ir/spell_attention.h"
#include "ir/spelled_out.h"

namespace quern::ir {
namespace {

// Checks what says which rows and keys are whose; gives the keys that a sequence has room for.
StatusOr<Extent> InferSequences(const InferContext& context, const AttentionShape& shape,
                                const AttentionOperands& operands) {
  // Where there is no mask operand, those after it stand one place earlier than the table has them.
  auto check = [&](int operand, const char* name, const std::vector<Extent>& dims) -> Status {
    const TensorType& type = context.operands[operand];
    const TensorType wanted = {DType::kI32, dims};
    if (type.dtype == DType::kI32 && context.Equal(type.dims, dims)) return absl::OkStatus();
    const bool shape = type.dtype == DType::kI32;
    return context.Error(shape ? DiagnosticCode::kShapeMismatch : DiagnosticCode::kDTypeMismatch, name,
                         wanted.ToString(), type.ToString());
  };
  const TensorType &q = context.operands[0], &k = context.operands[1], &kv_len = context.operands[operands.kv_len];
  const Extent sequences = kv_len.rank() == 1 ? kv_len.dims[0] : operands.ragged() ? Extent(1) : q.dims[0];
  QUERN_RETURN_IF_ERROR(check(operands.kv_len, "kv_len", {sequences}));
  if (!context.AtLeast(sequences, 1))
    return context.Error(DiagnosticCode::kShapeMismatch, "kv_len", "of 1 sequence or more", kv_len.ToString());
  if (operands.ragged()) {
    QUERN_RETURN_IF_ERROR(check(operands.q_start, "q_start", {sequences + 1}));
    if (!context.Equal(q.dims[0], 1)) return context.ShapeError(0, "rows of all sequences, a batch of 1");
  } else if (!context.Equal(q.dims[0], sequences)) {
    return context.ShapeError(0, absl::StrFormat("the %s sequences of kv_len", sequences.ToString()));
  }
  const Extent& length = k.dims[shape.sequence_axis()];
  if (!operands.paged()) {
    if (context.Equal(k.dims[0], sequences)) return length;
    return context.ShapeError(1, absl::StrFormat("the %s sequences of kv_len", sequences.ToString()));
  }
  if (!length.is_constant() || length.constant() < 1 || !context.AtLeast(k.dims[0], 1))
    return context.ShapeError(1, "1 or more slots, each of the same number of keys");
  const TensorType& blocks = context.operands[operands.blocks];
  const Extent each = blocks.rank() == 2 ? blocks.dims[1] : Extent(1);
  QUERN_RETURN_IF_ERROR(check(operands.blocks, "blocks", {sequences, each}));
  return each * length;
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const AttentionShape shape(context.attributes);
  if (shape.heads < 1) return context.AttributeError("heads", "1 or more");
  if (shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0)
    return context.AttributeError("kv_heads", absl::StrFormat("a divisor of %d", shape.heads));
  if (shape.head_dim < 1) return context.AttributeError("head_dim", "1 or more");
  if (context.attributes.Int("window") < 0) return context.AttributeError("window", "0 or more");
  const TensorType &q = context.operands[0], &k = context.operands[1], &v = context.operands[2];
  if (!shape.Fits(q, shape.heads)) return context.ShapeError(0, shape.DimsText(shape.heads));
  if (!shape.Fits(k, shape.kv_heads)) return context.ShapeError(1, shape.DimsText(shape.kv_heads));
  if (!context.Equal(k.dims, v.dims)) return context.ShapeError(2, ToString(k.dims));
  const AttentionOperands operands(context.attributes);
  const std::string& mask = context.attributes.String("mask");
  if (operands.count != static_cast<int>(context.operands.size())) {
    return context.Error(DiagnosticCode::kInputCount, operands.lengths() ? "sequences" : "mask",
                         absl::StrCat(operands.count), absl::StrFormat("%u", context.operands.size()));
  }
  if (!operands.lengths() && !context.Equal(q.dims[0], k.dims[0]))
    return context.ShapeError(1, absl::StrFormat("the batch %s of q", q.dims[0].ToString()));
  Extent sk = k.dims[shape.sequence_axis()];
  if (operands.lengths()) {
    QUERN_ASSIGN(sk, InferSequences(context, shape, operands));
  }
  if (q.dtype == DType::kF64 && !IsSpellable(context.attributes))
    return context.UnsupportedError(0, "f32, f16 or bf16 beside sequences of own lengths, or rows that are NaN");
  for (int operand = 0; operand < 3; ++operand) {
    if (const char* wanted = WantedBeside(q.dtype, context.operands[operand].dtype))
      return context.UnsupportedError(operand, wanted);
  }
  const Extent& sq = q.dims[shape.sequence_axis()];
  if (mask == "custom") {
    const Extent batch = operands.lengths() ? context.operands[operands.kv_len].dims[0] : q.dims[0];
    if (!context.Equal(context.operands[3].dims, std::vector<Extent>{batch, sk}))
      return context.ShapeError(3, ToString({batch, sk}));
  }
  if (mask == "bias") {
    const std::vector<Extent> full = {q.dims[0], Extent(shape.heads), sq, sk};
    if (!context.BroadcastsTo(context.operands[3].dims, full))
      return context.ShapeError(3, absl::StrCat("what broadcasts to ", ToString(full)));
  }
  return std::vector<TensorType>{q};
}

// e^s of the scores of a row, of which those with `takes_part` do, over the largest; returns their sum: 0 when there is
// nothing to see. NaN and infinities as IEEE has them.
double Weigh(std::vector<double>& score, const std::vector<bool>& takes_part) {
  double largest = -INFINITY, sum = 0;
  for (size_t j = 0; j < score.size(); ++j) {
    if (takes_part[j] && !(score[j] <= largest)) largest = score[j];
  }
  if (largest == -INFINITY) return 0;
  for (size_t j = 0; j < score.size(); ++j) sum += score[j] = takes_part[j] ? std::exp(score[j] - largest) : 0;
  return sum;
}

// Keys of a sequence that a query may see, before masks: where each lies, and the position of the query among them.
struct Seen {
  int64_t position = 0;
  std::vector<std::pair<int64_t, int64_t>> keys = {};  // batch or slot, and row there; -1: no slot
  int64_t sequence = 0;
};

Seen SeenBy(const RefContext& context, const AttentionShape& shape, int64_t b, int64_t i) {
  const AttentionOperands operands(context.node.attributes);
  const int64_t sq = context.operands[0]->dims[shape.sequence_axis()],
                length = context.operands[1]->dims[shape.sequence_axis()];
  Seen seen{i + length - sq, {}, b};
  if (!operands.lengths()) {
    for (int64_t j = 0; j < length; ++j) seen.keys.emplace_back(b, j);
    return seen;
  }
  auto value = [&](int operand, int64_t at) { return static_cast<int64_t>(context.operands[operand]->Integer(at)); };
  const int64_t sequences = context.operands[operands.kv_len]->dims[0];
  int64_t end = sq;
  if (operands.ragged()) {
    seen.sequence = 0;
    for (int64_t s = 1; s <= sequences; ++s) seen.sequence += value(operands.q_start, s) <= i ? 1 : 0;
    if (seen.sequence == sequences || i < value(operands.q_start, 0)) return seen;
    end = value(operands.q_start, seen.sequence + 1);
  }
  const int64_t live = value(operands.kv_len, seen.sequence);
  seen.position = live - (end - i);
  if (!operands.paged()) {
    for (int64_t j = 0; j < std::min(live, length); ++j) seen.keys.emplace_back(seen.sequence, j);
    return seen;
  }
  const int64_t each = context.operands[operands.blocks]->dims[1], slots = context.operands[1]->dims[0];
  for (int64_t j = 0; j < std::min(live, each * length); ++j) {
    const int64_t slot = value(operands.blocks, seen.sequence * each + j / length);
    seen.keys.emplace_back(slot >= 0 && slot < slots ? slot : -1, j % length);
  }
  return seen;
}

// The results, or their magnitude: sums over |v|.
Status Evaluate(RefContext& context, bool magnitude) {
  const AttentionShape shape(context.node.attributes);
  const RefTensor &q = *context.operands[0], &k = *context.operands[1], &v = *context.operands[2];
  const AttentionOperands operands(context.node.attributes);
  const RefTensor* mask = operands.mask >= 0 ? context.operands[operands.mask] : nullptr;
  const std::string& kind = context.node.attributes.String("mask");
  const int64_t window = context.node.attributes.Int("window");
  const double softcap = context.node.attributes.Float("softcap");
  const double of_nothing = context.node.attributes.String("empty_rows") == "nan" ? NAN : 0;
  double scale = context.node.attributes.Float("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  const int64_t sq = q.dims[shape.sequence_axis()], sk = k.dims[shape.sequence_axis()];
  for (int64_t b = 0; b < q.dims[0]; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t kv = h / (shape.heads / shape.kv_heads);
      for (int64_t i = 0; i < sq; ++i) {
        const Seen seen = SeenBy(context, shape, b, i);
        const int64_t keys = static_cast<int64_t>(seen.keys.size()), at = seen.position;
        std::vector<double> score(keys);
        std::vector<bool> takes_part(keys, true);  // a key that the mask or a bias of -inf hides does not
        for (int64_t j = 0; j < keys; ++j) {
          const auto [place, row] = seen.keys[j];
          if (kind == "causal") takes_part[j] = j <= at;
          if (kind == "sliding") takes_part[j] = j <= at && j >= at - window;
          if (kind == "custom") takes_part[j] = mask->At(std::vector<int64_t>{seen.sequence, j}) >= 0.5;
          double bias = kind == "bias" ? mask->At(std::vector<int64_t>{b, h, i, j}) : 0;
          if (kind == "bias" && mask->dtype == DType::kBool) bias = bias != 0 ? 0 : -INFINITY;
          takes_part[j] = takes_part[j] && bias != -INFINITY && place >= 0;
          if (place < 0) continue;
          double s = 0;
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            s += q.data[shape.Offset(b, i, h, d, sq, shape.heads)] *
                 k.data[shape.Offset(place, row, kv, d, sk, shape.kv_heads)];
          }
          s *= scale;
          if (softcap > 0) s = softcap * std::tanh(s / softcap);
          score[j] = s + bias;
        }
        const double sum = Weigh(score, takes_part);
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          double out = sum == 0 ? of_nothing : 0;
          for (int64_t j = 0; j < keys && sum != 0; ++j) {
            if (!takes_part[j]) continue;
            const auto [place, row] = seen.keys[j];
            const double value = v.data[shape.Offset(place, row, kv, d, sk, shape.kv_heads)];
            out += score[j] / sum * (magnitude ? std::fabs(value) : value);
          }
          context.results[0].data[shape.Offset(b, i, h, d, sq, shape.heads)] = RoundTo(q.dtype, out);
        }
      }
    }
  }
  return absl::OkStatus();
}

// Keys and values that were halves are read as they are stored.
Replacement Identity(const IdentityContext& context) {
  std::vector<Value> inputs = context.inputs;
  for (int operand = 1; operand < 3; ++operand) {
    if (const std::optional<Value> stored = AsWidened(context.graph, context.behind(operand)))
      inputs[operand] = *stored;
  }
  if (inputs == context.inputs) return std::nullopt;
  return context.make(context.node.op->name, std::move(inputs), context.node.attributes);
}

Status Reference(RefContext& context) { return Evaluate(context, /*magnitude=*/false); }
Status Magnitude(RefContext& context) { return Evaluate(context, /*magnitude=*/true); }

}  // namespace

const OpDef& Op_attention() {
  static const OpDef* const op = Make({
      .name = "Attention",
      .doc = "softmax(q k^T scale + mask) v per head, with grouped heads",
      .kind = OpKind::kRoot,
      .family = "attention",
      .operands = {{.name = "q",
                    .kind = OperandKind::kFloat,
                    .shape = "[B, Sq, heads * head_dim], or by layout",
                    .own_dtype = true},
                   {.name = "k",
                    .kind = OperandKind::kFloat,
                    .shape = "[B, Sk, kv_heads * head_dim], or by layout",
                    .own_dtype = true},
                   {.name = "v", .kind = OperandKind::kFloat, .shape = "of the extents of k", .own_dtype = true},
                   {.name = "mask",
                    .shape = "custom: [B, Sk]; bias: broadcasts to [B, heads, Sq, Sk], of floats or bools",
                    .optional = true,
                    .own_dtype = true},
                   {.name = "q_start", .shape = "i32[B + 1], where ragged", .optional = true, .own_dtype = true},
                   {.name = "kv_len", .shape = "i32[B], unless sequences is none", .optional = true, .own_dtype = true},
                   {.name = "blocks", .shape = "i32[B, blocks], where paged", .optional = true, .own_dtype = true}},
      .attributes = {{.name = "heads", .kind = AttrKind::kInt},
                     {.name = "kv_heads", .kind = AttrKind::kInt},
                     {.name = "head_dim", .kind = AttrKind::kInt},
                     {.name = "mask",
                      .kind = AttrKind::kString,
                      .default_value = std::string("none"),
                      .choices = {"none", "causal", "sliding", "custom", "bias"}},
                     {.name = "window",
                      .kind = AttrKind::kInt,
                      .default_value = int64_t{0},
                      .doc = "sliding: keys before the query's own"},
                     {.name = "scale", .kind = AttrKind::kFloat, .default_value = 0.0, .doc = "0: 1 / sqrt(head_dim)"},
                     {.name = "softcap", .kind = AttrKind::kFloat, .default_value = 0.0, .doc = "0: none"},
                     {.name = "layout",
                      .kind = AttrKind::kString,
                      .default_value = std::string("packed"),
                      .choices = {"packed", "bshd", "bhsd"}},
                     {.name = "empty_rows",
                      .kind = AttrKind::kString,
                      .default_value = std::string("zeros"),
                      .doc = "what a row that sees no key gives",
                      .choices = {"zeros", "nan"}},
                     {.name = "sequences",
                      .kind = AttrKind::kString,
                      .default_value = std::string("none"),
                      .doc = "which operands follow the mask: lengths kv_len; ragged q_start too; paged blocks too",
                      .choices = {"none", "lengths", "ragged", "paged", "ragged_paged"}}},
      .infer = Infer,
      .identity = Identity,
      .reference = Reference,
      .expand = SpellAttention,
      .expands = [](const Node& node) { return node.results[0].dtype == DType::kF64; },
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .examples = {{{"f32[2, 3, 32]", "f32[2, 5, 16]", "f32[2, 5, 16]"},
                    {{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}, {"head_dim", int64_t{8}}}},
                   {{"f64[2, S, 6]", "f64[2, 5, 3]", "f64[2, 5, 3]"},
                    {{"heads", int64_t{2}}, {"kv_heads", int64_t{1}}, {"head_dim", int64_t{3}}}}},
  });
  return *op;
}

StatusOr<Value> MakeAttention(const MakeNode& make, std::vector<Value> operands, Attributes attributes) {
  return make("Attention", std::move(operands), std::move(attributes));
}

}  // namespace quern::ir
