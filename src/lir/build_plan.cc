// Graph to plan: every region lowered, kernels merged, every value given a home, the arena placed. Nodes with bodies
// are place_steps.cc's.

#include "lir/graph_builder.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "codegen/block_schedule.h"
#include "ir/control.h"
#include "lir/copy_kernel.h"

namespace quern::lir {
namespace {

using ir::Value;

// The constraints of the graph and of the bodies in it.
void CollectRequirements(const ir::Graph& graph, PlanParts& parts) {
  for (const ir::ExtentConstraint& constraint : graph.constraints) parts.Require(constraint);
  for (const ir::Node& node : graph.nodes()) {
    for (const auto& body : node.bodies) CollectRequirements(*body, parts);
  }
}

// The region input whose memory result `r` takes over: an Update of a donated input, or another state, written in
// place.
int UpdatedInput(const ir::Graph& body, int r) {
  auto root = [&](Value value) {
    while (ir::IsReshape(body, body.node(value.node))) value = body.node(value.node).inputs[0];
    return value;
  };
  const Value made = root(body.outputs[r]);
  const ir::Node& update = body.node(made.node);
  const std::optional<ir::Takeover> takeover = ir::TakeoverOf(update);
  if (!takeover || takeover->result != made.result) return -1;
  const int target = root(update.inputs[takeover->operand]).node;
  const std::vector<int> inputs = body.Inputs();
  const auto found = std::find(inputs.begin(), inputs.end(), target);
  return found == inputs.end() ? -1 : static_cast<int>(found - inputs.begin());
}

}  // namespace

const ir::Donation* DonationTo(const ir::Graph& graph, int output) {
  for (const ir::Donation& donation : graph.donations) {
    if (donation.output == output) return &donation;
  }
  return nullptr;
}

Value GraphBuilder::Root(Value value) const {
  while (ir::IsReshape(graph_, graph_.node(value.node))) value = graph_.node(value.node).inputs[0];
  return value;
}

bool GraphBuilder::Claim(Value output, Claimed claim) {
  const Value root = Root(output);
  const ir::Node& node = graph_.node(root.node);
  // What a loop carries changes its place until the loop ends.
  if (!ir::IsRegion(node) && !ir::IsBranch(node) && !ir::IsStacked(node, root.result)) return false;
  return claims_.emplace(root, claim).second;
}

Status GraphBuilder::PlaceNodes() {
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    QUERN_RETURN_IF_ERROR(ir::WithOrigin(graph_, graph_.nodes()[n].origin, PlaceNode(static_cast<int>(n))));
    if (body_ == 0) QUERN_RETURN_IF_ERROR(CopyStateToOutputs(static_cast<int>(n)));
  }
  std::vector<std::vector<Argument>>& values = parts_.plan.bodies[body_].values;
  for (const std::vector<Place>& results : places_) {
    std::vector<Argument>& row = values.emplace_back();
    for (const Place& place : results) row.push_back(place.at);
  }
  return absl::OkStatus();
}

// An output that is a donated input as it was, or a view of that, is copied before anything writes over it.
Status GraphBuilder::CopyStateToOutputs(int n) {
  const ir::Node& node = graph_.node(n);
  if (!ir::IsInput(node) && node.op->strides == nullptr) return absl::OkStatus();
  for (size_t o = 0; o < graph_.outputs.size(); ++o) {
    const int output = static_cast<int>(o);
    if (graph_.outputs[o] != Value{n, 0} || DonationTo(graph_, output) != nullptr) continue;
    const Place& place = PlaceOf({n, 0});
    if (BufferOf(place).home != Home::kState || place.version != parts_.versions[place.at.buffer]) continue;
    const ir::TensorType& type = graph_.type({n, 0});
    QUERN_ASSIGN(const int buffer, parts_.AddBuffer(Home::kOutput, type, output));
    QUERN_RETURN_IF_ERROR(EmitCopy(type, place.at, {buffer, 0}, absl::StrCat("output ", o)));
    copied_outputs_.insert(output);
  }
  return absl::OkStatus();
}

Status GraphBuilder::PlaceNode(int n) {
  const ir::Node& node = graph_.node(n);
  if (ir::IsLeaf(node)) return PlaceLeaf(n);
  if (ir::IsRegion(node)) return PlaceRegion(n);
  if (node.op->strides != nullptr) return PlaceView(n);
  if (ir::IsControl(node)) return PlaceStep(n);
  return absl::InternalError(absl::StrCat("after fusion a graph holds no ", node.op->name));
}

Status GraphBuilder::PlaceLeaf(int n) {
  const ir::Node& node = graph_.node(n);
  if (ir::IsInput(node) && body_ != 0) {
    places_[n] = {given_[next_input_++]};
    return absl::OkStatus();
  }
  Buffer buffer;
  buffer.type = codegen::BufferTypeOf(node.results[0], /*parameter=*/!ir::IsInput(node));
  QUERN_ASSIGN(buffer.bytes, BytesOf(buffer.type, parts_.plan.ranges, nullptr));
  if (ir::IsConstant(node)) {
    buffer.home = Home::kConstant;
    buffer.data = node.data;
  } else {
    buffer.name = node.attributes.String("name");
    buffer.home = ir::IsParam(node) ? Home::kParam : Home::kInput;
    for (const ir::Donation& donation : graph_.donations) {
      if (buffer.home == Home::kInput && donation.input == buffer.name) buffer.home = Home::kState;
    }
  }
  const bool once = buffer.home == Home::kParam || buffer.home == Home::kConstant;
  int index = -1;
  if (buffer.home == Home::kParam) {
    buffer.align = parts_.facts.blocks ? kParamAlign : GivenParamAlign(buffer.type.dtype);
    // Bodies name the parameters of the whole graph.
    const auto known = parts_.params.find(buffer.name);
    if (known != parts_.params.end()) index = known->second;
  }
  if (index < 0) index = parts_.AddBuffer(std::move(buffer));
  if (parts_.plan.buffers[index].home == Home::kParam) parts_.params[parts_.plan.buffers[index].name] = index;
  places_[n] = {{{index, 0}, 0, once}};
  return absl::OkStatus();
}

Status GraphBuilder::PlaceView(int n) {
  const ir::Node& node = graph_.node(n);
  const Value from = node.inputs[0];
  Place place = places_[from.node][from.result];
  const ir::TensorType& type = graph_.type(from);
  const kir::BufferType stored = codegen::BufferTypeOf(type, BufferOf(place).home == Home::kParam);
  if (ir::IsReshape(graph_, node)) {
    if (stored.layout != kir::Layout::kRow && type.dims.back() != node.results[0].dims.back()) {
      return absl::UnimplementedError(absl::StrFormat("a reshape of %s across its rows", type.ToString()));
    }
  } else {
    // Of what has rows, a view begins at a row.
    const std::optional<Extent> start = ir::ViewStart(graph_, node);
    if (!start) return absl::InternalError(absl::StrFormat("%s is no view of %s", node.op->name, type.ToString()));
    kir::BufferType unit = stored;
    const Extent width = type.rank() == 0 || !IsBlock(type.dtype) ? Extent(1) : type.dims.back();
    unit.dims = {width};
    QUERN_ASSIGN(const Extent step, BytesOf(unit, parts_.plan.ranges, nullptr));
    const std::optional<Extent> units = start->DividedBy(width);
    if (!units)
      return absl::InternalError(absl::StrFormat("a view of %s that begins inside of a row", type.ToString()));
    place.at.offset = place.at.offset + *units * step;
  }
  places_[n] = {place};
  return absl::OkStatus();
}

std::string GraphBuilder::LabelOf(const ir::Node& region, const family::KernelUse& use) const {
  if (use.last_origin >= 0) return prefix_ + codegen::OriginText(region.body(), use.last_origin);
  return prefix_ + (region.origin >= 0 ? graph_.origins()[region.origin].label : "");
}

StatusOr<Argument> GraphBuilder::Read(Value value) const {
  const Place& place = PlaceOf(value);
  if (place.version == parts_.versions[place.at.buffer]) return place.at;
  return absl::UnimplementedError(
      absl::StrFormat("the donated input %s is read after it is overwritten", BufferOf(place).name));
}

StatusOr<Place> GraphBuilder::PlaceResult(Value value, bool once, int64_t align) {
  const auto claim = claims_.find(value);
  const auto fits = [&](const Claimed& claimed) {
    if (claimed.output < 0) return parts_.AlignmentOf(claimed.at) >= align;
    const DType dtype = graph_.type(value).dtype;
    return align <= (IsBlock(dtype) ? 1 : ScalarBytes(dtype));
  };
  if (claim == claims_.end() || once || (align > 1 && !fits(claim->second))) {
    QUERN_ASSIGN(const int buffer, parts_.AddBuffer(once ? Home::kOnce : Home::kArena, graph_.type(value)));
    return Place{{buffer, 0}, 0, once};
  }
  if (claim->second.output < 0) return Place{claim->second.at, 0, false};
  QUERN_ASSIGN(const int buffer, parts_.AddBuffer(Home::kOutput, graph_.type(value), claim->second.output));
  return Place{{buffer, 0}, 0, false};
}

void GraphBuilder::Emit(Launch launch, bool once) {
  launch.body = body_;
  if (once) {
    parts_.plan.once.push_back(std::move(launch));
    return;
  }
  const int index = static_cast<int>(parts_.plan.launches.size());
  std::vector<Step>& steps = parts_.plan.bodies[body_].steps;
  Run* const last = steps.empty() ? nullptr : std::get_if<Run>(&steps.back());
  if (last != nullptr && last->end == index)
    ++last->end;
  else
    steps.push_back(Run{index, index + 1});
  parts_.plan.launches.push_back(std::move(launch));
}

Status GraphBuilder::PlaceRegion(int n) {
  const ir::Node& region = graph_.node(n);
  QUERN_ASSIGN(LoweredOnce* const found, parts_.Lower(graph_, n));
  const family::LoweredRegion& lowered = found->region;
  bool once = true;
  for (const Value& input : region.inputs) once = once && PlaceOf(input).once;
  std::set<int> written;  // results that a kernel writes
  for (const family::KernelUse& use : lowered.kernels) {
    once = once && use.kernel.symbols.empty();
    for (const family::Operand& operand : use.operands) {
      if (operand.kind == family::Operand::Kind::kResult) written.insert(operand.index);
    }
  }
  // What a C function asks of its memory is not to be had less; kernels are made for what there is.
  int64_t align = 1;
  for (const family::KernelUse& use : lowered.kernels) {
    if (use.call != nullptr) align = use.call->alignment;
  }
  std::vector<Place>& results = places_[n];
  results.resize(region.results.size());
  std::vector<std::pair<int, int>> updates;  // (result, region input)
  for (int r = 0; r < static_cast<int>(region.results.size()); ++r) {
    if (written.contains(r)) {
      QUERN_ASSIGN(results[r], PlaceResult({n, r}, once, align));
      continue;
    }
    const int input = UpdatedInput(region.body(), r);
    if (input < 0) return absl::InternalError(absl::StrFormat("no kernel of the region writes its result %d", r));
    updates.emplace_back(r, input);
  }
  QUERN_ASSIGN(const std::vector<int> temporaries, AddTemporaries(lowered, once));
  const std::vector<int> constants = AddConstants(lowered);
  for (size_t k = 0; k < lowered.kernels.size(); ++k) {
    const family::KernelUse& use = lowered.kernels[k];
    std::vector<int> aligns;
    Launch launch;
    launch.label = LabelOf(region, use);
    launch.region = n;
    for (size_t p = 0; p < use.operands.size(); ++p) {
      const family::Operand& operand = use.operands[p];
      Argument argument;
      switch (operand.kind) {
        case family::Operand::Kind::kInput: {
          QUERN_ASSIGN(argument, Read(region.inputs[operand.index]));
          QUERN_ASSIGN(argument, Aligned(std::move(argument), graph_.type(region.inputs[operand.index]), align, once));
          break;
        }
        case family::Operand::Kind::kResult: argument = results[operand.index].at; break;
        case family::Operand::Kind::kTemporary: argument = {temporaries[operand.index], 0}; break;
        case family::Operand::Kind::kConstant: argument = {constants[operand.index], 0}; break;
      }
      aligns.push_back(static_cast<int>(std::min<int64_t>(use.kernel.params[p].align, parts_.AlignmentOf(argument))));
      launch.arguments.push_back(std::move(argument));
    }
    const auto [kernel, added] = found->interned.try_emplace({k, aligns}, -1);
    if (added) {
      kir::Kernel aligned = use.kernel;
      for (size_t p = 0; p < aligns.size(); ++p) aligned.params[p].align = aligns[p];
      kernel->second = parts_.Intern(std::move(aligned), use.call);
    }
    launch.kernel = kernel->second;
    Emit(std::move(launch), once);
  }
  for (const auto& [r, input] : updates) {
    results[r] = PlaceOf(region.inputs[input]);
    results[r].version = ++parts_.versions[results[r].at.buffer];
  }
  return absl::OkStatus();
}

StatusOr<std::vector<int>> GraphBuilder::AddTemporaries(const family::LoweredRegion& lowered, bool once) {
  std::vector<int> buffers;
  for (size_t t = 0; t < lowered.temporaries.size(); ++t) {
    Buffer buffer;
    buffer.type = lowered.temporaries[t];
    buffer.home = once ? Home::kOnce : Home::kArena;
    // A kernel that uses it declares the symbols of its extents.
    const kir::Kernel* kernel = nullptr;
    for (const family::KernelUse& use : lowered.kernels) {
      for (const family::Operand& operand : use.operands) {
        if (operand.kind == family::Operand::Kind::kTemporary && operand.index == static_cast<int>(t))
          kernel = &use.kernel;
      }
    }
    QUERN_ASSIGN(buffer.bytes, BytesOf(buffer.type, parts_.plan.ranges, kernel));
    buffers.push_back(parts_.AddBuffer(std::move(buffer)));
  }
  return buffers;
}

std::vector<int> GraphBuilder::AddConstants(const family::LoweredRegion& lowered) {
  std::vector<int> buffers;
  for (const family::ConstantBytes& constant : lowered.constants) {
    Buffer buffer;
    buffer.home = Home::kConstant;
    buffer.type = constant.type;
    buffer.bytes = Extent(static_cast<int64_t>(constant.data->size()));
    buffer.data = constant.data;
    buffers.push_back(parts_.AddBuffer(std::move(buffer)));
  }
  return buffers;
}

StatusOr<Argument> GraphBuilder::Aligned(Argument at, const ir::TensorType& type, int64_t align, bool once) {
  if (parts_.AlignmentOf(at) >= align) return at;
  QUERN_ASSIGN(const int buffer, parts_.AddBuffer(once ? Home::kOnce : Home::kArena, type));
  const Argument copy = {buffer, 0};
  QUERN_RETURN_IF_ERROR(EmitCopy(type, std::move(at), copy, "aligned copy", once));
  return copy;
}

Status GraphBuilder::EmitCopy(const ir::TensorType& type, Argument from, Argument to, std::string label, bool once) {
  QUERN_ASSIGN(kir::Kernel kernel, CopyKernel(type, parts_.plan.ranges));
  if (parts_.facts.blocks) {
    QUERN_ASSIGN(kernel, codegen::ScheduleBlocks(kernel, *parts_.facts.blocks));
  }
  Emit({parts_.Intern(std::move(kernel)), {std::move(from), std::move(to)}, prefix_ + label}, once);
  return absl::OkStatus();
}

StatusOr<Plan> GraphBuilder::BuildRoot(const ir::Graph& graph, PlanParts& parts) {
  parts.plan.bodies.emplace_back();
  parts.counted = ir::AllCountedSizes(graph);
  CollectRequirements(graph, parts);
  GraphBuilder root(parts, graph, 0, "");
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const int output = static_cast<int>(o);
    if (DonationTo(graph, output) == nullptr) root.Claim(graph.outputs[o], {.output = output});
  }
  QUERN_RETURN_IF_ERROR(root.PlaceNodes());
  QUERN_RETURN_IF_ERROR(root.FinishOutputs());
  parts.PlaceMemory();
  QUERN_RETURN_IF_ERROR(Verify(parts.plan));
  return std::move(parts.plan);
}

// Outputs that no region wrote in place are copied. State is read before any of it is overwritten.
Status GraphBuilder::FinishOutputs() {
  struct Copy {
    ir::TensorType type;
    Argument from, to;
    std::string label;
  };
  std::map<std::string_view, int> inputs;
  for (const int n : graph_.Inputs()) inputs.emplace(graph_.node(n).attributes.String("name"), n);
  std::vector<Copy> last;
  for (size_t o = 0; o < graph_.outputs.size(); ++o) {
    if (copied_outputs_.contains(static_cast<int>(o))) continue;
    const Value value = graph_.outputs[o];
    const ir::TensorType& type = graph_.type(value);
    const Place& place = PlaceOf(value);
    const Buffer& from = BufferOf(place);
    if (place.version != parts_.versions[place.at.buffer]) {
      return absl::UnimplementedError(
          absl::StrFormat("output %d is the donated input %s, which is overwritten", o, from.name));
    }
    const ir::Donation* donation = DonationTo(graph_, static_cast<int>(o));
    Copy copy = {type, place.at, {}, absl::StrCat("output ", o)};
    if (donation == nullptr) {
      if (from.home == Home::kOutput && from.index == static_cast<int>(o)) continue;
      QUERN_ASSIGN(const int buffer, parts_.AddBuffer(Home::kOutput, type, static_cast<int>(o)));
      QUERN_RETURN_IF_ERROR(EmitCopy(type, copy.from, {buffer, 0}, copy.label));
      continue;
    }
    copy.to = {places_[inputs.at(donation->input)][0].at.buffer, 0};
    if (copy.to == place.at) continue;
    if (parts_.MayBeState(copy.from.buffer)) {
      QUERN_ASSIGN(const int buffer, parts_.AddBuffer(Home::kArena, type));
      const Argument between = {buffer, 0};
      QUERN_RETURN_IF_ERROR(EmitCopy(type, copy.from, between, copy.label));
      copy.from = between;
    }
    last.push_back(std::move(copy));
  }
  for (Copy& copy : last) QUERN_RETURN_IF_ERROR(EmitCopy(copy.type, copy.from, copy.to, copy.label));
  return absl::OkStatus();
}

std::string_view Name(Home home) {
  constexpr std::string_view kNames[] = {"arena", "input", "output", "param", "constant", "state", "once", "loop"};
  return kNames[static_cast<size_t>(home)];
}

int64_t AlignmentOf(const Extent& offset, int64_t most) {
  uint64_t bits = static_cast<uint64_t>(most);
  for (const Extent::Term& term : offset.terms()) bits |= static_cast<uint64_t>(term.coefficient);
  return int64_t{1} << std::countr_zero(bits);
}

int64_t AlignmentOf(const Buffer& buffer) {
  switch (buffer.home) {
    case Home::kInput:
    case Home::kOutput: return IsBlock(buffer.type.dtype) ? 1 : ScalarBytes(buffer.type.dtype);
    case Home::kArena:
    case Home::kConstant:
    case Home::kState:
    case Home::kOnce: return kBufferAlign;
    case Home::kParam:
    case Home::kLoop: return buffer.align;
  }
  return 1;
}

const ir::Graph& GraphOf(const ir::Graph& fused, const Plan& plan, int body) {
  const Body& of = plan.bodies[body];
  return of.parent < 0 ? fused : GraphOf(fused, plan, of.parent).node(of.node).body(of.position);
}

StatusOr<Plan> BuildPlan(const ir::Graph& graph, const SymbolRanges& ranges, const family::TargetFacts& facts) {
  PlanParts parts(ranges, facts);
  parts.plan.name = graph.name;
  for (const auto& [symbol, range] : graph.symbols) parts.plan.ranges.emplace(symbol, range);
  return GraphBuilder::BuildRoot(graph, parts);
}

}  // namespace quern::lir
