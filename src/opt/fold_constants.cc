// Nodes whose operands are all Constants are replaced by their value, computed by the op's reference: integers exactly,
// as kernels wrap them, everything else in double and rounded to the dtype once. Only what is small: a Constant is part
// of the graph's text and of every copy of it.

#include <algorithm>

#include "ir/interpret.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

constexpr int64_t kMaxBytes = 64 << 10;

std::optional<std::vector<int64_t>> ConstantDims(const ir::TensorType& type) {
  std::vector<int64_t> dims;
  for (const Extent& dim : type.dims) {
    if (!dim.is_constant()) return std::nullopt;
    dims.push_back(dim.constant());
  }
  return dims;
}

// The bytes of the one result of a node over Constants, or nullopt when it is not to be folded.
StatusOr<std::optional<std::vector<uint8_t>>> Fold(const ir::Graph& graph, const ir::Node& node) {
  if (node.op->reference == nullptr || node.results.size() != 1 || node.inputs.empty() || !node.bodies.empty() ||
      IsBlock(node.results[0].dtype) || ir::IsRoot(node, "call"))
    return std::nullopt;
  for (const auto& [name, value] : node.attributes.values()) {
    const auto* extents = std::get_if<std::vector<Extent>>(&value);
    if (extents != nullptr &&
        std::any_of(extents->begin(), extents->end(), [](const Extent& e) { return !e.is_constant(); }))
      return std::nullopt;
  }
  const std::optional<std::vector<int64_t>> dims = ConstantDims(node.results[0]);
  if (!dims) return std::nullopt;
  std::vector<ir::RefTensor> results = {{node.results[0].dtype, *dims, {}}};
  const int64_t elements = results[0].elements();
  if (elements > kMaxBytes / ScalarBytes(node.results[0].dtype)) return std::nullopt;
  results[0].Allocate();
  std::vector<ir::RefTensor> operands;
  for (const ir::Value& input : node.inputs) {
    const ir::Node& from = graph.node(input.node);
    if (!ir::IsConstant(from)) return std::nullopt;
    const std::optional<std::vector<int64_t>> sizes = ConstantDims(from.results[0]);
    if (!sizes || static_cast<int64_t>(from.data->size()) > kMaxBytes) return std::nullopt;
    QUERN_ASSIGN(ir::RefTensor operand, ir::RefTensorFromBytes(from.results[0].dtype, *sizes, *from.data));
    operands.push_back(std::move(operand));
  }
  std::vector<const ir::RefTensor*> pointers;
  for (const ir::RefTensor& operand : operands) pointers.push_back(&operand);
  const Binding binding;
  ir::RefContext context{node, pointers, binding, results};
  QUERN_RETURN_IF_ERROR(node.op->reference(context));
  return ir::BytesOf(results[0]);
}

}  // namespace

StatusOr<ir::Graph> FoldConstants(const ir::Graph& graph) {
  Rewriter rewriter(graph, "fold_constants", FoldConstants);
  for (int n = 0; n < rewriter.size(); ++n) {
    // What has been folded is a Constant of the new graph, so a chain folds in one walk.
    ir::Node node = graph.node(n);
    node.inputs = rewriter.Now(node.inputs);
    QUERN_ASSIGN(std::optional<std::vector<uint8_t>> bytes, Fold(rewriter.to, node));
    if (!bytes) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    QUERN_ASSIGN(const ir::Value folded,
                 rewriter.to.AddConstant(node.results[0], *std::move(bytes), rewriter.OriginOf(n)));
    rewriter.Replace({n, 0}, folded);
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
