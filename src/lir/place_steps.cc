// Nodes as steps: If, While and Scan, which have bodies, and Counted. Captures lie where they lie outside; results are
// written where the step's own lie.

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "ir/control.h"
#include "lir/graph_builder.h"

namespace quern::lir {

std::string GraphBuilder::StepLabel(int n) const {
  const ir::Node& node = graph_.node(n);
  const std::string label = node.origin < 0 ? "" : graph_.origins()[node.origin].label;
  return absl::StrCat(prefix_, label.empty() ? node.op->name : label);
}

Status GraphBuilder::PlaceStep(int n) {
  struct Row {
    std::string_view op;
    Status (GraphBuilder::*place)(int n);
  };
  constexpr Row kRows[] = {{"Counted", &GraphBuilder::PlaceCounted},
                           {"If", &GraphBuilder::PlaceIf},
                           {"Scan", &GraphBuilder::PlaceScan},
                           {"While", &GraphBuilder::PlaceWhile}};
  for (const Row& row : kRows) {
    if (row.op == graph_.node(n).op->name) return (this->*row.place)(n);
  }
  return absl::InternalError(absl::StrCat("no step is made of ", graph_.node(n).op->name));
}

StatusOr<int> GraphBuilder::PlaceBody(int n, int position, std::vector<Place> inputs,
                                      const std::vector<std::optional<Argument>>& outputs) {
  const ir::Node& node = graph_.node(n);
  const ir::Graph& graph = node.body(position);
  const int index = static_cast<int>(parts_.plan.bodies.size());
  const std::string name = node.op->bodies[position];
  parts_.plan.bodies.push_back({name, body_, n, position, {}, {}});
  GraphBuilder body(parts_, graph, index, absl::StrCat(StepLabel(n), "/", name, "/"));
  body.given_ = std::move(inputs);
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o]) body.Claim(graph.outputs[o], {.at = *outputs[o]});
  }
  QUERN_RETURN_IF_ERROR(body.PlaceNodes());
  for (size_t o = 0; o < outputs.size(); ++o) {
    QUERN_ASSIGN(Argument from, body.Read(graph.outputs[o]));
    if (!outputs[o] || from == *outputs[o]) continue;
    QUERN_RETURN_IF_ERROR(
        body.EmitCopy(graph.type(graph.outputs[o]), std::move(from), *outputs[o], absl::StrCat("output ", o)));
  }
  return index;
}

Status GraphBuilder::PlaceIf(int n) {
  const ir::Node& node = graph_.node(n);
  If step{.node = n, .label = StepLabel(n)};
  QUERN_ASSIGN(step.predicate, Read(node.inputs[0]));
  std::vector<Place> captures;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    QUERN_RETURN_IF_ERROR(Read(node.inputs[i]).status());
    captures.push_back(PlaceOf(node.inputs[i]));
  }
  std::vector<std::optional<Argument>> outputs(node.results.size());
  std::vector<int> taken(node.results.size(), -1);  // captures whose memory results take over
  places_[n].resize(node.results.size());
  for (int r = 0; r < static_cast<int>(node.results.size()); ++r) {
    if (const ir::Donation* const donation = DonationTo(node.body(ir::kThen), r)) {
      taken[r] = InputIndex(node.body(ir::kThen), donation->input);
      QUERN_ASSIGN(captures[taken[r]], Overwritable(n, taken[r] + 1, r));
      continue;
    }
    QUERN_ASSIGN(places_[n][r], PlaceResult({n, r}, false));
    outputs[r] = places_[n][r].at;
  }
  // Each branch finds the memory as it was before the step.
  const std::vector<int> before = parts_.versions;
  QUERN_ASSIGN(step.then, PlaceBody(n, ir::kThen, captures, outputs));
  std::vector<int> after = parts_.versions;
  std::copy(before.begin(), before.end(), parts_.versions.begin());
  QUERN_ASSIGN(step.otherwise, PlaceBody(n, ir::kElse, captures, outputs));
  for (size_t b = 0; b < after.size(); ++b) parts_.versions[b] = std::max(parts_.versions[b], after[b]);
  for (size_t r = 0; r < taken.size(); ++r) {
    if (taken[r] < 0) continue;
    places_[n][r] = captures[taken[r]];
    places_[n][r].version = parts_.versions[places_[n][r].at.buffer];
  }
  parts_.plan.bodies[body_].steps.push_back(std::move(step));
  return absl::OkStatus();
}

int GraphBuilder::InputIndex(const ir::Graph& graph, std::string_view name) {
  const std::vector<int> inputs = graph.Inputs();
  const auto found = std::find_if(inputs.begin(), inputs.end(),
                                  [&](int input) { return graph.node(input).attributes.String("name") == name; });
  return static_cast<int>(found - inputs.begin());
}

bool GraphBuilder::MayOverwrite(int n, int operand, int result) const {
  const ir::Value value = graph_.node(n).inputs[operand];
  int uses = 0;
  for (const ir::Node& node : graph_.nodes())
    uses += static_cast<int>(std::count(node.inputs.begin(), node.inputs.end(), value));
  const bool returned = std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
  if (uses != 1 || returned) return false;
  const ir::Node& from = graph_.node(value.node);
  const Place& place = PlaceOf(value);
  // Memory of the result's own: nobody else's, and made anew in every run.
  if (from.op->kind == ir::OpKind::kRegion) return BufferOf(place).home == Home::kArena;
  if (std::string_view(from.op->name) != "Input") return false;
  for (const ir::Donation& donation : graph_.donations) {
    if (donation.input == from.attributes.String("name"))
      return graph_.outputs[donation.output] == ir::Value{n, result};
  }
  return false;
}

StatusOr<Place> GraphBuilder::Overwritable(int n, int operand, int result) {
  const ir::Value value = graph_.node(n).inputs[operand];
  QUERN_ASSIGN(const Argument at, Read(value));
  if (MayOverwrite(n, operand, result)) return PlaceOf(value);
  QUERN_ASSIGN(const int buffer, parts_.AddBuffer(Home::kArena, graph_.type(value)));
  QUERN_RETURN_IF_ERROR(EmitCopy(graph_.type(value), at, {buffer, 0}, absl::StrCat("operand ", operand)));
  return Place{{buffer, 0}, 0, false};
}

StatusOr<GraphBuilder::CarryPlaces> GraphBuilder::PlaceCarry(int n, int carry, const ir::Graph& body,
                                                             std::vector<Carry>& carries) {
  const ir::Node& loop = graph_.node(n);
  if (DonationTo(body, carry) != nullptr) {
    QUERN_ASSIGN(const Place place, Overwritable(n, carry, carry));
    return CarryPlaces{place, std::nullopt};
  }
  QUERN_ASSIGN(const Argument initial, Read(loop.inputs[carry]));
  if (body.outputs[carry] == ir::Value{body.Inputs()[carry], 0})
    return CarryPlaces{PlaceOf(loop.inputs[carry]), std::nullopt};
  Carry made{.initial = initial};
  for (int& place : made.places) {
    QUERN_ASSIGN(place, parts_.AddBuffer(Home::kArena, loop.results[carry]));
  }
  QUERN_ASSIGN(made.current, parts_.AddBuffer(Home::kLoop, loop.results[carry]));
  QUERN_ASSIGN(made.next, parts_.AddBuffer(Home::kLoop, loop.results[carry]));
  parts_.plan.buffers[made.current].align = std::min(kBufferAlign, parts_.AlignmentOf(initial));
  parts_.plan.buffers[made.next].align = kBufferAlign;
  parts_.AddCarry(made);
  const CarryPlaces places = {{{made.current, 0}, 0, false}, Argument{made.next, 0}};
  carries.push_back(std::move(made));
  return places;
}

Status GraphBuilder::FinishCarries(int n, const std::vector<CarryPlaces>& carries, const ir::Graph& body,
                                   const std::vector<Place>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool updated = i < carries.size() && DonationTo(body, static_cast<int>(i)) != nullptr;
    if (updated || inputs[i].version == parts_.versions[inputs[i].at.buffer]) continue;
    return absl::UnimplementedError(
        absl::StrFormat("a trip overwrites %s, which the next one reads", BufferOf(inputs[i]).name));
  }
  for (size_t c = 0; c < carries.size(); ++c) {
    places_[n][c] = carries[c].current;
    places_[n][c].version = parts_.versions[carries[c].current.at.buffer];
  }
  return absl::OkStatus();
}

Status GraphBuilder::PlaceWhile(int n) {
  const ir::Node& node = graph_.node(n);
  const ir::Graph &cond = node.body(ir::kWhileCond), &body = node.body(ir::kWhileBody);
  While step{.max = node.attributes.Int("max"), .node = n, .label = StepLabel(n)};
  std::vector<CarryPlaces> carries;
  std::vector<Place> inputs;
  std::vector<std::optional<Argument>> next;
  for (int c = 0; c < ir::Carries(node); ++c) {
    QUERN_ASSIGN(carries.emplace_back(), PlaceCarry(n, c, body, step.carries));
    inputs.push_back(carries.back().current);
    next.push_back(carries.back().next);
  }
  for (size_t i = carries.size(); i < node.inputs.size(); ++i) {
    QUERN_RETURN_IF_ERROR(Read(node.inputs[i]).status());
    inputs.push_back(PlaceOf(node.inputs[i]));
  }
  // A carry or capture may say itself whether there is another trip.
  const std::vector<int> cond_inputs = cond.Inputs();
  const auto given = std::find(cond_inputs.begin(), cond_inputs.end(), cond.outputs[0].node);
  std::optional<Argument> predicate;
  if (given == cond_inputs.end()) {
    QUERN_ASSIGN(const int buffer, parts_.AddBuffer(Home::kArena, cond.type(cond.outputs[0])));
    predicate = Argument{buffer, 0};
  }
  step.predicate = predicate ? *predicate : inputs[given - cond_inputs.begin()].at;
  QUERN_ASSIGN(step.cond, PlaceBody(n, ir::kWhileCond, inputs, {predicate}));
  QUERN_ASSIGN(step.body, PlaceBody(n, ir::kWhileBody, inputs, next));
  places_[n].resize(node.results.size());
  QUERN_RETURN_IF_ERROR(FinishCarries(n, carries, body, inputs));
  parts_.plan.bodies[body_].steps.push_back(std::move(step));
  return absl::OkStatus();
}

// The result lies where x does: what counts comes first.
Status GraphBuilder::PlaceCounted(int n) {
  const ir::Node& node = graph_.node(n);
  QUERN_RETURN_IF_ERROR(Read(node.inputs[0]).status());
  places_[n] = {PlaceOf(node.inputs[0])};
  places_[n][0].once = false;
  const std::string& symbol = ir::CountedSymbol(node);
  if (parts_.found.contains(symbol)) return absl::OkStatus();
  Count step{.symbol = symbol, .range = parts_.plan.ranges.at(symbol), .node = n, .label = StepLabel(n)};
  QUERN_ASSIGN(step.count, Read(node.inputs[1]));
  step.requirements = parts_.TakeRequirements(symbol);
  parts_.found.insert(symbol);
  parts_.plan.bodies[body_].steps.push_back(std::move(step));
  return absl::OkStatus();
}

// The rows of `whole`, whose elements lie dense.
StatusOr<Row> GraphBuilder::RowsOf(const Argument& whole, const ir::TensorType& type) {
  ir::TensorType row = type;
  row.dims.erase(row.dims.begin());
  QUERN_ASSIGN(const int buffer, parts_.AddBuffer(Home::kLoop, row));
  Buffer& made = parts_.plan.buffers[buffer];
  QUERN_ASSIGN(Extent stride, BytesOf(made.type, parts_.plan.ranges, nullptr));
  made.align = lir::AlignmentOf(stride, parts_.AlignmentOf(whole));
  return Row{buffer, whole, std::move(stride)};
}

Status GraphBuilder::PlaceScan(int n) {
  const ir::Node& node = graph_.node(n);
  const ir::Graph& body = node.body();
  const int xs = static_cast<int>(node.attributes.Int("xs"));
  Scan step{.length = node.attributes.Extents("length")[0],
            .reverse = node.attributes.Bool("reverse"),
            .node = n,
            .label = StepLabel(n)};
  std::vector<CarryPlaces> carries;
  std::vector<Place> inputs;
  std::vector<std::optional<Argument>> outputs;
  for (int c = 0; c < ir::Carries(node); ++c) {
    QUERN_ASSIGN(carries.emplace_back(), PlaceCarry(n, c, body, step.carries));
    inputs.push_back(carries.back().current);
    outputs.push_back(carries.back().next);
  }
  for (int i = static_cast<int>(carries.size()); i < static_cast<int>(node.inputs.size()); ++i) {
    QUERN_ASSIGN(const Argument operand, Read(node.inputs[i]));
    if (i >= static_cast<int>(carries.size()) + xs) {
      inputs.push_back(PlaceOf(node.inputs[i]));
      continue;
    }
    QUERN_ASSIGN(step.rows.emplace_back(), RowsOf(operand, graph_.type(node.inputs[i])));
    inputs.push_back({{step.rows.back().buffer, 0}, 0, false});
  }
  places_[n].resize(node.results.size());
  for (int r = static_cast<int>(carries.size()); r < static_cast<int>(node.results.size()); ++r) {
    QUERN_ASSIGN(places_[n][r], PlaceResult({n, r}, false));
    QUERN_ASSIGN(step.rows.emplace_back(), RowsOf(places_[n][r].at, node.results[r]));
    outputs.push_back(Argument{step.rows.back().buffer, 0});
  }
  QUERN_ASSIGN(step.body, PlaceBody(n, 0, inputs, outputs));
  QUERN_RETURN_IF_ERROR(FinishCarries(n, carries, body, inputs));
  parts_.plan.bodies[body_].steps.push_back(std::move(step));
  return absl::OkStatus();
}

}  // namespace quern::lir
