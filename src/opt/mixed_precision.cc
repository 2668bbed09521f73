// Products over halves:
//
//   %2 = MatMul(%0, %1) : f32[S, 80]     =>   %2 = Cast(%0) {to = bf16} : bf16[S, 48]
//                                             %3 = Cast(%1) {to = bf16} : bf16[48, 80]     # once per binding
//                                             %4 = MatMul(%2, %3) : bf16[S, 80]
//                                             %5 = Cast(%4) {to = f32} : f32[S, 80]
//
// Of weights alone the first Cast is not there, and the result is f32.

#include "opt/mixed_precision.h"

#include <algorithm>

#include "ir/composite.h"
#include "ir/op.h"
#include "ir/product.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

constexpr int kMaxDepth = 8;  // of names within names

bool IsRootOfProducts(const ir::Node& node) {
  return ir::IsRoot(node, "attention") || ir::IsMatMul(node) || ir::PicksMatrices(node);
}

// Whether what the node stands for is products and what lies around them; `products`: whether there is one.
bool IsProduct(const ir::Graph& graph, const ir::Node& node, bool& products, int depth) {
  if (ir::IsLeaf(node) || node.op->kind == ir::OpKind::kElementwise || node.op->kind == ir::OpKind::kIndex) return true;
  if (!node.bodies.empty() || depth == kMaxDepth) return false;
  if (!ir::IsExpanded(node)) {
    products = products || IsRootOfProducts(node);
    return IsRootOfProducts(node);
  }
  ir::Graph apart;
  apart.symbols = graph.symbols;
  std::vector<ir::Value> inputs;
  for (const ir::Value& input : node.inputs) {
    const StatusOr<ir::Value> made = apart.AddInput(absl::StrFormat("x%u", inputs.size()), graph.type(input));
    if (!made.ok()) return false;
    inputs.push_back(*made);
  }
  if (!node.op->expand(apart, node, inputs, -1).ok()) return false;
  return std::all_of(apart.nodes().begin(), apart.nodes().end(),
                     [&](const ir::Node& each) { return IsProduct(apart, each, products, depth + 1); });
}

class Mixer {
 public:
  Mixer(const ir::Graph& graph, const PrecisionOptions& options)
      : graph_(graph),
        options_(options),
        once_(OncePerBinding(graph)),
        rewriter_(graph, "mixed_precision", [&](const ir::Graph& body) { return MixPrecision(body, options); }) {}

  StatusOr<ir::Graph> Run() {
    for (int n = 0; n < rewriter_.size(); ++n) {
      QUERN_ASSIGN(const bool done, Wants(n) ? Halve(n) : StatusOr<bool>(false));
      if (!done) QUERN_RETURN_IF_ERROR(rewriter_.Copy(n));
    }
    return rewriter_.Finish();
  }

 private:
  bool Wants(int n) const {
    const ir::Node& node = graph_.node(n);
    if (node.inputs.empty() || node.results.size() != 1 || node.results[0].dtype != DType::kF32) return false;
    const std::string label = node.origin < 0 ? "" : graph_.origins()[node.origin].label;
    const auto is_kept = [&](const std::string& prefix) { return label.starts_with(prefix); };
    if (std::any_of(options_.keep.begin(), options_.keep.end(), is_kept)) return false;
    const std::vector<std::string>& ops = options_.ops;
    if (!ops.empty() && std::find(ops.begin(), ops.end(), node.op->name) == ops.end()) return false;
    bool products = false;
    return IsProduct(graph_, node, products, 0) && products;
  }

  // Operands that are to be of one dtype, and what is multiplied: q, k and v, or two sides.
  bool IsMultiplied(const ir::Node& node, size_t operand) const {
    if (graph_.type(node.inputs[operand]).dtype != DType::kF32) return false;
    if (options_.weights_only && !once_[node.inputs[operand].node]) return false;
    const ir::OperandDef& def = node.op->operands[std::min(operand, node.op->operands.size() - 1)];
    return !def.own_dtype || operand < (ir::IsRoot(node, "attention") ? 3u : 2u);
  }

  // False where the op does not take these operands.
  StatusOr<bool> Halve(int n) {
    const ir::Node& node = graph_.node(n);
    std::vector<ir::Value> operands = rewriter_.Now(node.inputs);
    bool any = false;
    ir::Graph apart;  // in which the op is tried
    apart.symbols = graph_.symbols;
    std::vector<ir::Value> inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      ir::TensorType type = graph_.type(node.inputs[i]);
      if (IsMultiplied(node, i)) type.dtype = options_.dtype, any = true;
      QUERN_ASSIGN(inputs.emplace_back(), apart.AddInput(absl::StrFormat("x%u", i), type));
    }
    if (!any || !apart.Add(*node.op, inputs, node.attributes).ok()) return false;
    ir::Expansion casts(rewriter_.to, rewriter_.OriginOf(n));
    for (size_t i = 0; i < operands.size(); ++i) operands[i] = casts.Stored(operands[i], apart.type(inputs[i]).dtype);
    QUERN_RETURN_IF_ERROR(casts.Finish({}).status());
    QUERN_ASSIGN(const ir::Value made,
                 rewriter_.to.Add(*node.op, std::move(operands), node.attributes, rewriter_.OriginOf(n)));
    QUERN_ASSIGN(const std::vector<ir::Value> wide, casts.Finish({casts.Stored(made, DType::kF32)}));
    rewriter_.Replace({n, 0}, wide[0]);
    return true;
  }

  const ir::Graph& graph_;
  const PrecisionOptions& options_;
  const std::vector<bool> once_;
  Rewriter rewriter_;
};

}  // namespace

StatusOr<ir::Graph> MixPrecision(const ir::Graph& graph, const PrecisionOptions& options) {
  return Mixer(graph, options).Run();
}

}  // namespace quern::opt
