#include "codegen/product_space.h"

#include <algorithm>
#include <array>
#include <map>

#include "codegen/matmul_plan.h"
#include "family/work.h"
#include "ir/product.h"

namespace quern::codegen {
namespace {

using family::AxisSpace;
using family::No;
using family::RegionView;
using ir::OpKind;
using ir::Value;

bool IsOne(const Extent& dim) { return dim == Extent(1); }

int RootOf(const RegionView& view) {
  return *std::find_if(view.nodes().begin(), view.nodes().end(), [&](int n) { return IsProduct(view.node(n)); });
}

// What costs as much as a load: it may be done once for each block of rows that reads the element.
bool IsCheap(const ir::Node& node) { return node.op->kind == OpKind::kIndex || ir::IsCast(node); }

}  // namespace

ProductSpace::ProductSpace(const RegionView& view)
    : view_(view),
      root_(RootOf(view)),
      node_(view.node(root_)),
      in_panels_(ir::ReadsPanels(node_)),
      transposed_(!in_panels_ && node_.attributes.Bool("transpose_b")),
      picked_(FindPicked()),
      rows_(node_.results[0].dims[node_.results[0].dims.size() - 2]),
      columns_(node_.results[0].dims.back()),
      k_(type(0).dims.back()),
      results_(view, {root_, 0}, root_, /*joins=*/false) {
  joined_ = JoinRows();
  if (!joined_) {
    results_.PinAt({root_, 0});
    results_.Merge(std::vector<bool>(results_.extents().size()));
  }
  const std::vector<std::vector<int>>& dims = results_.Find({root_, 0})->dims;
  const size_t leading = dims.size() - 2;
  std::vector<int> rows = dims[leading];
  for (size_t d = leading; d-- > 0;) {
    std::vector<int>& to = joined_ ? rows : batch_axes_;
    to.insert(to.begin(), dims[d].begin(), dims[d].end());
  }
  const std::vector<int>& columns = dims[leading + 1];
  one_axis_each_ = rows.size() <= 1 && columns.size() <= 1;
  if (!rows.empty()) row_axis_ = rows[0];
  if (!columns.empty()) column_axis_ = columns[0];
  if (joined_) rows_ = rows.empty() ? Extent(1) : results_.extents()[row_axis_];
  if (InMemory(1)) return;
  computed_.emplace(view, node_.inputs[1], /*given=*/-1, /*joins=*/false);
  computed_->PinAt(node_.inputs[1]);
  computed_->Merge(std::vector<bool>(computed_->extents().size()));
}

std::optional<ProductSpace::Picked> ProductSpace::FindPicked() const {
  const Value right = node_.inputs[1];
  const ir::Node& picks = view_.node(right.node);
  const std::vector<Extent>& dims = node_.results[0].dims;
  if (!view_.Has(right.node) || !ir::PicksSlices(view_.graph, picks)) return std::nullopt;
  if (view_.type(right).rank() != static_cast<int>(dims.size()) || view_.type(right).dims[0] != dims[0])
    return std::nullopt;
  if (view_.Has(picks.inputs[0].node) || view_.Has(picks.inputs[1].node)) return std::nullopt;
  if (view_.type(picks.inputs[0]).dtype != dtype(1)) return std::nullopt;  // blocks, which are decoded
  // Only forms for these read slices where they lie.
  if (view_.facts.blocks || !IsOfShortFloats()) return std::nullopt;
  return Picked{picks.inputs[0], picks.inputs[1]};
}

// A right side that all batches share makes their rows one matrix's, where whatever else is read has an element for
// every row or the same for all.
bool ProductSpace::JoinRows() {
  const std::vector<Extent>&a = type(0).dims, &b = type(1).dims;
  const std::vector<Extent>& all = node_.results[0].dims;
  if (!InMemory(0) || !InMemory(1) || picked_) return false;
  if (!in_panels_ && !std::all_of(b.begin(), b.end() - 2, IsOne)) return false;
  if (a.size() != all.size() || !std::equal(a.begin(), a.end() - 1, all.begin())) return false;
  if (!results_.consistent()) return false;
  std::vector<bool> apart(results_.extents().size());
  for (const int axis : results_.Find({root_, 0})->dims.back()) apart[axis] = true;
  AxisSpace merged = results_;
  merged.Merge(apart);
  const std::vector<std::vector<int>>& dims = merged.Find({root_, 0})->dims;
  size_t rows = 0;
  for (size_t d = 0; d + 1 < dims.size(); ++d) rows += dims[d].size();
  if (rows > 1 || dims.back().size() > 1) return false;
  results_ = std::move(merged);
  return true;
}

std::vector<Extent> ProductSpace::batch() const {
  std::vector<Extent> extents;
  for (const int axis : batch_axes_) extents.push_back(results_.extents()[axis]);
  return extents;
}

bool ProductSpace::IsOfShortFloats() const {
  return ir::IsShortFloat(dtype(0)) && ir::IsShortFloat(dtype(1)) && ir::IsShortFloat(node_.results[0].dtype);
}

bool ProductSpace::IsOfDoubles() const {
  return dtype(0) == DType::kF64 && dtype(1) == DType::kF64 && node_.results[0].dtype == DType::kF64;
}

bool ProductSpace::IsOfBytes() const { return ir::IsByte(dtype(0)) && ir::IsByte(dtype(1)); }

bool ProductSpace::HasBuffers() const {
  return std::ranges::none_of(std::array{0, 1}, [&](int operand) { return view_.IsNumber(Source(operand)); });
}

std::vector<int> ProductSpace::BatchDims(int operand) const {
  if (operand == 1 && in_panels_) return {};
  const std::vector<Extent>& own = type(operand).dims;
  const size_t before = node_.results[0].dims.size() - own.size();
  std::vector<int> dims;
  for (size_t d = operand == 1 && picked_ ? 1 : 0; d + 2 < own.size() && !joined_; ++d) {
    if (!IsOne(own[d])) dims.push_back(static_cast<int>(before + d));
  }
  return dims;
}

std::vector<Extent> ProductSpace::MemoryDims(int operand) const {
  const std::vector<Extent>& own = type(operand).dims;
  if (joined_ && operand == 0) return {rows_, k_};
  if (operand == 1 && in_panels_) return {Extent(ir::kPanelColumns), own[0] * own[1]};
  std::vector<Extent> dims;
  if (operand == 1 && picked_) dims.push_back(view_.type(picked_->table).dims[0]);
  for (const int d : BatchDims(operand)) dims.push_back(node_.results[0].dims[d]);
  dims.insert(dims.end(), own.end() - 2, own.end());
  return dims;
}

Status ProductSpace::Check() const {
  if (!InMemory(0)) return No("the left side of a product without tile ops lies in memory");
  if (in_panels_ && (!InMemory(1) || !HasBuffers())) return No("panels of weights and what they meet lie in memory");
  if (!results_.consistent()) return No("%s meets itself along another axis", view_.Describe(root_));
  if (!one_axis_each_) return No("something differs along a part of the rows or columns of %s", view_.Describe(root_));
  QUERN_RETURN_IF_ERROR(CheckResults());
  return CheckInputs();
}

Status ProductSpace::CheckResults() const {
  const std::vector<bool> depends = view_.DependsOn(IsProduct);
  const std::vector<int> axes = results_.Find({root_, 0})->Axes();
  std::vector<bool> named(view_.nodes().size());
  for (size_t i = 0; i < view_.nodes().size(); ++i) {
    const int n = view_.nodes()[i];
    const ir::Node& node = view_.node(n);
    named[i] = depends[i];
    if (n == root_) continue;
    if (!depends[i]) {
      if (node.op->kind != OpKind::kElementwise && node.op->kind != OpKind::kIndex)
        return No("%s is not elementwise, and %s has no tile ops", view_.Describe(n), view_.Describe(root_));
      continue;
    }
    const AxisSpace::Place* place = results_.Find({n, 0});
    const bool related = place != nullptr && results_.Relates(n) && place->part.empty() && place->Axes() == axes;
    if (!related || (node.op->kind != OpKind::kElementwise && !ir::IsReshape(view_.graph, node)))
      return No("%s is not elementwise over the product", view_.Describe(n));
  }
  for (const Value& result : view_.results()) {
    if (!depends[view_.set().Position(result.node)])
      return No("%s is used outside and is no result of the product", view_.Describe(result.node));
  }
  QUERN_RETURN_IF_ERROR(CheckComputed(depends));
  return family::NoWorkTwice(view_, named, /*own_operands=*/true);
}

// A right side that is computed on the way, for nothing else.
Status ProductSpace::CheckComputed(const std::vector<bool>& depends) const {
  if (!computed_) return absl::OkStatus();
  if (transposed_) return No("rows of a right side lie in memory");
  if (!computed_->consistent()) return No("%s meets itself along another axis", view_.Describe(node_.inputs[1].node));
  std::vector<int> open = {node_.inputs[1].node};
  std::vector<bool> seen(view_.nodes().size());
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    const int at = view_.set().Position(n);
    if (at < 0 || seen[at]) continue;
    seen[at] = true;
    if (!IsCheap(view_.node(n))) return No("%s would be computed for every block of rows", view_.Describe(n));
    if (view_.DecodesBlocks(view_.node(n))) return No("%s decodes whole rows by itself", view_.Describe(n));
    for (const Value& input : view_.node(n).inputs) open.push_back(input.node);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    const int n = view_.nodes()[i];
    if (!seen[i]) continue;
    for (const auto& [user, operand] : view_.users(n)) {
      const int at = view_.set().Position(user);
      if (at >= 0 && !depends[at] && seen[at]) continue;
      if (user == root_ && operand == 1) continue;
      return No("%s is also used by %s", view_.Describe(n), view_.Describe(user));
    }
  }
  return absl::OkStatus();
}

// A buffer has the same extents for all that read it.
Status ProductSpace::CheckInputs() const {
  std::map<Value, std::vector<Extent>> declared;
  const auto declare = [&](Value value, const std::vector<Extent>& dims) -> Status {
    const auto [entry, fresh] = declared.emplace(value, dims);
    if (fresh || entry->second == dims) return absl::OkStatus();
    return No("%s is read in two ways", view_.Describe(value.node));
  };
  for (const int operand : {0, 1}) {
    if (InMemory(operand)) QUERN_RETURN_IF_ERROR(declare(Source(operand), MemoryDims(operand)));
  }
  if (picked_) QUERN_RETURN_IF_ERROR(declare(picked_->index, view_.type(picked_->index).dims));
  std::vector<int> under;  // Reshapes between what lies in memory and the product
  for (const int operand : {0, 1}) {
    Value value = node_.inputs[operand];
    for (; InMemory(operand) && view_.Has(value.node); value = view_.node(value.node).inputs[0]) {
      const auto users = view_.users(value.node);
      if (users.size() > 1) return No("%s is read by others too", view_.Describe(value.node));
      under.push_back(value.node);
    }
  }
  for (const int n : view_.nodes()) {
    if (n == root_ || std::find(under.begin(), under.end(), n) != under.end()) continue;
    for (const Value& input : view_.node(n).inputs) {
      if (view_.Has(input.node) || view_.IsNumber(input)) continue;
      bool moved = false;
      for (const AxisSpace* space : {&results_, computed_ ? &*computed_ : nullptr}) {
        const AxisSpace::Place* place = space == nullptr ? nullptr : space->Find(input);
        if (place == nullptr || place->pinned) continue;
        QUERN_RETURN_IF_ERROR(declare(input, space->ExtentsOf(*place)));
        moved = true;
      }
      if (!moved) QUERN_RETURN_IF_ERROR(declare(input, view_.type(input).dims));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::codegen
