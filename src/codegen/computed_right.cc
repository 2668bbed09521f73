#include "codegen/computed_right.h"

#include "codegen/loops.h"
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

ComputedRight::ComputedRight(ProductKernel& kernel)
    : kernel_(kernel), space_(*kernel.space().computed()), expr_(kernel.view(), space_, kernel.writer()) {
  const std::vector<std::vector<int>>& dims = space_.Find(kernel.space().node().inputs[1])->dims;
  k_axes_ = dims[dims.size() - 2];
  column_axes_ = dims.back();
  k_ = ExtentsOf(space_, k_axes_);
  columns_ = ExtentsOf(space_, column_axes_);
  if (k_.empty()) k_ = {Extent(1)};
}

ComputedRight::Segment ComputedRight::Row(const kir::ExprRef& q) const {
  const kir::ExprRef length = kb::FromExtent(columns_.back());
  return {kb::Int(0), length, q * length, Spread(q, {columns_.begin(), columns_.end() - 1})};
}

kir::Block ComputedRight::Columns(const kir::ExprRef& from, const kir::ExprRef& live,
                                  const std::function<kir::Block(const Segment&)>& body) const {
  if (columns_.size() <= 1) return body({from, from + live, kb::Int(0), {}});
  const kir::ExprRef length = kb::FromExtent(columns_.back()), q = kb::Ref("q");
  Extent count(1);
  for (size_t d = 0; d + 1 < columns_.size(); ++d) count = count * columns_[d];
  Segment segment = Row(q);
  segment.low = kb::Max(kb::Int(0), from - segment.start);
  segment.high = kb::Min(length, from + live - segment.start);
  const kir::ExprRef end = kb::Min((from + live + (length - 1.0)) / length, kb::FromExtent(count));
  return {kb::For("q", from / length, end, body(segment))};
}

kir::ExprRef ComputedRight::At(const kir::Index& columns, const kir::Index& at) {
  PointExpr::Point point(space_.extents().size());
  const ProductSpace& product = kernel_.space();
  const std::vector<std::vector<int>>& dims = space_.Find(product.node().inputs[1])->dims;
  const size_t before = product.node().results[0].dims.size() - dims.size();
  for (size_t d = 0; d + 2 < dims.size(); ++d) {
    const kir::Index batch = Spread(kernel_.BatchIndex(static_cast<int>(before + d)), ExtentsOf(space_, dims[d]));
    for (size_t i = 0; i < dims[d].size(); ++i) point[dims[d][i]] = batch[i];
  }
  for (size_t i = 0; i < k_axes_.size(); ++i) point[k_axes_[i]] = at[i];
  for (size_t i = 0; i < column_axes_.size(); ++i) point[column_axes_[i]] = columns[i];
  expr_.MoveTo(std::move(point));
  return Factor(expr_.At(product.node().inputs[1]), product.node().results[0].dtype);
}

kir::ExprRef ComputedRight::Element(const Segment& segment, const kir::ExprRef& c, const kir::Index& at) {
  kir::Index columns = segment.outer;
  columns.push_back(c);
  return At(columns, at);
}

kir::ExprRef ComputedRight::Element(const kir::ExprRef& column, const kir::Index& at) {
  return At(Spread(column, columns_), at);
}

bool ComputedRight::RunsAlongK() {
  kir::Index columns(columns_.size(), kb::Int(0)), at(k_.size(), kb::Int(0));
  if (!columns.empty()) columns.back() = kb::Ref("c");
  at.back() = kb::Ref("k");
  bool along_k = false, along_columns = false;
  kir::ForEachExpr(At(columns, at), [&](const kir::ExprRef& node) {
    const auto* load = std::get_if<kir::Load>(&node->node);
    if (load == nullptr || load->index.empty()) return;
    const auto names = [&](const char* name) {
      return kir::AnyExpr(load->index.back(), [&](const kir::ExprRef& inner) { return kir::IsName(inner, name); });
    };
    along_k |= names("k") && !names("c");
    along_columns |= names("c");
  });
  return along_k && !along_columns;
}

}  // namespace quern::codegen
