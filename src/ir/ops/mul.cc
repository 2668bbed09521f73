// Mul: a b.

#include "ir/identity.h"
#include "ir/spelled_out.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

const OpDef& Op_mul() {
  static const OpDef* const op = Elementwise({
      .name = "Mul",
      .doc = "a b",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return a[0] * a[1]; },
      .reference = [](double x, double y, double) -> double { return x * y; },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return Times(a, b); },
      .identity = [](const IdentityContext& c) { return Neutral(c, 1, /*commutes=*/true); },
      .onnx = "Mul",
  });
  return *op;
}

std::optional<Scaled> AsScaled(const Graph& graph, const Node& node) {
  const bool product = node.op == &Op_mul();
  if (!product && node.op->name != std::string_view("Div")) return std::nullopt;
  if (!IsFloat(node.results[0].dtype)) return std::nullopt;
  for (const int x : {0, 1}) {
    if (x == 1 && !product) break;
    const std::optional<double> number = UniformConstant(graph, node.inputs[1 - x]);
    // A number of more dimensions than x would make the result another tensor.
    if (number && graph.type(node.inputs[x]) == node.results[0])
      return Scaled{node.inputs[x], product ? *number : 1 / *number};
  }
  return std::nullopt;
}

}  // namespace quern::ir
