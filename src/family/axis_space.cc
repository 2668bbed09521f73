#include "family/axis_space.h"

#include <algorithm>
#include <set>
#include <type_traits>

#include "ir/spelled_out.h"

namespace quern::family {
namespace {

using ir::OpKind;
using ir::Value;

bool IsOne(const Extent& extent) { return extent == Extent(1); }

bool HasNoElements(const ir::TensorType& type) {
  return std::any_of(type.dims.begin(), type.dims.end(), [](const Extent& extent) { return extent == Extent(0); });
}

}  // namespace

std::vector<int> AxisSpace::Place::Axes() const {
  std::vector<int> axes;
  for (const std::vector<int>& dim : dims) axes.insert(axes.end(), dim.begin(), dim.end());
  return axes;
}

AxisSpace::AxisSpace(const RegionView& view, std::span<const Value> seeds, int given, bool joins, bool turns)
    : view_(&view), crossing_(view.nodes().size()), joins_(joins), turns_(turns) {
  Lists dims;
  for (const Extent& extent : view.type(seeds[0]).dims) {
    dims.push_back(IsOne(extent) ? std::vector<int>{} : std::vector<int>{Fresh(extent)});
  }
  Assign(seeds[0], std::move(dims));
  Spread();
  for (const Value& seed : seeds.subspan(1)) {
    const Place& first = places_.at(seeds[0]);
    if (places_.contains(seed) || !first.part.empty() || view.type(seed).dims != view.type(seeds[0]).dims) continue;
    Assign(seed, first.dims);
    Spread();
  }
  CheckConsistent();
  Pin(given);
}

// What follows from the places that are new.
void AxisSpace::Spread() {
  while (!open_.empty()) {
    const Value value = open_.back();
    open_.pop_back();
    if (view_->Has(value.node)) Relate(value.node);
    for (const auto& [user, operand] : view_->users(value.node)) {
      if (view_->Has(user) && view_->node(user).inputs[operand] == value) Relate(user);
    }
  }
}

std::vector<Extent> AxisSpace::ExtentsOf(const Place& place) const {
  std::vector<Extent> extents;
  for (const int axis : place.Axes()) {
    const auto part = place.part.find(axis);
    extents.push_back(part == place.part.end() ? extents_[axis] : part->second);
  }
  return extents;
}

const AxisSpace::Place* AxisSpace::Find(Value value) const {
  const auto found = places_.find(value);
  return found == places_.end() ? nullptr : &found->second;
}

bool AxisSpace::Turns(int n) const { return turns_ && ir::PermutationOf(view_->node(n)) != nullptr; }

bool AxisSpace::Relates(int n) const {
  const ir::Node& node = view_->node(n);
  if (ir::IsReshape(view_->graph, node) || Turns(n)) return !crossing_[view_->set().Position(n)];
  if (node.op->pieces != nullptr) return n == joined_;
  return node.op->kind == OpKind::kElementwise || node.op->kind == OpKind::kPack || node.op->broadcasts ||
         node.op->line != nullptr;
}

void AxisSpace::Relate(int n) {
  if (joins_ && view_->node(n).op->pieces != nullptr && joined_ < 0) RelatePieces(n);
  if (!Relates(n)) return;
  if (view_->node(n).op->line != nullptr) {
    RelateLine(n);
  } else if (ir::IsReshape(view_->graph, view_->node(n))) {
    RelateReshape(n);
  } else if (Turns(n)) {
    RelateTranspose(n);
  } else if (view_->node(n).op->pieces == nullptr) {
    RelateElementwise(n);
  }
}

// Dimensions line up from the right; those of 1 have no axes.
void AxisSpace::RelateElementwise(int n) {
  const ir::Node& node = view_->node(n);
  const std::vector<Extent>& result = node.results[0].dims;
  Lists dims(result.size());
  if (const Place* place = Find({n, 0})) {
    dims = place->dims;
  } else {
    for (size_t d = 0; d < result.size(); ++d) {
      for (const Value& input : node.inputs) {
        const std::vector<Extent>& own = view_->type(input).dims;
        const Place* place = Find(input);
        if (place == nullptr || own.size() + d < result.size()) continue;
        const size_t at = own.size() + d - result.size();
        if (own[at] == result[d] && dims[d].empty()) dims[d] = place->dims[at];
      }
      if (dims[d].empty() && !IsOne(result[d])) dims[d] = {Fresh(result[d])};
    }
    std::map<int, Extent> part;
    for (const Value& input : node.inputs) {
      if (const Place* place = Find(input)) part.insert(place->part.begin(), place->part.end());
    }
    Assign({n, 0}, dims, std::move(part));
  }
  for (const Value& input : node.inputs) {
    const Place* place = Find({n, 0});
    const std::vector<Extent>& own = view_->type(input).dims;
    Lists lists(own.size());
    for (size_t d = 0; d < own.size(); ++d) {
      if (!IsOne(own[d])) lists[d] = place->dims[result.size() - own.size() + d];
    }
    Assign(input, std::move(lists), place->part);
  }
}

void AxisSpace::RelateReshape(int n) {
  const Value x = view_->node(n).inputs[0], y = {n, 0};
  const Place *from = Find(x), *to = Find(y);
  bool fits = true;
  if (HasNoElements(view_->type(x))) {
    fits = false;  // an extent of 0 is any multiple of any other: nothing says which axis is a part of which
  } else if (from != nullptr && to != nullptr) {
    fits = Unite(from->Axes(), to->Axes());
  } else {
    const Value missing = from == nullptr ? x : y;
    Lists dims;
    fits = Cut((from == nullptr ? to : from)->Axes(), view_->type(missing).dims, &dims);
    if (fits) Assign(missing, std::move(dims));
  }
  if (!fits) crossing_[view_->set().Position(n)] = true;
}

// From the result alone: what else reads the operand may have it in another order.
void AxisSpace::RelateTranspose(int n) {
  const ir::Node& node = view_->node(n);
  const Place* place = Find({n, 0});
  if (place == nullptr) return;
  const std::vector<int64_t>& perm = *ir::PermutationOf(node);
  Lists dims(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) dims[perm[d]] = place->dims[d];
  const Place* operand = Find(node.inputs[0]);
  if (operand != nullptr && operand->dims != dims) {
    crossing_[view_->set().Position(n)] = true;
  } else {
    Assign(node.inputs[0], std::move(dims), place->part);
  }
}

// Results have the axes of the operand, or those that are kept.
void AxisSpace::RelateLine(int n) {
  const ir::Node& node = view_->node(n);
  const Value x = node.inputs[0];
  const int rank = view_->type(x).rank();
  const std::vector<bool> along = node.op->line->axes(node, rank);
  Lists dims(rank);
  if (const Place* place = Find(x)) {
    dims = place->dims;
  } else {
    // From a result: axes that it keeps are known, the others are new.
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r) {
      const Place* result = Find({n, r});
      if (result == nullptr) continue;
      const bool full = result->dims.size() == dims.size();
      for (int d = 0, k = 0; d < rank; ++d) {
        if (!along[d] || full) dims[d] = result->dims[full ? d : k++];
      }
    }
    for (int d = 0; d < rank; ++d) {
      if (dims[d].empty() && !IsOne(view_->type(x).dims[d])) dims[d] = {Fresh(view_->type(x).dims[d])};
    }
    Assign(x, dims);
  }
  for (int r = 0; r < static_cast<int>(node.results.size()); ++r) {
    const Place* place = Find(x);
    const std::vector<Extent>& own = node.results[r].dims;
    const bool full = static_cast<int>(own.size()) == rank;
    Lists lists;
    for (int d = 0; d < rank; ++d) {
      if (!along[d])
        lists.push_back(place->dims[d]);
      else if (full)
        lists.push_back(IsOne(own[d]) ? std::vector<int>{} : place->dims[d]);
    }
    Assign({n, r}, std::move(lists));
  }
}

// The result's axes with less of those that pieces cut. Only whole axes are cut, and only by one node of the space.
void AxisSpace::RelatePieces(int n) {
  const ir::Node& node = view_->node(n);
  const Place* place = Find({n, 0});
  if (place == nullptr) return;  // from an operand alone the other pieces' extents do not follow
  std::vector<ir::TensorType> operands;
  for (const Value& input : node.inputs) operands.push_back(view_->type(input));
  std::vector<Box> boxes;
  for (const ir::Piece& piece : node.op->pieces(node, operands)) {
    Box& box = boxes.emplace_back(Box{{}, piece.operand, piece.fill});
    for (size_t d = 0; d < piece.ranges.size(); ++d) {
      const auto& [from, to] = piece.ranges[d];
      if (from == Extent(0) && to == node.results[0].dims[d]) continue;
      if (place->dims[d].size() != 1) return;
      box.ranges[place->dims[d][0]] = piece.ranges[d];
    }
  }
  joined_ = n;
  boxes_ = std::move(boxes);
  for (const Box& box : boxes_) {
    if (box.operand < 0) continue;
    std::map<int, Extent> part;
    for (const auto& [axis, range] : box.ranges) part[axis] = range.second - range.first;
    Lists dims = Find({n, 0})->dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (IsOne(operands[box.operand].dims[d])) dims[d].clear();
    }
    Assign(node.inputs[box.operand], std::move(dims), std::move(part));
  }
}

void AxisSpace::Assign(Value value, Lists dims, std::map<int, Extent> part) {
  std::erase_if(part, [&](const auto& entry) {
    return std::none_of(dims.begin(), dims.end(), [&](const std::vector<int>& dim) {
      return std::find(dim.begin(), dim.end(), entry.first) != dim.end();
    });
  });
  if (!places_.contains(value)) {
    places_.emplace(value, Place{std::move(dims), std::move(part), false});
    open_.push_back(value);
    return;
  }
  // Uniting renames axes in every place: the new ones are one for as long.
  const Value given = {-2, 0};
  places_.emplace(given, Place{std::move(dims), std::move(part), false});
  for (size_t d = 0; d < places_[given].dims.size() && consistent_; ++d) {
    consistent_ = Unite(places_[value].dims[d], places_[given].dims[d]);
  }
  consistent_ = consistent_ && places_[value].part == places_[given].part;
  places_.erase(given);
}

bool AxisSpace::Unite(std::vector<int> a, std::vector<int> b) {
  auto replace = [&](int axis, std::initializer_list<int> by) {
    for (std::vector<int>* run : {&a, &b}) {
      for (size_t i = run->size(); i-- > 0;) {
        if ((*run)[i] != axis) continue;
        run->erase(run->begin() + static_cast<int64_t>(i));
        run->insert(run->begin() + static_cast<int64_t>(i), by);
      }
    }
  };
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i]) continue;
    const Extent &left = extents_[a[i]], &right = extents_[b[i]];
    if (left == right) {
      const int gone = b[i], kept = a[i];
      Replace(gone, kept);
      replace(gone, {kept});
      continue;
    }
    const bool longer = left.DividedBy(right).has_value();
    const int whole = longer ? a[i] : b[i];
    const Extent first = longer ? right : left;
    const std::optional<Extent> rest = extents_[whole].DividedBy(first);
    if (!rest || IsCut(whole)) return false;
    const int tail = Split(whole, first, *rest);
    replace(whole, {whole, tail});
    --i;  // the first parts are equal now
  }
  return a.size() == b.size();
}

bool AxisSpace::Cut(std::vector<int> run, const std::vector<Extent>& dims, Lists* lists) {
  size_t next = 0;
  for (const Extent& dim : dims) {
    std::vector<int>& list = lists->emplace_back();
    Extent left = dim;
    while (!IsOne(left)) {
      if (next == run.size()) return false;
      const int axis = run[next];
      if (const std::optional<Extent> more = left.DividedBy(extents_[axis])) {
        list.push_back(axis);
        left = *more;
        ++next;
        continue;
      }
      const Extent first = left;
      const std::optional<Extent> rest = extents_[axis].DividedBy(first);
      if (!rest || IsCut(axis)) return false;
      const int tail = Split(axis, first, *rest);
      run.insert(run.begin() + static_cast<int64_t>(next) + 1, tail);
      // Lists that hold the whole axis already are places of other values; those of this call hold parts only.
      list.push_back(axis);
      ++next;
      left = Extent(1);
    }
  }
  return next == run.size();
}

int AxisSpace::Split(int axis, const Extent& first, const Extent& rest) {
  const int tail = Fresh(rest);
  extents_[axis] = first;
  for (auto& [value, place] : places_) {
    for (std::vector<int>& dim : place.dims) {
      for (size_t i = dim.size(); i-- > 0;) {
        if (dim[i] == axis) dim.insert(dim.begin() + static_cast<int64_t>(i) + 1, tail);
      }
    }
  }
  return tail;
}

void AxisSpace::Replace(int axis, int by) {
  auto rename = [&](auto& map) {
    auto entry = map.extract(axis);
    if (entry.empty()) return;
    entry.key() = by;
    map.insert(std::move(entry));
  };
  for (auto& [value, place] : places_) {
    for (std::vector<int>& dim : place.dims) std::replace(dim.begin(), dim.end(), axis, by);
    rename(place.part);
  }
  for (Box& box : boxes_) rename(box.ranges);
}

bool AxisSpace::IsCut(int axis) const {
  return std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) { return box.ranges.contains(axis); });
}

int AxisSpace::Fresh(const Extent& extent) {
  extents_.push_back(extent);
  return static_cast<int>(extents_.size()) - 1;
}

void AxisSpace::CheckConsistent() {
  for (const auto& [value, place] : places_) {
    const std::vector<int> axes = place.Axes();
    if (std::set<int>(axes.begin(), axes.end()).size() != axes.size()) consistent_ = false;
  }
}

// What an index map makes is addressed by its own dimensions, and so is all that it reads, directly or not.
void AxisSpace::Pin(int given) {
  std::vector<Value> open;
  std::set<Value> seen;
  for (const int n : view_->nodes()) {
    if (Relates(n) || n == given) continue;
    for (int r = 0; r < static_cast<int>(view_->node(n).results.size()); ++r) open.push_back({n, r});
  }
  while (!open.empty()) {
    const Value value = open.back();
    open.pop_back();
    if (!seen.insert(value).second) continue;
    if (const auto place = places_.find(value); place != places_.end()) place->second.pinned = true;
    if (!view_->Has(value.node)) continue;
    for (const Value& input : view_->node(value.node).inputs) open.push_back(input);
  }
}

void AxisSpace::Merge(const std::vector<bool>& apart) {
  const int count = static_cast<int>(extents_.size());
  // By axis: the one that follows it everywhere, or -1 for none; -2: not seen yet.
  std::vector<int> next(count, -2);
  auto follow = [&](int axis, int other) { next[axis] = next[axis] == -2 || next[axis] == other ? other : -1; };
  std::vector<std::vector<int>> before(count);  // what stands before each axis, -1 for nothing
  for (const auto& [value, place] : places_) {
    int last = -1;
    for (const std::vector<int>& dim : place.dims) {
      if (place.pinned && last >= 0) {
        follow(last, -1);
        last = -1;
      }
      for (const int axis : dim) {
        if (last >= 0) follow(last, axis);
        before[axis].push_back(last);
        last = axis;
      }
    }
    if (last >= 0) follow(last, -1);
  }
  std::vector<int> into(count, -1);  // the axis that takes each over
  for (int axis = 0; axis < count; ++axis) {
    const int other = next[axis];
    if (other < 0 || apart[axis] != apart[other] || IsCut(other)) continue;
    if (std::all_of(before[other].begin(), before[other].end(), [&](int b) { return b == axis; })) into[other] = axis;
  }
  // Heads take their followers, in order.
  std::vector<int> number(count, -1);
  std::vector<Extent> extents;
  for (int axis = 0; axis < count; ++axis) {
    const bool used = next[axis] != -2;
    if (!used || into[axis] >= 0) continue;
    number[axis] = static_cast<int>(extents.size());
    Extent taken(1);
    for (int at = axis; next[at] >= 0 && into[next[at]] == at; at = next[at]) taken = taken * extents_[next[at]];
    for (auto& [value, place] : places_) {
      if (const auto part = place.part.find(axis); part != place.part.end()) part->second = part->second * taken;
    }
    for (Box& box : boxes_) {
      if (const auto range = box.ranges.find(axis); range != box.ranges.end())
        range->second = {range->second.first * taken, range->second.second * taken};
    }
    extents.push_back(extents_[axis] * taken);
  }
  extents_ = std::move(extents);
  auto renumber = [&](auto& map) {
    std::remove_reference_t<decltype(map)> renamed;
    for (auto& [axis, entry] : map) renamed.emplace(number[axis], std::move(entry));
    map = std::move(renamed);
  };
  for (Box& box : boxes_) renumber(box.ranges);
  for (auto& [value, place] : places_) {
    renumber(place.part);
    for (std::vector<int>& dim : place.dims) {
      std::vector<int> kept;
      for (const int axis : dim) {
        if (into[axis] < 0) kept.push_back(number[axis]);
      }
      dim = std::move(kept);
    }
  }
}

}  // namespace quern::family
