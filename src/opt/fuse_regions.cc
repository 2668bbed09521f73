// Partitions the nodes of a graph into Region nodes, each of which becomes one piece of generated code:
//
//   %2 = Add(%0, %1)                      %2 = Region(%0, %1) {family = "map"} body graph body {
//   %3 = Silu(%2)                    =>     %0 = Input() {name = "i0"}   %1 = Input() {name = "i1"}
//                                           %2 = Add(%0, %1)   %3 = Silu(%2)   return %3 }
//
// Afterwards the graph holds leaves, Regions, nodes with bodies that are steps of a plan (If, While, Scan; their bodies
// are partitioned likewise), and views: Reshapes, and Narrows and Slices that cut whole rows off the front and the end,
// over values that lie in memory. Every other node is in exactly one region. A value that an output or another region
// needs is a result of its region; nothing is computed twice but single elements and index arithmetic.
//
// The order of the phases is the order of worth: what a product can finish while its tile is in registers goes first,
// then what an attention or a row program can take, then chains of elementwise ops. Body graphs are written from the
// results backwards, so that equal regions read equal however their graphs were made.

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "ir/linear_quantise.h"
#include "ir/window.h"
#include "opt/fusion_groups.h"
#include "opt/passes.h"
#include "opt/region_body.h"
#include "opt/rewriter.h"
#include "opt/shared_targets.h"
#include "opt/sheets.h"

namespace quern::opt {
namespace {

using ir::Value;

constexpr int64_t kViewAlign = 64;  // bytes: what kernels may assume of their operands

// Whether the result of this node lies in the operand's memory, at a known place.
bool IsView(const ir::Graph& graph, const ir::Node& node) {
  const std::optional<Extent> start = ir::ViewStart(graph, node);
  if (!start) return false;
  const ir::TensorType& x = graph.type(node.inputs[0]);
  // Blocks lie in rows: a part of them has whole ones.
  if (IsBlock(x.dtype) && *start != Extent(0) && !start->DividedBy(x.dims.back())) return false;
  if (IsBlock(x.dtype) && !ir::IsReshape(graph, node) && node.results[0].dims.back() != x.dims.back()) return false;
  // The first byte must be aligned for every value of the symbols.
  const DTypeRow& row = Row(x.dtype);
  return std::all_of(start->terms().begin(), start->terms().end(), [&](const Extent::Term& term) {
    return term.coefficient % row.block_elements == 0 &&
           term.coefficient / row.block_elements * row.block_bytes % kViewAlign == 0;
  });
}

class Fuser {
 public:
  Fuser(const ir::Graph& graph, const FuseOptions& options)
      : graph_(graph),
        options_(options),
        once_(OncePerBinding(graph)),
        scope_(graph, graph.symbols, options.facts),
        groups_(scope_, options.families, once_) {}

  void FormGroups() {
    if (options_.fuse) JoinGroups();
    LeaveViewsOutside();
  }

  StatusOr<ir::Graph> Emit(FusionReport* report);

 private:
  const ir::Node& Node(int n) const { return graph_.node(n); }
  int Size() const { return static_cast<int>(graph_.nodes().size()); }
  // Groups of what no root has taken.
  bool IsMap(int group) const { return &groups_.FamilyOf(group) == &options_.families.back(); }
  // Whether n is a root of the family, in a group of its.
  bool IsRootOf(int n, const family::Family& family) const {
    return groups_.Of(n) >= 0 && Node(n).op->family != nullptr && std::string_view(family.name) == Node(n).op->family &&
           &groups_.FamilyOf(groups_.Of(n)) == &family;
  }

  void JoinGroups() {
    for (const family::Family& family : options_.families) {
      if (family.growth.siblings) JoinSiblings(family);
      if (family.growth.sources) TakeWindows(family);
      if (family.growth.readers) TakeReaders(family);
    }
    for (const family::Family& family : options_.families) {
      if (family.growth.neighbours) TakeNeighbours(family);
    }
    for (const family::Family& family : options_.families) {
      if (&family == &options_.families.back() && !options_.facts.blocks) JoinSheets(scope_, once_, family, groups_);
      if (family.growth.sources) TakeSources(family);
    }
    for (int n = Size(); n-- > 0;) LeaveBytes(n);
  }

  // Floats that stand for bytes of the same group, which another group reads: it makes them of the bytes.
  void LeaveBytes(int n) {
    const int own = groups_.Of(n);
    if (own < 0 || groups_.IsSingle(own) || scope_.IsOutput({n, 0}) || scope_.users[n].size() != 1) return;
    const int reader = scope_.users[n][0].first;
    if (groups_.Of(reader) < 0 || groups_.Of(reader) == own) return;
    const std::vector<int> chain = ir::DequantisedBy(graph_, n, once_);
    if (chain.empty()) return;
    const int bytes = Node(chain.back()).inputs[0].node;
    const auto read_once = [&](int m) { return m == n || (scope_.users[m].size() == 1 && !scope_.IsOutput({m, 0})); };
    const auto in_group = [&](int m) { return groups_.Of(m) == own; };
    if (!in_group(bytes) || !std::ranges::all_of(chain, in_group) || !std::ranges::all_of(chain, read_once)) return;
    family::NodeSet rest = groups_.Members(own);
    for (const int m : chain) rest = rest.Without(m);
    if (!groups_.CanBe(rest).ok()) return;
    for (const int m : chain) groups_.Split(m);
    const bool joined =
        std::ranges::all_of(chain, [&](int m) { return groups_.TryJoin(groups_.Of(reader), groups_.Of(m)); });
    if (joined) return;
    for (const int m : chain) {
      if (groups_.Of(m) == groups_.Of(reader)) groups_.Split(m);
    }
    for (auto m = chain.rbegin(); m != chain.rend(); ++m) groups_.TryJoin(groups_.Of(bytes), groups_.Of(*m));
  }

  // q, k and v of an attention, gate and up: roots of the same left side share one pass over it, and one grid.
  void JoinSiblings(const family::Family& family) {
    std::map<Value, int> first;
    for (int n = 0; n < Size(); ++n) {
      if (!IsRootOf(n, family)) continue;
      const auto [it, fresh] = first.emplace(Node(n).inputs[0], n);
      if (!fresh && !groups_.TryJoin(groups_.Of(it->second), groups_.Of(n))) it->second = n;
    }
  }

  // Before readers: one that reads the image too, as a residual does, would keep the windows out, which are many times
  // what it would save.
  void TakeWindows(const family::Family& family) {
    for (int n = 0; n < Size(); ++n) {
      if (!IsRootOf(n, family)) continue;
      for (const int source : groups_.Sources(groups_.Of(n))) {
        if (!IsMap(source)) continue;
        const int made = groups_.Members(source).nodes().back();
        if (JoinWindows(made)) groups_.TryJoin(groups_.Of(n), groups_.Of(made));
      }
    }
  }

  // Later roots first: a sum of two products belongs to the one that is finished last.
  void TakeReaders(const family::Family& family) {
    for (int n = Size(); n-- > 0;) {
      if (!IsRootOf(n, family)) continue;
      TakeReadersOf(groups_.Of(n));
      GiveBackRepeats(groups_.Of(n));
    }
  }

  void TakeReadersOf(int group) {
    for (bool grown = true; grown;) {
      grown = false;
      for (const int reader : groups_.Readers(group)) {
        const bool root = Node(groups_.Members(reader).nodes()[0]).op->kind == ir::OpKind::kRoot;
        if (groups_.IsSingle(reader) && !root) grown |= groups_.TryJoin(group, reader);
      }
    }
  }

  // The square that a norm sums, beside the sum itself: what is computed from other results alone is memory written for
  // nothing when roots read it that can compute it on the way.
  void GiveBackRepeats(int group) {
    for (bool shrunk = true; shrunk;) {
      shrunk = false;
      const std::vector<Value> results = family::RegionView(scope_, groups_.Members(group)).results();
      auto is_result = [&](Value value) { return std::find(results.begin(), results.end(), value) != results.end(); };
      for (const Value& result : results) {
        const std::vector<Value>& inputs = Node(result.node).inputs;
        const bool repeats = std::all_of(inputs.begin(), inputs.end(), [&](Value input) {
          return is_result(input) || ir::IsConstant(Node(input.node));
        });
        if (!repeats || inputs.empty() || Node(result.node).op->kind != ir::OpKind::kElementwise ||
            !IsReadByNeighbours(result.node))
          continue;
        groups_.Split(result.node);
        shrunk = true;
        break;
      }
    }
  }
  bool IsReadByNeighbours(int n) const {
    return !scope_.IsOutput({n, 0}) &&
           std::all_of(scope_.users[n].begin(), scope_.users[n].end(), [&](const auto& use) {
             return Node(use.first).op->kind == ir::OpKind::kRoot &&
                    groups_.FamilyOf(groups_.Of(use.first)).growth.neighbours;
           });
  }

  void TakeNeighbours(const family::Family& family) {
    for (int n = 0; n < Size(); ++n) {
      if (!IsRootOf(n, family)) continue;
      for (bool grown = true; grown;) {
        grown = false;
        const int group = groups_.Of(n);
        std::vector<int> near = groups_.Readers(group);
        for (const int source : groups_.Sources(group)) near.push_back(source);
        for (const int other : near) {
          if (IsMap(other) || &groups_.FamilyOf(other) == &family) grown |= groups_.TryJoin(group, other);
          if (groups_.Of(n) != group) break;
        }
      }
    }
  }

  void TakeSources(const family::Family& family) {
    for (bool grown = true; grown;) {
      grown = false;
      std::vector<bool> seen(Size());
      for (int n = Size(); n-- > 0;) {
        const int group = groups_.Of(n);
        if (group < 0 || seen[groups_.Members(group).nodes()[0]] || &groups_.FamilyOf(group) != &family) continue;
        grown |= TakeSourcesOf(group);
        seen[groups_.Members(group).nodes()[0]] = true;
      }
    }
  }
  bool TakeSourcesOf(int group) {
    bool any = false;
    for (bool grown = true; grown;) {
      grown = false;
      for (const int source : groups_.Sources(group)) {
        if (IsMap(source)) grown |= groups_.TryJoin(group, source);
      }
      any |= grown;
    }
    return any;
  }

  // Has `made`, by itself until then, join what it is made of as far as a Window: rows of windows are read on the way
  // or not at all. Whether there is one.
  bool JoinWindows(int made) {
    std::vector<int> chain = {made};
    while (groups_.IsSingle(groups_.Of(chain.back())) && !ir::IsWindow(Node(chain.back()))) {
      const ir::Node& node = Node(chain.back());
      const int operand = node.inputs.empty() ? -1 : node.inputs[0].node;
      if ((node.op->kind != ir::OpKind::kIndex && !ir::IsCast(node)) || operand < 0 || groups_.Of(operand) < 0 ||
          !IsMap(groups_.Of(operand)))
        return false;
      chain.push_back(operand);
    }
    if (chain.size() < 2 || !groups_.IsSingle(groups_.Of(chain.back()))) return false;
    return std::all_of(chain.begin() + 1, chain.end(),
                       [&](int n) { return groups_.TryJoin(groups_.Of(made), groups_.Of(n)); });
  }

  // Views whose operand lies in memory anyway become aliases; so do Reshapes at the end of a map.
  void LeaveViewsOutside() {
    for (int n = 0; n < Size(); ++n) {
      if (groups_.Of(n) >= 0 && IsView(graph_, Node(n)) && !InGroup(Node(n).inputs[0].node, n)) LeaveOutside(n);
    }
    for (int n = Size(); n-- > 0;) {
      if (groups_.Of(n) < 0 || outside_.contains(n) || !ir::IsReshape(graph_, Node(n)) || !IsMap(groups_.Of(n)))
        continue;
      const auto& users = scope_.users[n];
      if (std::none_of(users.begin(), users.end(), [&](const auto& use) { return InGroup(use.first, n); }))
        LeaveOutside(n);
    }
  }
  bool InGroup(int n, int of) const { return groups_.Of(n) == groups_.Of(of); }
  void LeaveOutside(int n) {
    const family::NodeSet& members = groups_.Members(groups_.Of(n));
    if (members.nodes().size() > 1) {
      if (!groups_.CanBe(members.Without(n), groups_.IsSheet(groups_.Of(n))).ok()) return;
      groups_.Split(n);
    }
    outside_.insert(n);
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Writing the fused graph.

  // Writes what node n needs and then its group, unless that is done.
  Status EmitGroup(Rewriter& rewriter, int n, FusionReport* report);
  // Writes those of the waiting groups that nothing which is to come stands before.
  Status EmitWaiting(Rewriter& rewriter, FusionReport* report);
  StatusOr<std::shared_ptr<const ir::Graph>> Body(const family::RegionView& view, std::vector<Value>* inputs) const;
  // The node that names the region in reports: its root, or its last node.
  int NamingNode(const family::RegionView& view) const;
  void ReportMissed(FusionReport& report);
  std::string Describe(int n) const { return absl::StrCat(Node(n).op->name, " %", n); }

  const ir::Graph& graph_;
  const FuseOptions& options_;
  const std::vector<bool> once_;
  const family::Scope scope_;
  FusionGroups groups_;
  std::set<int> outside_;   // views
  std::set<int> waiting_;   // groups that write over what others pick rows of, until these stand
  std::vector<bool> done_;  // by node
};

StatusOr<std::shared_ptr<const ir::Graph>> Fuser::Body(const family::RegionView& view,
                                                       std::vector<Value>* inputs) const {
  RegionBody writer(view);
  for (const Value& result : view.results()) {
    QUERN_ASSIGN(const Value output, writer.Write(result));
    writer.body.outputs.push_back(output);
  }
  *inputs = std::move(writer.inputs);
  // What other nodes ask of the same sizes is known of them here too.
  std::vector<ir::ExtentConstraint> known;
  for (const ir::ExtentConstraint& constraint : graph_.constraints) {
    const std::vector<std::string> symbols = constraint.difference().Symbols();
    if (std::all_of(symbols.begin(), symbols.end(),
                    [&](const std::string& name) { return writer.body.symbols.contains(name); }))
      known.push_back(constraint);
  }
  ir::AddConstraints(writer.body.constraints, known);
  return std::make_shared<const ir::Graph>(std::move(writer.body));
}

int Fuser::NamingNode(const family::RegionView& view) const {
  for (const int n : view.nodes()) {
    if (Node(n).op->kind != ir::OpKind::kElementwise && Node(n).op->kind != ir::OpKind::kIndex) return n;
  }
  return view.nodes().back();
}

Status Fuser::EmitGroup(Rewriter& rewriter, int n, FusionReport* report) {
  if (done_[n]) return absl::OkStatus();
  if (outside_.contains(n) || ir::IsControl(Node(n))) {
    done_[n] = true;
    for (const Value& input : Node(n).inputs) QUERN_RETURN_IF_ERROR(EmitGroup(rewriter, input.node, report));
    return rewriter.Copy(n);
  }
  const family::RegionView view(scope_, groups_.Members(groups_.Of(n)));
  for (const int m : view.nodes()) done_[m] = true;
  for (const int m : view.nodes()) {
    for (const Value& input : Node(m).inputs) {
      if (!view.Has(input.node)) QUERN_RETURN_IF_ERROR(EmitGroup(rewriter, input.node, report));
    }
  }
  const std::string family = groups_.FamilyOf(groups_.Of(n)).name;
  std::vector<Value> inputs;
  QUERN_ASSIGN(std::shared_ptr<const ir::Graph> body, Body(view, &inputs));
  const int naming = NamingNode(view);
  QUERN_ASSIGN(const Value region,
               rewriter.to.AddRegion(family, rewriter.Now(inputs), body, rewriter.OriginOf(naming)));
  for (size_t r = 0; r < view.results().size(); ++r)
    rewriter.Replace(view.results()[r], {region.node, static_cast<int>(r)});
  if (report == nullptr) return absl::OkStatus();
  FusionReport::Region row;
  row.node = region.node;
  row.family = family;
  const int origin = Node(naming).origin;
  if (origin >= 0) row.label = graph_.origins()[origin].label;
  for (const ir::Node& node : body->nodes()) {
    if (!ir::IsLeaf(node)) row.ops.push_back(node.op->name);
  }
  row.inputs = static_cast<int>(inputs.size());
  row.outputs = static_cast<int>(view.results().size());
  if (const family::Matched plan = groups_.FamilyOf(groups_.Of(n)).match(view); plan.ok())
    row.remark = (*plan)->Remark();
  report->regions.push_back(std::move(row));
  return absl::OkStatus();
}

Status Fuser::EmitWaiting(Rewriter& rewriter, FusionReport* report) {
  for (auto group = waiting_.begin(); group != waiting_.end();) {
    const family::NodeSet& members = groups_.Members(*group);
    const auto before = [&](int n) { return done_[n] || members.Has(n); };
    const bool ready = std::all_of(members.nodes().begin(), members.nodes().end(), [&](int n) {
      const std::vector<Value>& inputs = Node(n).inputs;
      const bool made = std::all_of(inputs.begin(), inputs.end(), [&](Value input) { return before(input.node); });
      if (!made || Node(n).op->kind != ir::OpKind::kWrite) return made;
      const auto& readers = scope_.users[inputs[0].node];
      return std::all_of(readers.begin(), readers.end(), [&](const auto& use) { return before(use.first); });
    });
    if (!ready) {
      ++group;
      continue;
    }
    QUERN_RETURN_IF_ERROR(EmitGroup(rewriter, members.nodes()[0], report));
    group = waiting_.erase(group);
  }
  return absl::OkStatus();
}

// Every pair of regions of which one reads the other, with the rule that keeps them apart.
void Fuser::ReportMissed(FusionReport& report) {
  std::set<std::pair<int, int>> seen;
  for (int n = 0; n < Size(); ++n) {
    if (groups_.Of(n) < 0 || outside_.contains(n)) continue;
    for (const Value& input : Node(n).inputs) {
      const int source = groups_.Of(input.node), group = groups_.Of(n);
      if (source < 0 || source == group || outside_.contains(input.node) || !seen.emplace(source, group).second)
        continue;
      const Status can = groups_.CanJoin(source, group);
      report.missed.push_back({Describe(input.node), Describe(n),
                               can.ok() ? "the join became possible too late" : std::string(can.message())});
    }
  }
}

StatusOr<ir::Graph> Fuser::Emit(FusionReport* report) {
  Rewriter rewriter(graph_, "fuse_regions", [&](const ir::Graph& body) { return FuseRegions(body, options_, report); });
  done_.resize(Size());
  for (int n = 0; n < Size(); ++n) {
    if (WritesLast(graph_, scope_.users, n)) waiting_.insert(groups_.Of(n));
  }
  for (int n = 0; n < Size(); ++n) {
    if (!ir::IsLeaf(Node(n))) continue;
    done_[n] = true;
    QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
  }
  for (int n = 0; n < Size(); ++n) {
    if (!waiting_.contains(groups_.Of(n))) QUERN_RETURN_IF_ERROR(EmitGroup(rewriter, n, report));
    QUERN_RETURN_IF_ERROR(EmitWaiting(rewriter, report));
  }
  if (report != nullptr) ReportMissed(*report);
  return rewriter.Finish();
}

}  // namespace

StatusOr<ir::Graph> FuseRegions(const ir::Graph& graph, const FuseOptions& options, FusionReport* report) {
  QUERN_ASSIGN(const ir::Graph live, Dce(graph));
  QUERN_ASSIGN(const ir::Graph copied, CopySharedTargets(live));
  for (const ir::Node& node : copied.nodes()) {
    if (node.op->kind == ir::OpKind::kComposite || node.op->kind == ir::OpKind::kRegion) {
      return absl::InvalidArgumentError(absl::StrFormat("fusion takes plain ops, and not %s", node.op->name));
    }
  }
  Fuser fuser(copied, options);
  fuser.FormGroups();
  return fuser.Emit(report);
}

}  // namespace quern::opt
