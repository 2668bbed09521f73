#include "check/edit_graph.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "check/value.h"
#include "opt/rewriter.h"

namespace quern::check {
namespace {

using ir::Value;

bool IsNamedLeaf(const ir::Node& node) { return ir::IsLeaf(node) && !ir::IsConstant(node); }

void AddSymbols(const std::vector<Extent>& extents, std::set<std::string>& symbols) {
  for (const Extent& extent : extents) {
    for (const std::string& symbol : extent.Symbols()) symbols.insert(symbol);
  }
}

std::set<std::string> SymbolsOf(const ir::Graph& graph) {
  std::set<std::string> symbols;
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::TensorType& type : node.results) AddSymbols(type.dims, symbols);
    for (const auto& [name, value] : node.attributes.values()) {
      if (const auto* extents = std::get_if<std::vector<Extent>>(&value)) AddSymbols(*extents, symbols);
    }
    for (const auto& body : node.bodies) symbols.merge(SymbolsOf(*body));
  }
  return symbols;
}

// What a changed graph no longer has is taken out of the rest.
Status Tidy(Reproduction& made) {
  const std::set<std::string> used = SymbolsOf(made.graph);
  std::erase_if(made.graph.symbols, [&](const auto& entry) { return !used.contains(entry.first); });
  std::erase_if(made.sizes, [&](const auto& entry) { return !made.graph.symbols.contains(entry.first); });
  return ir::Verify(made.graph);
}

StatusOr<Value> AddLeaf(ir::Graph& graph, const ir::Node& leaf, const ir::TensorType& type) {
  if (ir::IsConstant(leaf)) return graph.AddConstant(type, *leaf.data);
  const std::string& name = leaf.attributes.String("name");
  return ir::IsParam(leaf) ? graph.AddParam(name, type) : graph.AddInput(name, type);
}

// The first elements of each dimension of dense rows of `unit` bytes.
std::vector<uint8_t> FirstElements(std::span<const uint8_t> bytes, std::span<const int64_t> from,
                                   std::span<const int64_t> to, int64_t unit) {
  std::vector<uint8_t> kept;
  std::function<void(size_t, int64_t)> walk = [&](size_t axis, int64_t offset) {
    if (axis == from.size()) {
      kept.insert(kept.end(), bytes.begin() + offset * unit, bytes.begin() + (offset + 1) * unit);
      return;
    }
    for (int64_t i = 0; i < to[axis]; ++i) walk(axis + 1, offset * from[axis] + i);
  };
  walk(0, 0);
  return kept;
}

// The bytes of a leaf whose sizes become smaller.
StatusOr<std::vector<uint8_t>> Sliced(const ir::TensorType& type, bool file, std::span<const uint8_t> bytes,
                                      std::vector<int64_t> from, std::vector<int64_t> to) {
  if (from == to) return std::vector<uint8_t>(bytes.begin(), bytes.end());
  if (!IsBlock(type.dtype)) return FirstElements(bytes, from, to, ScalarBytes(type.dtype));
  const int64_t block = Row(type.dtype).block_elements;
  if (to.back() % block != 0 || to.back() == 0) return absl::InvalidArgumentError("no whole blocks");
  if (file) {
    from.back() /= block, to.back() /= block;
    return FirstElements(bytes, from, to, Row(type.dtype).block_bytes);
  }
  std::vector<Extent> dims(from.begin(), from.end());
  QUERN_ASSIGN(const ir::RefTensor whole, Decode({type.dtype, dims}, false, {}, bytes));
  ir::RefTensor part{type.dtype, to, {}};
  part.data.resize(part.elements());
  std::vector<int64_t> index(to.size());
  for (double& value : part.data) {
    value = whole.At(index);
    ir::NextIndex(to, index);
  }
  return Encode(part);
}

// The graph with other sizes: `change` gives the new type of a leaf and the new attributes of an op.
struct Change {
  std::function<ir::TensorType(int leaf, const ir::TensorType& type)> type;
  std::function<ir::Attributes(const ir::Attributes& attributes)> attributes;
};
StatusOr<Reproduction> Resized(const Reproduction& from, const Binding& sizes, const Change& change) {
  Reproduction made = from;
  made.sizes = sizes;
  ir::Graph graph;
  graph.name = from.graph.name;
  graph.symbols = from.graph.symbols;
  for (int n = 0; n < static_cast<int>(from.graph.nodes().size()); ++n) {
    const ir::Node& node = from.graph.node(n);
    if (!node.bodies.empty()) return absl::UnimplementedError("a node with bodies keeps its sizes");
    if (!ir::IsLeaf(node)) {
      // Nodes keep their numbers, so operands do.
      const int origin = node.origin < 0 ? -1 : graph.AddOrigin(from.graph.origins()[node.origin]);
      QUERN_RETURN_IF_ERROR(graph.Add(*node.op, node.inputs, change.attributes(node.attributes), origin).status());
      continue;
    }
    const ir::TensorType type = change.type(n, node.results[0]);
    QUERN_ASSIGN(std::vector<int64_t> old_dims, SizesOf(node.results[0], from.sizes));
    QUERN_ASSIGN(std::vector<int64_t> new_dims, SizesOf(type, sizes));
    if (ir::IsConstant(node)) {
      QUERN_ASSIGN(std::vector<uint8_t> data, Sliced(type, true, *node.data, std::move(old_dims), std::move(new_dims)));
      QUERN_RETURN_IF_ERROR(graph.AddConstant(type, std::move(data)).status());
      continue;
    }
    QUERN_RETURN_IF_ERROR(AddLeaf(graph, node, type).status());
    const std::string& name = node.attributes.String("name");
    QUERN_ASSIGN(made.bytes[name],
                 Sliced(type, ir::IsParam(node), from.bytes.at(name), std::move(old_dims), std::move(new_dims)));
  }
  graph.outputs = from.graph.outputs;
  graph.output_names = from.graph.output_names;
  graph.donations = from.graph.donations;
  made.graph = std::move(graph);
  QUERN_RETURN_IF_ERROR(Tidy(made));
  QUERN_RETURN_IF_ERROR(Check(made));
  return made;
}

}  // namespace

StatusOr<Reproduction> ApplyCut(const Reproduction& from, const Cut& cut, const Evaluation* values) {
  const ir::Graph& old = from.graph;
  const auto behind = [&](Value value) {
    for (auto it = cut.bypassed.find(value); it != cut.bypassed.end(); it = cut.bypassed.find(value))
      value = it->second;
    return value;
  };
  std::vector<bool> needed(old.nodes().size());
  for (const Value& output : cut.outputs) {
    if (!cut.fed.contains(behind(output))) needed[behind(output).node] = true;
  }
  for (int n = static_cast<int>(old.nodes().size()); n-- > 0;) {
    if (!needed[n]) continue;
    for (const Value& input : old.node(n).inputs) {
      if (!cut.fed.contains(behind(input))) needed[behind(input).node] = true;
    }
  }
  Reproduction made = from;
  made.graph = {};
  made.bytes.clear();
  ir::Graph& graph = made.graph;
  graph.name = old.name;
  graph.symbols = old.symbols;
  const bool given_nans = std::any_of(old.nodes().begin(), old.nodes().end(), [&](const ir::Node& node) {
    if (!ir::IsLeaf(node) || !IsFloat(node.results[0].dtype)) return false;
    const std::vector<uint8_t>& bytes =
        ir::IsConstant(node) ? *node.data : from.bytes.at(node.attributes.String("name"));
    return Specials(node.results[0].dtype, bytes).nan;
  });
  std::map<Value, Value> now;
  std::set<std::string> names;
  for (const ir::Node& node : old.nodes()) {
    if (IsNamedLeaf(node)) names.insert(node.attributes.String("name"));
  }
  const auto find = [&](Value value) -> StatusOr<Value> {
    value = behind(value);
    if (const auto known = now.find(value); known != now.end()) return known->second;
    if (!cut.fed.contains(value) || values == nullptr) return absl::InternalError("a value is gone");
    // A NaN that was computed is the work of the fault, or of another one: given to what reads it, it would be a fault
    // that nobody had.
    if (!given_nans && Specials(values->At(value)).nan)
      return absl::InvalidArgumentError("a NaN would become an input");
    std::string name = absl::StrCat("v", value.node);
    while (!names.insert(name).second) name += "_";
    QUERN_ASSIGN(made.bytes[name], Encode(values->At(value)));
    QUERN_ASSIGN(now[value], graph.AddInput(name, old.type(value)));
    return now[value];
  };
  for (int n = 0; n < static_cast<int>(old.nodes().size()); ++n) {
    const ir::Node& node = old.node(n);
    if (!needed[n]) continue;
    StatusOr<Value> added = Value{};
    if (ir::IsLeaf(node)) {
      added = AddLeaf(graph, node, node.results[0]);
      if (IsNamedLeaf(node)) made.bytes[node.attributes.String("name")] = from.bytes.at(node.attributes.String("name"));
    } else {
      std::vector<Value> operands;
      for (const Value& input : node.inputs) {
        QUERN_ASSIGN(const Value operand, find(input));
        operands.push_back(operand);
      }
      const int origin = node.origin < 0 ? -1 : graph.AddOrigin(old.origins()[node.origin]);
      added = ir::IsRegion(node)
                  ? graph.AddRegion(node.attributes.String("family"), std::move(operands), node.bodies[0], origin)
                  : graph.Add(*node.op, std::move(operands), node.attributes, origin, node.bodies);
    }
    if (!added.ok()) return added.status();
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r) now[{n, r}] = {added->node, r};
  }
  for (const Value& output : cut.outputs) {
    QUERN_ASSIGN(const Value value, find(output));
    graph.outputs.push_back(value);
  }
  for (const ir::Donation& donation : old.donations) {
    const auto output = std::find(cut.outputs.begin(), cut.outputs.end(), old.outputs[donation.output]);
    const bool kept = output != cut.outputs.end() && made.bytes.contains(donation.input);
    if (kept) graph.donations.push_back({static_cast<int>(output - cut.outputs.begin()), donation.input});
  }
  QUERN_RETURN_IF_ERROR(Tidy(made));
  return made;
}

StatusOr<Reproduction> Shrink(const Reproduction& from, const std::string& symbol, int64_t size) {
  Binding sizes = from.sizes;
  sizes[symbol] = size;
  return Resized(from, sizes,
                 {[](int, const ir::TensorType& type) { return type; },
                  [](const ir::Attributes& attributes) { return attributes; }});
}

StatusOr<Reproduction> Shrink(const Reproduction& from, int64_t size, int64_t smaller, int leaf, int axis) {
  const auto replaced = [&](const Extent& extent) { return extent == Extent(size) ? Extent(smaller) : extent; };
  Change change;
  change.type = [&](int n, const ir::TensorType& type) {
    ir::TensorType now = type;
    for (int d = 0; d < type.rank(); ++d) {
      if (leaf < 0 || (n == leaf && d == axis)) now.dims[d] = replaced(type.dims[d]);
    }
    return now;
  };
  change.attributes = [&](const ir::Attributes& attributes) {
    if (leaf >= 0) return attributes;
    ir::Attributes now;
    for (const auto& [name, value] : attributes.values()) {
      ir::AttrValue changed = value;
      if (auto* extents = std::get_if<std::vector<Extent>>(&changed))
        std::transform(extents->begin(), extents->end(), extents->begin(), replaced);
      now.Set(name, std::move(changed));
    }
    return now;
  };
  return Resized(from, from.sizes, change);
}

}  // namespace quern::check
