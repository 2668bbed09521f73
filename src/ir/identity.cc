#include "ir/identity.h"

#include <cmath>
#include <cstring>

#include "ir/interpret.h"

namespace quern::ir {

Replacement Unchanged(const IdentityContext& context) {
  if (context.type(0) == context.result()) return context.inputs[0];
  return std::nullopt;
}

Replacement Involution(const IdentityContext& context) {
  if (context.behind(0).op == context.node.op) return context.behind(0).inputs[0];
  return std::nullopt;
}

Replacement Idempotent(const IdentityContext& context) {
  if (context.behind(0).op == context.node.op) return context.inputs[0];
  return std::nullopt;
}

Replacement Neutral(const IdentityContext& context, double neutral, bool commutes) {
  const auto is_neutral = [&](size_t operand) {
    const std::optional<double> value = ScalarConstant(context.graph, context.inputs[operand]);
    return value && *value == neutral && std::signbit(*value) == std::signbit(neutral);
  };
  if (is_neutral(1) && context.type(0) == context.result()) return context.inputs[0];
  if (commutes && is_neutral(0) && context.type(1) == context.result()) return context.inputs[1];
  return std::nullopt;
}

std::optional<double> ScalarConstant(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  if (!IsConstant(node) || node.results[0].elements() != Extent(1)) return std::nullopt;
  const StatusOr<RefTensor> tensor = RefTensorFromBytes(node.results[0].dtype, {1}, *node.data);
  if (!tensor.ok()) return std::nullopt;
  return tensor->Real(0);
}

std::optional<double> UniformConstant(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  if (!IsConstant(node) || IsBlock(node.results[0].dtype) || node.data->empty()) return std::nullopt;
  const std::vector<uint8_t>& data = *node.data;
  const size_t each = ScalarBytes(node.results[0].dtype);
  // Equal to itself one element further: every element is the first.
  if (std::memcmp(data.data(), data.data() + each, data.size() - each) != 0) return std::nullopt;
  const StatusOr<RefTensor> first =
      RefTensorFromBytes(node.results[0].dtype, {1}, {data.begin(), data.begin() + static_cast<int64_t>(each)});
  if (!first.ok()) return std::nullopt;
  return first->Real(0);
}

}  // namespace quern::ir
