// Ops that read or write at places that other elements name, and what chooses elements.

#include "onnx/table.h"

namespace quern::onnx {
namespace {

void WithAxis(Call& c) { c.Return(c.Add(c.row.op, c.all(), {{"axis", c.Int("axis", 0)}})); }

void GatherNd(Call& c) { c.Return(c.Add("GatherND", {c.x(0), c.x(1)}, {{"batch_dims", c.Int("batch_dims", 0)}})); }

void ScatterElements(Call& c) {
  c.Return(c.Add("ScatterElements", c.all(), {{"axis", c.Int("axis", 0)}, {"reduction", c.Str("reduction", "none")}}));
}
void ScatterNd(Call& c) { c.Return(c.Add("ScatterND", c.all(), {{"reduction", c.Str("reduction", "none")}})); }

void OneHot(Call& c) {
  const Value indices = c.Cast(c.x(0), DType::kI64);
  const std::vector<double> given = c.RealsOf(c.x(1));
  if (given.size() != 1) return c.Fail(absl::InvalidArgumentError("one depth is needed"));
  const auto depth = static_cast<int64_t>(given[0]);
  const Value values = c.x(2);
  const auto value = [&](int64_t at) { return c.Reshape(c.Slice(values, 0, Extent(at), Extent(1)), {}); };
  c.Return(c.Add("OneHot", {indices, value(1), value(0)}, {{"depth", depth}, {"axis", c.Int("axis", -1)}}));
}

void TopK(Call& c) {
  const Value x = c.x(0);
  Ints k = c.opset < 10 ? Ints{c.Int("k", 1)} : c.IntsOf(c.x(1));
  if (k.size() != 1) return c.Fail(absl::InvalidArgumentError("one k is needed"));
  const Values made = c.AddAll("TopK", {x},
                               {{"k", k[0]},
                                {"axis", c.Axis(c.Int("axis", -1), c.rank(x))},
                                {"largest", c.Int("largest", 1) != 0},
                                {"sorted", c.Int("sorted", 1) != 0}});
  c.Return(0, made[0]);
  c.Return(1, made[1]);
}

// Results, of which `count` says how much there is along `axis`: a size that what follows has as a symbol, the same one
// wherever `by` decides how much that is.
Values Kept(Call& c, Values values, int64_t axis, Value count, std::optional<Value> by = std::nullopt) {
  if (!c.ok()) return values;
  std::pair<Value, Extent> found = {count, Extent()};
  const auto known = by ? c.builder.found.find(*by) : c.builder.found.end();
  if (known != c.builder.found.end()) {
    found = known->second;
  } else {
    found.second = c.FoundSize(c.dim(values[0], axis));
    if (by) c.builder.found.emplace(*by, found);
  }
  for (Value& value : values)
    value = c.Add("Counted", {value, found.first}, {{"axis", axis}, {"size", Extents{found.second}}});
  return values;
}

void NonZero(Call& c) {
  Value x = c.x(0);
  if (c.rank(x) == 0) x = c.Reshape(x, {Extent(1)});
  const Values made = c.AddAll("NonZero", {x});
  c.Return(Kept(c, {made[0]}, 1, made[1], x)[0]);
}

void Compress(Call& c) {
  Value x = c.x(0), condition = c.x(1);
  const bool flat = c.Find("axis") == nullptr;
  if (flat) x = c.Reshape(x, {c.type(x).elements()});
  const int64_t axis = flat ? 0 : c.Axis(c.Int("axis", 0), c.rank(x));
  // What is behind the condition's end is left out.
  x = c.Slice(x, axis, Extent(0), c.dim(condition, 0));
  if (const std::optional<Ints> known = c.MaybeInts(condition)) {
    Ints kept;
    for (size_t i = 0; i < known->size(); ++i) {
      if (known->at(i) != 0) kept.push_back(static_cast<int64_t>(i));
    }
    return c.Return(c.Add("Gather", {x, c.Integers(kept)}, {{"axis", axis}}));
  }
  const Values made = c.AddAll("Compress", {x, condition}, {{"axis", axis}});
  c.Return(Kept(c, {made[0]}, axis, made[1], condition)[0]);
}

void NonMaxSuppression(Call& c) {
  const auto number = [&](int i, double otherwise) {
    if (!c.Has(i)) return otherwise;
    const std::vector<double> given = c.RealsOf(c.x(i));
    return given.empty() ? otherwise : given[0];
  };
  const Value boxes = c.x(0);
  const auto most = static_cast<int64_t>(number(2, 0));
  const Values made = c.AddAll("NonMaxSuppression", {boxes, c.x(1)},
                               {{"most", most},
                                {"iou_threshold", number(3, 0)},
                                {"score_threshold", number(4, -1e30)},
                                {"center", c.Int("center_point_box", 0) != 0}});
  c.Return(Kept(c, {made[0]}, 0, made[1])[0]);
}

void Unique(Call& c) {
  const Value x = c.x(0);
  if (c.Find("axis") != nullptr && c.rank(x) != 1) return c.Fail("of slices along an axis there is no op");
  const Extent all = c.type(x).elements();
  Values made = c.AddAll("Unique", {c.Reshape(x, {all})});
  if (c.Int("sorted", 1) == 0) {
    // In the order in which they come first; what is behind the last one stays there.
    const Value index = c.Add("Iota", {}, {{"shape", Extents{all}}, {"axis", int64_t{0}}, {"dtype", DType::kI64}});
    const Value there = c.Add("Lt", {index, c.Cast(made[4], DType::kI64)});
    const Value first = c.Add("Where", {there, made[1], c.Size(all)});
    const Value order = c.AddAll("Sort", {first}, {{"axis", int64_t{0}}})[1];
    const Value place = c.AddAll("Sort", {order}, {{"axis", int64_t{0}}})[1];
    for (const int o : {0, 1, 3}) made[o] = c.Add("Gather", {made[o], order}, {{"axis", int64_t{0}}});
    made[2] = c.Add("Gather", {place, made[2]}, {{"axis", int64_t{0}}});
  }
  Values kept = Kept(c, {made[0], made[1], made[3]}, 0, made[4]);
  for (size_t k = 0; k < kept.size(); ++k) c.Return(k == 2 ? 3 : static_cast<int>(k), kept[k]);
  c.Return(2, made[2]);
}

void ReverseSequence(Call& c) {
  const Value x = c.x(0), lens = c.x(1);
  const int64_t batch = c.Int("batch_axis", 1), time = c.Int("time_axis", 0);
  if (c.rank(x) < 2 || batch == time || batch + time != 1)
    return c.Fail(absl::InvalidArgumentError("one of the first two dimensions is the time, the other the batch"));
  // Element t of a sequence of n is n - 1 - t where that is one of it, else t.
  const Extents dims = c.type(x).dims;
  const Value step = c.Add("Iota", {}, {{"shape", Extents{dims[0], dims[1]}}, {"axis", time}, {"dtype", DType::kI64}});
  const Value length =
      c.Reshape(c.Cast(lens, DType::kI64), batch == 0 ? Extents{dims[0], Extent(1)} : Extents{Extent(1), dims[1]});
  const Value back = c.Add("Sub", {c.Add("Sub", {length, c.Scalar(1, DType::kI64)}), step});
  Value at = c.Add("Where", {c.Add("Lt", {step, length}), back, step});
  Extents with_ones = {dims[0], dims[1]};
  with_ones.resize(dims.size(), Extent(1));
  at = c.Expand(c.Reshape(at, with_ones), dims);
  c.Return(c.Add("GatherElements", {x, at}, {{"axis", time}}));
}

constexpr Importer kRows[] = {
    {"Compress", Compress, "", 2},
    {"Gather", WithAxis, "Gather", 2},
    {"GatherElements", WithAxis, "GatherElements", 2},
    {"GatherND", GatherNd, "", 2},
    {"NonMaxSuppression", NonMaxSuppression, "", 2},
    {"NonZero", NonZero},
    {"OneHot", OneHot, "", 3},
    {"ReverseSequence", ReverseSequence, "", 2},
    {"Scatter", ScatterElements, "", 3},
    {"ScatterElements", ScatterElements, "", 3},
    {"ScatterND", ScatterNd, "", 3},
    {"TopK", TopK},
    {"Unique", Unique},
};

}  // namespace

std::span<const Importer> GatherImporters() { return kRows; }

}  // namespace quern::onnx
