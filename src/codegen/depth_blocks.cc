#include "codegen/depth_blocks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/loops.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

std::string BlockName(size_t axis) { return absl::StrCat("k", axis); }

}  // namespace

DepthBlocks::DepthBlocks(std::vector<Extent> k, Limits limits) : k_(std::move(k)), cut_(k_.size()) {
  Extent all(1);
  for (const Extent& extent : k_) all = all * extent;
  if (all.is_constant() && all.constant() <= limits.whole) {
    inner_ = all;
    return;
  }
  while (cut_ > 0) {
    const Extent longer = inner_ * k_[--cut_];
    if (!longer.is_constant() || longer.constant() > limits.block || cut_ == 0) break;
    inner_ = longer;
  }
  step_ = std::max<int64_t>(1, limits.block / inner_.constant());
  if (k_[cut_].is_constant()) step_ = std::min(step_, k_[cut_].constant());
}

bool DepthBlocks::AreMultiplesOf(int64_t count) const {
  if (whole()) return IsMultiple(Most(), count);
  return IsMultiple(Most(), count) && IsMultiple(inner_ * k_[cut_], count);
}

bool DepthBlocks::HasWholeBlocks() const { return !whole() && IsMultiple(k_[cut_], step_); }

kir::Block DepthBlocks::Over(kir::Block body, const kir::ExprRef& first, const kir::ExprRef& end) const {
  if (Step() > 0 && end != nullptr) {
    if (!HasWholeBlocks()) return {kb::For(BlockName(0), first, end, std::move(body), step_)};
    // That whole blocks end inside of k follows from their number.
    body.insert(body.begin(), kb::Let(BlockName(0), kb::Ref("b0") * static_cast<double>(step_)));
    return {kb::For("b0", first, end, std::move(body))};
  }
  for (size_t axis = whole() ? 0 : cut_ + 1; axis-- > 0;) {
    body = {kb::For(BlockName(axis), kb::Int(0), kb::FromExtent(k_[axis]), std::move(body), axis == cut_ ? step_ : 1)};
  }
  return body;
}

kir::ExprRef DepthBlocks::First() const {
  kir::ExprRef first = kb::Int(0);
  for (size_t axis = 0; !whole() && axis <= cut_; ++axis)
    first = first * kb::FromExtent(k_[axis]) + kb::Ref(BlockName(axis));
  return first * kb::FromExtent(inner_);
}

kir::ExprRef DepthBlocks::Count() const {
  if (whole()) {
    Extent all(1);
    for (const Extent& extent : k_) all = all * extent;
    return kb::FromExtent(all);
  }
  const kir::ExprRef left = kb::FromExtent(k_[cut_]) - kb::Ref(BlockName(cut_));
  return (HasWholeBlocks() ? kb::Int(step_) : kb::Min(left, kb::Int(step_))) * kb::FromExtent(inner_);
}

DepthBlocks::Elements DepthBlocks::Inside() const {
  Elements inside;
  const size_t first = whole() ? 0 : cut_;
  inside.k = kb::Int(0);
  for (size_t axis = 0; axis < k_.size(); ++axis) {
    const kir::ExprRef block = kb::Ref(BlockName(axis)), end = kb::FromExtent(k_[axis]);
    if (axis < first) {
      inside.at.push_back(block);
      continue;
    }
    const std::string name = absl::StrCat("d", axis);
    const bool cut = !whole() && axis == first;
    inside.at.push_back(kb::Ref(name));
    inside.k = cut ? kb::Ref(name) - block : inside.k * end + kb::Ref(name);
    inside.loops.push_back(
        {name, cut ? block : kb::Int(0), cut ? kb::Min(block + static_cast<double>(step_), end) : end});
  }
  return inside;
}

kir::Block DepthBlocks::Elements::Around(size_t first, size_t end, kir::Block body) const {
  for (size_t i = end; i-- > first;) body = {kb::For(loops[i].name, loops[i].low, loops[i].high, std::move(body))};
  return body;
}

}  // namespace quern::codegen
