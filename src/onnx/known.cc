#include "onnx/known.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "ir/op.h"

namespace quern::onnx {
namespace {

using ir::Node;
using ir::Value;
using Ratios = std::vector<Ratio>;
using Known = std::optional<Ratios>;

constexpr int64_t kMostRatios = 1024;                // elements of a tensor that are followed as extents
constexpr int64_t kMostComputed = int64_t{1} << 20;  // of one that is computed
constexpr double kLargestDivisor = 1 << 20;
constexpr int kDeepest = 4000;  // nodes behind each other that are looked through

// Counts as long as it lives.
struct Depth {
  explicit Depth(int& depth) : depth(++depth) {}
  ~Depth() { --depth; }
  int& depth;
};

std::optional<int64_t> ElementsOf(const ir::TensorType& type, int64_t most) {
  int64_t elements = 1;
  for (const Extent& dim : type.dims) {
    if (!dim.is_constant() || dim.constant() < 0) return std::nullopt;
    if (__builtin_mul_overflow(elements, dim.constant(), &elements) || elements > most) return std::nullopt;
  }
  return elements;
}

std::optional<Ratio> RatioOf(double value) {
  for (double divisor = 1; divisor <= kLargestDivisor; divisor *= 2) {
    const double scaled = value * divisor;
    if (std::fabs(scaled) > 0x1p52) return std::nullopt;
    if (scaled == std::floor(scaled)) return Ratio{Extent(static_cast<int64_t>(scaled)), static_cast<int64_t>(divisor)};
  }
  return std::nullopt;
}

Known FromTensor(const ir::RefTensor& tensor) {
  Ratios ratios;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    std::optional<Ratio> ratio;
    if (IsInteger(tensor.dtype))
      ratio = Ratio{Extent(tensor.integers[i])};
    else if (!IsComplex(tensor.dtype))
      ratio = RatioOf(tensor.data[i]);
    if (!ratio) return std::nullopt;
    ratios.push_back(*ratio);
  }
  return ratios;
}

std::optional<int64_t> NumberOf(const Ratio& ratio) {
  if (!ratio.extent.is_constant() || ratio.divisor != 1) return std::nullopt;
  return ratio.extent.constant();
}

// A node with what is known of its operands.
struct Step {
  const ir::Graph& graph;
  const Node& node;
  const ir::TensorType& type;  // of the result
  std::vector<Ratios> x;

  const SymbolRanges& ranges() const { return graph.symbols; }
  bool floats() const { return IsFloat(graph.type(node.inputs[0]).dtype); }
  bool AtLeast(const Ratio& a, const Ratio& b) const {
    return (a.extent * Extent(b.divisor)).ProvablyAtLeast(b.extent * Extent(a.divisor), ranges());
  }
};

using Join = std::optional<Ratio> (*)(const Step& step, const Ratio& a, const Ratio& b);
using Make = Known (*)(const Step& step);

Ratio Reduced(Extent extent, int64_t divisor) {
  if (divisor == 1) return {std::move(extent), 1};
  const std::optional<Extent> exact = extent.DividedBy(Extent(divisor));
  if (exact) return {*exact, 1};
  return {std::move(extent), divisor};
}

// Of every pair of elements; one that stands alone is paired with all.
template <Join join>
Known Pairwise(const Step& step) {
  const Ratios &a = step.x[0], &b = step.x[1];
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) return std::nullopt;
  const std::optional<int64_t> all = ElementsOf(step.type, kMostRatios);
  if (!all || *all != static_cast<int64_t>(std::max(a.size(), b.size()))) return std::nullopt;
  Ratios result;
  for (int64_t i = 0; i < *all; ++i) {
    const std::optional<Ratio> made = join(step, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
    if (!made) return std::nullopt;
    result.push_back(*made);
  }
  return result;
}

template <std::optional<Ratio> (*each)(const Step& step, const Ratio& a)>
Known Each(const Step& step) {
  Ratios result;
  for (const Ratio& a : step.x[0]) {
    const std::optional<Ratio> made = each(step, a);
    if (!made) return std::nullopt;
    result.push_back(*made);
  }
  return result;
}

std::optional<Ratio> AddOf(const Step&, const Ratio& a, const Ratio& b) {
  return Reduced(a.extent * Extent(b.divisor) + b.extent * Extent(a.divisor), a.divisor * b.divisor);
}
std::optional<Ratio> SubOf(const Step&, const Ratio& a, const Ratio& b) {
  return Reduced(a.extent * Extent(b.divisor) - b.extent * Extent(a.divisor), a.divisor * b.divisor);
}
std::optional<Ratio> MulOf(const Step&, const Ratio& a, const Ratio& b) {
  if (a.divisor * b.divisor > int64_t{1} << 40) return std::nullopt;
  return Reduced(a.extent * b.extent, a.divisor * b.divisor);
}
std::optional<Ratio> FloorOf(const Step&, const Ratio& a) {
  return Ratio{a.divisor == 1 ? a.extent : a.extent.FloorDividedBy(a.divisor)};
}
std::optional<Ratio> CeilOf(const Step&, const Ratio& a) {
  return Ratio{a.divisor == 1 ? a.extent : a.extent.CeilDividedBy(a.divisor)};
}
std::optional<Ratio> DivOf(const Step& step, const Ratio& a, const Ratio& b) {
  if (a.divisor != 1 || b.divisor != 1) {
    if (!b.extent.is_constant() || b.extent.constant() <= 0) return std::nullopt;
    return Reduced(a.extent * Extent(b.divisor), a.divisor * b.extent.constant());
  }
  if (b.extent.is_constant() && b.extent.constant() == 0) return std::nullopt;
  if (const std::optional<Extent> exact = a.extent.DividedBy(b.extent)) return Ratio{*exact};
  if (!b.extent.is_constant() || b.extent.constant() < 0) return std::nullopt;
  if (step.floats()) return Ratio{a.extent, b.extent.constant()};
  // Integers are cut towards 0, which is downwards where none is negative.
  const std::optional<int64_t> low = a.extent.LowerBound(step.ranges());
  if (!low || *low < 0) return std::nullopt;
  return Ratio{a.extent.FloorDividedBy(b.extent.constant())};
}
std::optional<Ratio> ModOf(const Step& step, const Ratio& a, const Ratio& b) {
  const std::optional<int64_t> by = NumberOf(b);
  if (!by || *by <= 0 || a.divisor != 1 || step.floats()) return std::nullopt;
  return Ratio{a.extent - a.extent.FloorDividedBy(*by) * Extent(*by)};
}
std::optional<Ratio> MaxOf(const Step& step, const Ratio& a, const Ratio& b) {
  if (step.AtLeast(a, b)) return a;
  if (step.AtLeast(b, a)) return b;
  return std::nullopt;
}
std::optional<Ratio> MinOf(const Step& step, const Ratio& a, const Ratio& b) {
  if (step.AtLeast(a, b)) return b;
  if (step.AtLeast(b, a)) return a;
  return std::nullopt;
}
std::optional<Ratio> Truth(bool yes, bool no) {
  if (!yes && !no) return std::nullopt;
  return Ratio{Extent(yes ? 1 : 0)};
}
bool Above(const Step& step, const Ratio& a, const Ratio& b) {
  const Extent left = a.extent * Extent(b.divisor), right = b.extent * Extent(a.divisor);
  return left.ProvablyAtLeast(right + Extent(1), step.ranges());
}
std::optional<Ratio> EqOf(const Step& step, const Ratio& a, const Ratio& b) {
  return Truth(a.extent == b.extent && a.divisor == b.divisor, Above(step, a, b) || Above(step, b, a));
}
std::optional<Ratio> NeOf(const Step& step, const Ratio& a, const Ratio& b) {
  return Truth(Above(step, a, b) || Above(step, b, a), a.extent == b.extent && a.divisor == b.divisor);
}
std::optional<Ratio> GtOf(const Step& step, const Ratio& a, const Ratio& b) {
  return Truth(Above(step, a, b), step.AtLeast(b, a));
}
std::optional<Ratio> GeOf(const Step& step, const Ratio& a, const Ratio& b) {
  return Truth(step.AtLeast(a, b), Above(step, b, a));
}
std::optional<Ratio> LtOf(const Step& step, const Ratio& a, const Ratio& b) { return GtOf(step, b, a); }
std::optional<Ratio> LeOf(const Step& step, const Ratio& a, const Ratio& b) { return GeOf(step, b, a); }
std::optional<Ratio> AndOf(const Step&, const Ratio& a, const Ratio& b) {
  const std::optional<int64_t> left = NumberOf(a), right = NumberOf(b);
  if (!left || !right) return std::nullopt;
  return Ratio{Extent(*left & *right)};
}
std::optional<Ratio> OrOf(const Step&, const Ratio& a, const Ratio& b) {
  const std::optional<int64_t> left = NumberOf(a), right = NumberOf(b);
  if (!left || !right) return std::nullopt;
  return Ratio{Extent(*left | *right)};
}
std::optional<Ratio> NotOf(const Step&, const Ratio& a) {
  const std::optional<int64_t> value = NumberOf(a);
  if (!value) return std::nullopt;
  return Ratio{Extent(*value == 0 ? 1 : 0)};
}
std::optional<Ratio> NegOf(const Step&, const Ratio& a) { return Ratio{Extent(0) - a.extent, a.divisor}; }
std::optional<Ratio> CastOf(const Step& step, const Ratio& a) {
  const DType to = step.type.dtype;
  if (to == DType::kBool) {
    const std::optional<int64_t> value = NumberOf(a);
    if (value) return Ratio{Extent(*value != 0 ? 1 : 0)};
    const std::optional<int64_t> low = a.extent.LowerBound(step.ranges());
    return low && *low > 0 ? std::optional<Ratio>(Ratio{Extent(1)}) : std::nullopt;
  }
  if (!IsInteger(to) || a.divisor == 1) return a;
  const std::optional<int64_t> low = a.extent.LowerBound(step.ranges());
  if (!low || *low < 0) return std::nullopt;
  return FloorOf(step, a);
}

Known Same(const Step& step) { return step.x[0]; }
Known ExpandOf(const Step& step) {
  const std::optional<int64_t> all = ElementsOf(step.type, kMostRatios);
  if (!all || (step.x[0].size() != 1 && static_cast<int64_t>(step.x[0].size()) != *all)) return std::nullopt;
  return step.x[0].size() == 1 ? Ratios(*all, step.x[0][0]) : step.x[0];
}
Known ConcatOf(const Step& step) {
  if (step.type.rank() != 1) return std::nullopt;
  Ratios result;
  for (const Ratios& part : step.x) result.insert(result.end(), part.begin(), part.end());
  return result;
}
Known GatherOf(const Step& step) {
  if (step.graph.type(step.node.inputs[0]).rank() != 1) return std::nullopt;
  Ratios result;
  const auto size = static_cast<int64_t>(step.x[0].size());
  for (const Ratio& index : step.x[1]) {
    const std::optional<int64_t> at = NumberOf(index);
    if (!at || *at < -size || *at >= size) return std::nullopt;
    result.push_back(step.x[0][*at < 0 ? *at + size : *at]);
  }
  return result;
}
Known NarrowOf(const Step& step) {
  const Extent start = step.node.attributes.Extents("start")[0], length = step.node.attributes.Extents("length")[0];
  if (step.type.rank() != 1 || !start.is_constant() || !length.is_constant()) return std::nullopt;
  const auto from = step.x[0].begin() + start.constant();
  return Ratios(from, from + length.constant());
}
Known WhereOf(const Step& step) {
  const std::optional<int64_t> all = ElementsOf(step.type, kMostRatios);
  if (!all) return std::nullopt;
  for (const Ratios& x : step.x) {
    if (x.size() != 1 && static_cast<int64_t>(x.size()) != *all) return std::nullopt;
  }
  Ratios result;
  for (int64_t i = 0; i < *all; ++i) {
    const std::optional<int64_t> which = NumberOf(step.x[0][step.x[0].size() == 1 ? 0 : i]);
    if (!which) return std::nullopt;
    const Ratios& from = step.x[*which != 0 ? 1 : 2];
    result.push_back(from[from.size() == 1 ? 0 : i]);
  }
  return result;
}
Known ReduceOf(const Step& step) {
  if (ElementsOf(step.type, 1) != 1 || step.x[0].empty()) return std::nullopt;
  const std::string& op = step.node.attributes.String("op");
  const Join join = op == "sum" ? AddOf : op == "prod" ? MulOf : op == "max" ? MaxOf : op == "min" ? MinOf : nullptr;
  if (join == nullptr) return std::nullopt;
  std::optional<Ratio> result = step.x[0][0];
  for (size_t i = 1; i < step.x[0].size() && result; ++i) result = join(step, *result, step.x[0][i]);
  if (!result) return std::nullopt;
  return Ratios{*result};
}

struct Row {
  std::string_view op;
  Make make;
};
constexpr Row kRows[] = {
    {"Reshape", Same},        {"StopGradient", Same},   {"Expand", ExpandOf},        {"Concat", ConcatOf},
    {"Gather", GatherOf},     {"Narrow", NarrowOf},     {"Where", WhereOf},          {"Reduce", ReduceOf},
    {"Cast", Each<CastOf>},   {"Neg", Each<NegOf>},     {"Not", Each<NotOf>},        {"Floor", Each<FloorOf>},
    {"Ceil", Each<CeilOf>},   {"Add", Pairwise<AddOf>}, {"Sub", Pairwise<SubOf>},    {"Mul", Pairwise<MulOf>},
    {"Div", Pairwise<DivOf>}, {"Mod", Pairwise<ModOf>}, {"Max", Pairwise<MaxOf>},    {"Min", Pairwise<MinOf>},
    {"Eq", Pairwise<EqOf>},   {"Ne", Pairwise<NeOf>},   {"Gt", Pairwise<GtOf>},      {"Ge", Pairwise<GeOf>},
    {"Lt", Pairwise<LtOf>},   {"Le", Pairwise<LeOf>},   {"BitAnd", Pairwise<AndOf>}, {"BitOr", Pairwise<OrOf>},
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
  for (const Row& row : kRows) {
    if (row.op != node.op->name) continue;
    Step step{graph, node, graph.type(value), {}};
    for (const Value input : node.inputs) {
      Known known = RatiosOf(session, builder, input);
      if (!known) break;
      step.x.push_back(*std::move(known));
    }
    if (step.x.size() == node.inputs.size()) {
      if (Known made = row.make(step)) return made;
    }
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
    if (given.dtype != type.dtype || given.shape.size() != type.dims.size()) return std::nullopt;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (Extent(given.shape[d]) != type.dims[d]) return std::nullopt;
    }
    bytes = given.bytes;
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
