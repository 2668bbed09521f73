// Sequences and optionals, of which a graph has none: how many tensors there are is known while it is made.

#include "onnx/bodies.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

Item SequenceOf(std::vector<Item> items) { return {.kind = Item::Kind::kSequence, .items = std::move(items)}; }

// The items of an operand that is a sequence.
std::vector<Item> Items(Call& c, int i) {
  const Item& item = c.item(i);
  if (item.kind != Item::Kind::kSequence) c.Fail("operand %d is no sequence", i);
  return item.items;
}

// A place in `size` items, or one behind them where `end`.
size_t Place(Call& c, int operand, size_t size, bool end) {
  const Ints at = c.IntsOf(c.x(operand));
  const int64_t count = static_cast<int64_t>(size);
  if (at.size() == 1 && at[0] >= -count && at[0] < count + (end ? 1 : 0)) return at[0] < 0 ? at[0] + count : at[0];
  c.Fail(absl::InvalidArgumentError(absl::StrFormat("there is no such place in %d items", count)));
  return 0;
}

void Construct(Call& c) {
  std::vector<Item> items;
  for (int i = 0; i < c.inputs(); ++i) items.push_back(c.item(i));
  c.ReturnItem(0, SequenceOf(std::move(items)));
}
void Empty(Call& c) { c.ReturnItem(0, SequenceOf({})); }
void At(Call& c) {
  const std::vector<Item> items = Items(c, 0);
  const size_t at = Place(c, 1, items.size(), false);
  if (c.ok()) c.ReturnItem(0, items[at]);
}
void Insert(Call& c) {
  std::vector<Item> items = Items(c, 0);
  const size_t at = c.Has(2) ? Place(c, 2, items.size(), true) : items.size();
  if (c.ok()) items.insert(items.begin() + static_cast<int64_t>(at), c.item(1));
  c.ReturnItem(0, SequenceOf(std::move(items)));
}
void Erase(Call& c) {
  std::vector<Item> items = Items(c, 0);
  const size_t at = c.Has(1) ? Place(c, 1, items.size(), false) : items.size() - 1;
  if (items.empty()) c.Fail(absl::InvalidArgumentError("the sequence is empty"));
  if (c.ok()) items.erase(items.begin() + static_cast<int64_t>(at));
  c.ReturnItem(0, SequenceOf(std::move(items)));
}
void Length(Call& c) { c.Return(c.Reshape(c.Integers({static_cast<int64_t>(Items(c, 0).size())}), {})); }

Value ValueIn(Call& c, const Item& item) {
  const StatusOr<Value> value = ValueOf(c.session, c.builder, item);
  if (value.ok()) return *value;
  c.Fail(value.status());
  return c.Scalar(0, DType::kF32);
}

void ConcatFrom(Call& c) {
  Values parts;
  const bool fresh = c.Int("new_axis", 0) != 0;
  for (const Item& item : Items(c, 0)) parts.push_back(ValueIn(c, item));
  if (parts.empty()) return c.Fail("nothing is joined");
  const int64_t axis = c.Axis(c.Int("axis", 0), c.rank(parts[0]) + (fresh ? 1 : 0));
  for (Value& part : parts) {
    Extents dims = c.type(part).dims;
    if (fresh && axis <= static_cast<int64_t>(dims.size())) dims.insert(dims.begin() + axis, Extent(1));
    part = c.Reshape(part, dims);
  }
  c.Return(parts.size() == 1 ? parts[0] : c.Add("Concat", parts, {{"axis", axis}}));
}

void SplitTo(Call& c) {
  const Value x = c.x(0);
  const int64_t axis = c.Axis(c.Int("axis", 0), c.rank(x));
  const Extent size = c.dim(x, axis);
  Extents sizes;
  const bool ones = !c.Has(1);
  if (!ones && c.rank(c.x(1)) == 1) {
    sizes = c.ExtentsOf(c.x(1));
  } else {
    const int64_t whole = c.fixed_dim(x, axis);
    const Ints each = ones ? Ints{1} : c.IntsOf(c.x(1));
    if (each.empty() || each[0] < 1 || whole / each[0] > 4096)
      return c.Fail(absl::InvalidArgumentError("its size is none"));
    for (int64_t at = 0; at < whole; at += each[0]) sizes.emplace_back(std::min(each[0], whole - at));
  }
  std::vector<Item> items;
  Extent start(0);
  for (const Extent& length : sizes) {
    Value part = c.Slice(x, axis, start, length);
    if (ones && c.Int("keepdims", 1) == 0) {
      Extents dims = c.type(part).dims;
      if (axis < static_cast<int64_t>(dims.size())) dims.erase(dims.begin() + axis);
      part = c.Reshape(part, dims);
    }
    items.push_back(TensorItem(part));
    start = start + length;
  }
  c.ReturnItem(0, SequenceOf(std::move(items)));
}

void Map(Call& c) {
  const format::Attribute* const body = c.Find("body");
  if (body == nullptr) return c.Fail(absl::InvalidArgumentError("it lacks a body"));
  const size_t count = Items(c, 0).size();
  std::vector<std::vector<Item>> results(body->g().output_size());
  for (size_t i = 0; i < count && c.ok(); ++i) {
    std::vector<Item> inputs;
    for (int operand = 0; operand < c.inputs(); ++operand) {
      const Item& item = c.item(operand);
      if (item.kind == Item::Kind::kSequence && item.items.size() != count)
        return c.Fail(absl::InvalidArgumentError("its sequences are not of one length"));
      inputs.push_back(item.kind == Item::Kind::kSequence ? item.items[i] : item);
    }
    const std::vector<Item> made = Inlined(c, body->g(), inputs, absl::StrCat(i, "/"));
    for (size_t r = 0; r < made.size(); ++r) results[r].push_back(made[r]);
  }
  for (size_t r = 0; r < results.size(); ++r) c.ReturnItem(static_cast<int>(r), SequenceOf(std::move(results[r])));
}

void Optional(Call& c) { c.ReturnItem(0, c.item(0)); }
void HasElement(Call& c) { c.Return(c.Scalar(c.item(0).kind != Item::Kind::kNone ? 1 : 0, DType::kBool)); }
void GetElement(Call& c) {
  if (c.item(0).kind == Item::Kind::kNone) return c.Fail(absl::InvalidArgumentError("the optional is empty"));
  c.ReturnItem(0, c.item(0));
}

constexpr Importer kRows[] = {
    {"ConcatFromSequence", ConcatFrom, "", 1, "", true},
    {"Optional", Optional, "", 0, "", true},
    {"OptionalGetElement", GetElement, "", 1, "", true},
    {"OptionalHasElement", HasElement, "", 0, "", true},
    {"SequenceAt", At, "", 2, "", true},
    {"SequenceConstruct", Construct, "", 1, "", true},
    {"SequenceEmpty", Empty, "", 0, "", true},
    {"SequenceErase", Erase, "", 1, "", true},
    {"SequenceInsert", Insert, "", 2, "", true},
    {"SequenceLength", Length, "", 1, "", true},
    {"SequenceMap", Map, "", 1, "", true},
    {"SplitToSequence", SplitTo},
};

}  // namespace

std::span<const Importer> SequenceImporters() { return kRows; }

}  // namespace quern::onnx
