// The graph verifier: everything the op table knows is checked again, so that a pass that broke a graph is caught where
// it happened and not in a kernel.

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "ir/control.h"
#include "ir/counted.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace quern::ir {

Status VerifyRegion(const Graph& graph, int index) {
  const Node& node = graph.node(index);
  if (node.bodies.size() != 1) return absl::InternalError("a Region has no body");
  const Graph& body = node.body();
  if (node.results.empty()) return absl::InternalError(absl::StrFormat("Region %%%d has no results", index));
  const std::vector<int> inputs = body.Inputs();
  if (inputs.size() != node.inputs.size()) {
    return absl::InternalError(
        absl::StrFormat("Region %%%d has %u operands, its body %u inputs", index, node.inputs.size(), inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& inner = body.node(inputs[i]).results[0];
    const TensorType& outer = graph.type(node.inputs[i]);
    if (inner != outer) {
      return absl::InternalError(absl::StrFormat("Region %%%d: operand %u is %s, its body expects %s", index, i,
                                                 outer.ToString(), inner.ToString()));
    }
  }
  if (node.results.size() != body.outputs.size()) {
    return absl::InternalError(
        absl::StrFormat("Region %%%d has %u results, its body %u", index, node.results.size(), body.outputs.size()));
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (node.results[i] != body.type(body.outputs[i])) {
      return absl::InternalError(absl::StrFormat("Region %%%d: result %u differs from its body's", index, i));
    }
  }
  return Verify(body);
}

Status CheckBodies(const OpDef& op, std::span<const std::shared_ptr<const Graph>> bodies, const SymbolRanges& symbols) {
  const size_t most = op.bodies.size(), least = most - OptionalBodies(op);
  if (bodies.size() < least || bodies.size() > most) {
    return ToStatus({DiagnosticCode::kShapeMismatch, op.name, "the number of bodies",
                     least == most ? absl::StrCat(most) : absl::StrCat(least, " to ", most),
                     absl::StrCat(bodies.size()), ""});
  }
  for (size_t b = 0; b < bodies.size(); ++b) {
    if (bodies[b] == nullptr) return absl::InvalidArgumentError(absl::StrFormat("%s: no %s", op.name, op.bodies[b]));
    for (const auto& [symbol, range] : bodies[b]->symbols) {
      const auto own = symbols.find(symbol);
      if (own != symbols.end() && own->second == range) continue;
      const std::string what = absl::StrFormat("symbol %s of %s", symbol, op.bodies[b]);
      if (own == symbols.end()) return ToStatus({DiagnosticCode::kUnboundSymbol, op.name, what, "", "", ""});
      return ToStatus({DiagnosticCode::kShapeMismatch, op.name, what,
                       absl::StrCat(own->second.low, "..", own->second.high), absl::StrCat(range.low, "..", range.high),
                       ""});
    }
    // What stands for others holds their bodies several times, where one symbol would be that of several counts, or, of
    // derivatives of a function, not at all.
    const bool once = op.kind == OpKind::kControl || (OptionalBodies(op) > 0 && b < least);
    if (!once && !AllCountedSizes(*bodies[b]).empty()) {
      return ToStatus({DiagnosticCode::kUnsupported, op.name, absl::StrCat("Counted of ", op.bodies[b]),
                       "one of a branch or loop", "a size that a body finds", ""});
    }
    if (!bodies[b]->quantisation.empty()) {
      return ToStatus({DiagnosticCode::kUnsupported, op.name, absl::StrCat("the quantisation map of ", op.bodies[b]),
                       "schemes of values outside of bodies",
                       absl::StrCat("that of ", bodies[b]->quantisation.begin()->first), ""});
    }
    if (const Status status = Verify(*bodies[b]); !status.ok()) {
      return WithMessage(status, absl::StrFormat("%s: %s: %s", op.name, op.bodies[b], std::string(status.message())));
    }
  }
  return absl::OkStatus();
}

namespace {

// One type for each Param name, here and in all bodies.
Status CheckParams(const Graph& graph, std::map<std::string_view, const TensorType*>& params) {
  for (const Node& node : graph.nodes()) {
    if (IsParam(node)) {
      const std::string& name = node.attributes.String("name");
      const auto [known, added] = params.emplace(name, &node.results[0]);
      if (!added && *known->second != node.results[0]) {
        return ToStatus({DiagnosticCode::kShapeMismatch, "", absl::StrCat("param ", name, " of another body"),
                         known->second->ToString(), node.results[0].ToString(), ""});
      }
    }
    for (const std::shared_ptr<const Graph>& body : node.bodies) QUERN_RETURN_IF_ERROR(CheckParams(*body, params));
  }
  return absl::OkStatus();
}

Status VerifyNode(const Graph& graph, int index) {
  const Node& node = graph.node(index);
  if (node.op == nullptr) return absl::InternalError(absl::StrFormat("%%%d has no op", index));
  std::vector<TensorType> operands;
  for (const Value& input : node.inputs) {
    if (input.node < 0 || input.node >= index) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%%%d (%s): operand %%%d does not precede it", index, node.op->name, input.node));
    }
    if (input.result < 0 || input.result >= static_cast<int>(graph.node(input.node).results.size())) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%%%d (%s): %%%d has no result %d", index, node.op->name, input.node, input.result));
    }
    operands.push_back(graph.type(input));
  }
  for (const TensorType& type : node.results) {
    QUERN_RETURN_IF_ERROR(CheckExtents(type.dims));
    for (const Extent& dim : type.dims) {
      for (const std::string& symbol : dim.Symbols()) {
        if (!graph.symbols.contains(symbol)) {
          return absl::InvalidArgumentError(
              absl::StrFormat("%%%d (%s): symbol %s is not declared", index, node.op->name, symbol));
        }
      }
      if (dim.is_constant() && dim.constant() < 0) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%%%d (%s): %s has a negative size", index, node.op->name, type.ToString()));
      }
    }
    // What depends on symbols is counted when they are bound.
    const Extent elements = type.elements();
    if (elements.is_constant() && !elements.Evaluate({}).ok()) {
      return absl::InvalidArgumentError(absl::StrFormat("%%%d (%s): %s has more elements than 64 bits can count", index,
                                                        node.op->name, type.ToString()));
    }
  }
  if (node.op->kind == OpKind::kRegion) return VerifyRegion(graph, index);
  Attributes attributes = node.attributes;
  QUERN_RETURN_IF_ERROR(CheckAttributes(node.op->name, node.op->attributes, attributes, /*fill_defaults=*/false));
  if (node.op->kind == OpKind::kLeaf) {
    if (!node.inputs.empty() || node.results.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%%%d (%s): a leaf has no operands and one result", index, node.op->name));
    }
    return absl::OkStatus();
  }
  QUERN_RETURN_IF_ERROR(CheckOperands(*node.op, operands));
  QUERN_RETURN_IF_ERROR(CheckBodies(*node.op, node.bodies, graph.symbols));
  std::vector<ExtentConstraint> constraints;
  QUERN_ASSIGN(const std::vector<TensorType> inferred, node.op->infer({*node.op, operands, attributes, graph.symbols,
                                                                       &constraints, node.bodies, node.results}));
  if (inferred.size() != node.results.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("%%%d (%s) has %u results, %u expected", index, node.op->name,
                                                      node.results.size(), inferred.size()));
  }
  for (size_t i = 0; i < inferred.size(); ++i) {
    if (inferred[i] != node.results[i]) {
      return absl::InvalidArgumentError(absl::StrFormat("%%%d (%s): result %u is %s, %s expected", index, node.op->name,
                                                        i, node.results[i].ToString(), inferred[i].ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckOutputNames(const std::vector<std::string>& names, const std::vector<Donation>& donations) {
  std::set<int> donated;
  for (const Donation& donation : donations) donated.insert(donation.output);
  std::set<std::string_view> known;
  for (size_t o = 0; o < names.size(); ++o) {
    if (donated.contains(static_cast<int>(o)) || known.insert(names[o]).second) continue;
    return ToStatus({DiagnosticCode::kDuplicateName, "Output", names[o], "", "", ""});
  }
  return absl::OkStatus();
}

Status Verify(const Graph& graph) {
  std::set<std::string> leaves;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    QUERN_RETURN_IF_ERROR(WithOrigin(graph, node.origin, VerifyNode(graph, static_cast<int>(n))));
    if ((IsInput(node) || IsParam(node)) && !leaves.insert(node.attributes.String("name")).second)
      return ToStatus({DiagnosticCode::kDuplicateName, node.op->name, node.attributes.String("name"), "", "", ""});
  }
  for (const ExtentConstraint& constraint : graph.constraints) {
    for (const std::string& symbol : constraint.difference().Symbols()) {
      if (!graph.symbols.contains(symbol)) {
        return absl::InvalidArgumentError(
            absl::StrFormat("require %s: symbol %s is not declared", constraint.ToString(), symbol));
      }
    }
  }
  for (const Value& output : graph.outputs) {
    if (output.node < 0 || output.node >= static_cast<int>(graph.nodes().size()) || output.result < 0 ||
        output.result >= static_cast<int>(graph.node(output.node).results.size())) {
      return absl::InvalidArgumentError(absl::StrFormat("output %%%d.%d does not exist", output.node, output.result));
    }
  }
  std::set<int> donated;
  std::map<std::string_view, int> inputs;
  for (const int n : graph.Inputs()) inputs.emplace(graph.node(n).attributes.String("name"), n);
  for (const Donation& donation : graph.donations) {
    if (donation.output < 0 || donation.output >= static_cast<int>(graph.outputs.size()) ||
        !donated.insert(donation.output).second) {
      return absl::InvalidArgumentError(absl::StrFormat("bad donation to output %d", donation.output));
    }
    const auto input = inputs.find(donation.input);
    if (input == inputs.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, n] : inputs) names.push_back(name);
      return UnknownName("input", donation.input, names, graph.name);
    }
    const TensorType &given = graph.node(input->second).results[0], &made = graph.type(graph.outputs[donation.output]);
    if (given != made) {
      return ToStatus({DiagnosticCode::kShapeMismatch, "", absl::StrCat("the carried value of input ", donation.input),
                       given.ToString(), made.ToString(), graph.name});
    }
  }
  if (!graph.output_names.empty() && graph.output_names.size() != graph.outputs.size()) {
    return absl::InternalError(
        absl::StrFormat("%u outputs have %u names", graph.outputs.size(), graph.output_names.size()));
  }
  QUERN_RETURN_IF_ERROR(CheckOutputNames(graph.output_names, graph.donations));
  QUERN_RETURN_IF_ERROR(CheckQuantisation(graph, graph.quantisation));
  QUERN_RETURN_IF_ERROR(CheckCounted(graph));
  std::map<std::string_view, const TensorType*> params_of_all;
  return CheckParams(graph, params_of_all);
}

}  // namespace quern::ir
