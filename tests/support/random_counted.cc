// Sizes that runs find in random graphs: some slices of a value, as many as data say, and further values of as many.

#include "support/random_generator.h"

namespace quern::testing {

bool Generator::NamesFound(const TensorType& type) const {
  return std::any_of(type.dims.begin(), type.dims.end(), [&](const Extent& dim) {
    const std::vector<std::string> symbols = dim.Symbols();
    return std::any_of(found_.begin(), found_.end(), [&](const Found& found) {
      return std::find(symbols.begin(), symbols.end(), found.symbol) != symbols.end();
    });
  });
}

// A larger value cut to the count. What is made of such sizes is no symbol, and one value all over.
Value Generator::NewFound(TensorType type) {
  for (size_t axis = 0; axis < type.dims.size(); ++axis) {
    const auto found = std::find_if(found_.begin(), found_.end(),
                                    [&](const Found& f) { return type.dims[axis] == Extent::Symbol(f.symbol); });
    if (found == found_.end()) continue;
    const Found cut = *found;
    type.dims[axis] = cut.most;
    return Add("Counted", {NewLeaf(std::move(type)), cut.count},
               {{"axis", static_cast<int64_t>(axis)}, {"size", std::vector<Extent>{Extent::Symbol(cut.symbol)}}});
  }
  const std::vector<Extent> ones(type.dims.size(), Extent(1));
  return Add("Expand", {NewLeaf({type.dtype, ones})}, {{"shape", type.dims}});
}

std::vector<Value> Generator::Known() const {
  std::vector<Value> known;
  for (const Value& value : pool_) {
    if (!NamesFound(type(value))) known.push_back(value);
  }
  return known;
}

void Generator::AnyCounted() {
  const Value x = Some(Moved(), 1);
  const int64_t axis = Below(type(x).rank());
  const Extent most = type(x).dims[axis];
  // Some of them, or all or none.
  const Value condition = Below(3) == 0
                              ? Add("Expand", {NewLeaf({DType::kBool, {Extent(1)}})}, {{"shape", std::vector{most}}})
                              : NewLeaf({DType::kBool, {most}});
  const Value kept = Add("Compress", {x, condition}, {{"axis", axis}});
  Found found{absl::StrCat(prefix_, "N", found_.size()), {kept.node, 1}, most};
  made_.graph.symbols[found.symbol] = {0, most.UpperBound(made_.graph.symbols).value_or(INT64_MAX)};
  made_.binding[found.symbol] = Size(most);
  const std::vector<Extent> size = {Extent::Symbol(found.symbol)};
  found_.push_back(std::move(found));
  Add("Counted", {kept, found_.back().count}, {{"axis", axis}, {"size", size}});
}

}  // namespace quern::testing
