#include "check/region_graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "opt/rewriter.h"

namespace quern::check {
namespace {

using ir::Value;

// Copies the nodes of `body` that are no Inputs into `to`; `values` holds what stands for the Inputs, and then
// everything.
Status CopyBody(const ir::Graph& body, ir::Graph& to, std::map<Value, Value>& values) {
  for (int n = 0; n < static_cast<int>(body.nodes().size()); ++n) {
    const ir::Node& node = body.node(n);
    if (ir::IsInput(node)) continue;
    const int origin = node.origin < 0 ? -1 : to.AddOrigin(body.origins()[node.origin]);
    std::vector<Value> operands;
    for (const Value& input : node.inputs) operands.push_back(values.at(input));
    StatusOr<Value> made = ir::IsConstant(node) ? to.AddConstant(node.results[0], *node.data, origin)
                                                : to.Add(*node.op, std::move(operands), node.attributes, origin);
    if (!made.ok()) return made.status();
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r) values[{n, r}] = {made->node, r};
  }
  return absl::OkStatus();
}

// A name of letters, digits and what graph text takes besides.
std::string GraphName(std::string_view label) {
  std::string name;
  for (const char c : label)
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '/' || c == '_' ? c : '_';
  return name.empty() ? "region" : name;
}

}  // namespace

StatusOr<ir::Graph> RegionGraph(const ir::Graph& fused, int region, const lir::Plan& plan,
                                const std::vector<std::vector<lir::Argument>>& places) {
  const ir::Node& node = fused.node(region);
  const ir::Graph& body = node.body();
  ir::Graph graph;
  graph.name = GraphName(node.origin < 0 ? "" : fused.origins()[node.origin].label);
  graph.symbols = body.symbols;
  std::map<Value, Value> values;
  std::set<std::string> names;
  std::vector<std::string> given;
  const std::vector<int> inputs = body.Inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value from = node.inputs[i];
    const ir::Node& source = fused.node(from.node);
    std::string name =
        source.attributes.Find("name") == nullptr ? absl::StrCat("i", i) : source.attributes.String("name");
    if (!names.insert(name).second) names.insert(name = absl::StrCat("operand", i));
    const lir::Home home = plan.buffers[places[from.node][from.result].buffer].home;
    const ir::TensorType& type = body.node(inputs[i]).results[0];
    // Blocks that were computed once are planar, as Inputs are; a part of a table that moves with a symbol is no
    // parameter.
    const bool fixed =
        std::all_of(type.dims.begin(), type.dims.end(), [](const Extent& dim) { return dim.is_constant(); });
    const bool once = fixed && (home == lir::Home::kParam || home == lir::Home::kConstant ||
                                (home == lir::Home::kOnce && !IsBlock(type.dtype)));
    StatusOr<Value> leaf = once ? graph.AddParam(name, type) : graph.AddInput(name, type);
    if (!leaf.ok()) return leaf.status();
    values[{inputs[i], 0}] = *leaf;
    given.push_back(std::move(name));
  }
  QUERN_RETURN_IF_ERROR(CopyBody(body, graph, values));
  ir::AddConstraints(graph.constraints, body.constraints);  // those of other nodes, which its kernels rely on
  for (int r = 0; r < static_cast<int>(body.outputs.size()); ++r) {
    graph.outputs.push_back(values.at(body.outputs[r]));
    const lir::Argument& result = places[region][r];
    for (size_t i = 0; i < inputs.size(); ++i) {
      const lir::Argument& operand = places[node.inputs[i].node][node.inputs[i].result];
      const bool whole = body.node(inputs[i]).results[0] == node.results[r];
      if (operand == result && whole) graph.donations.push_back({r, given[i]});
    }
  }
  QUERN_RETURN_IF_ERROR(ir::Verify(graph));
  return graph;
}

StatusOr<ir::Graph> InlineRegions(const ir::Graph& graph) {
  opt::Rewriter rewriter(graph, "inline_regions", InlineRegions);
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (!ir::IsRegion(node)) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    std::map<Value, Value> values;
    const std::vector<int> inputs = node.body().Inputs();
    for (size_t i = 0; i < inputs.size(); ++i) values[{inputs[i], 0}] = rewriter.Now(node.inputs[i]);
    QUERN_RETURN_IF_ERROR(CopyBody(node.body(), rewriter.to, values));
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r)
      rewriter.Replace({n, r}, values.at(node.body().outputs[r]));
  }
  return rewriter.Finish();
}

}  // namespace quern::check
