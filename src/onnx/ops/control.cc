// If, Loop and Scan. What is known before anything runs is decided then: the branch that is taken, and loops of few
// trips whose tensors change their sizes, or that have sequences, are written out.

#include <algorithm>

#include "onnx/bodies.h"
#include "onnx/known.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

constexpr int64_t kMostTrips = 256;  // of a loop that is written out

Value AsScalar(Call& c, Value value) { return c.Reshape(value, {}); }

void Depends(Call& c, Value value) {
  Dependences(c.session, c.builder, value, &c.session.wanted_inputs, &c.session.wanted_sizes);
}

void If(Call& c) {
  const format::Attribute* const then_branch = c.Find("then_branch");
  const format::Attribute* const else_branch = c.Find("else_branch");
  if (then_branch == nullptr || else_branch == nullptr) return c.Fail(absl::InvalidArgumentError("it lacks a branch"));
  const Value pred = c.Cast(c.x(0), DType::kBool);
  if (const std::optional<Ints> known = c.MaybeInts(pred); known && known->size() == 1) {
    const bool yes = known->at(0) != 0;
    const std::vector<Item> made = Inlined(c, yes ? then_branch->g() : else_branch->g(), {}, yes ? "then/" : "else/");
    for (size_t o = 0; o < made.size(); ++o) c.ReturnItem(static_cast<int>(o), made[o]);
    return;
  }
  const Captures captures = CapturesOf(c, {&then_branch->g(), &else_branch->g()});
  if (!c.ok()) return;
  Values operands = {AsScalar(c, pred)};
  operands.insert(operands.end(), captures.operands.begin(), captures.operands.end());
  auto yes = MakeBody(c, then_branch->g(), {}, captures), no = MakeBody(c, else_branch->g(), {}, captures);
  if (!yes.ok() || !no.ok()) {
    Depends(c, pred);
    return c.Fail(yes.ok() ? no.status() : yes.status());
  }
  const size_t count = (*yes)->outputs.size();
  if (count != (*no)->outputs.size() || static_cast<int>(count) < c.node.output_size())
    return c.Fail(absl::InvalidArgumentError("its branches have other numbers of results"));
  const auto then = Finished(c, **yes, (*yes)->outputs), otherwise = Finished(c, **no, (*no)->outputs);
  if (!c.ok()) return Depends(c, pred);
  for (size_t o = 0; o < count; ++o) {
    const ir::TensorType &a = (*yes)->builder.graph.type((*yes)->outputs[o]),
                         &b = (*no)->builder.graph.type((*no)->outputs[o]);
    if (a == b) continue;
    Depends(c, pred);
    for (const Extents* dims : {&a.dims, &b.dims}) {
      for (const Extent& dim : *dims) {
        for (const std::string& symbol : dim.Symbols()) c.session.wanted_sizes.insert(symbol);
      }
    }
    return c.Fail("result %d is %s of one branch and %s of the other, and which is taken is not known", o, a.ToString(),
                  b.ToString());
  }
  const Values made = c.AddAll("If", operands, {}, {then, otherwise});
  for (size_t o = 0; o < count; ++o) c.Return(static_cast<int>(o), made[o]);
}

Item TrueItem(Builder& builder, StatusOr<Value>* made) {
  *made = builder.graph.AddConstant({DType::kBool, {}}, {1});
  return made->ok() ? TensorItem(**made) : Item{};
}

// Trip after trip, for as long as the condition is known to hold.
void WriteOut(Call& c, const format::Graph& graph, std::optional<int64_t> most) {
  const int carries = c.inputs() - 2;
  std::vector<Item> state;
  for (int i = 0; i < carries; ++i) state.push_back(c.item(i + 2));
  std::optional<Value> condition;
  if (c.Has(1)) condition = c.x(1);
  const int outputs = graph.output_size() - 1;
  std::vector<std::vector<Item>> stacked(std::max(0, outputs - carries));
  for (int64_t trip = 0; c.ok() && (!most || trip < *most); ++trip) {
    if (condition) {
      const Ints holds = c.IntsOf(*condition);
      if (holds.empty() || holds[0] == 0) break;
    }
    if (trip >= kMostTrips) return c.Fail("it has more than the %d trips that are written out", kMostTrips);
    std::vector<Item> inputs = {TensorItem(c.Reshape(c.Integers({trip}), {})),
                                TensorItem(condition ? *condition : c.Scalar(1, DType::kBool))};
    inputs.insert(inputs.end(), state.begin(), state.end());
    const std::vector<Item> made = Inlined(c, graph, inputs, absl::StrCat(trip, "/"));
    if (!c.ok()) return;
    const StatusOr<Value> next = ValueOf(c.session, c.builder, made[0]);
    if (!next.ok()) return c.Fail(next.status());
    condition = *next;
    for (int i = 0; i < carries; ++i) state[i] = made[1 + i];
    for (size_t s = 0; s < stacked.size(); ++s) stacked[s].push_back(made[1 + carries + s]);
  }
  for (int i = 0; i < carries; ++i) c.ReturnItem(i, state[i]);
  for (size_t s = 0; s < stacked.size() && c.ok(); ++s) {
    Values rows;
    for (const Item& item : stacked[s]) {
      const StatusOr<Value> value = ValueOf(c.session, c.builder, item);
      if (!value.ok()) return c.Fail(value.status());
      Extents dims = c.type(*value).dims;
      dims.insert(dims.begin(), Extent(1));
      rows.push_back(c.Reshape(*value, dims));
    }
    if (rows.empty()) return c.Fail("it has no trip, and results of each");
    c.Return(carries + static_cast<int>(s), rows.size() == 1 ? rows[0] : c.Add("Concat", rows, {{"axis", int64_t{0}}}));
  }
}

void Loop(Call& c) {
  const format::Attribute* const attribute = c.Find("body");
  if (attribute == nullptr || c.inputs() < 2)
    return c.Fail(absl::InvalidArgumentError("it lacks a body or its operands"));
  const format::Graph& graph = attribute->g();
  const int carries = c.inputs() - 2, stacked = graph.output_size() - 1 - carries;
  if (graph.input_size() != carries + 2 || stacked < 0)
    return c.Fail(absl::InvalidArgumentError("its body has other numbers of operands or results"));
  std::optional<Extents> trips;
  if (c.Has(0)) trips = c.MaybeExtents(c.x(0));
  const std::optional<int64_t> number =
      trips && trips->size() == 1 && trips->at(0).is_constant() ? std::optional(trips->at(0).constant()) : std::nullopt;
  std::optional<Ints> begins = Ints{1};
  if (c.Has(1)) begins = c.MaybeInts(c.x(1));
  bool tensors = true;
  std::vector<ir::TensorType> types;
  Values state;
  for (int i = 0; i < carries; ++i) {
    tensors = tensors && c.item(i + 2).kind == Item::Kind::kTensor;
    if (!tensors) break;
    state.push_back(c.x(i + 2));
    types.push_back(c.type(state.back()));
  }
  if (!tensors) {
    if (!number && c.Has(0)) Depends(c, c.x(0));
    return WriteOut(c, graph, number);
  }
  const Captures captures = CapturesOf(c, {&graph});
  if (!c.ok()) return;
  StatusOr<Value> holds = Value{};
  // The trip comes first in the body of a While; of a Scan it is read row by row, behind the carries.
  const Fixed condition = {{1, [&](Builder& builder) -> StatusOr<Item> {
                              Item item = TrueItem(builder, &holds);
                              QUERN_RETURN_IF_ERROR(holds.status());
                              return item;
                            }}};
  std::vector<ir::TensorType> with_trip = types;
  with_trip.insert(with_trip.begin(), {DType::kI64, {}});
  auto body = MakeBody(c, graph, with_trip, captures, condition);
  const auto write_out = [&] {
    if (!number && c.Has(0)) Depends(c, c.x(0));
    if (number || !c.Has(0)) return WriteOut(c, graph, number);
    c.Fail("its body is for trips that are written out, and how many there are is not known");
  };
  if (!body.ok()) return write_out();
  Builder& inside = (*body)->builder;
  const Values& results = (*body)->outputs;
  const std::optional<Extents> next = KnownExtents(c.session, inside, results[0]);
  const bool always =
      next && next->size() == 1 && next->at(0) == Extent(1) && begins && begins->size() == 1 && begins->at(0) == 1;
  bool same = true;
  for (int i = 0; i < carries; ++i) same = same && inside.graph.type(results[1 + i]) == types[i];
  const std::string found = FoundSizeOf(inside.graph, results);
  if (!found.empty() && !number)
    return c.Fail("a result of its body has the size %s, which only data decides in each trip", found);
  if (!same || !found.empty()) return write_out();
  if (always && !trips && stacked > 0 && c.Has(0)) trips = Extents{c.OpenSize({c.x(0)})};
  if (always && trips && trips->size() == 1) {
    // A Scan over the trip's numbers: its Inputs are the carries, a number, and the captures.
    ir::Graph again;
    again.name = inside.graph.name;
    again.symbols = inside.graph.symbols;
    again.constraints = inside.graph.constraints;
    std::vector<Value> place(inside.graph.nodes().size());
    const auto input = [&](int node, int name) {
      const StatusOr<Value> added = again.AddInput(absl::StrCat("i", name), inside.graph.node(node).results[0]);
      if (added.ok()) place[node] = *added;
    };
    const std::vector<int> inputs = inside.graph.Inputs();
    int name = 0;
    for (int i = 0; i < carries; ++i) input(inputs[1 + i], name++);
    input(inputs[0], name++);
    for (size_t i = 1 + carries; i < inputs.size(); ++i) input(inputs[i], name++);
    for (size_t n = 0; n < inside.graph.nodes().size() && c.ok(); ++n) {
      const ir::Node& node = inside.graph.node(static_cast<int>(n));
      if (ir::IsInput(node)) continue;
      Values operands;
      for (const Value operand : node.inputs) operands.push_back({place[operand.node].node, operand.result});
      const int origin = node.origin < 0 ? -1 : again.AddOrigin(inside.graph.origins()[node.origin]);
      const StatusOr<Value> copy = again.AddCopy(node, operands, origin);
      if (!copy.ok()) return c.Fail(copy.status());
      place[n] = *copy;
    }
    for (size_t r = 1; r < results.size(); ++r)
      again.outputs.push_back({place[results[r].node].node, results[r].result});
    Values operands = state;
    operands.push_back(c.Add("Iota", {}, {{"shape", *trips}, {"axis", int64_t{0}}, {"dtype", DType::kI64}}));
    operands.insert(operands.end(), captures.operands.begin(), captures.operands.end());
    const Values made =
        c.AddAll("Scan", operands, {{"length", *trips}, {"carries", int64_t{carries}}, {"xs", int64_t{1}}},
                 {Finished(c, std::move(again))});
    for (int o = 0; o < carries + stacked && c.ok(); ++o) c.Return(o, made[o]);
    return;
  }
  if (stacked > 0) return write_out();
  // While trip < M and the condition holds. Carries: the trip, the condition, the rest.
  Values operands = {c.Reshape(c.Integers({0}), {}),
                     c.Has(1) ? AsScalar(c, c.Cast(c.x(1), DType::kBool)) : c.Scalar(1, DType::kBool)};
  operands.insert(operands.end(), state.begin(), state.end());
  operands.insert(operands.end(), captures.operands.begin(), captures.operands.end());
  operands.push_back(c.Has(0) ? AsScalar(c, c.Cast(c.x(0), DType::kI64)) : c.Reshape(c.Integers({INT64_MAX}), {}));
  if (!c.ok()) return;
  std::vector<ir::TensorType> all;
  for (const Value operand : operands) all.push_back(c.type(operand));
  ir::Graph cond;
  cond.symbols = c.builder.graph.symbols;
  Values cond_inputs;
  for (size_t i = 0; i < all.size(); ++i) {
    const StatusOr<Value> added = cond.AddInput(absl::StrCat("i", i), all[i]);
    if (!added.ok()) return c.Fail(added.status());
    cond_inputs.push_back(*added);
  }
  StatusOr<Value> below = cond.Add("Lt", {cond_inputs[0], cond_inputs.back()});
  if (below.ok()) below = cond.Add("BitAnd", {*below, cond_inputs[1]});
  if (!below.ok()) return c.Fail(below.status());
  cond.outputs = {*below};
  // The body again, over the condition too, which it may read.
  std::vector<ir::TensorType> first(all.begin(), all.begin() + 2 + carries);
  Captures with_most = captures;
  with_most.operands.push_back(operands.back());
  with_most.names.emplace_back();
  auto loop = MakeBody(c, graph, first, with_most);
  if (!loop.ok()) return c.Fail(loop.status());
  ir::Graph& steps = (*loop)->builder.graph;
  const StatusOr<Value> one = steps.AddConstant({DType::kI64, {}}, {1, 0, 0, 0, 0, 0, 0, 0});
  StatusOr<Value> trip = one.ok() ? steps.Add("Add", {Value{steps.Inputs()[0], 0}, *one}) : one;
  StatusOr<Value> goes_on = steps.Add("Reshape", {(*loop)->outputs[0]}, {{"shape", Extents{}}});
  if (!trip.ok() || !goes_on.ok()) return c.Fail(trip.ok() ? goes_on.status() : trip.status());
  Values next_carries = {*trip, *goes_on};
  next_carries.insert(next_carries.end(), (*loop)->outputs.begin() + 1, (*loop)->outputs.end());
  const Values made = c.AddAll("While", operands, {{"carries", int64_t{carries} + 2}},
                               {std::make_shared<const ir::Graph>(std::move(cond)), Finished(c, **loop, next_carries)});
  for (int o = 0; o < carries && c.ok(); ++o) c.Return(o, made[o + 2]);
}

Ints Moved(int64_t rank, int64_t from, int64_t to) {
  Ints perm;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != from) perm.push_back(d);
  }
  perm.insert(perm.begin() + to, from);
  return perm;
}

// States, then what is read row by row.
void ScanOver(Call& c, const format::Graph& graph, const Values& state, Values xs, bool attributes, Values* results) {
  const auto at = [](const Ints& list, size_t i) { return i < list.size() ? list[i] : 0; };
  const Ints axes = attributes ? c.IntList("scan_input_axes") : Ints{};
  const Ints back = c.IntList(attributes ? "scan_input_directions" : "directions");
  std::vector<ir::TensorType> types;
  for (const Value value : state) types.push_back(c.type(value));
  Extent length;
  for (size_t i = 0; i < xs.size(); ++i) {
    const int64_t axis = c.Axis(at(axes, i), c.rank(xs[i]));
    if (axis != 0) xs[i] = c.Transpose(xs[i], Moved(c.rank(xs[i]), axis, 0));
    if (at(back, i) != 0) xs[i] = c.Add("Reverse", {xs[i]}, {{"axes", Ints{0}}});
    ir::TensorType row = c.type(xs[i]);
    if (row.dims.empty()) return c.Fail(absl::InvalidArgumentError("a scan over a number"));
    length = row.dims[0];
    row.dims.erase(row.dims.begin());
    types.push_back(row);
  }
  const Captures captures = CapturesOf(c, {&graph});
  if (!c.ok()) return;
  auto body = MakeBody(c, graph, types, captures);
  if (!body.ok()) return c.Fail(body.status());
  Values operands = state;
  operands.insert(operands.end(), xs.begin(), xs.end());
  operands.insert(operands.end(), captures.operands.begin(), captures.operands.end());
  *results = c.AddAll("Scan", operands,
                      {{"length", Extents{length}},
                       {"carries", static_cast<int64_t>(state.size())},
                       {"xs", static_cast<int64_t>(xs.size())}},
                      {Finished(c, **body, (*body)->outputs)});
  const Ints out_axes = c.IntList("scan_output_axes"), out_back = c.IntList("scan_output_directions");
  for (size_t o = state.size(); o < results->size() && c.ok() && attributes; ++o) {
    Value& y = (*results)[o];
    if (at(out_back, o - state.size()) != 0) y = c.Add("Reverse", {y}, {{"axes", Ints{0}}});
    const int64_t axis = c.Axis(at(out_axes, o - state.size()), c.rank(y));
    if (axis != 0) y = c.Transpose(y, Moved(c.rank(y), 0, axis));
  }
}

void Scan(Call& c) {
  const format::Attribute* const body = c.Find("body");
  const int64_t count = c.Int("num_scan_inputs", 0);
  const int first = c.opset < 9 ? 1 : 0;  // version 8 has lengths first, and a batch everywhere
  const int64_t carries = c.inputs() - first - count;
  if (body == nullptr || count < 1 || carries < 0)
    return c.Fail(absl::InvalidArgumentError("it lacks a body or operands"));
  Values state, xs, made;
  for (int i = first; i < c.inputs(); ++i) (i - first < carries ? state : xs).push_back(c.x(i));
  if (c.opset >= 9) {
    ScanOver(c, body->g(), state, xs, true, &made);
    for (size_t o = 0; o < made.size(); ++o) c.Return(static_cast<int>(o), made[o]);
    return;
  }
  if (c.Has(0)) return c.Fail("lengths of each sequence (version 8) have no op");
  const int64_t batch = c.fixed_dim(xs[0], 0);
  if (batch < 1 || batch > kMostTrips) return c.Fail("its batch is none that is written out");
  std::vector<Values> results;
  const auto one = [&](Value value, int64_t b) {
    Extents dims = c.type(value).dims;
    if (!dims.empty()) dims.erase(dims.begin());
    return c.Reshape(c.Slice(value, 0, Extent(b), Extent(1)), dims);
  };
  for (int64_t b = 0; b < batch && c.ok(); ++b) {
    Values now, rows, ys;
    for (const Value value : state) now.push_back(one(value, b));
    for (const Value value : xs) rows.push_back(one(value, b));
    ScanOver(c, body->g(), now, rows, false, &ys);
    results.resize(ys.size());
    for (size_t o = 0; o < ys.size() && c.ok(); ++o) {
      Extents dims = c.type(ys[o]).dims;
      dims.insert(dims.begin(), Extent(1));
      results[o].push_back(c.Reshape(ys[o], dims));
    }
  }
  for (size_t o = 0; o < results.size() && c.ok(); ++o)
    c.Return(static_cast<int>(o), batch == 1 ? results[o][0] : c.Add("Concat", results[o], {{"axis", int64_t{0}}}));
}

constexpr Importer kRows[] = {
    {"If", If},
    {"Loop", Loop, "", 0, "", true},
    {"Scan", Scan, "", 0},
};

}  // namespace

std::span<const Importer> ControlImporters() { return kRows; }

}  // namespace quern::onnx
