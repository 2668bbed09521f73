#include "codegen/turned_loads.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/loops.h"
#include "kir/canonical.h"
#include "kir/rewrite.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr int64_t kWidth = 32;   // elements of a run of the result that one pack transposes
constexpr int64_t kSquares = 4;  // beside each other, where they are whole: longer runs of what is written
constexpr int64_t kDepth = 32;   // runs of a square
constexpr int64_t kLeast = 8;    // along either side: below that a gather reads few lines anyway

const char kColumn[] = "c";

bool IsName(const kir::ExprRef& expr, const std::string& name) {
  const auto* ref = std::get_if<kir::NameRef>(&expr->node);
  return ref != nullptr && ref->name == name;
}

bool Names(const kir::ExprRef& expr, const std::string& name) {
  bool found = false;
  kir::ForEachExpr(expr, [&](const kir::ExprRef& node) { found |= IsName(node, name); });
  return found;
}

// What is added to the name in `expr`: 0 where it is the name itself; null for any other form.
kir::ExprRef Beside(const kir::ExprRef& expr, const std::string& name) {
  if (IsName(expr, name)) return kb::Int(0);
  const auto* apply = std::get_if<kir::Apply>(&expr->node);
  if (apply == nullptr || apply->op != kir::Op::kAdd) return nullptr;
  for (const int side : {0, 1}) {
    if (IsName(apply->args[side], name) && !Names(apply->args[1 - side], name)) return apply->args[1 - side];
  }
  return nullptr;
}

bool IsMultiple(const Extent& extent, int64_t of) { return extent.is_constant() && extent.constant() % of == 0; }

// Of `step` elements from `start` those that exist.
kir::ExprRef Live(const Extent& extent, const kir::ExprRef& start, int64_t step) {
  if (IsMultiple(extent, step)) return kb::Int(step);
  return kb::Min(kb::FromExtent(extent) - start, kb::Int(step));
}

std::string NameOf(int axis) { return absl::StrCat("i", axis); }

// The dimension of a load's buffer that the column runs down, where its last one is along `axis`; -1 for other loads.
int TurnedDim(const kir::Load& load, const std::string& axis) {
  if (load.index.size() < 2 || load.otherwise != nullptr) return -1;
  const kir::ExprRef along = Beside(load.index.back(), axis);
  if (along == nullptr || Names(along, kColumn)) return -1;
  int dim = -1;
  for (size_t d = 0; d + 1 < load.index.size(); ++d) {
    if (Names(load.index[d], axis)) return -1;
    if (!Names(load.index[d], kColumn)) continue;
    if (dim >= 0 || Beside(load.index[d], kColumn) == nullptr) return -1;
    dim = static_cast<int>(d);
  }
  return dim;
}

// Loads of one square that are transposed by packs, each once.
std::vector<kir::ExprRef> Packed(const kir::Block& body, const std::string& axis) {
  std::vector<kir::ExprRef> found;
  kir::ForEachExpr(body, [&](const kir::ExprRef& node) {
    const auto* load = std::get_if<kir::Load>(&node->node);
    if (load == nullptr || TurnedDim(*load, axis) < 0) return;
    if (node->dtype != DType::kF32 && node->dtype != DType::kF16) return;
    if (std::none_of(found.begin(), found.end(), [&](const kir::ExprRef& other) { return kir::Same(node, other); }))
      found.push_back(node);
  });
  return found;
}

}  // namespace

std::optional<int> TurnedAxis(const RegionView& view, const std::vector<Extent>& dims, const kir::Block& body) {
  const int last = static_cast<int>(dims.size()) - 1;
  if (last < 1 || view.facts.blocks || view.UpperBound(dims[last]) < kLeast) return std::nullopt;
  std::optional<int> axis;
  kir::ForEachExpr(body, [&](const kir::ExprRef& node) {
    const auto* load = std::get_if<kir::Load>(&node->node);
    for (int d = 0; load != nullptr && !axis && d < last; ++d) {
      if (view.UpperBound(dims[d]) >= kLeast && TurnedDim(*load, NameOf(d)) >= 0) axis = d;
    }
  });
  return axis;
}

void EmitSquares(const RegionView& view, kir::Kernel& kernel, const std::vector<Extent>& dims, int axis,
                 const kir::Block& body) {
  const int last = static_cast<int>(dims.size()) - 1;
  const std::string along = NameOf(axis);
  const kir::ExprRef u0 = kb::Ref("u0"), l0 = kb::Ref("l0"), zero = kb::Int(0), high = kb::FromExtent(dims[axis]),
                     end = kb::FromExtent(dims[last]), runs = Live(dims[axis], u0, kDepth);
  const std::vector<kir::ExprRef> loads = Packed(body, along);
  const bool beside = !loads.empty() && IsMultiple(dims[last], kSquares * kWidth);
  const int64_t across = beside ? kSquares : 1;
  kir::Block block, row;
  for (int64_t s = 0; s < across; ++s) {
    const kir::ExprRef start = l0 + static_cast<double>(s * kWidth),
                       width = across > 1 ? kb::Int(kWidth) : Live(dims[last], l0, kWidth);
    const auto name = [&](size_t n) { return absl::StrCat("q", n * across + s); };
    for (size_t n = 0; n < loads.size(); ++n) {
      const auto& load = std::get<kir::Load>(loads[n]->node);
      const int down = TurnedDim(load, along);
      std::vector<kir::SliceDim> from;
      for (size_t d = 0; d + 1 < load.index.size(); ++d) {
        from.push_back(static_cast<int>(d) == down ? kb::Range(start + Beside(load.index[d], kColumn), width)
                                                   : kb::Point(load.index[d]));
      }
      from.push_back(kb::Range(u0 + Beside(load.index.back(), along), runs));
      block.push_back(kb::Alloc(name(n), {DType::kF32, {Extent(kWidth), Extent(kDepth)}, kir::Layout::kKn32}));
      block.push_back(kb::Pack(kb::SliceOf(name(n), {kb::Range(zero, kb::Int(kWidth)), kb::Range(zero, runs)}),
                               kb::SliceOf(load.buffer, std::move(from))));
    }
    kir::Block inner = kir::Rewrite(body, [&](const kir::ExprRef& node) -> kir::ExprRef {
      if (!std::holds_alternative<kir::Load>(node->node)) return nullptr;
      for (size_t n = 0; n < loads.size(); ++n) {
        if (!kir::Same(node, loads[n])) continue;
        return kb::CastTo(node->dtype, kb::At(name(n), DType::kF32, {kb::Ref(kColumn) - start, kb::Ref(along) - u0}));
      }
      return nullptr;
    });
    row.push_back(kb::Vec(kColumn, start, start + width, std::move(inner)));
  }
  block.push_back(kb::For(along, u0, u0 + runs, std::move(row)));
  int outer = -1;
  for (int d = last; d-- > 0;) {
    if (d == axis) continue;
    if (d == (axis == 0 ? 1 : 0))
      outer = d;
    else
      block = {kb::For(NameOf(d), zero, kb::FromExtent(dims[d]), std::move(block))};
  }
  if (outer >= 0) kernel.grid.push_back({NameOf(outer), zero, kb::FromExtent(dims[outer]), 1});
  kernel.grid.push_back({"u0", zero, high, kDepth});
  kernel.grid.push_back({"l0", zero, end, across * kWidth});
  kernel.body = std::move(block);
  kernel.sequential = BoundedElements(dims, view.ranges) <= kSequentialElements;
}

}  // namespace quern::codegen
