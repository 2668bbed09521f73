#include "codegen/lines_plan.h"

#include <algorithm>

#include "codegen/families.h"
#include "family/work.h"

namespace quern::codegen {
namespace {

using family::AxisSpace;
using family::No;
using family::RegionView;
using ir::OpKind;
using ir::Value;

bool IsRoot(const ir::Node& node) { return IsLineOp(node) || node.op->kind == OpKind::kPack; }

// By axis of the space: whether lines run along it, which the first root says.
std::vector<bool> AlongOf(const AxisSpace& space, const ir::Node& root) {
  const AxisSpace::Place& place = *space.Find(root.inputs[0]);
  const int rank = static_cast<int>(place.dims.size());
  std::vector<bool> dims(rank);
  if (IsLineOp(root)) {
    dims = root.op->line->axes(root, rank);
  } else {
    dims[rank - 1] = true;  // packed row by row
  }
  std::vector<bool> along(space.extents().size());
  for (int d = 0; d < rank; ++d) {
    for (const int axis : place.dims[d]) along[axis] = dims[d];
  }
  return along;
}

class LinesMatcher {
 public:
  explicit LinesMatcher(const RegionView& view) : view_(view), depends_(view.DependsOn(IsLineOp)) {}

  family::Matched Match() {
    int first = -1;  // a fold or scan rather than a pack, which takes the last dimension whatever they do
    for (const int n : view_.nodes()) {
      const ir::Node& node = view_.node(n);
      if (IsRoot(node) && (first < 0 || (IsLineOp(node) && !IsLineOp(view_.node(first))))) first = n;
    }
    const ir::Node& root = view_.node(first);
    plan_ = std::make_unique<LinesPlan>(AxisSpace(view_, root.inputs[0]));
    if (!plan_->space.consistent()) return No("%s meets itself along another axis", view_.Describe(first));
    plan_->axes = plan_->space.Find(root.inputs[0])->Axes();
    plan_->along = AlongOf(plan_->space, root);
    SplitAxes();
    for (const int n : view_.nodes()) QUERN_RETURN_IF_ERROR(MatchNode(n));
    for (const Value& result : view_.results()) QUERN_RETURN_IF_ERROR(MatchResult(result));
    QUERN_RETURN_IF_ERROR(MatchLevels());
    QUERN_RETURN_IF_ERROR(NoWorkTwice());
    plan_->space.Merge(plan_->along);
    plan_->axes = plan_->space.Find(root.inputs[0])->Axes();
    plan_->along = AlongOf(plan_->space, root);
    SplitAxes();
    for (const int n : view_.nodes()) {
      if (plan_->line.size() > 1 &&
          (!IsLineOp(view_.node(n)) ? IsRoot(view_.node(n)) : view_.node(n).op->line->scan != nullptr))
        return No("%s runs along one dimension", view_.Describe(n));
    }
    return family::Matched(std::move(plan_));
  }

 private:
  void SplitAxes() {
    plan_->kept.clear();
    plan_->line.clear();
    for (const int axis : plan_->axes) (plan_->along[axis] ? plan_->line : plan_->kept).push_back(axis);
  }

  Status MatchNode(int n) {
    const ir::Node& node = view_.node(n);
    if (IsRoot(node)) {
      const AxisSpace::Place* place = plan_->space.Find(node.inputs[0]);
      if (place == nullptr || place->Axes() != plan_->axes || AlongOf(plan_->space, node) != plan_->along)
        return No("%s runs along other lines", view_.Describe(n));
      if (!IsLineOp(node) && view_.IsReadInside(n)) return No("%s ends a program over lines", view_.Describe(n));
      return absl::OkStatus();
    }
    if (node.op->pieces != nullptr) return No("%s is made of pieces", view_.Describe(n));
    if (node.op->kind != OpKind::kElementwise && node.op->kind != OpKind::kIndex)
      return No("%s is not elementwise", view_.Describe(n));
    if (view_.DecodesBlocks(node)) return No("%s decodes whole rows by itself", view_.Describe(n));
    const AxisSpace::Place* place = plan_->space.Find({n, 0});
    if (!depends_[view_.set().Position(n)]) return absl::OkStatus();
    if (place == nullptr || !plan_->space.Relates(n))
      return No("%s comes after a reduction and is not elementwise", view_.Describe(n));
    for (const int axis : place->Axes()) {
      if (std::find(plan_->axes.begin(), plan_->axes.end(), axis) == plan_->axes.end())
        return No("%s has other elements than the lines", view_.Describe(n));
    }
    return absl::OkStatus();
  }

  Status MatchResult(Value result) {
    if (plan_->IsLine(result) || plan_->IsKept(result)) return absl::OkStatus();
    return No("the result %s is neither a line nor one element a line", view_.Describe(result.node));
  }

  // What depends on a scan is known only where the scan has come by.
  Status MatchLevels() {
    plan_->level.assign(view_.graph.nodes().size(), 0);
    std::vector<bool> scanned(view_.nodes().size());
    int scan = -1;
    for (size_t i = 0; i < view_.nodes().size(); ++i) {
      const int n = view_.nodes()[i];
      const ir::Node& node = view_.node(n);
      for (const Value& input : node.inputs) {
        const int at = view_.set().Position(input.node);
        if (at < 0) continue;
        plan_->level[n] = std::max(plan_->level[n], plan_->level[input.node]);
        scanned[i] = scanned[i] || scanned[at];
      }
      if (!IsLineOp(node)) continue;
      if (node.op->line->scan == nullptr) {
        if (scanned[i]) return No("%s needs whole lines that a scan makes", view_.Describe(n));
        ++plan_->level[n];
        continue;
      }
      scanned[i] = true;
      if (scan >= 0 && view_.node(scan).op->line->scan(view_.node(scan)).reverse != node.op->line->scan(node).reverse)
        return No("%s runs the other way than %s", view_.Describe(n), view_.Describe(scan));
      scan = n;
    }
    return absl::OkStatus();
  }

  // One element a line is computed once, by name; so is what varies along a part of a line.
  Status NoWorkTwice() const {
    std::vector<bool> named(view_.nodes().size());
    for (size_t i = 0; i < named.size(); ++i) named[i] = depends_[i] && !plan_->IsLine({view_.nodes()[i], 0});
    return family::NoWorkTwice(view_, named);
  }

  const RegionView& view_;
  const std::vector<bool> depends_;
  std::unique_ptr<LinesPlan> plan_;
};

}  // namespace

bool LinesPlan::IsLine(Value value) const {
  const AxisSpace::Place* place = space.Find(value);
  return place != nullptr && place->Axes() == axes;
}

bool LinesPlan::IsKept(Value value) const {
  const AxisSpace::Place* place = space.Find(value);
  return place != nullptr && place->Axes() == kept && kept.size() < axes.size();
}

std::vector<Extent> LinesPlan::ExtentsOf(const std::vector<int>& of) const {
  std::vector<Extent> extents;
  for (const int axis : of) extents.push_back(space.extents()[axis]);
  return extents;
}

Extent LinesPlan::LineElements() const {
  Extent product(1);
  for (const Extent& extent : ExtentsOf(line)) product = product * extent;
  return product;
}

family::Matched MatchLines(const RegionView& view) { return LinesMatcher(view).Match(); }

}  // namespace quern::codegen
