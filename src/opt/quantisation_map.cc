// Which operands of products are bytes, and in which range:
//
//   %2 = MatMul(%0, %1) : f32[S, 80]      x: u8 of its range, w: i8, symmetric, a scale for each column

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ir/product.h"
#include "ir/value_names.h"
#include "ir/window.h"
#include "opt/insert_qdq.h"
#include "opt/passes.h"

namespace quern::opt {
namespace {

bool IsWanted(const ir::Graph& graph, const ir::Node& node, const QdqOptions& options) {
  if (!ReadsBytes(graph, node)) return false;
  const std::string label = node.origin < 0 ? "" : graph.origins()[node.origin].label;
  const auto is_kept = [&](const std::string& prefix) { return label.starts_with(prefix); };
  if (std::any_of(options.keep.begin(), options.keep.end(), is_kept)) return false;
  const std::vector<std::string>& ops = options.ops;
  return ops.empty() || std::find(ops.begin(), ops.end(), node.op->name) != ops.end();
}

// Of the output channels of weights that are operand `i`; none where all of a sum has one scale.
std::optional<int64_t> ChannelsOf(const ir::Graph& graph, const ir::Node& node, int i) {
  if (i == 0) return std::nullopt;
  if (node.op == ir::FindConvolution()) return 0;
  return graph.type(node.inputs[1]).rank() - (ir::ReadsRows(node) ? 2 : 1);
}

Status CheckRanges(const ir::Graph& graph, const ir::ValueRanges& ranges) {
  std::vector<std::string_view> known;
  const std::map<ir::Value, std::string> names = ir::ValueNames(graph);
  for (const auto& [value, name] : names) known.emplace_back(name);
  for (const auto& [name, range] : ranges) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return UnknownName("value", name, known, graph.name);
    if (range.low <= range.high) continue;
    return ToStatus({DiagnosticCode::kOutOfRange, "", absl::StrCat("the range of ", name),
                     "two numbers, the least first", absl::StrFormat("%g..%g", range.low, range.high), graph.name});
  }
  return absl::OkStatus();
}

}  // namespace

bool ReadsBytes(const ir::Graph& graph, const ir::Node& node) {
  if (!ir::IsMatMul(node) && node.op != ir::FindConvolution()) return false;
  return graph.type(node.inputs[0]).dtype == DType::kF32 && graph.type(node.inputs[1]).dtype == DType::kF32;
}

StatusOr<ir::QuantisationMap> QuantisationMapOf(const ir::Graph& graph, const ir::ValueRanges& ranges,
                                                const QdqOptions& options) {
  QUERN_RETURN_IF_ERROR(CheckRanges(graph, ranges));
  const std::map<ir::Value, std::string> names = ir::ValueNames(graph);
  const std::vector<bool> once = OncePerBinding(graph);
  ir::QuantisationMap map;
  for (const ir::Node& node : graph.nodes()) {
    if (!IsWanted(graph, node, options) || (once[node.inputs[0].node] && once[node.inputs[1].node])) continue;
    ir::QuantisationMap both;
    for (const int i : {0, 1}) {
      const std::string& name = names.at(node.inputs[i]);
      const auto range = ranges.find(name);
      if (once[node.inputs[i].node]) {
        both[name] = {DType::kI8, true, options.per_channel ? ChannelsOf(graph, node, i) : std::nullopt, {}};
      } else if (range != ranges.end() && std::isfinite(range->second.low) && std::isfinite(range->second.high)) {
        both[name] = {options.activations, options.symmetric, {}, range->second};
      }
    }
    const size_t operands = node.inputs[0] == node.inputs[1] ? 1 : 2;
    // Of weights that are read along two axes the first product's are what counts.
    if (both.size() == operands) map.merge(both);
  }
  return map;
}

}  // namespace quern::opt
