#include "codegen/attention_place.h"

#include <algorithm>

#include "ir/strides.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::Strides;
using ir::Value;

// Where the elements of a value lie; `source` becomes what is in memory. A constant of one element lies in the code.
std::optional<Strides> StridesOf(const family::RegionView& view, Value value, Value* source) {
  const ir::Node& node = view.node(value.node);
  if (view.IsNumber(value)) return std::nullopt;
  if (!view.Has(value.node)) {
    *source = value;
    return Strides::Dense(view.type(value).dims);
  }
  if (node.op->strides == nullptr) return std::nullopt;
  const std::optional<Strides> behind = StridesOf(view, node.inputs[0], source);
  if (!behind) return std::nullopt;
  return node.op->strides(node, *behind);
}

// The strides of [batch, position, head, column].
std::optional<Strides> HeadsOf(const family::RegionView& view, const ir::AttentionShape& shape, Value value,
                               int64_t heads, Value* source) {
  std::vector<Extent> dims = view.type(value).dims;
  if (shape.layout == ir::AttentionShape::Layout::kPacked)
    dims = {dims[0], dims[1], Extent(heads), Extent(shape.head_dim)};
  // Heads that lie apart have no one step before they are joined.
  while (view.Has(value.node) && ir::IsReshape(view.graph, view.node(value.node)))
    value = view.node(value.node).inputs[0];
  std::optional<Strides> strides = StridesOf(view, value, source);
  if (strides) strides = strides->Reshaped(dims);
  if (strides && shape.layout == ir::AttentionShape::Layout::kBhsd) {
    std::swap(strides->dims[1], strides->dims[2]);
    std::swap(strides->steps[1], strides->steps[2]);
  }
  return strides;
}

// How many steps make `whole`, where they are as many as `extent` or it is known otherwise.
std::optional<Extent> StepsOf(const Extent& whole, const Extent& step, const Extent& extent) {
  return whole == step * extent ? extent : whole.DividedBy(step);
}

}  // namespace

bool AttentionPlace::Fit(const Strides& strides, const Extent& elements, const std::array<Axis, kAxes>& order,
                         bool whole_positions, const SymbolRanges& ranges) {
  dims.assign(kAxes + 1, Extent(1));
  std::vector<Axis> live;
  int at = 0;
  for (const Axis axis : order) {
    if (strides.dims[axis] == Extent(1))
      dim_[axis] = at++, first_[axis] = 0;
    else
      live.push_back(axis);
  }
  for (const Axis axis : live) dim_[axis] = at++;
  const Extent row = live.empty() ? elements : strides.steps[live.back()];
  if (!row.is_constant() || row.constant() < columns_ || !strides.offset.is_constant()) return false;
  dims[kAxes] = row;
  first_column_ = strides.offset.constant() % row.constant();
  if (first_column_ + columns_ > row.constant()) return false;
  // What is left of the offset, in steps.
  int64_t rest = strides.offset.constant() / row.constant();
  for (size_t i = live.size(); i-- > 0;) {
    const Axis axis = live[i];
    const Extent& extent = strides.dims[axis];
    const std::optional<Extent> room =
        StepsOf(i > 0 ? strides.steps[live[i - 1]] : elements, strides.steps[axis], extent);
    if (!room) return false;
    first_[axis] = room->is_constant() && room->constant() > 0 ? rest % room->constant() : rest;
    rest = room->is_constant() && room->constant() > 0 ? rest / room->constant() : 0;
    if (!room->ProvablyAtLeast(extent + first_[axis], ranges)) return false;
    if (axis == kPosition && whole_positions && *room != extent) return false;
    dims[dim_[axis]] = *room;
  }
  return rest == 0;
}

std::optional<AttentionPlace> AttentionPlace::Find(const family::RegionView& view, int root, int operand) {
  const ir::Node& node = view.node(root);
  const ir::AttentionShape shape(node.attributes);
  AttentionPlace place;
  place.columns_ = shape.head_dim;
  const std::optional<Strides> found =
      HeadsOf(view, shape, node.inputs[operand], operand == 0 ? shape.heads : shape.kv_heads, &place.source);
  if (!found || (found->steps[kAxes] != Extent(1) && shape.head_dim != 1)) return std::nullopt;
  const Extent elements = view.type(place.source).elements();
  std::array<Axis, kAxes> order = {kBatch, kPosition, kHead};
  do {
    // Tiles of keys are cut off where the buffer ends.
    if (place.Fit(*found, elements, order, /*whole_positions=*/operand > 0, view.ranges)) return place;
  } while (std::next_permutation(order.begin(), order.end()));
  return std::nullopt;
}

kir::Slice AttentionPlace::At(const std::string& buffer, const Slices& of) const {
  std::vector<kir::SliceDim> slices(kAxes + 1);
  for (int axis = 0; axis < kAxes; ++axis) {
    kir::SliceDim& dim = slices[dim_[axis]] = of[axis];
    if (first_[axis] != 0) dim.start = dim.start + static_cast<double>(first_[axis]);
  }
  const bool all = dims[kAxes] == Extent(columns_);
  slices[kAxes] = all ? kb::All() : kb::Range(kb::Int(first_column_), kb::Int(columns_));
  return kb::SliceOf(buffer, std::move(slices));
}

kir::Index AttentionPlace::ElementAt(const Point& at, const kir::ExprRef& column) const {
  kir::Index index(kAxes + 1);
  for (int axis = 0; axis < kAxes; ++axis) {
    index[dim_[axis]] = first_[axis] == 0 ? at[axis] : at[axis] + static_cast<double>(first_[axis]);
  }
  index[kAxes] = first_column_ == 0 ? column : column + static_cast<double>(first_column_);
  return index;
}

}  // namespace quern::codegen
