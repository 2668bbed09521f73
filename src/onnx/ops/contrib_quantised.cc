// Quantised ops of com.microsoft, as ONNX Runtime's quantiser writes models: floats between bytes, and products of
// bytes. Operands are x, its scale and its zero point, of each; then the scale and the zero point of the result.

#include "onnx/attention.h"
#include "onnx/norms.h"
#include "onnx/quantised.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

// An op of floats between bytes: x, scale and zero for each operand, then those of the result.
void QLinearBinary(Call& c) {
  const Value a = DequantisedAt(c, 0), b = DequantisedAt(c, 3);
  c.Return(QuantisedBy(c, c.Add(c.row.op, {a, b}), 6));
}
void QLinearUnary(Call& c) {
  const Value x = DequantisedAt(c, 0);
  ir::Attributes attributes;
  if (c.Find("alpha") != nullptr) attributes.Set("alpha", c.Float("alpha", 0.01));
  c.Return(QuantisedBy(c, c.Add(c.row.op, {x}, attributes), 3));
}
void QLinearGlobalAveragePool(Call& c) {
  const Value x = DequantisedAt(c, 0);
  Ints axes;
  const bool last = c.Int("channels_last", 0) != 0;
  for (int64_t d = last ? 1 : 2; d < c.rank(x) - (last ? 1 : 0); ++d) axes.push_back(d);
  c.Return(QuantisedBy(c, c.Reduce("mean", x, axes, true), 3));
}
void QLinearConcat(Call& c) {
  Values parts;
  for (int i = 2; i + 2 < c.inputs(); i += 3) parts.push_back(DequantisedAt(c, i));
  if (parts.empty()) return c.Fail(absl::InvalidArgumentError("nothing is joined"));
  c.Return(
      Quantised(c, c.Add("Concat", parts, {{"axis", c.Axis(c.Int("axis", 0), c.rank(parts[0]))}}), c.x(0), c.x(1)));
}

void QLinearSoftmax(Call& c) {
  const Value x = DequantisedAt(c, 0);
  const bool joins = c.Int("opset", 13) < 13;  // dimensions from the axis on, which is 1 unless it is given
  const int64_t axis = c.Axis(c.Int("axis", joins ? 1 : -1), c.rank(x));
  if (joins && axis != c.rank(x) - 1) return c.Fail("over several dimensions has no op");
  c.Return(QuantisedBy(c, c.Add("Softmax", {x}, {{"axis", axis}}), 3));
}
void QLinearWhere(Call& c) {
  c.Return(Quantised(c, c.Add("Where", {c.x(0), DequantisedAt(c, 1), DequantisedAt(c, 4)}), c.x(7), c.x(8)));
}

// Products of bytes as floats.
void DynamicQuantizeMatMul(Call& c) {
  const Value x = c.x(0);
  const DynamicForm form = DynamicFormOf(c, x);
  const Value bytes = c.Add("QuantizeLinear", {x, form.divisor, form.zero});
  const Value sum = ByteProduct(c, bytes, form.zero, c.x(1), Maybe(c, 3));
  Value y = c.Add("Mul", {c.Cast(sum, DType::kF32), c.Add("Mul", {form.divisor, One(c, c.x(2))})});
  if (c.Has(4)) y = c.Add("Add", {y, c.x(4)});
  c.Return(y);
}
void MatMulIntegerToFloat(Call& c) {
  const Value sum = ByteProduct(c, c.x(0), Maybe(c, 4), c.x(1), Maybe(c, 5));
  Value y = c.Add("Mul", {c.Cast(sum, DType::kF32), c.Add("Mul", {One(c, c.x(2)), One(c, c.x(3))})});
  if (c.Has(6)) y = c.Add("Add", {y, c.x(6)});
  c.Return(y);
}

// q, k and v of bytes, then attention of floats. Operands: x, w, bias, their scales, mask, zeros, past.
void QAttention(Call& c) {
  const Value sum = ByteProduct(c, c.x(0), Maybe(c, 6), c.x(1), Maybe(c, 7));
  const Value scale = c.Add("Mul", {One(c, c.x(3)), One(c, c.x(4))});
  AttendPacked(c, c.Add("Add", {c.Add("Mul", {c.Cast(sum, DType::kF32), scale}), c.x(2)}), 5, 8, -1);
}
// Tables and the norm in bytes: scales and zeros of operands 2 to 6 are operands 8 to 12 and 13 to 17.
void QEmbedLayerNormalization(Call& c) {
  EmbedAndNormalise(
      c, -1, [&](int operand, Value taken) { return Dequantised(c, taken, c.x(operand + 6), Maybe(c, operand + 11)); });
}

// alpha (a - a zero)(b - b zero) + c, whose c is of i32, at the scale of the sums; floats where no scale of the result
// is there.
void QGemm(Call& c) {
  Value a = c.x(0);
  if (c.Int("transA", 0) != 0) a = c.Transpose(a, {1, 0});
  const bool rows = c.Int("transB", 0) != 0;
  Value sum = ByteProduct(c, a, Maybe(c, 2), c.x(3), Maybe(c, 5), rows);
  if (c.Has(6)) sum = c.Add("Add", {sum, c.x(6)});
  Value scale = c.Add("Mul", {One(c, c.x(1)), One(c, c.x(4))});
  if (const double alpha = c.Float("alpha", 1); alpha != 1) scale = c.Add("Mul", {scale, c.Like(alpha, scale)});
  if (!c.Has(7)) return c.Return(c.Add("Mul", {c.Cast(sum, DType::kF32), scale}));
  scale = c.Add("Div", {scale, One(c, c.x(7))});
  c.Return(Requantised(c, sum, scale, c.Has(8) ? One(c, c.x(8)) : c.Scalar(0, c.dtype(a))));
}

constexpr Importer kRows[] = {
    {"DynamicQuantizeMatMul", DynamicQuantizeMatMul, "", 3, kContrib},
    {"MatMulIntegerToFloat", MatMulIntegerToFloat, "", 4, kContrib},
    {"QAttention", QAttention, "", 5, kContrib},
    {"QEmbedLayerNormalization", QEmbedLayerNormalization, "", 1, kContrib},
    {"QGemm", QGemm, "", 6, kContrib},
    {"QLinearAdd", QLinearBinary, "Add", 7, kContrib},
    {"QLinearConcat", QLinearConcat, "", 5, kContrib},
    {"QLinearGlobalAveragePool", QLinearGlobalAveragePool, "", 5, kContrib},
    {"QLinearLeakyRelu", QLinearUnary, "LeakyRelu", 4, kContrib},
    {"QLinearMul", QLinearBinary, "Mul", 7, kContrib},
    {"QLinearSigmoid", QLinearUnary, "Sigmoid", 4, kContrib},
    {"QLinearSoftmax", QLinearSoftmax, "", 4, kContrib},
    {"QLinearWhere", QLinearWhere, "", 9, kContrib},
};

}  // namespace

std::span<const Importer> ContribQuantisedImporters() { return kRows; }

}  // namespace quern::onnx
