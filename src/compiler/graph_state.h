// What is behind a Graph of the public interface: a HIR module with names and bytes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "compiler/graph_attributes.h"
#include "compiler/program.h"
#include "compiler/public_error.h"
#include "hir/block.h"
#include "ir/counted.h"
#include "ir/op.h"
#include "quern/graph.h"

namespace quern {

struct Graph::State {
  hir::Module module;
  Error error;  // the first; kNone: none
  std::vector<SymbolRanges> guards;
  std::map<std::string, std::span<const std::byte>> params;

  // The guards that are asked for, or else the usual ones.
  std::vector<SymbolRanges> Guards() const {
    if (!guards.empty()) return guards;
    SymbolRanges given = module.symbols;
    for (const hir::Node& node : module.nodes()) {
      ir::Node op;
      op.op = node.op;
      op.attributes = node.attributes;
      if (ir::IsCounted(op)) given.erase(ir::CountedSymbol(op));
      for (const auto& body : node.bodies) {
        for (const auto& [symbol, most] : ir::AllCountedSizes(*body)) given.erase(symbol);
      }
    }
    return compiler::DefaultGuards(given);
  }
  int extensions = 0;  // that are running, one inside the other

  bool ok() const { return error.code == ErrorCode::kNone; }
  // True when `status` is ok; else the error sticks.
  bool Check(const Status& status, std::string_view where = "") {
    if (ok() && !status.ok()) error = compiler::ErrorOf(status, where);
    return ok();
  }
  bool Has(Value value) const {
    const std::vector<hir::Node>& nodes = module.nodes();
    return value.node >= 0 && value.node < static_cast<int>(nodes.size()) && value.result >= 0 &&
           value.result < static_cast<int>(nodes[value.node].results.size());
  }
  bool CheckOutput(std::string_view output, Value value) {
    if (!Has(value)) {
      return Check(ToStatus({DiagnosticCode::kUnknownOperand, "Output", std::string(output), "",
                             absl::StrFormat("%%%d.%d", value.node, value.result), ""}));
    }
    const ir::TensorType& type = module.type({value.node, value.result});
    if (!IsBlock(type.dtype)) return true;
    return Check(ToStatus(
        {DiagnosticCode::kUnsupported, "Output", std::string(output), "any scalar dtype", type.ToString(), ""}));
  }
  Status Duplicate(const char* what, std::string_view name) const {
    return ToStatus({DiagnosticCode::kDuplicateName, what, std::string(name), "", "", ""});
  }

  // ROWS, where that is no symbol of the graph, is BATCH*SEQ.
  Extent WithRows(const Extent& extent) const {
    if (module.symbols.contains(kRows)) return extent;
    return extent.Substitute(kRows, Extent::Symbol(kBatch) * Extent::Symbol(kSeq));
  }

  StatusOr<ir::TensorType> ParseType(std::string_view name, std::string_view text) const {
    StatusOr<ir::TensorType> type = ir::TensorType::Parse(text);
    if (!type.ok()) return Status(type.status().code(), absl::StrCat(std::string(name), ": ", type.status().message()));
    for (Extent& dim : type->dims) dim = WithRows(dim);
    const int block = Row(type->dtype).block_elements;
    if (block > 1 &&
        (type->dims.empty() || !type->dims.back().is_constant() || type->dims.back().constant() % block != 0)) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: rows of %s are a multiple of %d elements, not %s",
                                                        std::string(name), std::string(Name(type->dtype)), block,
                                                        type->ToString()));
    }
    for (const Extent& dim : type->dims) {
      const std::optional<int64_t> low = dim.LowerBound(module.symbols);
      if (low && *low >= 0) continue;
      return absl::InvalidArgumentError(absl::StrFormat("%s: the size %s of %s may be negative", std::string(name),
                                                        dim.ToString(), type->ToString()));
    }
    return type;
  }

  // Runs `append` with the operands and attributes as HIR has them.
  template <typename Append>
  std::vector<Value> Add(std::string_view name, const std::vector<ir::AttrDef>& defs, const std::vector<Value>& inputs,
                         const std::vector<Attribute>& attributes, std::string_view label, const Append& append) {
    auto build = [&]() -> StatusOr<std::vector<hir::Value>> {
      std::vector<hir::Value> operands;
      for (const Value& input : inputs) operands.push_back({input.node, input.result});
      QUERN_ASSIGN(ir::Attributes converted, compiler::ConvertAttributes(name, defs, attributes, label));
      const ir::Attributes given = converted;
      for (const auto& [attribute, value] : given.values()) {
        const auto* extents = std::get_if<std::vector<Extent>>(&value);
        if (extents == nullptr) continue;
        std::vector<Extent> now;
        for (const Extent& extent : *extents) now.push_back(WithRows(extent));
        converted.Set(attribute, std::move(now));
      }
      return append(std::move(operands), std::move(converted));
    };
    std::vector<Value> results;
    if (ok()) {
      const StatusOr<std::vector<hir::Value>> made = build();
      if (Check(made.status(), label)) {
        for (const hir::Value& value : *made) results.push_back({value.node, value.result});
      }
    }
    if (!ok()) results.resize(64);  // more than there are: callers index without looking
    return results;
  }

  // Graphs as bodies; what they say of the bytes of parameters is this graph's from now on.
  StatusOr<std::vector<std::shared_ptr<const ir::Graph>>> TakeBodies(std::string_view op,
                                                                     const std::vector<const Graph*>& bodies) {
    std::vector<std::shared_ptr<const ir::Graph>> graphs;
    for (const Graph* body : bodies) {
      const State& from = *body->state_;
      if (!from.ok()) {
        error = from.error;
        return absl::InvalidArgumentError(from.error.message);
      }
      if (!from.module.donations.empty()) {
        return absl::InvalidArgumentError(absl::StrFormat("%s: %s, a body of it, carries %s from run to run",
                                                          std::string(op), from.module.name,
                                                          from.module.donations[0].input));
      }
      QUERN_ASSIGN(ir::Graph graph, hir::Lower(from.module));
      graph.output_names.clear();
      graphs.push_back(std::make_shared<const ir::Graph>(std::move(graph)));
      for (const auto& [name, bytes] : from.params) {
        const auto [known, added] = params.emplace(name, bytes);
        if (!added && known->second.data() != bytes.data())
          return ToStatus({DiagnosticCode::kDuplicateName, std::string(op), absl::StrCat("parameter ", name), "", "",
                           from.module.name});
      }
    }
    return graphs;
  }

  // The type of a parameter of the graph, or of a body of its; null: there is none of that name.
  const ir::TensorType* ParamType(std::string_view name) const {
    for (const hir::Node& node : module.nodes()) {
      if (hir::IsParam(node) && node.attributes.String("name") == name) return &node.results[0];
      for (const auto& body : node.bodies) {
        for (const ir::Node* param : ir::AllParams(*body)) {
          if (param->attributes.String("name") == name) return &param->results[0];
        }
      }
    }
    return nullptr;
  }
  std::vector<std::string_view> ParamNames() const {
    std::vector<std::string_view> names;
    for (const hir::Node& node : module.nodes()) {
      if (hir::IsParam(node)) names.emplace_back(node.attributes.String("name"));
      for (const auto& body : node.bodies) {
        for (const ir::Node* param : ir::AllParams(*body)) names.emplace_back(param->attributes.String("name"));
      }
    }
    return names;
  }
  Status TakeBytes(std::string_view name, const ir::TensorType& declared, std::span<const std::byte> bytes) {
    const StatusOr<int64_t> elements = declared.elements().Evaluate({});
    const int64_t expected = elements.ok() && *elements < (int64_t{1} << 48) ? RowBytes(declared.dtype, *elements) : -1;
    if (static_cast<int64_t>(bytes.size()) != expected) {
      return ToStatus(
          {DiagnosticCode::kShapeMismatch, "", absl::StrCat("parameter ", std::string(name)),
           absl::StrCat(expected < 0 ? "more" : absl::StrCat(expected, " bytes"), " of ", declared.ToString()),
           absl::StrCat(bytes.size(), " bytes"), ""});
    }
    params[std::string(name)] = bytes;
    return absl::OkStatus();
  }

  // A graph that was read.
  static Result<Graph> Wrap(StatusOr<hir::Module> module) {
    auto state = std::make_unique<State>();
    if (!module.ok()) return Result<Graph>::Failed(compiler::ErrorOf(module.status()));
    state->module = *std::move(module);
    for (size_t o = 0; o < state->module.outputs.size(); ++o) {
      const hir::Value& output = state->module.outputs[o];
      if (!state->CheckOutput(ir::OutputName(state->module.output_names, o), {output.node, output.result})) break;
    }
    if (!state->ok()) return Result<Graph>::Failed(state->error);
    return Graph(std::move(state));
  }

  // A graph with this one's guards and bytes of parameters, which is `graph`, made of it.
  Result<Graph> InOps(const StatusOr<ir::Graph>& graph) const {
    StatusOr<hir::Module> wrapped = graph.ok() ? hir::WrapGraph(*graph) : StatusOr<hir::Module>(graph.status());
    if (!wrapped.ok()) return Result<Graph>::Failed(compiler::ErrorOf(wrapped.status(), module.name));
    auto state = std::make_unique<State>();
    state->module = *std::move(wrapped);
    state->module.policy = hir::FusionPolicy::kFusable;
    state->guards = guards;
    state->params = params;
    return Graph(std::move(state));
  }

  // What `make` says of the graph in ops.
  Result<std::string> OfLowered(std::string (*make)(const ir::Graph& graph)) const {
    if (!ok()) return Result<std::string>::Failed(error);
    const StatusOr<ir::Graph> graph = hir::Lower(module);
    if (!graph.ok()) return Result<std::string>::Failed(compiler::ErrorOf(graph.status(), module.name));
    return make(*graph);
  }

  Value Leaf(StatusOr<hir::Value> value, std::string_view where) {
    if (!Check(value.status(), where)) return {};
    return {value->node, value->result};
  }
};

// For functions of the public interface that are about a graph and no part of it.
struct compiler::GraphAccess {
  using State = Graph::State;
  static const State& Of(const Graph& graph) { return *graph.state_; }
  static Result<Graph> Wrap(const ir::Graph& graph) { return State::Wrap(hir::WrapGraph(graph)); }
};

}  // namespace quern
