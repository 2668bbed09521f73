// Partitions the nodes of a graph into Region nodes, each of which becomes one piece of generated code:
//
//   %2 = Add(%0, %1)                      %2 = Region(%0, %1) {family = "map"} body graph body {
//   %3 = Silu(%2)                    =>     %0 = Input() {name = "i0"}   %1 = Input() {name = "i1"}
//                                           %2 = Add(%0, %1)   %3 = Silu(%2)   return %3 }
//
// Afterwards the graph holds leaves, Regions, and views: Reshapes, and Narrows that cut whole rows off the front and
// the end, over values that lie in memory. Every other node is in exactly one region. A value that an output or another
// region needs is a result of its region; nothing is computed twice but single elements and index arithmetic.
//
// The order of the phases is the order of worth: what a product can finish while its tile is in registers goes first,
// then what an attention or a row program can take, then chains of elementwise ops. Body graphs are written from the
// results backwards, so that equal regions read equal however their graphs were made.

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "opt/fusion_groups.h"

namespace quern::opt {
namespace {

using ir::Value;

constexpr int64_t kViewAlign = 64;  // bytes: what kernels may assume of their operands

// Whether the result of this node lies in the operand's memory, at a known place.
bool IsView(const FusionContext& context, int n) {
  const ir::Node& node = context.node(n);
  if (Is(node, "Reshape")) return true;
  if (!Is(node, "Narrow")) return false;
  const ir::TensorType& x = context.graph.type(node.inputs[0]);
  int64_t axis = node.attributes.Int("axis");
  if (axis < 0) axis += x.rank();
  for (int64_t d = 0; d < axis; ++d) {
    if (x.dims[d] != Extent(1)) return false;
  }
  // The first byte must be aligned for every value of the symbols.
  Extent inner(1);
  for (int d = static_cast<int>(axis) + 1; d < x.rank(); ++d) inner = inner * x.dims[d];
  const Extent start = node.attributes.Extents("start")[0] * inner;
  const DTypeRow& row = Row(x.dtype);
  return std::all_of(start.terms().begin(), start.terms().end(), [&](const Extent::Term& term) {
    return term.coefficient % row.block_elements == 0 &&
           term.coefficient / row.block_elements * row.block_bytes % kViewAlign == 0;
  });
}

class Fuser {
 public:
  Fuser(const ir::Graph& graph, const FuseOptions& options) : context_(graph, options), groups_(context_) {}

  void FormGroups() {
    if (context_.options.fuse) JoinGroups();
    LeaveViewsOutside();
  }

  StatusOr<ir::Graph> Emit(FusionReport* report);

 private:
  void JoinGroups() {
    JoinProductsOfOneSide();
    FinishRoots(IsMatmul);
    FinishRoots(IsAttention);
    GrowRowPrograms();
    for (int n = 0; n < Size(); ++n) {
      if (IsUpdate(context_.node(n)) && groups_.IsSingle(groups_.Of(n))) TakeSources(groups_.Of(n));
    }
    // What only feeds an epilogue or the left side of a product is computed there.
    for (int n = Size(); n-- > 0;) {
      const ir::Node& node = context_.node(n);
      if (IsMatmul(node) || IsAttention(node)) TakeSources(groups_.Of(n));
    }
    JoinMaps();
  }

  int Size() const { return static_cast<int>(context_.graph.nodes().size()); }
  // Elementwise and index ops that no root has taken.
  bool IsMap(int group) const {
    return std::all_of(groups_.Members(group).nodes().begin(), groups_.Members(group).nodes().end(),
                       [&](int n) { return IsElementwise(context_.node(n)) || IsIndex(context_.node(n)); });
  }

  // q, k and v of an attention, gate and up: products of the same left side share one pass over it, and one grid.
  void JoinProductsOfOneSide() {
    std::map<Value, int> first;
    for (int n = 0; n < Size(); ++n) {
      if (!IsTileMatmul(context_, n)) continue;
      const auto [it, fresh] = first.emplace(context_.node(n).inputs[0], n);
      if (!fresh && !groups_.TryJoin(groups_.Of(it->second), groups_.Of(n))) it->second = n;
    }
  }

  // Later roots first: a sum of two products belongs to the one that is finished last.
  void FinishRoots(bool (*is_root)(const ir::Node&)) {
    for (int n = Size(); n-- > 0;) {
      if (!is_root(context_.node(n))) continue;
      TakeReaders(groups_.Of(n));
      GiveBackRepeats(groups_.Of(n));
    }
  }

  // The square that a norm sums, beside the sum itself: what is computed from other results alone is memory written for
  // nothing when reductions read it, as they can compute it on the way.
  void GiveBackRepeats(int group) {
    for (bool shrunk = true; shrunk;) {
      shrunk = false;
      const std::vector<int> outputs = OutputsOf(context_, groups_.Members(group));
      for (const int n : outputs) {
        const auto& inputs = context_.node(n).inputs;
        const bool repeats = std::all_of(inputs.begin(), inputs.end(), [&](Value input) {
          return std::binary_search(outputs.begin(), outputs.end(), input.node) ||
                 Is(context_.node(input.node), "Constant");
        });
        if (!repeats || inputs.empty() || !IsElementwise(context_.node(n)) || !IsReadByReductions(n)) continue;
        groups_.Split(n);
        shrunk = true;
        break;
      }
    }
  }
  bool IsReadByReductions(int n) const {
    return !context_.is_output[n] && std::all_of(context_.users[n].begin(), context_.users[n].end(),
                                                 [&](const auto& use) { return IsReduce(context_.node(use.first)); });
  }

  void TakeReaders(int group) {
    for (bool grown = true; grown;) {
      grown = false;
      for (const int reader : groups_.Readers(group)) {
        const ir::Node& node = context_.node(groups_.Members(reader).nodes()[0]);
        if (!groups_.IsSingle(reader) || IsMatmul(node) || IsAttention(node) || IsReduce(node)) continue;
        grown |= groups_.TryJoin(group, reader);
      }
    }
  }

  void TakeSources(int group) {
    for (bool grown = true; grown;) {
      grown = false;
      for (const int source : groups_.Sources(group)) {
        if (groups_.IsSingle(source) && IsMap(source)) grown |= groups_.TryJoin(group, source);
      }
    }
  }

  void GrowRowPrograms() {
    for (int n = 0; n < Size(); ++n) {
      if (!IsReduce(context_.node(n)) && !IsQuantize(context_.node(n))) continue;
      for (bool grown = true; grown;) {
        grown = false;
        const int group = groups_.Of(n);
        if (!IsRowProgram(group)) break;  // a Quantize that a root has taken
        std::vector<int> near = groups_.Readers(group);
        for (const int source : groups_.Sources(group)) near.push_back(source);
        for (const int other : near) {
          if (IsMap(other) || IsRowProgram(other)) grown |= groups_.TryJoin(group, other);
          if (groups_.Of(n) != group) break;
        }
      }
    }
  }
  bool IsRowProgram(int group) const {
    return std::all_of(groups_.Members(group).nodes().begin(), groups_.Members(group).nodes().end(), [&](int n) {
      const ir::Node& node = context_.node(n);
      return IsReduce(node) || IsQuantize(node) || IsElementwise(node) || IsIndex(node);
    });
  }

  void JoinMaps() {
    for (bool grown = true; grown;) {
      grown = false;
      for (int n = Size(); n-- > 0;) {
        const int group = groups_.Of(n);
        if (group < 0 || !IsMap(group)) continue;
        for (const int source : groups_.Sources(group)) {
          if (IsMap(source)) grown |= groups_.TryJoin(group, source);
        }
      }
    }
  }

  // Views whose operand lies in memory anyway become aliases; so do Reshapes at the end of a map.
  void LeaveViewsOutside() {
    for (int n = 0; n < Size(); ++n) {
      if (groups_.Of(n) >= 0 && IsView(context_, n) && !InGroup(context_.node(n).inputs[0].node, n)) LeaveOutside(n);
    }
    for (int n = Size(); n-- > 0;) {
      if (groups_.Of(n) < 0 || outside_.contains(n) || !Is(context_.node(n), "Reshape") || !IsMap(groups_.Of(n)))
        continue;
      const auto& users = context_.users[n];
      if (std::none_of(users.begin(), users.end(), [&](const auto& use) { return InGroup(use.first, n); }))
        LeaveOutside(n);
    }
  }
  bool InGroup(int n, int of) const { return groups_.Of(n) == groups_.Of(of); }
  void LeaveOutside(int n) {
    const NodeSet& members = groups_.Members(groups_.Of(n));
    if (members.nodes().size() > 1) {
      if (!FamilyOf(context_, members.Without(n)).ok()) return;
      groups_.Split(n);
    }
    outside_.insert(n);
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Writing the fused graph.

  // Writes what node n needs and then its group, unless that is done.
  Status EmitGroup(Rewriter& rewriter, int n, FusionReport* report);
  StatusOr<std::shared_ptr<const ir::Graph>> Body(const NodeSet& members, const std::vector<int>& outputs,
                                                  std::vector<Value>* inputs) const;
  // The node that names the region in reports: its root, or its last node.
  int NamingNode(const NodeSet& members) const;
  void ReportMissed(FusionReport& report);

  FusionContext context_;
  FusionGroups groups_;
  std::set<int> outside_;   // views
  std::vector<bool> done_;  // by node
};

// Copies nodes into a body, producers first and operands from left to right.
class BodyWriter {
 public:
  BodyWriter(const FusionContext& context, const NodeSet& members) : context_(context), members_(members) {
    body.name = "body";
  }

  StatusOr<Value> Write(Value value) {
    if (const auto found = now_.find(value); found != now_.end()) return found->second;
    const ir::Node& node = context_.node(value.node);
    Value made;
    if (members_.Has(value.node)) {
      std::vector<Value> operands;
      for (const Value& input : node.inputs) {
        QUERN_ASSIGN(const Value operand, Write(input));
        operands.push_back(operand);
      }
      for (const auto& [name, attribute] : node.attributes.values()) {
        if (const auto* extents = std::get_if<std::vector<Extent>>(&attribute)) Declare(*extents);
      }
      QUERN_ASSIGN(made, body.Add(*node.op, std::move(operands), node.attributes, Origin(node)));
    } else if (IsImmediate(value.node)) {
      QUERN_ASSIGN(made, body.AddConstant(node.results[0], *node.data, Origin(node)));
    } else {
      const ir::TensorType& type = context_.graph.type(value);
      Declare(type.dims);
      QUERN_ASSIGN(made, body.AddInput(absl::StrCat("i", inputs.size()), type));
      inputs.push_back(value);
    }
    now_[value] = made;
    return made;
  }

  ir::Graph body;
  std::vector<Value> inputs;  // values of the outer graph

 private:
  // Constants of one element become literals of the code.
  bool IsImmediate(int n) const { return Is(context_.node(n), "Constant") && context_.type(n).elements() == Extent(1); }
  void Declare(const std::vector<Extent>& extents) {
    for (const Extent& extent : extents) {
      for (const std::string& symbol : extent.Symbols()) {
        if (const auto range = context_.graph.symbols.find(symbol); range != context_.graph.symbols.end())
          body.symbols.insert(*range);
      }
    }
  }
  int Origin(const ir::Node& node) {
    return node.origin < 0 ? -1 : body.AddOrigin(context_.graph.origins()[node.origin]);
  }

  const FusionContext& context_;
  const NodeSet& members_;
  std::map<Value, Value> now_;
};

StatusOr<std::shared_ptr<const ir::Graph>> Fuser::Body(const NodeSet& members, const std::vector<int>& outputs,
                                                       std::vector<Value>* inputs) const {
  BodyWriter writer(context_, members);
  for (const int n : outputs) {
    QUERN_ASSIGN(const Value output, writer.Write({n, 0}));
    writer.body.outputs.push_back(output);
  }
  *inputs = std::move(writer.inputs);
  return std::make_shared<const ir::Graph>(std::move(writer.body));
}

int Fuser::NamingNode(const NodeSet& members) const {
  for (const int n : members.nodes()) {
    if (!IsElementwise(context_.node(n)) && !IsIndex(context_.node(n))) return n;
  }
  return members.nodes().back();
}

Status Fuser::EmitGroup(Rewriter& rewriter, int n, FusionReport* report) {
  if (done_[n]) return absl::OkStatus();
  if (outside_.contains(n)) {
    done_[n] = true;
    QUERN_RETURN_IF_ERROR(EmitGroup(rewriter, context_.node(n).inputs[0].node, report));
    return rewriter.Copy(n);
  }
  const NodeSet& members = groups_.Members(groups_.Of(n));
  for (const int m : members.nodes()) done_[m] = true;
  for (const int m : members.nodes()) {
    for (const Value& input : context_.node(m).inputs) {
      if (!members.Has(input.node)) QUERN_RETURN_IF_ERROR(EmitGroup(rewriter, input.node, report));
    }
  }
  const std::vector<int> outputs = OutputsOf(context_, members);
  StatusOr<std::string> family = FamilyOf(context_, members);
  if (!family.ok())
    return absl::InternalError(absl::StrCat("a region lost its family: ", std::string(family.status().message())));
  std::vector<Value> inputs;
  QUERN_ASSIGN(std::shared_ptr<const ir::Graph> body, Body(members, outputs, &inputs));
  const int naming = NamingNode(members);
  QUERN_ASSIGN(const Value region,
               rewriter.to.AddRegion(*family, rewriter.Now(inputs), body, rewriter.OriginOf(naming)));
  for (size_t o = 0; o < outputs.size(); ++o) rewriter.Replace({outputs[o], 0}, {region.node, static_cast<int>(o)});
  if (report == nullptr) return absl::OkStatus();
  FusionReport::Region row;
  row.node = region.node;
  row.family = *family;
  const int origin = context_.node(naming).origin;
  if (origin >= 0) row.label = context_.graph.origins()[origin].label;
  for (const ir::Node& node : body->nodes()) {
    if (!IsLeaf(node)) row.ops.push_back(node.op->name);
  }
  row.inputs = static_cast<int>(inputs.size());
  row.outputs = static_cast<int>(outputs.size());
  report->regions.push_back(std::move(row));
  return absl::OkStatus();
}

// Every pair of regions of which one reads the other, with the rule that keeps them apart.
void Fuser::ReportMissed(FusionReport& report) {
  std::set<std::pair<int, int>> seen;
  for (int n = 0; n < Size(); ++n) {
    if (groups_.Of(n) < 0 || outside_.contains(n)) continue;
    for (const Value& input : context_.node(n).inputs) {
      const int source = groups_.Of(input.node), group = groups_.Of(n);
      if (source < 0 || source == group || outside_.contains(input.node) || !seen.emplace(source, group).second)
        continue;
      const Status can = groups_.CanJoin(source, group);
      report.missed.push_back({context_.Describe(input.node), context_.Describe(n),
                               can.ok() ? "the join became possible too late" : std::string(can.message())});
    }
  }
}

StatusOr<ir::Graph> Fuser::Emit(FusionReport* report) {
  Rewriter rewriter(context_.graph, "fuse_regions");
  done_.resize(Size());
  for (int n = 0; n < Size(); ++n) {
    if (!IsLeaf(context_.node(n))) continue;
    done_[n] = true;
    QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
  }
  for (int n = 0; n < Size(); ++n) QUERN_RETURN_IF_ERROR(EmitGroup(rewriter, n, report));
  if (report != nullptr) ReportMissed(*report);
  return rewriter.Finish();
}

// A donated input that something besides its update reads, or whose update is not what is handed back, must not be
// written in place. Its update writes a copy.
StatusOr<ir::Graph> CopySharedTargets(const ir::Graph& graph) {
  const FusionContext context(graph, {});
  Rewriter rewriter(graph, "fuse_regions");
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    const bool donated = IsUpdate(node) && Is(graph.node(node.inputs[0].node), "Input") &&
                         std::any_of(graph.donations.begin(), graph.donations.end(), [&](const ir::Donation& donation) {
                           return donation.input == graph.node(node.inputs[0].node).attributes.String("name");
                         });
    if (!donated || context.in_place[n]) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    const DType dtype = graph.type(node.inputs[0]).dtype;
    QUERN_ASSIGN(const Value copy, rewriter.Add(n, "Cast", {rewriter.Now(node.inputs[0])}, {{"to", dtype}}));
    QUERN_ASSIGN(const Value update, rewriter.Add(n, "Update", {copy, rewriter.Now(node.inputs[1])}, node.attributes));
    rewriter.Replace({n, 0}, update);
  }
  return rewriter.Finish();
}

}  // namespace

StatusOr<ir::Graph> FuseRegions(const ir::Graph& graph, const FuseOptions& options, FusionReport* report) {
  QUERN_ASSIGN(const ir::Graph live, Dce(graph));
  QUERN_ASSIGN(const ir::Graph copied, CopySharedTargets(live));
  for (const ir::Node& node : copied.nodes()) {
    if (node.op->family == ir::Family::kComposite || node.op->family == ir::Family::kRegion) {
      return absl::InvalidArgumentError(absl::StrFormat("fusion takes plain ops, and not %s", node.op->name));
    }
  }
  Fuser fuser(copied, options);
  fuser.FormGroups();
  return fuser.Emit(report);
}

}  // namespace quern::opt
