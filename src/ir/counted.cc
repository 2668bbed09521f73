#include "ir/counted.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "ir/op.h"
#include "ir/shape.h"

namespace quern::ir {

const std::string& CountedSymbol(const Node& node) { return node.attributes.Extents("size")[0].terms()[0].symbols[0]; }

std::map<std::string, int, std::less<>> CountingNodes(const Graph& graph) {
  std::map<std::string, int, std::less<>> first;
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (IsCounted(graph.node(n))) first.emplace(CountedSymbol(graph.node(n)), n);
  }
  return first;
}

CountedSizes CountedSizesOf(const Graph& graph) {
  CountedSizes counted;
  for (const Node& node : graph.nodes()) {
    if (!IsCounted(node) || counted.contains(CountedSymbol(node))) continue;
    const std::vector<Extent>& dims = graph.type(node.inputs[0]).dims;
    counted.emplace(CountedSymbol(node), AtMost(dims[FromStart(node.attributes.Int("axis"), dims.size())], counted));
  }
  return counted;
}

// Sizes are sums of products of sizes, which grow with each of them, but for terms below zero, which only take away.
Extent AtMost(const Extent& extent, const CountedSizes& counted) {
  if (counted.empty() || extent.is_constant()) return extent;
  Extent most;
  for (const Extent::Term& term : extent.terms()) {
    Extent part(term);
    bool names = false;
    for (const std::string& symbol : part.Symbols()) names = names || counted.contains(symbol);
    if (names && term.coefficient < 0) continue;
    for (const auto& [symbol, bound] : counted) {
      if (names) part = part.Substitute(symbol, bound);
    }
    most = most + part;
  }
  return most;
}

Status RefuseCounted(const CountedSizes& counted) {
  if (counted.empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrFormat(
      "the size %s is found by each run (Counted), which programs for devices cannot do", counted.begin()->first));
}

SymbolRanges GivenSymbols(const Graph& graph) {
  SymbolRanges given = graph.symbols;
  for (const auto& [symbol, node] : CountingNodes(graph)) given.erase(symbol);
  return given;
}

void AddNamedSymbols(const Node& node, std::vector<std::string>& symbols) {
  const auto add = [&](const std::vector<Extent>& extents) {
    for (const Extent& extent : extents) {
      if (extent.is_constant()) continue;
      for (std::string& symbol : extent.Symbols()) symbols.push_back(std::move(symbol));
    }
  };
  for (const TensorType& type : node.results) add(type.dims);
  for (const auto& [name, value] : node.attributes.values()) {
    if (const auto* extents = std::get_if<std::vector<Extent>>(&value)) add(*extents);
  }
  for (const auto& body : node.bodies) {
    for (const Node& inner : body->nodes()) AddNamedSymbols(inner, symbols);
  }
}

Status CheckCounted(const Graph& graph) {
  const std::map<std::string, int, std::less<>> first = CountingNodes(graph);
  if (first.empty()) return absl::OkStatus();
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const Node& node = graph.node(n);
    std::vector<std::string> named;
    AddNamedSymbols(node, named);
    for (const std::string& symbol : named) {
      const auto found = first.find(symbol);
      if (found == first.end() || (n >= found->second && !IsInput(node))) continue;
      const Status status =
          ToStatus({DiagnosticCode::kUnboundSymbol, node.op->name,
                    absl::StrFormat("symbol %s, which %%%d finds,", symbol, found->second), "", "", graph.name});
      return WithOrigin(graph, node.origin, status);
    }
    if (IsCounted(node) && graph.node(first.at(CountedSymbol(node))).inputs[1] != node.inputs[1]) {
      return WithOrigin(graph, node.origin,
                        absl::InvalidArgumentError(
                            absl::StrFormat("Counted: symbol %s is that of another count", CountedSymbol(node))));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::ir
