#include "onnx/known.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "ir/op.h"
#include "onnx/ratios.h"

namespace quern::onnx {
namespace {

using ir::Node;
using ir::Value;
using Known = std::optional<Ratios>;

constexpr int64_t kMostComputed = int64_t{1} << 14;  // of one that is computed
constexpr int kDeepest = 4000;                       // nodes behind each other that are looked through

// Counts as long as it lives.
struct Depth {
  explicit Depth(int& depth) : depth(++depth) {}
  ~Depth() { --depth; }
  int& depth;
};

Known RatiosOf(Session& session, Builder& builder, Value value);

Known FindRatios(Session& session, Builder& builder, Value value) {
  const ir::Graph& graph = builder.graph;
  const Node& node = graph.node(value.node);
  if (!ElementsOf(graph.type(value), kMostRatios)) return std::nullopt;
  if (ir::IsInput(node)) {
    const auto outer = builder.captured.find(value.node);
    if (outer != builder.captured.end()) return RatiosOf(session, *builder.outer, outer->second);
  }
  if (std::string_view(node.op->name) == "Size") return Ratios{{node.attributes.Extents("extent")[0]}};
  Step step{graph, node, graph.type(value), {}};
  for (const Value input : node.inputs) {
    Known known = RatiosOf(session, builder, input);
    if (!known) break;
    step.x.push_back(*std::move(known));
  }
  if (step.x.size() == node.inputs.size()) {
    if (Known made = StepRatios(step)) return made;
  }
  const std::optional<ir::RefTensor> tensor = KnownTensor(session, builder, value);
  return tensor ? FromTensor(*tensor) : std::nullopt;
}

Known RatiosOf(Session& session, Builder& builder, Value value) {
  const auto found = builder.ratios.find(value);
  if (found != builder.ratios.end()) return found->second;
  const Depth depth(session.known_depth);
  if (depth.depth > kDeepest) return std::nullopt;
  Known known = FindRatios(session, builder, value);
  builder.ratios[value] = known;
  return known;
}

// Of a leaf, from its data.
std::optional<ir::RefTensor> LeafTensor(Session& session, Builder& builder, Value value) {
  const Node& node = builder.graph.node(value.node);
  const ir::TensorType& type = node.results[0];
  std::span<const uint8_t> bytes;
  if (ir::IsConstant(node)) {
    bytes = *node.data;
  } else if (ir::IsParam(node)) {
    bytes = session.params.find(node.attributes.String("name"))->second;
  } else {
    const auto outer = builder.captured.find(value.node);
    if (outer != builder.captured.end()) return KnownTensor(session, *builder.outer, outer->second);
    const std::string& name = node.attributes.String("name");
    if (builder.outer != nullptr || !session.fixed_inputs.contains(name)) return std::nullopt;
    const FileTensor& given = session.options.values.find(name)->second;
    const std::optional<int64_t> elements = ElementsOf(type, kMostComputed);
    if (given.dtype != type.dtype || !elements) return std::nullopt;
    // A number may be given as a tensor of one element.
    if (std::equal(given.shape.begin(), given.shape.end(), type.dims.begin(), type.dims.end(),
                   [](int64_t size, const Extent& dim) { return dim == Extent(size); }) ||
        (*elements == 1 && given.bytes.size() == static_cast<size_t>(ScalarBytes(type.dtype))))
      bytes = given.bytes;
    else
      return std::nullopt;
  }
  std::vector<int64_t> dims;
  for (const Extent& dim : type.dims) dims.push_back(dim.constant());
  StatusOr<ir::RefTensor> tensor = ir::RefTensorFromBytes(type.dtype, std::move(dims), bytes);
  return tensor.ok() ? std::optional<ir::RefTensor>(*std::move(tensor)) : std::nullopt;
}

}  // namespace

std::optional<ir::RefTensor> KnownTensor(Session& session, Builder& builder, Value value) {
  const auto found = builder.tensors.find(value);
  if (found != builder.tensors.end()) return found->second;
  const Depth depth(session.known_depth);
  if (depth.depth > kDeepest) return std::nullopt;
  std::optional<ir::RefTensor>& result = builder.tensors[value];
  const Node& node = builder.graph.node(value.node);
  for (const ir::TensorType& type : node.results) {
    if (!ElementsOf(type, kMostComputed)) return std::nullopt;
  }
  if (ir::IsLeaf(node)) return result = LeafTensor(session, builder, value);
  if (ir::IsControl(node)) return std::nullopt;  // a loop may not end
  for (const auto& [name, type] : node.attributes.values()) {
    const auto* extents = std::get_if<std::vector<Extent>>(&type);
    if (extents == nullptr) continue;
    for (const Extent& extent : *extents) {
      if (!extent.is_constant()) return std::nullopt;
    }
  }
  // A graph of this node alone, over what its operands are known to be.
  ir::Graph graph;
  ir::Feeds feeds;
  std::vector<Value> inputs;
  for (const Value input : node.inputs) {
    const std::optional<ir::RefTensor> known = KnownTensor(session, builder, input);
    if (!known) return std::nullopt;
    const std::string name = std::to_string(inputs.size());
    const StatusOr<Value> leaf = graph.AddInput(name, builder.graph.type(input));
    if (!leaf.ok()) return std::nullopt;
    inputs.push_back(*leaf);
    feeds.emplace(name, *known);
  }
  const StatusOr<Value> copy = graph.AddCopy(node, inputs);
  if (!copy.ok()) return std::nullopt;
  for (size_t r = 0; r < node.results.size(); ++r) graph.outputs.push_back({copy->node, static_cast<int>(r)});
  StatusOr<std::vector<ir::RefTensor>> made = ir::Interpret(graph, {}, feeds);
  if (!made.ok()) return std::nullopt;
  return builder.tensors[value] = (*made)[value.result];
}

std::optional<std::vector<Extent>> KnownExtents(Session& session, Builder& builder, Value value) {
  if (IsFloat(builder.graph.type(value).dtype)) return std::nullopt;
  const Known known = RatiosOf(session, builder, value);
  if (!known) return std::nullopt;
  std::vector<Extent> extents;
  for (const Ratio& ratio : *known) {
    if (ratio.divisor != 1) return std::nullopt;
    extents.push_back(ratio.extent);
  }
  return extents;
}

void Dependences(const Session& session, Builder& builder, Value value, std::set<std::string>* inputs,
                 std::set<std::string>* symbols) {
  std::set<int> seen;
  std::vector<int> left = {value.node};
  while (!left.empty()) {
    const int at = left.back();
    left.pop_back();
    if (!seen.insert(at).second) continue;
    const Node& node = builder.graph.node(at);
    if (ir::IsInput(node)) {
      const auto outer = builder.captured.find(at);
      if (outer != builder.captured.end())
        Dependences(session, *builder.outer, outer->second, inputs, symbols);
      else if (builder.outer == nullptr)
        inputs->insert(node.attributes.String("name"));
    }
    for (const ir::TensorType& type : node.results) {
      for (const Extent& dim : type.dims) {
        for (const std::string& symbol : dim.Symbols()) symbols->insert(symbol);
      }
    }
    for (const auto& [name, attribute] : node.attributes.values()) {
      const auto* extents = std::get_if<std::vector<Extent>>(&attribute);
      if (extents == nullptr) continue;
      for (const Extent& extent : *extents) {
        for (const std::string& symbol : extent.Symbols()) symbols->insert(symbol);
      }
    }
    for (const Value input : node.inputs) left.push_back(input.node);
  }
}

}  // namespace quern::onnx
