// Ops of com.microsoft that exports and optimised models hold, and what ONNX Runtime writes in ONNX's own domain.

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "onnx/attention.h"
#include "onnx/norms.h"
#include "onnx/products.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

void BiasGelu(Call& c) { c.Return(c.Add("Gelu", {c.Add("Add", {c.x(0), c.x(1)})})); }
void FastGelu(Call& c) { c.Return(c.Add("GeluApprox", {c.Has(1) ? c.Add("Add", {c.x(0), c.x(1)}) : c.x(0)})); }
void QuickGelu(Call& c) {
  const Value x = c.x(0);
  c.Return(c.Add("Mul", {x, c.Add("Sigmoid", {c.Add("Mul", {x, c.Like(c.Float("alpha", 1.702), x)})})}));
}

Value SwappedLast(Call& c, Value x) {
  Ints perm;
  for (int64_t d = 0; d < c.rank(x); ++d) perm.push_back(d);
  if (perm.size() > 1) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return c.Transpose(x, perm);
}

void FusedMatMul(Call& c) {
  Value a = c.x(0), b = c.x(1);
  if (c.Int("transBatchA", 0) != 0 || c.Int("transBatchB", 0) != 0) return c.Fail("with batches turned it has no op");
  if (c.Int("transA", 0) != 0) a = SwappedLast(c, a);
  if (c.Int("transB", 0) != 0) b = SwappedLast(c, b);
  const Value y = MatMulOf(c, a, b);
  const double alpha = c.Float("alpha", 1);
  c.Return(alpha == 1 ? y : c.Add("Mul", {y, c.Like(alpha, y)}));
}

// x + skip, with a bias where operand `bias` is there.
Value SkipSum(Call& c, int bias) {
  Value sum = c.Add("Add", {c.x(0), c.x(1)});
  if (c.Has(bias)) sum = c.Add("Add", {sum, c.x(bias)});
  return sum;
}
void SkipLayerNorm(Call& c) {
  const Value sum = SkipSum(c, 4);
  Values operands = {sum, c.x(2)};
  if (c.Has(3)) operands.push_back(c.x(3));
  c.Return(c.Add("LayerNorm", operands, {{"eps", c.Float("epsilon", 1e-12)}}));
  if (c.Wants(1) || c.Wants(2)) return c.Fail("means and rates as results have no op");
  c.Return(3, sum);
}
void SkipRmsNorm(Call& c) {
  const Value sum = SkipSum(c, 3);
  c.Return(c.Add("RmsNorm", {sum, c.x(2)}, {{"eps", c.Float("epsilon", 1e-5)}}));
  if (c.Wants(1) || c.Wants(2)) return c.Fail("means and rates as results have no op");
  c.Return(3, sum);
}
void SimplifiedLayerNorm(Call& c) {
  const Value x = c.x(0);
  if (c.Wants(1)) return c.Fail("rates as results have no op");
  c.Return(c.Add("RmsNorm", {x, c.x(1)},
                 {{"eps", c.Float("epsilon", 1e-5)}, {"axis", c.Axis(c.Int("axis", -1), c.rank(x))}}));
}

void EmbedLayerNorm(Call& c) {
  EmbedAndNormalise(c, 8, [](int, Value taken) { return taken; });
}

constexpr Importer kRows[] = {
    {"Attention", ContribAttention, "", 2, kContrib},
    {"BiasGelu", BiasGelu, "", 2, kContrib},
    {"EmbedLayerNormalization", EmbedLayerNorm, "", 1, kContrib},
    {"FastGelu", FastGelu, "", 1, kContrib},
    {"FusedMatMul", FusedMatMul, "", 2, kContrib},
    {"GatherBlockQuantized", GatherBlockQuantized, "", 3, kContrib},
    {"Gelu", SameOp, "Gelu", 1, kContrib},
    {"GroupQueryAttention", GroupQueryAttention, "", 1, kContrib},
    {"MatMulNBits", MatMulNBits, "", 3, kContrib},
    {"MultiHeadAttention", MultiHeadAttention, "", 1, kContrib},
    {"QuickGelu", QuickGelu, "", 1, kContrib},
    {"RotaryEmbedding", ContribRotary, "", 4, kContrib},
    {"SimplifiedLayerNormalization", SimplifiedLayerNorm, "", 2, kContrib},
    {"SimplifiedLayerNormalization", SimplifiedLayerNorm, "", 2},
    {"SkipLayerNormalization", SkipLayerNorm, "", 3, kContrib},
    {"SkipSimplifiedLayerNormalization", SkipRmsNorm, "", 3, kContrib},
};

}  // namespace

void EmbedAndNormalise(Call& c, int positions, const std::function<Value(int operand, Value taken)>& floats) {
  const Value ids = c.x(0);
  const auto rows = [&](int table, Value at) {
    return floats(table, c.Add("Gather", {c.x(table), at}, {{"axis", int64_t{0}}}));
  };
  const bool numbered = positions >= 0 && c.Has(positions);
  const Value places = numbered ? rows(3, c.x(positions)) : floats(3, c.Slice(c.x(3), 0, Extent(0), c.dim(ids, 1)));
  Value sum = c.Add("Add", {rows(2, ids), places});
  if (c.Has(1) && c.Has(4)) sum = c.Add("Add", {sum, rows(4, c.x(1))});
  c.Return(c.Add("LayerNorm", {sum, floats(5, c.x(5)), floats(6, c.x(6))}, {{"eps", c.Float("epsilon", 1e-12)}}));
  if (c.Wants(1)) {
    // How many tokens each sequence has, by its mask.
    const Extent batch = c.dim(ids, 0);
    c.Return(1,
             c.Has(7) ? c.Reduce("sum", c.Cast(c.x(7), DType::kI32), {1}, false) : c.Filled(0, DType::kI32, {batch}));
  }
  c.Return(2, sum);
}

std::span<const Importer> ContribImporters() { return kRows; }

}  // namespace quern::onnx
