// QMatMul: a product of bytes, with zero points, that is bytes again: sat(round(mult (bias + sum)) + out_zp).

#include "ir/integer_product.h"
#include "ir/requantise.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &w = context.operands[1];
  if (x.rank() != 2) return context.ShapeError(0, "[M, K]");
  if (w.rank() != 2 || !context.Equal(w.dims[0], x.dims[1]))
    return context.ShapeError(1, absl::StrFormat("[%s, N]", x.dims[1].ToString()));
  QUERN_RETURN_IF_ERROR(CheckRequantised(context, w.dims[1]));
  return std::vector<TensorType>{{x.dtype, {x.dims[0], w.dims[1]}}};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const auto zero = [&](const char* name, int operand) {
    return KnownZero(e, node.attributes.Int(name), graph.type(inputs[operand]).dtype);
  };
  const Value sum = ProductOfBytes(e, inputs[0], zero("x_zp", 0), inputs[1], zero("w_zp", 1));
  return e.Finish({Requantised(e, node, sum, inputs, {node.results[0].dims[1]})});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &w = *context.operands[1];
  const int64_t k = x.dims[1], n = w.dims[1], x_zero = context.node.attributes.Int("x_zp"),
                w_zero = context.node.attributes.Int("w_zp");
  for (int64_t at = 0; at < x.dims[0] * n; ++at) {
    int64_t sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      sum += (static_cast<int64_t>(x.Integer(at / n * k + i)) - x_zero) *
             (static_cast<int64_t>(w.Integer(i * n + at % n)) - w_zero);
    }
    context.results[0].SetInteger(at, Requantised(context, sum, at % n));
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_q_mat_mul() {
  static const OpDef* const op = Make({
      .name = "QMatMul",
      .doc = "a product of bytes with zero points, as bytes again",
      .kind = OpKind::kComposite,
      .operands = RequantiseOperands("[M, K], i8 or u8", "[K, N], i8 or u8", "[N]"),
      .attributes = RequantiseAttributes(),
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .examples = {{{"i8[5, 7]", "i8[7, 11]", "i32[11]"},
                    {{"x_zp", int64_t{3}}, {"w_zp", int64_t{-2}}, {"out_zp", int64_t{1}}, {"mult", 0.02}}},
                   {{"u8[S, 17]", "i8[17, 3]", "i32[3]", "f32[3]"}, {{"x_zp", int64_t{128}}}},
                   {{"i8[3, 33]", "i8[33, 5]", "i32[5]"}, {{"mult", 0.01}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
