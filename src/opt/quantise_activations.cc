// f32 activations that meet a weight of a block format are quantised to int8 blocks, as the integer dot products want
// them:
//
//   %3 = MatMul(%0, %1) {transpose_b = true}        %3 = Quantize(%0) {format = q8_K}
//                                              =>   %4 = MatMul(%3, %1) {transpose_b = true}
//
// One Quantize for each value and format: q, k and v of a layer share theirs. Rows that are no whole number of blocks
// stay f32, and so does everything with `exact`.
//
// Beside halves activations stay f32. Where the target is faster so, with `as_bf16`, those products may take both sides
// as sums of bf16:
//
//   %3 = MatMul(%0, %1)        =>   %3 = MatMul(%0, %1) {as_bf16 = true}                  of %1 : f16[768, 3072]

#include <map>
#include <optional>

#include "ir/product.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

// The format that operand 0 of this node is to be quantised to.
std::optional<DType> Wanted(const ir::Graph& graph, const ir::Node& node) {
  if (!ir::IsMatMul(node)) return std::nullopt;
  const ir::TensorType &x = graph.type(node.inputs[0]), &w = graph.type(node.inputs[1]);
  const std::optional<DType> format = ir::ActivationFormat(w.dtype);
  if (!format || x.dtype != DType::kF32 || !x.dims.back().is_constant()) return std::nullopt;
  if (x.dims.back().constant() % Row(*format).block_elements != 0) return std::nullopt;
  return format;
}

bool MeetsHalves(const ir::Graph& graph, const ir::Node& node) {
  return ir::IsMatMul(node) && ir::MayTakeAsBf16(graph.type(node.inputs[0]).dtype, graph.type(node.inputs[1]).dtype);
}

}  // namespace

StatusOr<ir::Graph> QuantiseActivations(const ir::Graph& graph, const QuantiseOptions& options) {
  if (options.exact && !options.as_bf16) return graph;
  Rewriter rewriter(graph, "quantise_activations",
                    [&](const ir::Graph& body) { return QuantiseActivations(body, options); });
  std::map<std::pair<ir::Value, DType>, ir::Value> quantised;  // by old value
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (options.as_bf16 && MeetsHalves(graph, node)) {
      ir::Attributes attributes = node.attributes;
      attributes.Set("as_bf16", true);
      QUERN_RETURN_IF_ERROR(rewriter.CopyAs(n, std::move(attributes), node.results[0], node.bodies));
      continue;
    }
    const std::optional<DType> format = options.exact ? std::nullopt : Wanted(graph, node);
    if (!format) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    const auto [it, fresh] = quantised.emplace(std::pair(node.inputs[0], *format), ir::Value{});
    if (fresh) {
      QUERN_ASSIGN(it->second, ir::MakeQuantised(rewriter.Maker(n), rewriter.Now(node.inputs[0]), *format));
    }
    QUERN_ASSIGN(const ir::Value product,
                 ir::MakeProductOfRows(rewriter.Maker(n), it->second, rewriter.Now(node.inputs[1])));
    rewriter.Replace({n, 0}, product);
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
