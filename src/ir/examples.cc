#include "ir/examples.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quern::ir {
namespace {

constexpr DType kDTypes[] = {DType::kBool, DType::kI8,  DType::kI16, DType::kI32, DType::kI64,
                             DType::kU8,   DType::kU16, DType::kU32, DType::kU64, DType::kF16,
                             DType::kBF16, DType::kF32, DType::kF64, DType::kC64};

std::vector<Example> ExamplesOf(const OpDef& op) {
  if (!op.examples.empty() || op.kind != OpKind::kElementwise) return op.examples;
  Example example;
  for (const OperandDef& operand : op.operands)
    example.operands.push_back(operand.own_dtype && operand.kind == OperandKind::kBool ? "bool[2, 3]" : "f32[2, 3]");
  return {example};
}

}  // namespace

std::span<const DType> ScalarDTypes() { return kDTypes; }

std::vector<ExampleGraph> ExamplesIn(const OpDef& op, DType dtype) {
  std::vector<ExampleGraph> made;
  // Operands of one dtype: that of the first which has none of its own.
  const auto leads = std::find_if(op.operands.begin(), op.operands.end(),
                                  [](const OperandDef& operand) { return !operand.own_dtype; });
  for (const Example& example : ExamplesOf(op)) {
    ExampleGraph& one = made.emplace_back();
    one.graph.symbols = {{"S", {1, 17}}};
    std::vector<Value> inputs;
    for (size_t i = 0; i < example.operands.size(); ++i) {
      StatusOr<TensorType> type = TensorType::Parse(example.operands[i]);
      const OperandDef& operand = op.operands[std::min(i, op.operands.size() - 1)];
      if (leads == op.operands.end() ? i == 0 : !operand.own_dtype) type->dtype = dtype;
      inputs.push_back(*one.graph.AddInput(absl::StrCat("x", i), *type));
    }
    const StatusOr<Value> node = one.graph.Add(op, std::move(inputs), example.attributes);
    one.status = node.status();
    if (!node.ok()) continue;
    const int results = static_cast<int>(one.graph.node(node->node).results.size());
    for (int r = 0; r < results; ++r) one.graph.outputs.push_back({node->node, r});
  }
  return made;
}

bool Computes(const OpDef& op, DType dtype) {
  const std::vector<ExampleGraph> made = ExamplesIn(op, dtype);
  return std::any_of(made.begin(), made.end(), [](const ExampleGraph& one) { return one.status.ok(); });
}

}  // namespace quern::ir
