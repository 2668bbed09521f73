// Attention and RotaryEmbedding as ONNX has them since version 23.

#include <cmath>

#include "onnx/attention.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

enum : int { kQ, kK, kV, kMask, kPastK, kPastV };

// q, k and v are [B, N, S, d] or [B, S, N d]; a mask of bools or floats broadcasts to [B, N, S, T].
void Attention(Call& c) {
  Value q = c.x(kQ), k = c.x(kK), v = c.x(kV);
  const bool packed = c.rank(q) == 3;
  if (c.Wants(3)) return c.Fail("scores as a result have no op");
  if (packed) {
    const int64_t heads = c.Int("q_num_heads", 0), shared = c.Int("kv_num_heads", 0);
    q = Heads(c, q, heads), k = Heads(c, k, shared), v = Heads(c, v, shared);
  }
  const Extent fresh = c.dim(k, 2), past = c.Has(kPastK) ? c.dim(c.x(kPastK), 2) : Extent(0);
  if (c.Has(kPastK) && c.Has(kPastV)) {
    k = Joined(c, c.x(kPastK), k);
    v = Joined(c, c.x(kPastV), v);
  }
  Attending how{.scale = c.Float("scale", 0), .softcap = c.Float("softcap", 0)};
  if (c.Has(kMask)) {
    const Value mask = c.x(kMask);
    (c.dtype(mask) == DType::kBool ? how.allowed : how.biases).push_back(mask);
  }
  if (c.Int("is_causal", 0) != 0) how.allowed.push_back(CausalBehind(c, c.dim(q, 2), fresh, past));
  const Value y = Attend(c, q, k, v, how);
  c.Return(0, packed ? Packed(c, y) : y);
  c.Return(1, k);
  c.Return(2, v);
}

enum : int { kX, kCos, kSin, kPositions };

// Tables are [places, half], of which positions [B, S] name rows, or [B, S, half].
void Rotary(Call& c) {
  const Value x = c.x(kX);
  const bool packed = c.rank(x) == 3;
  const Value split = packed ? Heads(c, x, c.Int("num_heads", 0)) : x;
  const auto table = [&](int i) {
    if (c.Has(kPositions)) return TableAt(c, c.x(i), c.Cast(c.x(kPositions), DType::kI64));
    const Value rows = c.x(i);
    if (c.rank(rows) != 3) {
      c.Fail(absl::InvalidArgumentError("tables without positions have three dimensions"));
      return rows;
    }
    return c.Reshape(rows, {c.dim(rows, 0), Extent(1), c.dim(rows, 1), c.dim(rows, 2)});
  };
  const Value cos = table(kCos), sin = table(kSin);
  if (!c.ok()) return;
  const Value y = Rotated(c, split, cos, sin, c.Int("interleaved", 0) != 0);
  c.Return(packed ? Packed(c, y) : y);
}

constexpr Importer kRows[] = {
    {"Attention", Attention, "Attention", 3},
    {"RotaryEmbedding", Rotary, "", 3},
};

}  // namespace

std::span<const Importer> AttentionImporters() { return kRows; }

}  // namespace quern::onnx
