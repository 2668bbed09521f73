// PointExpr: the KIR expressions of a region's values at one point of their axis space, an index for each axis. Values
// that the space relates are computed there whatever the extents of their dimensions; what is behind an index map is a
// FusedExpr.
//
// Buffers of the space are declared with its axes for dimensions:
//   grid i in 0..16 { vec j in 0..25088 { y0[i, j] = x0[i, j] * s } }        x0 : f32[2, 64, 56, 56] as f32[16, 25088]
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "codegen/kernel_writer.h"
#include "family/axis_space.h"

namespace quern::codegen {

class PointExpr {
 public:
  using Point = std::vector<kir::ExprRef>;  // by axis
  using Source = std::function<kir::ExprRef(const Point& point)>;

  // Declares the inputs of `writer`'s kernel with the axes of `space`. All three outlive this.
  PointExpr(const RegionView& view, const family::AxisSpace& space, KernelWriter& writer);

  // The point from here on, and the box of a join that it is in.
  void MoveTo(Point point, const family::AxisSpace::Box* box = nullptr);
  const Point& point() const { return point_; }
  // Declares `value` as given. Replaces an earlier declaration.
  void Provide(ir::Value value, Source source);
  // The same at an index of the value's dimensions, for index maps that read it too.
  void ProvideAtDims(ir::Value value, std::function<kir::ExprRef(const kir::Index& at)> source);
  // For values that are read at an index of their dimensions; and that index of the point.
  FusedExpr& fused() { return fused_; }
  kir::Index IndexOf(ir::Value value) const { return Dims(*space_.Find(value)); }

  // The element of `value` at the point, in the value's own dtype.
  kir::ExprRef At(ir::Value value);
  // Names result `output` and says where its element at the point lies there.
  std::pair<std::string, kir::Index> ResultAt(int output);
  // The statement that stores it there.
  kir::StmtRef StoreResult(int output);

 private:
  class Context;
  kir::ExprRef Compute(ir::Value value);
  // The point in the extents of the value's dimensions.
  kir::Index Dims(const family::AxisSpace::Place& place) const;
  kir::Index Axes(const family::AxisSpace::Place& place) const;

  const RegionView& view_;
  const family::AxisSpace& space_;
  KernelWriter& writer_;
  FusedExpr fused_;
  std::map<ir::Value, Source> sources_;
  std::map<ir::Value, kir::ExprRef> made_;  // at the point
  Point point_;
  const family::AxisSpace::Box* box_ = nullptr;
};

}  // namespace quern::codegen
