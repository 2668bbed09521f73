#include "support/mutate_graph.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>

#include "ir/op.h"

namespace quern::testing {
namespace {

using ir::Attributes;
using ir::AttrKind;
using ir::AttrValue;
using ir::OpKind;
using ir::TensorType;
using ir::Value;

constexpr int64_t kSizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 256};
constexpr int64_t kIntegers[] = {-2, -1, 0, 1, 2, 3, 4, 8, 16};
constexpr double kNumbers[] = {-1, 0, 1e-5, 0.5, 1, 2, 1e30};
constexpr int kAttempts = 16;
constexpr size_t kMostNodes = 48;
constexpr Value kGone = {-1, 0};

enum class Change : uint8_t { kOp, kOperand, kAttribute, kSize, kDType, kInsert, kOutput, kRange, kBody };
constexpr Change kChanges[] = {Change::kOp,     Change::kOperand, Change::kOperand, Change::kAttribute,
                               Change::kSize,   Change::kDType,   Change::kInsert,  Change::kInsert,
                               Change::kInsert, Change::kOutput,  Change::kRange,   Change::kBody};

class Mutation {
 public:
  Mutation(const ir::Graph& from, uint64_t seed) : from_(from), random_(seed), change_(Pick(kChanges)) {
    to_.name = from.name;
    to_.symbols = from.symbols;
    place_ = from.nodes().empty() ? 0 : Below(from.nodes().size());
    if (change_ == Change::kRange && !to_.symbols.empty()) {
      auto range = std::next(to_.symbols.begin(), static_cast<int64_t>(Below(to_.symbols.size())));
      range->second.low = Pick(kSizes);
      range->second.high = range->second.low + Pick(kSizes);
    }
    if (change_ == Change::kSize) ChooseSize();
    if (change_ == Change::kDType && !from.nodes().empty()) {
      const ir::Node& node = from.node(static_cast<int>(place_));
      old_dtype_ = node.results[0].dtype;
      new_dtype_ =
          static_cast<DType>(Below(std::string_view(node.op->name) == "Param" ? kDTypeCount : kScalarDTypeCount));
    }
  }

  std::optional<ir::Graph> Run() {
    for (size_t n = 0; n < from_.nodes().size(); ++n) {
      now_.push_back(Place(n));
      if (change_ == Change::kInsert && n == place_ && from_.nodes().size() < kMostNodes) Insert();
    }
    for (const Value& output : from_.outputs) {
      if (const Value now = Now(output); now != kGone) to_.outputs.push_back(now);
    }
    if (to_.nodes().empty()) return std::nullopt;
    if (change_ == Change::kOutput || to_.outputs.empty()) to_.outputs.push_back(AnyValue());
    if (to_.outputs.size() == from_.outputs.size()) to_.donations = from_.donations;
    if (!ir::Verify(to_).ok()) return std::nullopt;
    return std::move(to_);
  }

 private:
  uint64_t Below(size_t n) { return random_() % n; }
  template <typename T, size_t kCount>
  T Pick(const T (&values)[kCount]) {
    return values[Below(kCount)];
  }

  Value Now(Value old) const { return now_[old.node].empty() ? kGone : now_[old.node][old.result]; }

  Value AnyValue() {
    const int node = static_cast<int>(Below(to_.nodes().size()));
    return {node, static_cast<int>(Below(to_.node(node).results.size()))};
  }

  // A constant size of some leaf, and what takes its place wherever it stands.
  void ChooseSize() {
    std::vector<int64_t> sizes;
    for (const ir::Node& node : from_.nodes()) {
      if (node.op->kind != OpKind::kLeaf) continue;
      for (const Extent& dim : node.results[0].dims) {
        if (dim.is_constant()) sizes.push_back(dim.constant());
      }
    }
    if (sizes.empty()) return;
    old_size_ = sizes[Below(sizes.size())];
    new_size_ = Pick(kSizes);
  }

  TensorType Changed(TensorType type) const {
    for (Extent& dim : type.dims) {
      if (old_size_ >= 0 && dim == Extent(old_size_)) dim = Extent(new_size_);
    }
    if (old_dtype_ && type.dtype == *old_dtype_) type.dtype = *new_dtype_;
    return type;
  }

  Attributes Changed(Attributes attributes) const {
    const Attributes before = attributes;
    for (const auto& [name, value] : before.values()) {
      const auto* extents = std::get_if<std::vector<Extent>>(&value);
      if (extents == nullptr || old_size_ < 0) continue;
      std::vector<Extent> changed = *extents;
      std::replace(changed.begin(), changed.end(), Extent(old_size_), Extent(new_size_));
      attributes.Set(name, std::move(changed));
    }
    return attributes;
  }

  AttrValue Draw(const ir::AttrDef& def) {
    switch (def.kind) {
      case AttrKind::kBool: return Below(2) == 0;
      case AttrKind::kInt: return Pick(kIntegers);
      case AttrKind::kFloat: return Pick(kNumbers);
      case AttrKind::kString: return std::string(def.choices.empty() ? "x" : def.choices[Below(def.choices.size())]);
      case AttrKind::kDType: return static_cast<DType>(Below(kScalarDTypeCount));
      case AttrKind::kInts: {
        std::vector<int64_t> integers(Below(4));
        for (int64_t& integer : integers) integer = Pick(kIntegers);
        return integers;
      }
      case AttrKind::kExtents: {
        std::vector<Extent> extents(Below(4));
        for (Extent& extent : extents) extent = AnyExtent();
        return extents;
      }
    }
    return false;
  }

  Extent AnyExtent() {
    if (to_.symbols.empty() || Below(3) != 0) return Extent(Pick(kSizes));
    return Extent::Symbol(std::next(to_.symbols.begin(), static_cast<int64_t>(Below(to_.symbols.size())))->first);
  }

  // Those that `op` has too keep their values; one that it must have and that has none is drawn.
  Attributes AttributesFor(const ir::OpDef& op, const Attributes& old) {
    Attributes made;
    for (const ir::AttrDef& def : op.attributes) {
      const AttrValue* const value = old.Find(def.name);
      if (value != nullptr && value->index() == static_cast<size_t>(def.kind))
        made.Set(def.name, *value);
      else if (!def.default_value || Below(3) == 0)
        made.Set(def.name, Draw(def));
    }
    return made;
  }

  // An op without bodies that takes so many operands, or any; null when none was hit upon.
  const ir::OpDef* AnyOp(std::optional<size_t> operands) {
    for (int attempt = 0; attempt < 4 * kAttempts; ++attempt) {
      const ir::OpDef* const op = ir::Ops()[Below(ir::Ops().size())];
      if (op->kind == OpKind::kLeaf || op->kind == OpKind::kRegion || !op->bodies.empty()) continue;
      const size_t most = op->operands.size();
      size_t least = 0;
      while (least < most && !op->operands[least].optional) ++least;
      const bool any_number = most > 0 && op->operands.back().variadic;
      if (!operands || (*operands >= least && (*operands <= most || any_number))) return op;
    }
    return nullptr;
  }

  std::optional<Value> AddLeaf(const ir::Node& leaf) {
    const TensorType type = Changed(leaf.results[0]);
    StatusOr<Value> made = absl::InternalError("none");
    if (leaf.data != nullptr) {
      const StatusOr<int64_t> elements = type.elements().Evaluate({});
      if (!elements.ok() || IsBlock(type.dtype) || *elements > 1 << 12) return std::nullopt;
      std::vector<uint8_t> data(*elements * ScalarBytes(type.dtype));
      for (size_t i = 0; i < data.size() && !leaf.data->empty(); ++i) data[i] = (*leaf.data)[i % leaf.data->size()];
      if (type.dtype == DType::kBool) {
        for (uint8_t& value : data) value &= 1;
      }
      made = to_.AddConstant(type, std::move(data));
    } else {
      const std::string& name = leaf.attributes.String("name");
      const bool parameter = std::string_view(leaf.op->name) == "Param";
      made = parameter ? to_.AddParam(name, type) : to_.AddInput(name, type);
    }
    return made.ok() ? std::optional<Value>(*made) : std::nullopt;
  }

  std::optional<Value> Add(const ir::OpDef& op, std::vector<Value> inputs, Attributes attributes,
                           std::vector<std::shared_ptr<const ir::Graph>> bodies, std::span<const TensorType> declared) {
    const StatusOr<Value> made = to_.Add(op, std::move(inputs), std::move(attributes), -1, std::move(bodies), declared);
    return made.ok() ? std::optional<Value>(*made) : std::nullopt;
  }

  // What stands for the results of old node n; empty: nothing does.
  std::vector<Value> Place(size_t n) {
    const ir::Node& node = from_.node(static_cast<int>(n));
    std::optional<Value> made;
    if (node.op->kind == OpKind::kLeaf) {
      made = AddLeaf(node);
    } else {
      std::vector<Value> inputs;
      for (const Value& input : node.inputs) inputs.push_back(Now(input));
      if (std::find(inputs.begin(), inputs.end(), kGone) != inputs.end()) return Instead(node);
      const Attributes attributes = Changed(node.attributes);
      if (n == place_) made = PlaceChanged(node, inputs, attributes);
      if (!made) made = Add(*node.op, inputs, attributes, node.bodies, node.results);
    }
    if (!made) return Instead(node);
    std::vector<Value> results;
    for (int r = 0; r < static_cast<int>(to_.node(made->node).results.size()); ++r) results.push_back({made->node, r});
    results.resize(node.results.size(), kGone);
    return results;
  }

  std::optional<Value> PlaceChanged(const ir::Node& node, const std::vector<Value>& inputs,
                                    const Attributes& attributes) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      std::optional<Value> made;
      if (change_ == Change::kOp) {
        const ir::OpDef* const op = AnyOp(inputs.size());
        if (op != nullptr && op != node.op) made = Add(*op, inputs, AttributesFor(*op, attributes), {}, {});
      } else if (change_ == Change::kOperand && !inputs.empty()) {
        std::vector<Value> others = inputs;
        others[Below(others.size())] = AnyValue();
        if (others != inputs) made = Add(*node.op, others, attributes, node.bodies, {});
      } else if (change_ == Change::kAttribute && !node.op->attributes.empty()) {
        Attributes others = attributes;
        const ir::AttrDef& def = node.op->attributes[Below(node.op->attributes.size())];
        others.Set(def.name, Draw(def));
        if (others != attributes) made = Add(*node.op, inputs, others, node.bodies, {});
      } else if (change_ == Change::kBody && !node.bodies.empty()) {
        std::vector<std::shared_ptr<const ir::Graph>> bodies = node.bodies;
        std::shared_ptr<const ir::Graph>& body = bodies[Below(bodies.size())];
        body = std::make_shared<const ir::Graph>(MutateGraph(*body, random_()));
        made = Add(*node.op, inputs, attributes, bodies, {});
      }
      if (made) return made;
    }
    return std::nullopt;
  }

  // Earlier values of the same types, for a node that has no place any more.
  std::vector<Value> Instead(const ir::Node& node) const {
    std::vector<Value> results;
    for (const TensorType& wanted : node.results) {
      Value found = kGone;
      for (int n = 0; n < static_cast<int>(to_.nodes().size()) && found == kGone; ++n) {
        if (to_.type({n, 0}) == Changed(wanted)) found = {n, 0};
      }
      results.push_back(found);
    }
    return results;
  }

  // A node more, over any values; what it makes is used from here on, or returned.
  void Insert() {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const ir::OpDef* const op = AnyOp(std::nullopt);
      if (op == nullptr) return;
      std::vector<Value> inputs;
      for (const ir::OperandDef& operand : op->operands) {
        if (!operand.optional || Below(2) == 0) inputs.push_back(AnyValue());
      }
      const std::optional<Value> made = Add(*op, inputs, AttributesFor(*op, {}), {}, {});
      if (!made) continue;
      for (std::vector<Value>& results : now_) {
        for (Value& result : results) {
          if (result != kGone && to_.type(result) == to_.type(*made) && Below(2) == 0) {
            result = *made;
            return;
          }
        }
      }
      to_.outputs.push_back(*made);
      return;
    }
  }

  const ir::Graph& from_;
  ir::Graph to_;
  std::mt19937_64 random_;
  const Change change_;
  size_t place_ = 0;                      // the node that is changed
  int64_t old_size_ = -1, new_size_ = 0;  // -1: sizes stay
  std::optional<DType> old_dtype_, new_dtype_;
  std::vector<std::vector<Value>> now_;  // by old node and result
};

}  // namespace

ir::Graph MutateGraph(const ir::Graph& from, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::optional<ir::Graph> changed = Mutation(from, random()).Run();
    if (changed && !ir::SameGraph(*changed, from)) return *std::move(changed);
  }
  return from;
}

}  // namespace quern::testing
