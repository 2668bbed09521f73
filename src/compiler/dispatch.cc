// Dispatch of the public interface: nodes are followed by their labels through the passes of a target.

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/public_error.h"
#include "compiler/target_check.h"
#include "ir/binary.h"
#include "ir/logical.h"
#include "ir/value_names.h"
#include "quern/dispatch.h"

namespace quern {
namespace {

constexpr const char* kStates[] = {"native", "common", "rewritten", "unsupported"};
// A label that nobody gives.
constexpr std::string_view kMark = "quern.dispatch:";

// What is left of a node after the passes: one entry a node that was made of it.
struct Trace {
  std::string op, pass, family;
};
using Traces = std::map<int, std::vector<Trace>>;

// The graph with the number of each node as its label.
StatusOr<ir::Graph> Numbered(const ir::Graph& graph) {
  ir::Graph numbered;
  numbered.name = graph.name;
  numbered.symbols = graph.symbols;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const int origin = numbered.AddOrigin({absl::StrCat(std::string(kMark), n), ""});
    const ir::Node& node = graph.node(static_cast<int>(n));
    QUERN_RETURN_IF_ERROR(numbered.AddCopy(node, node.inputs, origin).status());
  }
  numbered.outputs = graph.outputs;
  numbered.output_names = graph.output_names;
  numbered.donations = graph.donations;
  numbered.constraints = graph.constraints;
  numbered.quantisation = ir::MapOf(numbered, ir::SchemesOf(graph));
  return numbered;
}

void Collect(const ir::Graph& graph, const std::string& family, Traces& traces) {
  for (const ir::Node& node : graph.nodes()) {
    if (ir::IsRegion(node)) {
      Collect(node.body(), node.attributes.String("family"), traces);
      continue;
    }
    for (const auto& body : node.bodies) Collect(*body, family, traces);
    if (node.origin < 0 || node.op->kind == ir::OpKind::kLeaf) continue;
    const ir::Origin& origin = graph.origins()[node.origin];
    std::string_view label = origin.label;
    if (!label.starts_with(kMark)) continue;
    label.remove_prefix(kMark.size());
    traces[std::atoi(std::string(label).c_str())].push_back({node.op->name, origin.pass, family});
  }
}

StatusOr<Traces> Follow(const ir::Graph& graph, std::string_view target, const Options& options) {
  QUERN_ASSIGN(const compiler::PipelineOptions pipeline, compiler::PipelineOf(target, options));
  QUERN_ASSIGN(const ir::Graph numbered, Numbered(graph));
  QUERN_ASSIGN(const hir::Module module, hir::WrapGraph(numbered));
  QUERN_ASSIGN(const ir::Graph prepared, compiler::PrepareGraph(module, pipeline));
  QUERN_ASSIGN(compiler::PlannedVariant variant, compiler::FuseVariant(prepared, {}, pipeline));
  QUERN_RETURN_IF_ERROR(compiler::AddPlan(variant, pipeline));
  QUERN_RETURN_IF_ERROR(compiler::WriteKernels(variant.plan, target));
  Traces traces;
  Collect(variant.graph, "", traces);
  return traces;
}

// What the traces of one node say.
void Describe(const ir::Node& node, const std::vector<Trace>& traces, NodeDispatch& made) {
  const bool name = node.op->kind == ir::OpKind::kComposite || ir::LacksKernel(node);
  for (const Trace& trace : traces) {
    if (!name && trace.op == made.op && (trace.pass.empty() || trace.pass == "lower")) {
      made.state = DispatchState::kNative;
      made.family = trace.family;
      return;
    }
  }
  bool expanded = false;
  for (const Trace& trace : traces) {
    made.into.push_back(trace.op);
    expanded = expanded || trace.pass == "expand_composites" || trace.pass == "expand_bodies" ||
               trace.pass == "choose_kernels";
    if (!trace.pass.empty() && trace.pass != "lower") made.by = trace.pass;
  }
  made.state = expanded || (name && traces.empty()) ? DispatchState::kCommon : DispatchState::kRewritten;
  if (made.state == DispatchState::kCommon) made.by.clear();
}

// A graph of that node alone over operands of its own.
StatusOr<ir::Graph> Alone(const ir::Graph& graph, int n) {
  ir::Graph alone;
  alone.name = "node";
  alone.symbols = graph.symbols;
  std::vector<ir::Value> inputs;
  for (const ir::Value& operand : graph.node(n).inputs) {
    const ir::Node& from = graph.node(operand.node);
    const std::string name = absl::StrCat("x", inputs.size());
    if (ir::IsConstant(from)) {
      QUERN_ASSIGN(inputs.emplace_back(), alone.AddConstant(from.results[0], *from.data));
    } else if (ir::IsParam(from)) {
      QUERN_ASSIGN(inputs.emplace_back(), alone.AddParam(name, from.results[0]));
    } else {
      QUERN_ASSIGN(inputs.emplace_back(), alone.AddInput(name, graph.type(operand)));
    }
  }
  QUERN_ASSIGN(const ir::Value value, alone.AddCopy(graph.node(n), inputs));
  for (size_t r = 0; r < graph.node(n).results.size(); ++r) alone.outputs.push_back({value.node, static_cast<int>(r)});
  return alone;
}

StatusOr<DispatchReport> Report(const ir::Graph& graph, const std::string& target, const Options& options) {
  QUERN_RETURN_IF_ERROR(compiler::PipelineOf(target, options).status());
  DispatchReport report;
  report.target = target;
  const StatusOr<Traces> all = Follow(graph, target, options);
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const ir::Node& node = graph.node(static_cast<int>(n));
    if (node.op->kind == ir::OpKind::kLeaf) continue;
    NodeDispatch& made = report.nodes.emplace_back();
    made.node = static_cast<int>(n);
    made.op = node.op->name;
    if (node.origin >= 0) made.label = graph.origins()[node.origin].label;
    made.type = node.results[0].ToString();
    if (all.ok()) {
      const auto traces = all->find(made.node);
      Describe(node, traces == all->end() ? std::vector<Trace>() : traces->second, made);
      continue;
    }
    // Something of it is refused: each node is asked by itself.
    QUERN_ASSIGN(const ir::Graph alone, Alone(graph, made.node));
    const StatusOr<Traces> one = Follow(alone, target, options);
    if (one.ok()) {
      const auto traces = one->find(static_cast<int>(alone.nodes().size()) - 1);
      Describe(node, traces == one->end() ? std::vector<Trace>() : traces->second, made);
    } else {
      made.state = DispatchState::kUnsupported;
      made.reason = std::string(one.status().message());
      // Where that was is what this row says.
      if (const size_t place = made.reason.find(absl::StrCat(" (in ", std::string(kMark))); place != std::string::npos)
        made.reason.erase(place);
    }
  }
  return report;
}

std::string Remark(const NodeDispatch& node) {
  switch (node.state) {
    case DispatchState::kNative: return node.family;
    case DispatchState::kCommon: return absl::StrJoin(node.into, ", ");
    case DispatchState::kRewritten:
      return node.into.empty() ? "folded, shared or not needed"
                               : absl::StrCat("by ", node.by, " into ", absl::StrJoin(node.into, ", "));
    case DispatchState::kUnsupported: return node.reason;
  }
  return "";
}

}  // namespace

std::string DispatchReport::Text() const {
  std::string text;
  for (const NodeDispatch& node : nodes) {
    absl::StrAppendFormat(&text, "%%%-4d %-24s %-12s %s%s%s\n", node.node, node.op,
                          kStates[static_cast<int>(node.state)], Remark(node), node.label.empty() ? "" : "  @",
                          node.label);
  }
  return text;
}

std::string DispatchReport::Json() const {
  using Object = nlohmann::ordered_json;
  Object rows = Object::array();
  for (const NodeDispatch& node : nodes) {
    Object row = {{"node", node.node},
                  {"op", node.op},
                  {"label", node.label},
                  {"type", node.type},
                  {"state", kStates[static_cast<int>(node.state)]}};
    if (node.state == DispatchState::kNative) row["family"] = node.family;
    if (node.state == DispatchState::kRewritten) row["by"] = node.by;
    if (!node.into.empty()) row["into"] = node.into;
    if (node.state == DispatchState::kUnsupported) row["reason"] = node.reason;
    rows.push_back(std::move(row));
  }
  const Object all = {{"target", target}, {"nodes", std::move(rows)}};
  return all.dump(1, ' ', false, Object::error_handler_t::replace) + "\n";
}

std::vector<std::string> DispatchTargets() { return compiler::TargetNames(); }

Result<DispatchReport> Dispatch(const Graph& graph, const std::string& target, const Options& options) {
  Result<std::string> bytes = graph.Binary();
  if (!bytes.ok()) return Result<DispatchReport>::Failed(bytes.details());
  const auto report = [&]() -> StatusOr<DispatchReport> {
    QUERN_ASSIGN(const ir::Graph ops, ir::Decode({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()}));
    return Report(ops, target, options);
  };
  return compiler::ToResult(report());
}

}  // namespace quern
