#include "codegen/point_expr.h"

#include <utility>

#include "base/check.h"
#include "ir/spelled_out.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;
using family::AxisSpace;
using ir::Value;

// What an elementwise op sees of its operands: whatever index it asks for, their elements at the point.
class PointExpr::Context : public ir::MapContext {
 public:
  Context(PointExpr& owner, Value value)
      : owner_(owner),
        node_(owner.view_.node(value.node)),
        value_(value),
        index_(owner.view_.type(value).dims.size(), kb::Int(0)) {}

  const ir::Node& node() const override { return node_; }
  const ir::TensorType& operand_type(int operand) const override { return owner_.view_.type(node_.inputs[operand]); }
  const ir::TensorType& result_type() const override { return owner_.view_.type(value_); }
  const kir::Index& index() const override { return index_; }
  kir::ExprRef Operand(int operand, kir::Index, kir::ExprRef) override { return owner_.At(node_.inputs[operand]); }

 private:
  PointExpr& owner_;
  const ir::Node& node_;
  Value value_;
  const kir::Index index_;
};

PointExpr::PointExpr(const RegionView& view, const AxisSpace& space, KernelWriter& writer)
    : view_(view), space_(space), writer_(writer), fused_(view.graph) {
  for (size_t i = 0; i < view.inputs().size(); ++i) {
    const AxisSpace::Place* place = space.Find({view.inputs()[i], 0});
    if (place != nullptr && !place->pinned) writer.DeclareAs(static_cast<int>(i), space.ExtentsOf(*place));
  }
  writer.ProvideInputs(fused_);
}

void PointExpr::MoveTo(Point point, const AxisSpace::Box* box) {
  point_ = std::move(point);
  box_ = box;
  made_.clear();
}

void PointExpr::Provide(Value value, Source source) {
  sources_[value] = std::move(source);
  made_.clear();
}

void PointExpr::ProvideAtDims(Value value, std::function<kir::ExprRef(const kir::Index&)> source) {
  fused_.Provide(value, [source](const kir::Index& at, const kir::ExprRef&) { return source(at); });
  Provide(value, [this, value, source](const Point&) { return source(IndexOf(value)); });
}

kir::Index PointExpr::Axes(const AxisSpace::Place& place) const {
  kir::Index at;
  for (const int axis : place.Axes()) at.push_back(point_[axis]);
  return at;
}

kir::Index PointExpr::Dims(const AxisSpace::Place& place) const {
  kir::Index at;
  for (const std::vector<int>& dim : place.dims) {
    kir::ExprRef index = kb::Int(0);
    for (const int axis : dim) {
      const auto part = place.part.find(axis);
      const Extent& extent = part == place.part.end() ? space_.extents()[axis] : part->second;
      index = axis == dim.front() ? point_[axis] : index * kb::FromExtent(extent) + point_[axis];
    }
    at.push_back(index);
  }
  return at;
}

kir::ExprRef PointExpr::At(Value value) {
  if (const auto found = made_.find(value); found != made_.end()) return found->second;
  const auto source = sources_.find(value);
  kir::ExprRef made = source == sources_.end() ? Compute(value) : source->second(point_);
  made_[value] = made;
  return made;
}

kir::ExprRef PointExpr::Compute(Value value) {
  const AxisSpace::Place* place = space_.Find(value);
  const int n = value.node;
  if (place == nullptr) {
    // No element of it is anywhere but a literal.
    QUERN_CHECK(view_.node(n).op->kind == ir::OpKind::kLeaf);
    return fused_.Element(value, kir::Index(view_.type(value).dims.size(), kb::Int(0)));
  }
  if (const int input = view_.InputIndex(value); input >= 0) {
    return kb::At(writer_.Input(input), view_.type(value).dtype, place->pinned ? Dims(*place) : Axes(*place));
  }
  if (!view_.Has(n) || !space_.Relates(n)) return fused_.Element(value, Dims(*place));
  const ir::Node& node = view_.node(n);
  if (n == space_.joined()) {
    if (box_->operand < 0) return box_->fill;
    // The operand's own element: its first is the first of the box.
    const Point here = point_;
    auto made = std::exchange(made_, {});
    for (const auto& [axis, range] : box_->ranges) point_[axis] = point_[axis] - kb::FromExtent(range.first);
    kir::ExprRef element = At(node.inputs[box_->operand]);
    point_ = here;
    made_ = std::move(made);
    return element;
  }
  if (ir::IsReshape(view_.graph, node) || ir::PermutationOf(node) != nullptr) return At(node.inputs[0]);
  Context context(*this, value);
  return node.op->map(context);
}

kir::StmtRef PointExpr::StoreResult(int output) {
  const Value result = view_.results()[output];
  const kir::ExprRef element = At(result);
  auto [buffer, at] = ResultAt(output);
  return kb::WithOrigin(kb::Store(std::move(buffer), std::move(at), element), writer_.Origin(result.node));
}

std::pair<std::string, kir::Index> PointExpr::ResultAt(int output) {
  const Value value = view_.results()[output];
  const std::string name = writer_.Result(output);
  const AxisSpace::Place& place = *space_.Find(value);
  if (place.pinned) return {name, Dims(place)};
  writer_.Redeclare(name, space_.ExtentsOf(place));
  return {name, Axes(place)};
}

}  // namespace quern::codegen
