// Graph to plan: every region lowered, kernels merged, every value given a home, the arena placed.

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "codegen/block_schedule.h"
#include "ir/op.h"
#include "kir/symbols.h"
#include "lir/arena.h"
#include "lir/copy_kernel.h"
#include "lir/plan.h"

namespace quern::lir {
namespace {

using ir::Value;

bool Is(const ir::Node& node, std::string_view op) { return op == node.op->name; }

int64_t Axis(const ir::Node& node, int rank) {
  const int64_t axis = node.attributes.Int("axis");
  return axis < 0 ? axis + rank : axis;
}

// Bytes of a buffer; symbols that kernels derive count as their upper bound.
StatusOr<Extent> BytesOf(const kir::BufferType& type, const SymbolRanges& ranges, const kir::Kernel* kernel) {
  Extent bytes = kir::LayoutBytes(type.layout, type.dtype, type.dims);
  for (const std::string& symbol : bytes.Symbols()) {
    if (ranges.contains(symbol)) continue;
    const SymbolRanges derived = kernel == nullptr ? SymbolRanges{} : kir::RangesOf(*kernel);
    const auto range = derived.find(symbol);
    if (range == derived.end() || range->second.high == INT64_MAX) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the size of %s has no bound: symbol %s", kir::Print(type), symbol));
    }
    bytes = bytes.Substitute(symbol, range->second.high);
  }
  return bytes;
}

class PlanBuilder {
 public:
  PlanBuilder(const ir::Graph& graph, const SymbolRanges& ranges, const family::TargetFacts& facts)
      : graph_(graph), facts_(facts), memory_(family::MemoryOf(graph)) {
    plan_.name = graph.name;
    plan_.ranges = ranges;
    for (const auto& [symbol, range] : graph.symbols) plan_.ranges.emplace(symbol, range);
    places_.resize(graph.nodes().size());
  }

  StatusOr<Plan> Build() {
    ClaimOutputs();
    CollectRequirements(graph_);
    for (const ir::ExtentConstraint& constraint : graph_.constraints)
      Require(constraint.left - constraint.right, true, "");
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      QUERN_RETURN_IF_ERROR(ir::WithOrigin(graph_, graph_.nodes()[n].origin, PlaceNode(static_cast<int>(n))));
    }
    QUERN_RETURN_IF_ERROR(FinishOutputs());
    for (const std::vector<Place>& results : places_) {
      std::vector<Argument>& values = plan_.values.emplace_back();
      for (const Place& place : results) values.push_back(place.at);
    }
    PlaceMemory();
    QUERN_RETURN_IF_ERROR(Verify(plan_));
    return std::move(plan_);
  }

 private:
  // Where a value lies. `version` counts in-place updates of the buffer that had happened when the value was made.
  struct Place {
    Argument at;
    int version = 0;
    bool once = false;  // depends on parameters and constants only
  };

  // The value that `value` is a whole view of.
  Value Root(Value value) const {
    while (ir::IsReshape(graph_, graph_.node(value.node))) value = graph_.node(value.node).inputs[0];
    return value;
  }

  const ir::Donation* DonationTo(int output) const {
    for (const ir::Donation& donation : graph_.donations) {
      if (donation.output == output) return &donation;
    }
    return nullptr;
  }

  // Results of regions that are written straight into the caller's memory.
  void ClaimOutputs() {
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const Value root = Root(graph_.outputs[o]);
      if (DonationTo(static_cast<int>(o)) == nullptr && Is(graph_.node(root.node), "Region"))
        claims_.emplace(root, static_cast<int>(o));
    }
  }

  void Require(Extent value, bool exact, std::string text) {
    if (exact ? value == Extent(0) : value.ProvablyAtLeast(Extent(0), plan_.ranges)) return;
    if (text.empty()) text = absl::StrCat(value.ToString(), " is 0");
    for (const Requirement& known : plan_.requirements) {
      if (known.value == value && known.exact == exact) return;
    }
    plan_.requirements.push_back({std::move(value), exact, std::move(text)});
  }

  void CollectRequirements(const ir::Graph& graph) {
    for (const ir::Node& node : graph.nodes()) {
      if (node.body != nullptr) {
        CollectRequirements(*node.body);
        for (const ir::ExtentConstraint& constraint : node.body->constraints)
          Require(constraint.left - constraint.right, true, "");
      }
      const bool narrow = Is(node, "Narrow"), update = Is(node, "Update");
      if (!narrow && !update) continue;
      const std::vector<Extent>& dims = graph.type(node.inputs[0]).dims;
      const int64_t axis = Axis(node, static_cast<int>(dims.size()));
      const Extent& start = node.attributes.Extents("start")[0];
      const Extent length = narrow ? node.results[0].dims[axis] : graph.type(node.inputs[1]).dims[axis];
      const std::string text = absl::StrCat(node.op->name, ": ", length.ToString(), " elements from ", start.ToString(),
                                            " lie in ", dims[axis].ToString());
      Require(start, false, text);
      Require(dims[axis] - start - length, false, text);
    }
  }

  int AddBuffer(Buffer buffer) {
    if (buffer.name.empty()) buffer.name = absl::StrCat("b", plan_.buffers.size());
    plan_.buffers.push_back(std::move(buffer));
    versions_.push_back(0);
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  Status PlaceNode(int n) {
    const ir::Node& node = graph_.node(n);
    if (node.op->kind == ir::OpKind::kLeaf) return PlaceLeaf(n);
    if (Is(node, "Region")) return PlaceRegion(n);
    if (node.op->view != nullptr) return PlaceView(n);
    return absl::InternalError(absl::StrCat("after fusion a graph holds no ", node.op->name));
  }

  Status PlaceLeaf(int n) {
    const ir::Node& node = graph_.node(n);
    Buffer buffer;
    buffer.type = codegen::BufferTypeOf(node.results[0], /*parameter=*/!Is(node, "Input"));
    QUERN_ASSIGN(buffer.bytes, BytesOf(buffer.type, plan_.ranges, nullptr));
    if (Is(node, "Constant")) {
      buffer.home = Home::kConstant;
      buffer.data = node.data;
    } else {
      buffer.name = node.attributes.String("name");
      buffer.home = Is(node, "Param") ? Home::kParam : Home::kInput;
      for (const ir::Donation& donation : graph_.donations) {
        if (buffer.home == Home::kInput && donation.input == buffer.name) buffer.home = Home::kState;
      }
    }
    const bool once = buffer.home == Home::kParam || buffer.home == Home::kConstant;
    places_[n] = {{{AddBuffer(std::move(buffer)), 0}, 0, once}};
    return absl::OkStatus();
  }

  Status PlaceView(int n) {
    const ir::Node& node = graph_.node(n);
    const Value from = node.inputs[0];
    Place place = places_[from.node][from.result];
    const ir::TensorType& type = graph_.type(from);
    const kir::BufferType stored = codegen::BufferTypeOf(type, plan_.buffers[place.at.buffer].home == Home::kParam);
    if (ir::IsReshape(graph_, node)) {
      if (stored.layout != kir::Layout::kRow && type.dims.back() != node.results[0].dims.back()) {
        return absl::UnimplementedError(absl::StrFormat("a reshape of %s across its rows", type.ToString()));
      }
    } else {
      // Of what has rows, a view begins at a row.
      const std::optional<Extent> start = node.op->view(node, type);
      if (!start) return absl::InternalError(absl::StrFormat("%s is no view of %s", node.op->name, type.ToString()));
      kir::BufferType unit = stored;
      const Extent width = type.rank() == 0 || !IsBlock(type.dtype) ? Extent(1) : type.dims.back();
      unit.dims = {width};
      QUERN_ASSIGN(const Extent step, BytesOf(unit, plan_.ranges, nullptr));
      const std::optional<Extent> units = start->DividedBy(width);
      if (!units)
        return absl::InternalError(absl::StrFormat("a view of %s that begins inside of a row", type.ToString()));
      place.at.offset = place.at.offset + *units * step;
    }
    places_[n] = {place};
    return absl::OkStatus();
  }

  // The region input whose memory result `r` takes over: an Update of a donated input, written in place.
  int UpdatedInput(const ir::Graph& body, int r) const {
    auto root = [&](Value value) {
      while (ir::IsReshape(body, body.node(value.node))) value = body.node(value.node).inputs[0];
      return value;
    };
    const ir::Node& update = body.node(root(body.outputs[r]).node);
    if (update.op->kind != ir::OpKind::kWrite) return -1;
    const int target = root(update.inputs[0]).node;
    const std::vector<int> inputs = body.Inputs();
    const auto found = std::find(inputs.begin(), inputs.end(), target);
    return found == inputs.end() ? -1 : static_cast<int>(found - inputs.begin());
  }

  std::string LabelOf(const ir::Node& region, const family::KernelUse& use) const {
    if (use.last_origin >= 0) return codegen::OriginText(*region.body, use.last_origin);
    return region.origin >= 0 ? graph_.origins()[region.origin].label : "";
  }

  // A region as kernels, and those that the plan has of them already. A model repeats its regions layer by layer: they
  // are lowered, and verified, once.
  struct Lowered {
    int node;
    family::LoweredRegion region;
    std::map<std::pair<size_t, std::vector<int>>, int>
        interned;  // by kernel of the region and alignment of its parameters
  };
  StatusOr<Lowered*> Lower(int n) {
    for (Lowered& known : lowered_) {
      if (codegen::LowerAlike(memory_, graph_.node(known.node), graph_.node(n))) return &known;
    }
    QUERN_ASSIGN(family::LoweredRegion region, codegen::LowerRegion(memory_, graph_.node(n), plan_.ranges, facts_));
    return &lowered_.emplace_back(Lowered{n, std::move(region), {}});
  }

  // The index of `kernel` among the plan's, where one with the same canonical text and symbols may stand already.
  int Intern(kir::Kernel kernel) {
    std::string key = kir::Print(kernel, {.origins = false, .normalise_names = true});
    for (const kir::SymbolDecl& symbol : kernel.symbols) absl::StrAppend(&key, "|", symbol.name);
    const auto [it, added] = kernels_.emplace(HashBytes(key), static_cast<int>(plan_.kernels.size()));
    if (added) plan_.kernels.push_back(std::move(kernel));
    return it->second;
  }

  // What the memory behind an argument is aligned to: ours is, a caller's has only what its elements need.
  int64_t AlignmentOfArgument(const Argument& argument) const {
    const Buffer& buffer = plan_.buffers[argument.buffer];
    switch (buffer.home) {
      case Home::kInput:
      case Home::kOutput:
        return IsBlock(buffer.type.dtype) ? 1 : AlignmentOf(argument.offset, ScalarBytes(buffer.type.dtype));
      case Home::kParam: return AlignmentOf(argument.offset, kParamAlign);
      case Home::kArena:
      case Home::kConstant:
      case Home::kState:
      case Home::kOnce: return AlignmentOf(argument.offset, kBufferAlign);
    }
    return 1;
  }

  Status PlaceRegion(int n) {
    const ir::Node& region = graph_.node(n);
    QUERN_ASSIGN(Lowered* const found, Lower(n));
    const family::LoweredRegion& lowered = found->region;
    bool once = true;
    for (const Value& input : region.inputs) once = once && places_[input.node][input.result].once;
    std::set<int> written;  // results that a kernel writes
    for (const family::KernelUse& use : lowered.kernels) {
      once = once && use.kernel.symbols.empty();
      for (const family::Operand& operand : use.operands) {
        if (operand.kind == family::Operand::Kind::kResult) written.insert(operand.index);
      }
    }
    std::vector<Place>& results = places_[n];
    results.resize(region.results.size());
    std::vector<std::pair<int, int>> updates;  // (result, region input)
    for (int r = 0; r < static_cast<int>(region.results.size()); ++r) {
      if (!written.contains(r)) {
        const int input = UpdatedInput(*region.body, r);
        if (input < 0) return absl::InternalError(absl::StrFormat("no kernel of the region writes its result %d", r));
        updates.emplace_back(r, input);
        continue;
      }
      Buffer buffer;
      buffer.type = codegen::BufferTypeOf(region.results[r], false);
      QUERN_ASSIGN(buffer.bytes, BytesOf(buffer.type, plan_.ranges, nullptr));
      const auto claim = claims_.find({n, r});
      if (claim != claims_.end() && !once) {
        buffer.home = Home::kOutput;
        buffer.index = claim->second;
      } else {
        buffer.home = once ? Home::kOnce : Home::kArena;
      }
      results[r] = {{AddBuffer(std::move(buffer)), 0}, 0, once};
    }
    QUERN_ASSIGN(const std::vector<int> temporaries, AddTemporaries(lowered, once));
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
            const Place& place = PlaceOf(region.inputs[operand.index]);
            if (place.version != versions_[place.at.buffer]) {
              return absl::UnimplementedError(absl::StrFormat("the donated input %s is read after it is overwritten",
                                                              plan_.buffers[place.at.buffer].name));
            }
            argument = place.at;
            break;
          }
          case family::Operand::Kind::kResult: argument = results[operand.index].at; break;
          case family::Operand::Kind::kTemporary: argument = {temporaries[operand.index], 0}; break;
        }
        aligns.push_back(
            static_cast<int>(std::min<int64_t>(use.kernel.params[p].align, AlignmentOfArgument(argument))));
        launch.arguments.push_back(std::move(argument));
      }
      const auto [kernel, added] = found->interned.try_emplace({k, aligns}, -1);
      if (added) {
        kir::Kernel aligned = use.kernel;
        for (size_t p = 0; p < aligns.size(); ++p) aligned.params[p].align = aligns[p];
        kernel->second = Intern(std::move(aligned));
      }
      launch.kernel = kernel->second;
      (once ? plan_.once : plan_.launches).push_back(std::move(launch));
    }
    for (const auto& [r, input] : updates) {
      results[r] = PlaceOf(region.inputs[input]);
      results[r].version = ++versions_[results[r].at.buffer];
    }
    return absl::OkStatus();
  }

  const Place& PlaceOf(Value value) const { return places_[value.node][value.result]; }

  StatusOr<std::vector<int>> AddTemporaries(const family::LoweredRegion& lowered, bool once) {
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
      QUERN_ASSIGN(buffer.bytes, BytesOf(buffer.type, plan_.ranges, kernel));
      buffers.push_back(AddBuffer(std::move(buffer)));
    }
    return buffers;
  }

  // Copies a value of `type` between two places at the end of the run.
  Status AddCopy(const ir::TensorType& type, Argument from, Argument to, std::string label) {
    QUERN_ASSIGN(kir::Kernel kernel, CopyKernel(type, plan_.ranges));
    if (facts_.blocks) {
      QUERN_ASSIGN(kernel, codegen::ScheduleBlocks(kernel, *facts_.blocks));
    }
    plan_.launches.push_back({Intern(std::move(kernel)), {std::move(from), std::move(to)}, std::move(label)});
    return absl::OkStatus();
  }

  // Outputs that no region wrote in place are copied. State is read before any of it is overwritten.
  Status FinishOutputs() {
    struct Copy {
      ir::TensorType type;
      Argument from, to;
      std::string label;
    };
    std::vector<Copy> last;
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const Value value = graph_.outputs[o];
      const ir::TensorType& type = graph_.type(value);
      const Place& place = PlaceOf(value);
      const Buffer& from = plan_.buffers[place.at.buffer];
      if (place.version != versions_[place.at.buffer]) {
        return absl::UnimplementedError(
            absl::StrFormat("output %d is the donated input %s, which is overwritten", o, from.name));
      }
      const ir::Donation* donation = DonationTo(static_cast<int>(o));
      Copy copy = {type, place.at, {}, absl::StrCat("output ", o)};
      if (donation != nullptr) {
        for (const int input : graph_.Inputs()) {
          if (graph_.node(input).attributes.String("name") == donation->input)
            copy.to = {places_[input][0].at.buffer, 0};
        }
        if (copy.to == place.at) continue;
      } else {
        if (from.home == Home::kOutput && from.index == static_cast<int>(o)) continue;
        Buffer buffer;
        buffer.type = codegen::BufferTypeOf(type, false);
        buffer.home = Home::kOutput;
        buffer.index = static_cast<int>(o);
        QUERN_ASSIGN(buffer.bytes, BytesOf(buffer.type, plan_.ranges, nullptr));
        copy.to = {AddBuffer(std::move(buffer)), 0};
      }
      if (donation != nullptr && plan_.buffers[copy.from.buffer].home == Home::kState) {
        Buffer buffer;
        buffer.type = codegen::BufferTypeOf(type, false);
        QUERN_ASSIGN(buffer.bytes, BytesOf(buffer.type, plan_.ranges, nullptr));
        const Argument between = {AddBuffer(std::move(buffer)), 0};
        QUERN_RETURN_IF_ERROR(AddCopy(type, copy.from, between, copy.label));
        copy.from = between;
      }
      if (donation != nullptr) {
        last.push_back(std::move(copy));
      } else {
        QUERN_RETURN_IF_ERROR(AddCopy(type, copy.from, copy.to, copy.label));
      }
    }
    for (Copy& copy : last) QUERN_RETURN_IF_ERROR(AddCopy(copy.type, copy.from, copy.to, copy.label));
    return absl::OkStatus();
  }

  // Offsets in the arena, by the launches that touch each buffer; parameter-only values simply follow each other.
  void PlaceMemory() {
    std::map<int, Lifetime> live;
    for (size_t l = 0; l < plan_.launches.size(); ++l) {
      const int at = static_cast<int>(l);
      for (const Argument& argument : plan_.launches[l].arguments) {
        const Buffer& buffer = plan_.buffers[argument.buffer];
        if (buffer.home == Home::kArena)
          live.try_emplace(argument.buffer, Lifetime{at, at, buffer.bytes}).first->second.last = at;
      }
    }
    std::vector<Lifetime> lifetimes;
    for (const auto& [buffer, lifetime] : live) lifetimes.push_back(lifetime);
    ArenaLayout layout = PlaceArena(lifetimes, plan_.ranges);
    size_t i = 0;
    for (const auto& [buffer, lifetime] : live) plan_.buffers[buffer].offset = layout.offsets[i++];
    plan_.arena_bytes = layout.bytes;
    for (Buffer& buffer : plan_.buffers) {
      if (buffer.home != Home::kOnce) continue;
      buffer.offset = plan_.once_bytes;
      plan_.once_bytes = plan_.once_bytes + RoundUp64(buffer.bytes);
    }
  }

  const ir::Graph& graph_;
  const family::TargetFacts& facts_;
  const std::vector<family::Memory> memory_;  // by node
  Plan plan_;
  std::vector<std::vector<Place>> places_;  // by node and result
  std::vector<int> versions_;               // by buffer: in-place updates so far
  std::map<Value, int> claims_;             // region results that are an output's memory
  std::deque<Lowered> lowered_;             // by pointer: they stay where they are
  std::map<Hash128, int> kernels_;
};

}  // namespace

std::string_view Name(Home home) {
  constexpr std::string_view kNames[] = {"arena", "input", "output", "param", "constant", "state", "once"};
  return kNames[static_cast<size_t>(home)];
}

int64_t AlignmentOf(const Extent& offset, int64_t most) {
  uint64_t bits = static_cast<uint64_t>(most);
  for (const Extent::Term& term : offset.terms()) bits |= static_cast<uint64_t>(term.coefficient);
  return int64_t{1} << std::countr_zero(bits);
}

StatusOr<Plan> BuildPlan(const ir::Graph& graph, const SymbolRanges& ranges, const family::TargetFacts& facts) {
  return PlanBuilder(graph, ranges, facts).Build();
}

}  // namespace quern::lir
