#include "onnx/bodies.h"

#include <set>

#include "ir/counted.h"

namespace quern::onnx {
namespace {

// Names that the graph reads and does not make, in order, into `names`.
void FreeNames(const format::Graph& graph, std::set<std::string> bound, std::vector<std::string>& names,
               std::set<std::string>& seen) {
  const auto read = [&](const std::string& name) {
    if (!name.empty() && !bound.contains(name) && seen.insert(name).second) names.push_back(name);
  };
  for (const format::ValueInfo& input : graph.input()) bound.insert(input.name());
  for (const format::Tensor& tensor : graph.initializer()) bound.insert(tensor.name());
  for (const format::Node& node : graph.node()) {
    for (const std::string& input : node.input()) read(input);
    for (const format::Attribute& attribute : node.attribute()) {
      if (attribute.has_g()) FreeNames(attribute.g(), bound, names, seen);
    }
    for (const std::string& output : node.output()) bound.insert(output);
  }
  for (const format::ValueInfo& output : graph.output()) read(output.name());
}

}  // namespace

Captures CapturesOf(Call& c, const std::vector<const format::Graph*>& graphs) {
  Captures captures;
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const format::Graph* graph : graphs) FreeNames(*graph, {}, names, seen);
  for (const std::string& name : names) {
    const Item* const item = c.scope.Find(name);
    if (item == nullptr) continue;  // said where it is read
    if (item->kind == Item::Kind::kTensor && item->value.node >= 0) {
      captures.operands.push_back(item->value);
      captures.names.push_back(name);
    } else if (item->kind != Item::Kind::kSequence) {
      captures.data.emplace_back(name, *item);
    }
  }
  return captures;
}

StatusOr<std::unique_ptr<Body>> MakeBody(Call& c, const format::Graph& graph, const std::vector<ir::TensorType>& types,
                                         const Captures& captures, const Fixed& fixed) {
  auto body = std::make_unique<Body>();
  Builder& builder = body->builder;
  builder.outer = &c.builder;
  builder.graph.name = graph.name().empty() ? "body" : graph.name();
  builder.graph.symbols = c.builder.graph.symbols;
  Scope scope(c.session, builder, nullptr);
  scope.label = c.Where().substr(c.node.op_type().size() + 1) + "/";
  scope.opsets = c.scope.opsets;
  scope.attributes = c.scope.attributes;
  for (const auto& [name, item] : captures.data) scope.Set(name, item);
  int next = 0;
  for (const ir::TensorType& type : types) {
    QUERN_ASSIGN(const Value input, builder.graph.AddInput(absl::StrCat("i", next), type));
    int at = 0;  // the graph's input that it is
    for (int i = 0, left = next; i < graph.input_size(); ++i) {
      if (!fixed.contains(i) && left-- == 0) at = i;
    }
    if (next < graph.input_size()) scope.Set(graph.input(at).name(), TensorItem(input));
    body->last = input;
    ++next;
  }
  for (const auto& [at, make] : fixed) {
    QUERN_ASSIGN(Item item, make(builder));
    if (at < graph.input_size()) scope.Set(graph.input(at).name(), std::move(item));
  }
  for (size_t i = 0; i < captures.names.size(); ++i) {
    QUERN_ASSIGN(const Value input, builder.graph.AddInput(absl::StrCat("i", next++), c.type(captures.operands[i])));
    builder.captured[input.node] = captures.operands[i];
    if (scope.Find(captures.names[i]) == nullptr) scope.Set(captures.names[i], TensorItem(input));
  }
  QUERN_RETURN_IF_ERROR(TakeInitializers(scope, graph));
  QUERN_RETURN_IF_ERROR(ImportNodes(scope, graph.node(), c.depth + 1));
  for (const format::ValueInfo& output : graph.output()) {
    const Item* const item = scope.Find(output.name());
    if (item == nullptr || item->kind != Item::Kind::kTensor)
      return absl::UnimplementedError(absl::StrFormat("the result %s of its body is no tensor", output.name()));
    QUERN_ASSIGN(const Value value, ValueOf(c.session, builder, *item));
    body->outputs.push_back(value);
  }
  return body;
}

std::shared_ptr<const ir::Graph> Finished(Call& c, const Body& body, const Values& outputs) {
  ir::Graph graph = body.builder.graph;
  graph.outputs = outputs;
  return Finished(c, std::move(graph));
}

std::shared_ptr<const ir::Graph> Finished(Call& c, ir::Graph graph) {
  const std::string found = FoundSizeOf(graph, graph.outputs);
  if (!found.empty()) c.Fail("a result of its body has the size %s, which only data decides", found);
  c.builder.graph.symbols.insert(graph.symbols.begin(), graph.symbols.end());  // those that it finds
  return std::make_shared<const ir::Graph>(std::move(graph));
}

std::string FoundSizeOf(const ir::Graph& graph, const Values& outputs) {
  const ir::CountedSizes counted = ir::CountedSizesOf(graph);
  for (const Value output : outputs) {
    for (const Extent& dim : graph.type(output).dims) {
      for (const std::string& symbol : dim.Symbols()) {
        if (counted.contains(symbol)) return symbol;
      }
    }
  }
  return "";
}

std::vector<Item> Inlined(Call& c, const format::Graph& graph, const std::vector<Item>& inputs,
                          std::string_view label) {
  Scope scope(c.session, c.builder, &c.scope);
  scope.label = absl::StrCat(c.Where().substr(c.node.op_type().size() + 1), "/", std::string(label));
  scope.opsets = c.scope.opsets;
  scope.attributes = c.scope.attributes;
  for (int i = 0; i < graph.input_size() && i < static_cast<int>(inputs.size()); ++i)
    scope.Set(graph.input(i).name(), inputs[i]);
  c.Fail(TakeInitializers(scope, graph));
  if (c.ok()) c.Fail(ImportNodes(scope, graph.node(), c.depth + 1));
  std::vector<Item> results;
  for (const format::ValueInfo& output : graph.output()) {
    const Item* const item = scope.Find(output.name());
    if (c.ok() && item == nullptr)
      c.Fail(absl::InvalidArgumentError(absl::StrFormat("its body does not make %s", output.name())));
    if (!c.ok()) return {};  // all results, or none
    results.push_back(*item);
  }
  return results;
}

}  // namespace quern::onnx
