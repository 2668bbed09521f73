#include "opt/constant_value.h"

#include "ir/interpret.h"
#include "opt/rewriter.h"

namespace quern::opt {

std::optional<double> ScalarConstant(const ir::Graph& graph, ir::Value value) {
  const ir::Node& node = graph.node(value.node);
  if (!Is(node, "Constant") || node.results[0].elements() != Extent(1)) return std::nullopt;
  const StatusOr<ir::RefTensor> tensor = ir::RefTensorFromBytes(node.results[0].dtype, {1}, *node.data);
  if (!tensor.ok()) return std::nullopt;
  return tensor->Real(0);
}

}  // namespace quern::opt
