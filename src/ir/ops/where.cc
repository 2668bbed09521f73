// Where: condition ? a : b.

#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/spelled_out.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

namespace {

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  std::vector<Extent> dims = context.types[0].dims;
  dims.emplace_back(1);
  return e.Finish({e.Add("Where", {e.Sized(context.x[0], std::move(dims)), context.x[1], context.x[2]})});
}

}  // namespace

const OpDef& Op_where() {
  static const OpDef* const op = Elementwise({
      .name = "Where",
      .doc = "condition ? a : b",
      .arity = 3,
      .domain = OperandKind::kAny,
      .body = [](Args a) { return Call(Op::kSelect, {a[0], a[1], a[2]}); },
      .reference = [](double x, double y, double z) -> double { return x != 0 ? y : z; },
      .integer_reference = [](Wide a, Wide b, Wide c) -> Wide { return a != 0 ? b : c; },
      .pairs = Pairs,
      .first_is_condition = true,
      .identity = [](const IdentityContext& c) -> Replacement {
        if (c.inputs[1] == c.inputs[2] && c.type(1) == c.result()) return c.inputs[1];
        return std::nullopt;
      },
      .onnx = "Where",
  });
  return *op;
}

bool IsChoice(const Node& node) { return node.op == &Op_where(); }

StatusOr<Value> MakeChoice(const MakeNode& make, Value condition, Value a, Value b) {
  return make("Where", {condition, a, b}, {});
}

}  // namespace quern::ir
