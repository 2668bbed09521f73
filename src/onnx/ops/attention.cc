// Attention and RotaryEmbedding as ONNX has them since version 23.

#include "onnx/attention.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

enum : int { kQ, kK, kV, kMask, kPastK };

// q, k and v are [B, N, S, d] or [B, S, N d]; a mask of bools or floats broadcasts to [B, N, S, T].
void Attention(Call& c) {
  Value q = c.x(kQ), k = c.x(kK), v = c.x(kV);
  const bool packed = c.rank(q) == 3;
  if (c.Wants(3)) return c.Fail("scores as a result have no op");
  if (packed) {
    const int64_t heads = c.Int("q_num_heads", 0), shared = c.Int("kv_num_heads", 0);
    q = Heads(c, q, heads), k = Heads(c, k, shared), v = Heads(c, v, shared);
  }
  const Extent past = JoinPast(c, kPastK, k, v);
  Attending how{.scale = c.Float("scale", 0), .softcap = c.Float("softcap", 0)};
  if (c.Has(kMask)) {
    const Value mask = c.x(kMask);
    (c.dtype(mask) == DType::kBool ? how.allowed : how.biases).push_back(mask);
  }
  if (c.Int("is_causal", 0) != 0) how.allowed.push_back(Causal(c, c.dim(q, 2), c.dim(k, 2), c.Size(past), 0));
  const Value y = Attend(c, q, k, v, how);
  c.Return(0, packed ? Packed(c, y) : y);
  c.Return(1, k);
  c.Return(2, v);
}

enum : int { kX, kCos, kSin, kPositions };

// Tables are [places, half], of which positions [B, S] name rows, or [B, S, half].
void Rotary(Call& c) {
  const auto table = [&](int i) {
    return c.Has(kPositions) ? TableAt(c, c.x(i), c.Cast(c.x(kPositions), DType::kI64)) : BesideHeads(c, c.x(i));
  };
  const Value cos = table(kCos), sin = table(kSin);
  c.Return(RotatedHeads(c, c.x(kX), c.Int("num_heads", 0), cos, sin));
}

constexpr Importer kRows[] = {
    {"Attention", Attention, "Attention", 3},
    {"RotaryEmbedding", Rotary, "", 3},
};

}  // namespace

std::span<const Importer> AttentionImporters() { return kRows; }

}  // namespace quern::onnx
