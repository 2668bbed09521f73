// Graphs inside nodes: as bodies of control ops, or in the place of the node.
#pragma once

#include <functional>
#include <memory>

#include "onnx/importer.h"

namespace quern::onnx {

// What the graphs of a node read of those around it.
struct Captures {
  Values operands;                                 // of the node, behind its own
  std::vector<std::string> names;                  // of these, in order
  std::vector<std::pair<std::string, Item>> data;  // what needs no operand: data of the file
};
Captures CapturesOf(Call& c, const std::vector<const format::Graph*>& graphs);

// A body over Inputs of these types, by the names of the graph's inputs where they have some, and the captures.
struct Body {
  Builder builder;
  Values outputs;
  Value last;  // of the inputs: what LoopCondition looks for
};
// `fixed`: inputs of the graph that are values in the body, and no Inputs. Errors: those of the nodes; a result that is
// no tensor.
using Fixed = std::map<int, std::function<StatusOr<Item>(Builder& builder)>>;
StatusOr<std::unique_ptr<Body>> MakeBody(Call& c, const format::Graph& graph, const std::vector<ir::TensorType>& types,
                                         const Captures& captures, const Fixed& fixed = {});
// With its outputs, as a node of `c` takes it. Fails where one has a size that only the body's trips find.
std::shared_ptr<const ir::Graph> Finished(Call& c, const Body& body, const Values& outputs);
std::shared_ptr<const ir::Graph> Finished(Call& c, ir::Graph graph);
// The first such size of an output; empty: there is none.
std::string FoundSizeOf(const ir::Graph& graph, const Values& outputs);

// The graph's nodes in the place of the node; its results, none after an error.
std::vector<Item> Inlined(Call& c, const format::Graph& graph, const std::vector<Item>& inputs, std::string_view label);

}  // namespace quern::onnx
