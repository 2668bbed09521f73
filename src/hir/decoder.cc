#include "hir/decoder.h"

#include "hir/linear.h"
#include "ir/attention.h"

namespace quern::hir {
namespace {

// clang-format off
enum Operand {
  kX, kLn1Gamma, kLn1Beta, kQ, kK, kV, kO, kLn2Gamma, kLn2Beta, kGate, kUp, kDown, kCos, kSin, kMask,
  kKeyCache, kValueCache, kIndex, kPositions, kQStart, kKvLen, kBlocks,
};
// clang-format on

struct Sizes {
  explicit Sizes(const Attributes& attributes)
      : heads(attributes.Int("heads")),
        kv_heads(attributes.Int("kv_heads") == 0 ? heads : attributes.Int("kv_heads")),
        head_dim(attributes.Int("head_dim")),
        n_rot(attributes.Int("n_rot") == 0 ? head_dim : attributes.Int("n_rot")) {}
  int64_t heads, kv_heads, head_dim, n_rot;
};

Status CheckSizes(const InferContext& c, const Sizes& sizes) {
  if (sizes.heads < 1) return c.AttributeError("heads", "1 or more");
  if (sizes.kv_heads < 1 || sizes.heads % sizes.kv_heads != 0) {
    return c.AttributeError("kv_heads", absl::StrFormat("a divisor of %d", sizes.heads));
  }
  if (sizes.head_dim < 1) return c.AttributeError("head_dim", "1 or more");
  if (sizes.n_rot < 2 || sizes.n_rot % 2 != 0 || sizes.n_rot > sizes.head_dim) {
    return c.AttributeError("n_rot", absl::StrFormat("even and at most %d", sizes.head_dim));
  }
  if (c.attributes.Int("window") < 0) return c.AttributeError("window", "0 or more");
  if (c.attributes.Float("eps") < 0) return c.AttributeError("eps", "0 or more");
  return absl::OkStatus();
}

// Rows of the cache that lie side by side: a slot's, or a sequence's; 0 where they do not come out even.
Extent KeysInPlace(const Attributes& attributes, const TensorType& cache, const TensorType& kv_len, bool blocks) {
  const Extent places = blocks ? Extent(attributes.Int("slot")) : kv_len.rank() == 1 ? kv_len.dims[0] : Extent(0);
  if (!places.is_constant() || places.constant() < 1) return Extent(0);
  const std::optional<Extent> parts = cache.dims[0].DividedBy(places.constant());
  return !parts ? Extent(0) : blocks ? places : *parts;
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const Sizes sizes(c.attributes);
  QUERN_RETURN_IF_ERROR(CheckSizes(c, sizes));
  const TensorType& x = c.operand(kX);
  if (x.rank() != 2 && x.rank() != 3) return c.ShapeError(kX, "[S, E] or [B, S, E]");
  QUERN_RETURN_IF_ERROR(c.ExpectDType(kX, DType::kF32));
  const Extent width = x.dims.back();
  for (const Operand norm : {kLn1Gamma, kLn1Beta, kLn2Gamma, kLn2Beta}) {
    QUERN_RETURN_IF_ERROR(c.ExpectDims(norm, {width}));
    QUERN_RETURN_IF_ERROR(c.ExpectDType(norm, DType::kF32));
  }
  std::optional<Extent> query(sizes.heads * sizes.head_dim), key(sizes.kv_heads * sizes.head_dim), hidden, out(width);
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kQ, x.dtype, width, query));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kK, x.dtype, width, key));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kV, x.dtype, width, key));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kO, x.dtype, *query, out));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kGate, x.dtype, width, hidden));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kUp, x.dtype, width, hidden));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, kDown, x.dtype, *hidden, out));

  const std::string& mask = c.attributes.String("mask");
  const bool wants_mask = mask == "custom" || mask == "bias";
  if (wants_mask != c.has(kMask)) {
    return c.Error(DiagnosticCode::kInputCount, "mask", wants_mask ? "a mask among its" : "no mask among its",
                   wants_mask ? "none" : "one");
  }
  std::vector<TensorType> results = {x};
  if (c.has(kKeyCache) != c.has(kValueCache))
    return c.Error(DiagnosticCode::kInputCount, "v_cache", "both caches or none among its", "one");
  for (const Operand operand : {kIndex, kPositions, kQStart, kKvLen}) {
    if (c.has(operand) != c.has(kKvLen))
      return c.Error(DiagnosticCode::kInputCount, "kv_len", "all of index, positions, q_start, kv_len or none", "some");
  }
  if (c.has(kKvLen) && !c.has(kKeyCache))
    return c.Error(DiagnosticCode::kInputCount, "k_cache", "caches beside kv_len", "none");
  if (c.has(kBlocks) && !c.has(kKvLen))
    return c.Error(DiagnosticCode::kInputCount, "kv_len", "kv_len beside blocks", "none");
  if (!c.has(kKeyCache)) return results;
  if (!c.has(kKvLen) && !c.symbols.contains(kPastSymbol))
    return c.Error(DiagnosticCode::kUnboundSymbol, kPastSymbol, "", "");
  if (x.rank() == 3 && x.dims[0] != Extent(1)) return c.ShapeError(kX, "one sequence, for there is one cache");
  for (const Operand cache : {kKeyCache, kValueCache}) {
    const TensorType& type = c.operand(cache);
    if (!ir::AttentionShape::Computes(type.dtype)) return c.DTypeError(cache, ir::AttentionShape::kComputed);
    QUERN_RETURN_IF_ERROR(c.ExpectDims(
        cache, {type.rank() > 0 ? type.dims[0] : Extent(1), Extent(sizes.kv_heads), Extent(sizes.head_dim)}));
    results.push_back(type);
  }
  QUERN_RETURN_IF_ERROR(c.ExpectDims(kValueCache, results[1].dims));
  if (c.has(kKvLen)) {
    if (KeysInPlace(c.attributes, c.operand(kKeyCache), c.operand(kKvLen), c.has(kBlocks)) == Extent(0))
      return c.ShapeError(kKeyCache, "whole slots, or as many rows for each sequence");
  }
  return results;
}

// Writes this step's rows [.., S, kv_heads * head_dim] into a cache; gives the rows attention reads and the new cache.
std::pair<ir::Value, ir::Value> UpdateCache(LowerContext& c, const Sizes& sizes, ir::Value rows, ir::Value cache,
                                            std::string_view part) {
  const TensorType& type = c.type(rows);
  const Extent length = type.rank() < 2 ? Extent(1) : type.dims[type.rank() - 2];
  const Extent past = Extent::Symbol(kPastSymbol);
  rows = c.CastTo(c.type(cache).dtype, rows, part);
  rows = c.Reshape(rows, {length, Extent(sizes.kv_heads), Extent(sizes.head_dim)}, part);
  const ir::Value updated =
      c.Add("Update", {cache, rows}, {{"axis", int64_t{0}}, {"start", std::vector<Extent>{past}}}, part);
  const ir::Value seen = c.Add(
      "Narrow", {updated},
      {{"axis", int64_t{0}}, {"start", std::vector<Extent>{0}}, {"length", std::vector<Extent>{past + length}}}, part);
  return {c.Reshape(seen, {Extent(1), past + length, Extent(sizes.kv_heads * sizes.head_dim)}, part), updated};
}

// The same where rows have places of their own: gives the cache as slots, or as sequences.
std::pair<ir::Value, ir::Value> UpdateSequences(LowerContext& c, const Sizes& sizes, ir::Value rows, ir::Value cache,
                                                std::string_view part) {
  const TensorType& type = c.type(cache);
  const Extent each = KeysInPlace(c.attributes(), type, c.type(c.inputs[kKvLen]), c.has(kBlocks)),
               width(sizes.kv_heads * sizes.head_dim);
  const Extent places = *type.dims[0].DividedBy(each.constant());
  const TensorType& given = c.type(rows);
  rows = c.CastTo(type.dtype, rows, part);
  rows = c.Reshape(rows, {given.dims[given.rank() - 2], Extent(sizes.kv_heads), Extent(sizes.head_dim)}, part);
  const ir::Value updated = c.Add("Update", {cache, rows, c.inputs[kIndex]}, {{"axis", int64_t{0}}}, part);
  return {c.Reshape(updated, {places, each, width}, part), updated};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  const Sizes sizes(c.attributes());
  const ir::Value x = c.inputs[kX];
  const TensorType type = c.type(x);
  const Attributes eps = {{"eps", c.attributes().Float("eps")}};
  const Attributes layout = {{"weight_layout", c.attributes().String("weight_layout")}};
  const Attributes rope = {
      {"head_dim", sizes.head_dim}, {"n_rot", sizes.n_rot}, {"style", c.attributes().String("rope_style")}};
  auto linear = [&](ir::Value operand, Operand weight, const char* label) {
    return c.Block("Linear", {operand, c.inputs[weight]}, layout, label)[0];
  };
  // Attention is over batches; one sequence without a batch is a batch of one.
  auto batched = [&](ir::Value value) {
    std::vector<Extent> dims = c.type(value).dims;
    if (dims.size() == 2) dims.insert(dims.begin(), Extent(1));
    return c.Reshape(value, std::move(dims), "attention");
  };

  const ir::Value n1 = c.Block("RmsNorm", {x, c.inputs[kLn1Gamma], c.inputs[kLn1Beta]}, eps, "attention_norm")[0];
  ir::Value q = linear(n1, kQ, "attention/q"), k = linear(n1, kK, "attention/k"), v = linear(n1, kV, "attention/v");
  q = c.Block("RoPE", {q, c.inputs[kCos], c.inputs[kSin], c.inputs[kPositions]}, rope, "attention/q_rope")[0];
  k = c.Block("RoPE", {k, c.inputs[kCos], c.inputs[kSin], c.inputs[kPositions]}, rope, "attention/k_rope")[0];
  std::vector<ir::Value> caches;
  if (c.has(kKeyCache)) {
    caches.resize(2);
    const auto update = c.has(kKvLen) ? UpdateSequences : UpdateCache;
    std::tie(k, caches[0]) = update(c, sizes, k, c.inputs[kKeyCache], "attention/k_cache");
    std::tie(v, caches[1]) = update(c, sizes, v, c.inputs[kValueCache], "attention/v_cache");
  } else {
    k = batched(k);
    v = batched(v);
  }
  const Attributes attention = {{"heads", sizes.heads},
                                {"kv_heads", sizes.kv_heads},
                                {"head_dim", sizes.head_dim},
                                {"mask", c.attributes().String("mask")},
                                {"window", c.attributes().Int("window")},
                                {"scale", c.attributes().Float("scale")},
                                {"softcap", c.attributes().Float("softcap")}};
  ir::Value a =
      c.Block("Attention", {batched(q), k, v, c.inputs[kMask], c.inputs[kQStart], c.inputs[kKvLen], c.inputs[kBlocks]},
              attention, "attention")[0];
  std::vector<Extent> rows = type.dims;
  rows.back() = Extent(sizes.heads * sizes.head_dim);
  a = linear(c.Reshape(a, rows, "attention"), kO, "attention/o");

  const std::vector<ir::Value> norm =
      c.Block("ResidualRmsNorm", {a, x, c.inputs[kLn2Gamma], c.inputs[kLn2Beta]}, eps, "ffn_norm");
  const ir::Value n2 = norm[0], h = norm[1];
  const ir::Value gate = linear(n2, kGate, "ffn/gate"), up = linear(n2, kUp, "ffn/up");
  const ir::Value hidden = c.Add("Mul", {c.Add("Silu", {gate}, {}, "ffn"), up}, {}, "ffn");
  const ir::Value out = c.Add("Add", {h, linear(hidden, kDown, "ffn/down")}, {}, "ffn");
  std::vector<ir::Value> results = {out};
  results.insert(results.end(), caches.begin(), caches.end());
  return c.Finish(std::move(results));
}

}  // namespace

BlockDef DecoderBlock(const char* name, const char* label) {
  const auto weight = ir::OperandKind::kWeight, index = ir::OperandKind::kAny;
  return {
      .name = name,
      .doc = "pre-norm decoder layer: grouped attention with RoPE, SwiGLU, residuals",
      .label = label,
      .operands = {{.name = "x", .shape = "[S, E] or [B, S, E]"},
                   {.name = "ln1_g", .shape = "[E]"},
                   {.name = "ln1_b", .optional = true, .shape = "[E]"},
                   {.name = "q_w", .kind = weight, .shape = "kn: [E, heads * head_dim]; nk: the reverse"},
                   {.name = "k_w", .kind = weight, .shape = "kn: [E, kv_heads * head_dim]; nk: the reverse"},
                   {.name = "v_w", .kind = weight, .shape = "as k_w"},
                   {.name = "o_w", .kind = weight, .shape = "kn: [heads * head_dim, E]; nk: the reverse"},
                   {.name = "ln2_g", .shape = "[E]"},
                   {.name = "ln2_b", .optional = true, .shape = "[E]"},
                   {.name = "gate_w", .kind = weight, .shape = "kn: [E, H]; nk: [H, E]"},
                   {.name = "up_w", .kind = weight, .shape = "as gate_w"},
                   {.name = "down_w", .kind = weight, .shape = "kn: [H, E]; nk: [E, H]"},
                   {.name = "cos", .shape = "[S, w]; w: half or all of n_rot or head_dim"},
                   {.name = "sin", .shape = "as cos"},
                   {.name = "mask",
                    .kind = ir::OperandKind::kAny,
                    .optional = true,
                    .shape = "custom: [B, Sk]; bias: broadcasts to [B, heads, Sq, Sk]"},
                   {.name = "k_cache", .optional = true, .shape = "[rows, kv_heads, head_dim]"},
                   {.name = "v_cache", .optional = true, .shape = "as k_cache"},
                   {.name = "index", .kind = index, .optional = true, .shape = "i32[S]: the row's place in the caches"},
                   {.name = "positions", .kind = index, .optional = true, .shape = "i32[S]: the row's in cos and sin"},
                   {.name = "q_start", .kind = index, .optional = true, .shape = "i32[B + 1]"},
                   {.name = "kv_len", .kind = index, .optional = true, .shape = "i32[B]"},
                   {.name = "blocks", .kind = index, .optional = true, .shape = "i32[B, blocks]: slots of the caches"}},
      .attributes =
          {{.name = "heads", .kind = ir::AttrKind::kInt},
           {.name = "kv_heads", .kind = ir::AttrKind::kInt, .default_value = int64_t{0}, .doc = "0: heads"},
           {.name = "head_dim", .kind = ir::AttrKind::kInt},
           {.name = "eps", .kind = ir::AttrKind::kFloat, .default_value = 1e-5, .doc = "of both norms"},
           {.name = "mask",
            .kind = ir::AttrKind::kString,
            .default_value = std::string("causal"),
            .choices = {"none", "causal", "sliding", "custom", "bias"}},
           {.name = "window", .kind = ir::AttrKind::kInt, .default_value = int64_t{0}},
           {.name = "scale", .kind = ir::AttrKind::kFloat, .default_value = 0.0, .doc = "0: 1 / sqrt(head_dim)"},
           {.name = "softcap", .kind = ir::AttrKind::kFloat, .default_value = 0.0, .doc = "0: none"},
           {.name = "n_rot", .kind = ir::AttrKind::kInt, .default_value = int64_t{0}, .doc = "0: head_dim"},
           {.name = "rope_style",
            .kind = ir::AttrKind::kString,
            .default_value = std::string("neox"),
            .choices = {"gptj", "neox"}},
           {.name = "slot", .kind = ir::AttrKind::kInt, .default_value = int64_t{0}, .doc = "rows of a slot"},
           WeightLayoutAttribute()},
      .infer = Infer,
      .lower = Lower,
  };
}

}  // namespace quern::hir
