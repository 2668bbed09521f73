// Mul: a b.

#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/spelled_out.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

namespace {

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const Parts a = PartsOf(e, context.x[0]), b = PartsOf(e, context.x[1]);
  const auto mul = [&](Value x, Value y) { return e.Add("Mul", {x, y}); };
  const Value re = e.Add("Sub", {mul(a.re, b.re), mul(a.im, b.im)});
  const Value im = e.Add("Add", {mul(a.re, b.im), mul(a.im, b.re)});
  return e.Finish({PairsOf(e, {re, im})});
}

}  // namespace

const OpDef& Op_mul() {
  static const OpDef* const op = Elementwise({
      .name = "Mul",
      .doc = "a b",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return a[0] * a[1]; },
      .reference = [](double x, double y, double) -> double { return x * y; },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return Times(a, b); },
      .pairs = Pairs,
      .complex_reference = [](std::complex<double> a, std::complex<double> b) -> std::complex<double> {
        return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
      },
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
