// The map family: every result element is an expression of elements of the operands.
//
//   grid i0 in 0..SEQ {
//     vec c in 0..256 { y0[i0, c] = x0[i0, c] * sigmoid(x0[i0, c]) * w1[c] }
//   }
// Dimensions that nothing needs apart are one; a join (Concat, Pad) is a loop for each of its pieces, so that no
// element asks which piece it lies in.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "codegen/families.h"
#include "codegen/loops.h"
#include "codegen/point_expr.h"
#include "codegen/turned.h"
#include "family/work.h"
#include "ir/shape.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using family::AxisSpace;
using family::No;

struct MapPlan : RegionPlan {
  explicit MapPlan(AxisSpace space) : space(std::move(space)) {}
  AxisSpace space;        // merged
  std::vector<int> axes;  // of the result
  int decoded = -1;       // the node that takes rows of a block-format table, or -1
};

// Rows of a block-format table go to scratch once each and are read from there, where they fit.
bool KeepsRows(const RegionView& view, const ir::Node& node, const ir::Value& result) {
  const ir::TensorType& table = view.type(node.inputs[0]);
  return table.rank() == 2 && node.results[0].dims == view.type(result).dims &&
         table.dims.back().constant() * ScalarBytes(DType::kF32) <= view.facts.scratch();
}

// The row that the ids pick, decoded.
void EmitRow(const RegionView& view, int n, KernelWriter& writer, PointExpr& expr, kir::Block& block) {
  const ir::Node& node = view.node(n);
  kir::Index row = expr.IndexOf({n, 0});
  row.pop_back();
  const int table = view.InputIndex(node.inputs[0]);
  const std::vector<Extent>& dims = view.type(node.inputs[0]).dims;
  const kir::ExprRef id = kb::CastTo(DType::kI64, expr.fused().Element(node.inputs[1], row));
  block.push_back(kb::Let("id", ir::IndexInside(id, kb::FromExtent(dims[0]))));
  block.push_back(kb::Alloc("row", {DType::kF32, {Extent(1), dims.back()}, kir::Layout::kRow}));
  block.push_back(
      kb::WithOrigin(kb::Pack(kb::Whole("row", 2),
                              kb::SliceOf(writer.Input(table), {kb::Range(kb::Ref("id"), kb::Int(1)), kb::All()})),
                     writer.Origin(n)));
}

// The values of a long region, each after what it is made of: from its results backwards they would be one inside of
// the other, deeper than a stack.
void ComputeInOrder(const RegionView& view, const AxisSpace& space, PointExpr& expr) {
  constexpr size_t kLong = 256;  // nodes
  if (view.nodes().size() <= kLong) return;
  for (const int n : view.nodes()) {
    const AxisSpace::Place* place = space.Find({n, 0});
    if (place != nullptr && !place->pinned && view.node(n).op->kind == ir::OpKind::kElementwise) expr.At({n, 0});
  }
}

// The order of the loops where rows are short and what is read has them in another order, heads or panels that are
// moved: that of what is read where its innermost loop over rows is the shorter one. A few places that are read or
// written by turns are so many streams, which caches foresee; many are not. What is near goes in order of the result.
std::vector<int> LoopOrder(const RegionView& view, const std::vector<Extent>& dims, const kir::Block& stores) {
  constexpr int64_t kShortRow = 256, kNear = 1 << 18;  // elements
  std::vector<int> given(dims.size());
  std::iota(given.begin(), given.end(), 0);
  if (dims.size() < 3 || view.UpperBound(dims.back()) > kShortRow) return given;
  if (BoundedElements(dims, view.ranges) <= kNear) return given;
  std::vector<int> order = given;
  bool several = false;
  for (const kir::StmtRef& store : stores) {
    kir::ForEachExpr(std::get<kir::Store>(store->node).value, [&](const kir::ExprRef& expr) {
      const auto* load = std::get_if<kir::Load>(&expr->node);
      if (load == nullptr || load->index.size() != dims.size()) return;
      std::vector<int> read;
      for (const kir::ExprRef& at : load->index) {
        const auto* name = std::get_if<kir::NameRef>(&at->node);
        for (size_t d = 0; name != nullptr && d < dims.size(); ++d) {
          if (std::get<kir::NameRef>(NestIndex(dims.size())[d]->node).name == name->name)
            read.push_back(static_cast<int>(d));
        }
      }
      const bool whole = std::is_permutation(read.begin(), read.end(), given.begin(), given.end());
      several = several || !whole || read.back() != given.back() || (order != given && order != read);
      order = read;
    });
  }
  const auto inner = [&](const std::vector<int>& of) { return view.UpperBound(dims[of[of.size() - 2]]); };
  return several || inner(order) >= inner(given) ? given : order;
}

}  // namespace

family::Matched MatchMap(const RegionView& view) {
  const std::vector<ir::Value>& results = view.results();
  // Pieces of a join are copied along their own rows, which a Transpose of it would have them go down.
  const bool joins = std::ranges::any_of(view.nodes(), [&](int n) { return view.node(n).op->pieces != nullptr; });
  auto plan = std::make_unique<MapPlan>(AxisSpace(view, results, /*given=*/-1, /*joins=*/true, /*turns=*/!joins));
  // What is added to its own transpose, say.
  if (!plan->space.consistent()) plan->space = AxisSpace(view, results);
  if (!plan->space.consistent()) return No("%s meets itself along another axis", view.Describe(results[0].node));
  for (const ir::Value& result : results) {
    const AxisSpace::Place* place = plan->space.Find(result);
    const bool whole = place != nullptr && place->part.empty();  // not what a piece of a join is made of
    if (whole && place->Axes() == plan->space.Find(results[0])->Axes()) continue;
    return No("the results differ in extents: %s is %s, %s is %s", view.Describe(results[0].node),
              view.type(results[0]).ToString(), view.Describe(result.node), view.type(result).ToString());
  }
  for (const int n : view.nodes()) {
    const ir::Node& node = view.node(n);
    if (node.op->pieces != nullptr && n != plan->space.joined() && view.nodes().size() > 1)
      return No("%s is made of pieces, which is cheap only at the place of the result", view.Describe(n));
    if (!view.DecodesBlocks(node)) continue;
    if (node.results[0].dims != view.type(results[0]).dims)
      return No("%s decodes whole rows, which is cheap only at the place of the result", view.Describe(n));
    if (plan->decoded < 0 && KeepsRows(view, node, results[0])) plan->decoded = n;
  }
  QUERN_RETURN_IF_ERROR(family::NoWorkTwice(view, std::vector<bool>(view.nodes().size())));
  plan->space.Merge(std::vector<bool>(plan->space.extents().size()));
  plan->axes = plan->space.Find(results[0])->Axes();
  return family::Matched(std::move(plan));
}

StatusOr<LoweredRegion> LowerMap(const RegionView& view, const RegionPlan& plan) {
  const auto& map = static_cast<const MapPlan&>(plan);
  const AxisSpace& space = map.space;
  KernelWriter writer(view, "map");
  PointExpr expr(view, space, writer);
  std::vector<int> axes = map.axes;  // in the order of the loops
  std::vector<Extent> dims;
  for (const int axis : axes) dims.push_back(space.extents()[axis]);
  std::vector<Ranges> boxes(std::max<size_t>(1, space.boxes().size()));
  for (size_t b = 0; b < space.boxes().size(); ++b) {
    for (size_t d = 0; d < map.axes.size(); ++d) {
      const auto range = space.boxes()[b].ranges.find(map.axes[d]);
      if (range != space.boxes()[b].ranges.end()) boxes[b][static_cast<int>(d)] = range->second;
    }
  }
  auto move_to = [&](size_t box, const kir::Index& index) {
    PointExpr::Point point(space.extents().size());
    for (size_t d = 0; d < axes.size(); ++d) point[axes[d]] = index[d];
    expr.MoveTo(std::move(point), space.boxes().empty() ? nullptr : &space.boxes()[box]);
  };
  auto before = [&](const kir::Index& index, kir::Block& block) {
    if (map.decoded < 0) return;
    move_to(0, index);
    EmitRow(view, map.decoded, writer, expr, block);
  };
  if (map.decoded >= 0)
    expr.ProvideAtDims({map.decoded, 0},
                       [](const kir::Index& at) { return kb::At("row", DType::kF32, {kb::Int(0), at.back()}); });
  auto element = [&](size_t box, const kir::Index& index, kir::Block& block) {
    move_to(box, index);
    if (space.boxes().empty()) ComputeInOrder(view, space, expr);
    for (size_t o = 0; o < view.results().size(); ++o) {
      block.push_back(expr.StoreResult(static_cast<int>(o)));
    }
  };
  if (map.decoded >= 0 || !space.boxes().empty()) {
    EmitElements(view, writer.kernel, dims, boxes, element, before);
    return writer.FinishRegion();
  }
  kir::Block stores;
  element(0, NestIndex(dims.size()), stores);
  if (const std::optional<TurnedAxes> turned = FindTurnedAxes(view, dims, stores)) {
    EmitTurned(view, writer.kernel, dims, *turned, stores);
  } else {
    const std::vector<int> order = LoopOrder(view, dims, stores);
    for (size_t d = 0; d < order.size(); ++d) {
      axes[d] = map.axes[order[d]];
      dims[d] = space.extents()[axes[d]];
    }
    stores.clear();
    element(0, NestIndex(dims.size()), stores);
    EmitElements(view, writer.kernel, dims, boxes,
                 [&](size_t, const kir::Index&, kir::Block& block) { block = std::move(stores); });
  }
  return writer.FinishRegion();
}

}  // namespace quern::codegen
