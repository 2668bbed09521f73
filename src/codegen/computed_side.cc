#include "codegen/computed_side.h"

#include "ir/shape.h"
#include "kir/walk.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

// Where element `at` of all is on axes of these extents.
kir::Index Spread(const kir::ExprRef& at, const std::vector<Extent>& extents) {
  kir::Index index(extents.size());
  kir::ExprRef rest = at;
  for (size_t d = extents.size(); d-- > 1;) {
    const kir::ExprRef extent = kb::FromExtent(extents[d]);
    index[d] = rest % extent;
    rest = rest / extent;
  }
  if (!index.empty()) index[0] = rest;
  return index;
}

std::vector<Extent> ExtentsOf(const family::AxisSpace& space, const std::vector<int>& axes) {
  std::vector<Extent> extents;
  for (const int axis : axes) extents.push_back(space.extents()[axis]);
  return extents;
}

}  // namespace

ComputedSide::ComputedSide(const RegionView& view, const family::AxisSpace& space, KernelWriter& writer,
                           ir::Value value, Side side, DType result, Batch batch)
    : space_(space), value_(value), result_(result), batch_(std::move(batch)), expr_(view, space, writer) {
  const std::vector<std::vector<int>>& dims = space_.Find(value)->dims;
  if (side == Side::kRight) {
    batch_dims_ = dims.size() - 2;
    k_axes_ = dims[dims.size() - 2];
    across_axes_ = dims.back();
  } else {
    k_axes_ = dims.back();
    for (size_t d = 0; d + 1 < dims.size(); ++d)
      across_axes_.insert(across_axes_.end(), dims[d].begin(), dims[d].end());
  }
  k_ = ExtentsOf(space_, k_axes_);
  across_ = ExtentsOf(space_, across_axes_);
  if (k_.empty()) k_ = {Extent(1)};
}

ComputedSide::ComputedSide(ProductKernel& kernel)
    : ComputedSide(kernel.view(), *kernel.space().computed(), kernel.writer(), kernel.space().node().inputs[1],
                   Side::kRight, kernel.space().node().results[0].dtype, [&kernel](size_t dim) {
                     const ir::Node& node = kernel.space().node();
                     const size_t before = node.results[0].dims.size() - kernel.space().type(1).dims.size();
                     return kernel.BatchIndex(static_cast<int>(before + dim));
                   }) {}

ComputedSide::Segment ComputedSide::Row(const kir::ExprRef& q) const {
  const kir::ExprRef length = kb::FromExtent(across_.back());
  return {kb::Int(0), length, q * length, Spread(q, {across_.begin(), across_.end() - 1})};
}

ComputedSide::Segment ComputedSide::Row(const kir::Index& outer) const {
  const kir::ExprRef length = kb::FromExtent(across_.back());
  kir::ExprRef q = kb::Int(0);
  for (size_t d = 0; d < outer.size(); ++d) q = q * kb::FromExtent(across_[d]) + outer[d];
  return {kb::Int(0), length, q * length, outer};
}

kir::Block ComputedSide::Across(const kir::ExprRef& from, const kir::ExprRef& live,
                                const std::function<kir::Block(const Segment&)>& body) const {
  if (across_.size() <= 1) return body({from, from + live, kb::Int(0), {}});
  const kir::ExprRef length = kb::FromExtent(across_.back()), q = kb::Ref("q");
  Extent count(1);
  for (size_t d = 0; d + 1 < across_.size(); ++d) count = count * across_[d];
  Segment segment = Row(q);
  segment.low = kb::Max(kb::Int(0), from - segment.start);
  segment.high = kb::Min(length, from + live - segment.start);
  const kir::ExprRef end = kb::Min((from + live + (length - 1.0)) / length, kb::FromExtent(count));
  return {kb::For("q", from / length, end, body(segment))};
}

kir::ExprRef ComputedSide::At(const kir::Index& across, const kir::Index& at) {
  PointExpr::Point point(space_.extents().size());
  const std::vector<std::vector<int>>& dims = space_.Find(value_)->dims;
  for (size_t d = 0; d < batch_dims_; ++d) {
    const kir::Index batch = Spread(batch_(d), ExtentsOf(space_, dims[d]));
    for (size_t i = 0; i < dims[d].size(); ++i) point[dims[d][i]] = batch[i];
  }
  for (size_t i = 0; i < k_axes_.size(); ++i) point[k_axes_[i]] = at[i];
  for (size_t i = 0; i < across_axes_.size(); ++i) point[across_axes_[i]] = across[i];
  expr_.MoveTo(std::move(point));
  return Factor(expr_.At(value_), result_);
}

kir::ExprRef ComputedSide::Element(const Segment& segment, const kir::ExprRef& c, const kir::Index& at) {
  kir::Index across = segment.outer;
  across.push_back(c);
  return At(across, at);
}

kir::ExprRef ComputedSide::Element(const kir::ExprRef& which, const kir::Index& at) {
  return At(Spread(which, across_), at);
}

bool ComputedSide::RunsAlongK() {
  kir::Index across(across_.size(), kb::Int(0)), at(k_.size(), kb::Int(0));
  if (!across.empty()) across.back() = kb::Ref("c");
  at.back() = kb::Ref("k");
  bool along_k = false, along_across = false;
  kir::ForEachExpr(At(across, at), [&](const kir::ExprRef& node) {
    const auto* load = std::get_if<kir::Load>(&node->node);
    if (load == nullptr || load->index.empty()) return;
    const auto names = [&](const char* name) {
      return kir::AnyExpr(load->index.back(), [&](const kir::ExprRef& inner) { return kir::IsName(inner, name); });
    };
    along_k |= names("k") && !names("c");
    along_across |= names("c");
  });
  return along_k && !along_across;
}

}  // namespace quern::codegen
