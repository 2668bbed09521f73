// Nodes with bodies in random graphs: branches, loops of a few trips, scans; caches that loops write in place; values
// that bodies return as they got them; Params of bodies.

#include "ir/control.h"
#include "support/random_generator.h"

namespace quern::testing {
namespace {

const TensorType kCount{DType::kI64, {}};

}  // namespace

Value Generator::ValueOf(const TensorType& wanted) {
  std::vector<Value> fitting;
  for (const Value& value : pool_) {
    if (type(value) == wanted) fitting.push_back(value);
  }
  return !fitting.empty() && Below(4) != 0 ? Pick(fitting) : NewLeaf(wanted);
}

Value Generator::OutputOf(const TensorType& wanted) {
  std::vector<Value> made, given;
  for (const Value& value : pool_) {
    if (type(value) != wanted) continue;
    (made_.graph.node(value.node).op->kind == OpKind::kLeaf ? given : made).push_back(value);
  }
  if (!made.empty() && Below(8) != 0) return Pick(made);
  const Value value = !given.empty() ? Pick(given) : NewLeaf(wanted);
  if (Below(4) == 0) return value;
  if (IsFloat(wanted.dtype)) return Add("Tanh", {value});
  return wanted.dtype == DType::kBool ? Add("Not", {value}) : value;
}

std::unique_ptr<Generator> Generator::NewBody(const std::vector<TensorType>& inputs) {
  RandomGraphOptions options = options_;
  --options.bodies;
  auto body = std::make_unique<Generator>(random_(), options, *this, absl::StrCat(prefix_, "b", ++bodies_, "_"));
  for (const TensorType& input : inputs) {
    const Value value = *body->made_.graph.AddInput(absl::StrCat("given", body->first_.size()), input);
    body->first_.push_back(value.node);
    body->pool_.push_back(value);
  }
  if (inputs.empty()) body->NewLeaf({DType::kF32, RandomDims()});
  const int64_t steps = 1 + Below(4);
  for (int64_t s = 0; s < steps; ++s) body->Step();
  return body;
}

ir::Graph Generator::Body(const std::vector<Value>& captures, size_t own, Generator& outer, int cache) {
  ir::Graph graph;
  graph.name = made_.graph.name;
  graph.symbols = made_.graph.symbols;
  std::map<int, Value> now;  // of Inputs
  const auto copy = [&](int node) { now[node] = *graph.AddCopy(made_.graph.node(node), {}); };
  for (const int node : first_) copy(node);
  if (cache >= 0) copy(cache);
  for (size_t c = 0; c < captures.size(); ++c) {
    if (c >= own && c < own + captured_.size())
      copy(captured_[c - own]);
    else
      QUERN_CHECK(graph.AddInput(absl::StrCat("other", c), outer.type(captures[c])).ok());
  }
  const auto moved = [&](Value value) { return Value{now.at(value.node).node, value.result}; };
  for (int n = 0; n < static_cast<int>(made_.graph.nodes().size()); ++n) {
    const ir::Node& node = made_.graph.node(n);
    if (std::string_view(node.op->name) == "Input") continue;
    std::vector<Value> inputs;
    for (const Value& input : node.inputs) inputs.push_back(moved(input));
    now[n] = *graph.AddCopy(node, std::move(inputs));
  }
  for (const Value& output : made_.graph.outputs) graph.outputs.push_back(moved(output));
  graph.constraints = made_.graph.constraints;
  return graph;
}

void Generator::AddWithBodies(std::string_view op, std::vector<Value> inputs, Attributes attributes,
                              std::vector<ir::Graph> bodies) {
  std::vector<std::shared_ptr<const ir::Graph>> shared;
  for (ir::Graph& body : bodies) {
    made_.graph.symbols.insert(body.symbols.begin(), body.symbols.end());  // what it finds
    shared.push_back(std::make_shared<const ir::Graph>(std::move(body)));
  }
  const StatusOr<Value> made =
      made_.graph.Add(op, std::move(inputs), std::move(attributes), Origin(), std::move(shared));
  if (!made.ok()) fprintf(stderr, "%s\n", std::string(made.status().message()).c_str());
  QUERN_CHECK(made.ok());
  for (size_t r = 0; r < made_.graph.node(made->node).results.size(); ++r)
    pool_.push_back({made->node, static_cast<int>(r)});
}

void Generator::AnyIf() {
  const Value x = SomeF32(1);
  const std::unique_ptr<Generator> then = NewBody({type(x)}), otherwise = NewBody({type(x)});
  const int64_t results = 1 + Below(2);
  for (int64_t r = 0; r < results; ++r) {
    const TensorType result = r == 0 ? type(x) : then->type(then->Known().back());
    then->made_.graph.outputs.push_back(then->OutputOf(result));
    otherwise->made_.graph.outputs.push_back(otherwise->OutputOf(result));
  }
  const Value pred = NewLeaf({DType::kBool, {}});
  std::vector<Value> captures = then->captures_;
  captures.insert(captures.end(), otherwise->captures_.begin(), otherwise->captures_.end());
  std::vector<Value> inputs = {pred, x};
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  const size_t own = then->captures_.size();
  AddWithBodies("If", std::move(inputs), {}, {then->Body(captures, 0, *this), otherwise->Body(captures, own, *this)});
}

void Generator::AnyFunction() {
  const Value x = SomeF32(1);
  const std::unique_ptr<Generator> body = NewBody({type(x)});
  body->made_.graph.outputs = {body->OutputOf(type(x))};
  if (Below(2) == 0) body->made_.graph.outputs.push_back(body->Known().back());
  std::vector<Value> inputs = {x};
  inputs.insert(inputs.end(), body->captures_.begin(), body->captures_.end());
  AddWithBodies("CustomFn", std::move(inputs), {}, {body->Body(body->captures_, 0, *this)});
}

void Generator::AnyWhile() {
  std::vector<Value> inputs = {Scalar(DType::kI64, 0), SomeF32(1)};
  if (Below(2) == 0) inputs.push_back(Some(OperandKind::kFloat, 1));
  std::vector<TensorType> types;
  for (const Value& input : inputs) types.push_back(type(input));
  const std::unique_ptr<Generator> body = NewBody(types);
  const Value counted = *body->made_.graph.Add("Add", {{body->first_[0], 0}, body->Scalar(DType::kI64, 1)});
  std::vector<Value> next = {counted};
  for (size_t c = 1; c < types.size(); ++c) next.push_back(body->OutputOf(types[c]));
  // Two of a kind may change places.
  if (types.size() == 3 && types[1] == types[2] && Below(3) == 0) next[1] = {body->first_[2], 0};
  int cache = -1;
  Value initial;
  const bool updates = options_.updates && Below(2) == 0;
  const Value update = updates ? body->SomeF32(1) : Value{};
  if (updates && !body->NamesFound(body->type(update))) {
    const auto [state, result] = body->NewUpdate(update);
    cache = state.node;
    next.push_back(result);
    initial = outer_ == nullptr && !NamesFound(body->type(state)) && Below(2) == 0
                  ? *made_.graph.AddInput(absl::StrCat("state", made_.graph.nodes().size()), body->type(state))
                  : ValueOf(body->type(state));
    inputs.push_back(initial);
  }
  const int64_t carries = static_cast<int64_t>(inputs.size());
  body->made_.graph.outputs = next;
  const std::vector<Value>& captures = body->captures_;
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  const Value most = NewLeaf(kCount);
  inputs.push_back(most);

  ir::Graph cond;
  cond.name = "cond";
  cond.symbols = made_.graph.symbols;
  for (size_t i = 0; i < inputs.size(); ++i) QUERN_CHECK(cond.AddInput(absl::StrCat("i", i), type(inputs[i])).ok());
  const Value few = *cond.AddConstant(kCount, ScalarBytesOf(DType::kI64, int64_t{4}));
  const Value trips = *cond.Add("Min", {{static_cast<int>(inputs.size()) - 1, 0}, few});
  cond.outputs = {*cond.Add("Lt", {{0, 0}, trips})};
  std::vector<Value> all = captures;
  all.push_back(most);
  AddWithBodies("While", inputs, {{"carries", carries}}, {std::move(cond), body->Body(all, 0, *this, cache)});
  const ir::Node& loop = made_.graph.nodes().back();
  const Value last = {static_cast<int>(made_.graph.nodes().size()) - 1, static_cast<int>(carries) - 1};
  const ir::Node& from = made_.graph.node(loop.inputs[carries - 1].node);
  const bool state = cache >= 0 && outer_ == nullptr && std::string_view(from.op->name) == "Input" &&
                     from.attributes.String("name").starts_with("state");
  if (state && Below(3) != 0) DonateTo(initial, last);
}

void Generator::AnyScan() {
  const Extent length = Below(3) == 0 ? Extent::Symbol("S") : Extent(Below(4));
  std::vector<Value> inputs;
  std::vector<TensorType> types;
  const int64_t carries = Below(2), xs = 1 + Below(2);
  if (carries > 0) {
    inputs.push_back(SomeF32(1));
    types.push_back(type(inputs.back()));
  }
  for (int64_t x = 0; x < xs; ++x) {
    TensorType row{DType::kF32, {Extent(1 + Below(9))}};
    if (Below(2) == 0) row.dims.push_back(Extent(1 + Below(5)));
    TensorType whole = row;
    whole.dims.insert(whole.dims.begin(), length);
    inputs.push_back(ValueOf(whole));
    types.push_back(row);
  }
  const std::unique_ptr<Generator> body = NewBody(types);
  std::vector<Value> outputs;
  for (int64_t c = 0; c < carries; ++c) outputs.push_back(body->OutputOf(types[c]));
  const int64_t stacked = 1 + Below(2);
  for (int64_t y = 0; y < stacked; ++y) {
    const Value value = Pick(body->Known());
    const bool symbolic = std::any_of(body->type(value).dims.begin(), body->type(value).dims.end(),
                                      [&](const Extent& dim) { return !dim.is_constant(); });
    // One symbol at most once in a type.
    outputs.push_back(symbolic && !length.is_constant() ? body->OutputOf(types.back()) : value);
  }
  body->made_.graph.outputs = outputs;
  inputs.insert(inputs.end(), body->captures_.begin(), body->captures_.end());
  AddWithBodies("Scan", std::move(inputs),
                {{"carries", carries}, {"xs", xs}, {"length", std::vector<Extent>{length}}, {"reverse", Below(2) == 0}},
                {body->Body(body->captures_, 0, *this)});
}

// Of one recurrence, h <- tanh(h w + x) and y = h x, whose derivative is known.
void Generator::AnyScanBackward() {
  const int64_t n = 1 + Below(9), steps = Below(5);
  const bool symbolic = Below(3) == 0;
  const Extent length = symbolic ? Extent::Symbol("S") : Extent(steps);
  const TensorType row{DType::kF32, {Extent(n)}}, rows{DType::kF32, {length, Extent(n)}};
  const std::string type = absl::StrCat(" : f32[", n, "]\n");
  const auto input = [&](int at) { return absl::StrCat("  %", at, " = Input() {name = \"v", at, "\"}", type); };
  const auto op = [&](int at, const char* text) { return absl::StrCat("  %", at, " = ", text, type); };
  const StatusOr<ir::Graph> body =
      ir::Parse(absl::StrCat("graph body {\n", input(0), input(1), input(2), op(3, "Mul(%0, %2)"), op(4, "Add(%3, %1)"),
                             op(5, "Tanh(%4)"), op(6, "Mul(%5, %1)"), "  return %5, %6\n}"));
  // Of h, x, w, the next h and y, and the gradients of these two.
  const StatusOr<ir::Graph> vjp = ir::Parse(absl::StrCat(
      "graph vjp {\n", input(0), input(1), input(2), input(3), input(4), input(5), input(6), op(7, "Mul(%6, %1)"),
      op(8, "Add(%5, %7)"), op(9, "Mul(%3, %3)"), op(10, "Mul(%8, %9)"), op(11, "Sub(%8, %10)"), op(12, "Mul(%11, %2)"),
      op(13, "Mul(%6, %3)"), op(14, "Add(%11, %13)"), op(15, "Mul(%11, %0)"), "  return %12, %14, %15\n}"));
  QUERN_CHECK(body.ok() && vjp.ok());
  const Value w = Squashed(ValueOf(row), -1, 1);
  const std::vector<Value> inputs = {ValueOf(row), ValueOf(rows), w, ValueOf(row), ValueOf(rows)};
  const char* name = Pick<const char*>({"ScanBackward", "ScanBackwardXs"});
  AddWithBodies(name, inputs,
                {{"carries", int64_t{1}},
                 {"xs", int64_t{1}},
                 {"length", std::vector<Extent>{length}},
                 {"reverse", Below(2) == 0},
                 {"checkpoints", symbolic ? int64_t{0} : Below(4)}},
                {*body, *vjp});
  const int made = static_cast<int>(made_.graph.nodes().size()) - 1;
  const int results = static_cast<int>(made_.graph.node(made).results.size());
  for (int r = 0; r < results; ++r) Limit({made, r});
}

}  // namespace quern::testing
