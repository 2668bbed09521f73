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

namespace {

void AddCountedSizes(const Graph& graph, bool bodies, CountedSizes& counted) {
  for (const Node& node : graph.nodes()) {
    if (bodies) {
      for (const auto& body : node.bodies) AddCountedSizes(*body, bodies, counted);
    }
    if (!IsCounted(node) || counted.contains(CountedSymbol(node))) continue;
    const std::vector<Extent>& dims = graph.type(node.inputs[0]).dims;
    counted.emplace(CountedSymbol(node), AtMost(dims[FromStart(node.attributes.Int("axis"), dims.size())], counted));
  }
}

}  // namespace

CountedSizes CountedSizesOf(const Graph& graph) {
  CountedSizes counted;
  AddCountedSizes(graph, false, counted);
  return counted;
}

CountedSizes AllCountedSizes(const Graph& graph) {
  CountedSizes counted;
  AddCountedSizes(graph, true, counted);
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
  for (const auto& [symbol, most] : AllCountedSizes(graph)) given.erase(symbol);
  return given;
}

namespace {

// The symbols that a node names, but for those of its bodies.
void AddOwnSymbols(const Node& node, std::vector<std::string>& symbols) {
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
}

// Those that a body names, and bodies within it.
void AddSymbolsOf(const Graph& body, std::vector<std::string>& symbols) {
  for (const Node& node : body.nodes()) {
    AddOwnSymbols(node, symbols);
    for (const auto& inner : node.bodies) AddSymbolsOf(*inner, symbols);
  }
}

// A body, as position of a node and among its bodies.
using BodyPlace = std::pair<int, int>;

// What bodies find, and in which one of them. Errors: two find the same, or it is the graph's own.
StatusOr<std::map<std::string, BodyPlace>> FoundInBodies(const Graph& graph) {
  std::map<std::string, BodyPlace> found;
  const std::map<std::string, int, std::less<>> own = CountingNodes(graph);
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const Node& node = graph.node(n);
    for (int b = 0; b < static_cast<int>(node.bodies.size()); ++b) {
      for (const auto& [symbol, most] : AllCountedSizes(node.body(b))) {
        if (found.emplace(symbol, BodyPlace{n, b}).second && !own.contains(symbol)) continue;
        return WithOrigin(
            graph, node.origin,
            absl::InvalidArgumentError(absl::StrFormat("%s: symbol %s, which %s finds, is found elsewhere too",
                                                       node.op->name, symbol, node.op->bodies[b])));
      }
    }
  }
  return found;
}

// Nothing outside of a body names what it finds.
Status CheckFoundInBodies(const Graph& graph) {
  QUERN_ASSIGN(const auto found, FoundInBodies(graph));
  if (found.empty()) return absl::OkStatus();
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const Node& node = graph.node(n);
    // -1: the node itself
    for (int b = -1; b < static_cast<int>(node.bodies.size()); ++b) {
      std::vector<std::string> named;
      if (b < 0)
        AddOwnSymbols(node, named);
      else
        AddSymbolsOf(node.body(b), named);
      for (const std::string& symbol : named) {
        const auto place = found.find(symbol);
        if (place == found.end() || place->second == BodyPlace{n, b}) continue;
        const auto& [finder, body] = place->second;
        return WithOrigin(graph, node.origin,
                          absl::InvalidArgumentError(absl::StrFormat(
                              "%s: symbol %s is named outside of %s of %%%d (%s), which finds it", node.op->name,
                              symbol, graph.node(finder).op->bodies[body], finder, graph.node(finder).op->name)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckCounted(const Graph& graph) {
  QUERN_RETURN_IF_ERROR(CheckFoundInBodies(graph));
  const std::map<std::string, int, std::less<>> first = CountingNodes(graph);
  if (first.empty()) return absl::OkStatus();
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const Node& node = graph.node(n);
    std::vector<std::string> named;
    AddOwnSymbols(node, named);
    for (const auto& body : node.bodies) AddSymbolsOf(*body, named);
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
