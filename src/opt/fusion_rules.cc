#include "opt/fusion_rules.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace quern::opt {
namespace {

constexpr size_t kMaxNodes = 128;   // of a region: kernels stay readable, and compile in milliseconds
constexpr size_t kMaxBuffers = 48;  // inputs and outputs

bool InPlace(const ir::Graph& graph, const std::vector<std::vector<std::pair<int, int>>>& users, int n) {
  const ir::Node& node = graph.node(n);
  const int target = node.inputs[0].node;
  if (!Is(graph.node(target), "Input") || users[target].size() != 1) return false;
  for (const ir::Donation& donation : graph.donations) {
    if (donation.input == graph.node(target).attributes.String("name")) return graph.outputs[donation.output].node == n;
  }
  return false;
}

// Weight-only work happens once per binding: it may not slip into a region that runs every time. Single elements and
// broadcasts of weights cost nothing to repeat.
Status SameRhythm(const FusionContext& context, const NodeSet& set) {
  int once = -1, always = -1;
  for (const int n : set.nodes()) {
    if (!context.once[n])
      always = n;
    else if (context.type(n).elements() != Extent(1) && !Is(context.node(n), "Expand"))
      once = n;
  }
  if (once < 0 || always < 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("%s is computed once per binding, %s in every run",
                                                       context.Describe(once), context.Describe(always)));
}

}  // namespace

FusionContext::FusionContext(const ir::Graph& graph, const FuseOptions& options)
    : graph(graph),
      options(options),
      users(graph.Users()),
      is_output(graph.nodes().size()),
      once(OncePerBinding(graph)),
      in_place(graph.nodes().size()) {
  for (const ir::Value& output : graph.outputs) is_output[output.node] = true;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (IsUpdate(graph.nodes()[n])) in_place[n] = InPlace(graph, users, static_cast<int>(n));
  }
}

std::string FusionContext::Describe(int n) const { return absl::StrCat(node(n).op->name, " %", n); }

NodeSet::NodeSet(std::vector<int> nodes) : nodes_(std::move(nodes)) { std::sort(nodes_.begin(), nodes_.end()); }

bool NodeSet::Has(int n) const { return std::binary_search(nodes_.begin(), nodes_.end(), n); }

NodeSet NodeSet::With(const NodeSet& other) const {
  NodeSet both;
  std::set_union(nodes_.begin(), nodes_.end(), other.nodes_.begin(), other.nodes_.end(),
                 std::back_inserter(both.nodes_));
  return both;
}

NodeSet NodeSet::Without(int n) const {
  NodeSet rest;
  std::copy_if(nodes_.begin(), nodes_.end(), std::back_inserter(rest.nodes_), [n](int m) { return m != n; });
  return rest;
}

std::vector<int> OutputsOf(const FusionContext& context, const NodeSet& set) {
  std::vector<int> outputs;
  for (const int n : set.nodes()) {
    const bool used_outside = std::any_of(context.users[n].begin(), context.users[n].end(),
                                          [&](const auto& use) { return !set.Has(use.first); });
    if (used_outside || context.is_output[n]) outputs.push_back(n);
  }
  return outputs;
}

std::vector<bool> DependsOn(const FusionContext& context, const NodeSet& set, bool (*root)(const ir::Node&)) {
  const std::vector<int>& nodes = set.nodes();
  std::vector<bool> depends(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ir::Node& node = context.node(nodes[i]);
    depends[i] = root(node);
    for (const ir::Value& input : node.inputs) {
      const auto at = std::lower_bound(nodes.begin(), nodes.end(), input.node);
      if (at != nodes.end() && *at == input.node && depends[at - nodes.begin()]) depends[i] = true;
    }
  }
  return depends;
}

Status NoWorkTwice(const FusionContext& context, const NodeSet& set, const std::vector<bool>& named) {
  const std::vector<int>& nodes = set.nodes();
  // How often each node is evaluated, seen from each reader; users come before producers in the backward walk.
  std::vector<std::vector<Extent>> wanted(nodes.size());
  for (const int n : OutputsOf(context, set)) {
    wanted[std::lower_bound(nodes.begin(), nodes.end(), n) - nodes.begin()].push_back(context.type(n).elements());
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    const ir::Node& node = context.node(nodes[i]);
    const Extent own = context.type(nodes[i]).elements();
    std::vector<Extent> passed_on = wanted[i];
    if (IsReduce(node) || IsQuantize(node)) {
      passed_on = {context.graph.type(node.inputs[0]).elements()};
    } else if (IsUpdate(node)) {
      passed_on = {context.graph.type(node.inputs[1]).elements()};
    } else if (IsMatmul(node) || IsAttention(node)) {
      continue;  // what computes their operands is the rule's own affair
    } else if (IsElementwise(node) || named[i]) {
      for (const Extent& times : wanted[i]) {
        if (named[i] || own == Extent(1) || own.ProvablyAtLeast(times, context.graph.symbols)) continue;
        return absl::FailedPreconditionError(absl::StrFormat("%s would be computed %s times for its %s elements",
                                                             context.Describe(nodes[i]), times.ToString(),
                                                             own.ToString()));
      }
      if (own != Extent(1)) passed_on = {own};
    }
    const bool pairs = Is(node, "Rope");  // reads each element of x twice
    for (size_t o = 0; o < node.inputs.size(); ++o) {
      const auto at = std::lower_bound(nodes.begin(), nodes.end(), node.inputs[o].node);
      if (at == nodes.end() || *at != node.inputs[o].node) continue;
      std::vector<Extent>& list = wanted[at - nodes.begin()];
      for (const Extent& times : passed_on) {
        const Extent reads = pairs && o == 0 ? times * Extent(2) : times;
        if (std::find(list.begin(), list.end(), reads) == list.end()) list.push_back(reads);
      }
    }
  }
  return absl::OkStatus();
}

int BeforeReshapes(const FusionContext& context, const NodeSet& set, int n) {
  while (Is(context.node(n), "Reshape") && set.Has(context.node(n).inputs[0].node)) n = context.node(n).inputs[0].node;
  return n;
}

Status MapRule(const FusionContext& context, const NodeSet& set) {
  const std::vector<int> outputs = OutputsOf(context, set);
  for (const int n : outputs) {
    if (context.type(n).dims != context.type(outputs[0]).dims) {
      return absl::FailedPreconditionError(
          absl::StrFormat("the results differ in extents: %s is %s, %s is %s", context.Describe(outputs[0]),
                          context.type(outputs[0]).ToString(), context.Describe(n), context.type(n).ToString()));
    }
  }
  for (const int n : set.nodes()) {
    if (!Is(context.node(n), "Gather") || !IsBlock(context.graph.type(context.node(n).inputs[0]).dtype)) continue;
    if (context.type(n).dims != context.type(outputs[0]).dims) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s decodes whole rows, which is cheap only at the place of the result", context.Describe(n)));
    }
  }
  return NoWorkTwice(context, set, std::vector<bool>(set.nodes().size()));
}

Status UpdateRule(const FusionContext& context, const NodeSet& set) {
  const std::vector<int> outputs = OutputsOf(context, set);
  if (outputs.size() != 1 || !IsUpdate(context.node(outputs[0]))) {
    const int other = IsUpdate(context.node(outputs[0])) ? outputs[1] : outputs[0];
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is used outside the region of the update", context.Describe(other)));
  }
  for (const int n : set.nodes()) {
    const ir::Node& node = context.node(n);
    if (IsUpdate(node) ? n != outputs[0] : !IsElementwise(node) && !IsIndex(node)) {
      return absl::FailedPreconditionError(absl::StrFormat("%s cannot be part of an update", context.Describe(n)));
    }
  }
  if (set.Has(context.node(outputs[0]).inputs[0].node))
    return absl::FailedPreconditionError("the tensor being updated lies in memory");
  return NoWorkTwice(context, set, std::vector<bool>(set.nodes().size()));
}

StatusOr<std::string> FamilyOf(const FusionContext& context, const NodeSet& set) {
  bool matmul = false, attention = false, update = false, reduce = false;
  for (const int n : set.nodes()) {
    switch (context.node(n).op->family) {
      case ir::Family::kMatmul: matmul = true; break;
      case ir::Family::kAttention: attention = true; break;
      case ir::Family::kUpdate: update = true; break;
      case ir::Family::kReduce:
      case ir::Family::kQuantize: reduce = true; break;
      case ir::Family::kElementwise:
      case ir::Family::kIndex: break;
      case ir::Family::kLeaf:
      case ir::Family::kComposite:
      case ir::Family::kRegion:
        return absl::FailedPreconditionError(absl::StrFormat("%s is not fused", context.Describe(n)));
    }
  }
  const char* family = attention ? "attention" : matmul ? "matmul" : update ? "update" : reduce ? "reduce" : "map";
  if (set.nodes().size() > 1) {
    if (set.nodes().size() > kMaxNodes)
      return absl::FailedPreconditionError(absl::StrFormat("a region has at most %u nodes", kMaxNodes));
    size_t buffers = OutputsOf(context, set).size();
    std::vector<int> seen;
    for (const int n : set.nodes()) {
      for (const ir::Value& input : context.node(n).inputs) {
        if (!set.Has(input.node) && std::find(seen.begin(), seen.end(), input.node) == seen.end())
          seen.push_back(input.node);
      }
    }
    buffers += seen.size();
    if (buffers > kMaxBuffers)
      return absl::FailedPreconditionError(absl::StrFormat("a kernel has at most %u buffers", kMaxBuffers));
    QUERN_RETURN_IF_ERROR(SameRhythm(context, set));
  }
  Status allowed = attention ? AttentionRule(context, set)
                   : matmul  ? MatmulRule(context, set)
                   : update  ? UpdateRule(context, set)
                   : reduce  ? ReduceRule(context, set)
                             : MapRule(context, set);
  // An op alone is always a region: if no kernel takes it, code generation says so.
  if (!allowed.ok() && set.nodes().size() > 1) return allowed;
  return std::string(family);
}

}  // namespace quern::opt
