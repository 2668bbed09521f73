// Graphs made of larger pieces: scopes, promoted operands, other graphs, other policies.

#include <algorithm>

#include "compiler/graph_state.h"
#include "hir/block.h"
#include "hir/builder.h"
#include "opt/substitute.h"

namespace quern {

LabelScope::LabelScope(LabelScope&& other) noexcept : module_(other.module_), scope_(other.scope_) {
  other.module_ = nullptr;
}

LabelScope::~LabelScope() {
  if (module_ != nullptr) static_cast<hir::Module*>(module_)->CloseScope(scope_);
}

LabelScope Graph::Scope(std::string_view name) {
  return LabelScope(&state_->module, state_->module.OpenScope(std::string(name)));
}

Value Graph::InputBatchSeq(std::string_view name, std::string_view dtype, const std::vector<std::string>& inner) {
  if (!state_->ok()) return {};
  for (const char* symbol : {kBatch, kSeq}) {
    if (!state_->module.symbols.contains(symbol)) Symbol(symbol);
  }
  std::string type = absl::StrCat(std::string(dtype), "[", kBatch, ", ", kSeq);
  for (const std::string& extent : inner) absl::StrAppend(&type, ", ", extent);
  return Input(name, type + "]");
}

Value Graph::Promoted(std::string_view op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes,
                      std::string_view label) {
  const ir::OpDef* const def = ir::FindOp(op);
  std::vector<Value> operands = inputs;
  // Of one dtype, as Op asks for it.
  const auto shares = [&](size_t operand) {
    if (def->operands.empty() || !state_->Has(operands[operand])) return false;
    const ir::OperandDef& declared = def->operands[std::min(operand, def->operands.size() - 1)];
    const DType dtype = state_->module.type({operands[operand].node, operands[operand].result}).dtype;
    return !declared.own_dtype && declared.kind != ir::OperandKind::kBool && declared.kind != ir::OperandKind::kIndex &&
           !IsBlock(dtype);
  };
  std::optional<DType> common;
  for (size_t i = 0; def != nullptr && i < operands.size(); ++i) {
    if (!shares(i)) continue;
    const DType dtype = state_->module.type({operands[i].node, operands[i].result}).dtype;
    common = common ? quern::Promote(*common, dtype) : dtype;
  }
  for (size_t i = 0; common && i < operands.size(); ++i) {
    if (!shares(i) || state_->module.type({operands[i].node, operands[i].result}).dtype == *common) continue;
    hir::Builder builder(state_->module);
    const hir::Value cast = builder.Cast(*common, {operands[i].node, operands[i].result});
    if (!state_->Check(builder.status(), label)) return {};
    operands[i] = {cast.node, cast.result};
  }
  return Op(op, operands, attributes, label);
}

void Graph::Fusion(FusionPolicy policy) {
  state_->module.policy = policy == FusionPolicy::kDirect ? hir::FusionPolicy::kDirect : hir::FusionPolicy::kFusable;
}

Result<Graph> Graph::LowerForAutodiff() const {
  if (!state_->ok()) return Result<Graph>::Failed(state_->error);
  return state_->InOps(hir::LowerForAutodiff(state_->module));
}

namespace {

using Substitution = opt::Substitution;

// The symbols of one module in terms of another's, by the types that its inputs get there. In two steps, since both may
// have symbols of one name: to names that nobody has, and from those.
struct Sizes {
  Substitution away, back;

  Extent Of(const Extent& extent) const { return opt::Substitute(opt::Substitute(extent, away), back); }
  ir::TensorType Of(ir::TensorType type) const {
    for (Extent& dim : type.dims) dim = Of(dim);
    return type;
  }
  void Bind(const std::string& symbol, const Extent& size) {
    const std::string between = absl::StrCat("inlined.", away.size());
    away.emplace(symbol, Extent::Symbol(between));
    back.emplace(between, size);
  }
};

class Inliner {
 public:
  Inliner(const hir::Module& from, hir::Module& to) : from_(from), to_(to) {}

  StatusOr<std::vector<hir::Value>> Run(const std::vector<hir::Value>& values) {
    if (!from_.donations.empty())
      return ToStatus({DiagnosticCode::kUnsupported, "Inline", "", "", "a graph that carries state", from_.name});
    if (!from_.quantisation.empty())
      return ToStatus({DiagnosticCode::kUnsupported, "Inline", "", "", "a graph with a quantisation map", from_.name});
    QUERN_RETURN_IF_ERROR(BindSizes(values));
    size_t input = 0;
    for (const hir::Node& node : from_.nodes()) {
      if (hir::IsInput(node)) {
        made_.push_back({values[input++]});
      } else if (hir::IsParam(node)) {
        QUERN_ASSIGN(const hir::Value param, Param(node));
        made_.push_back({param});
      } else {
        QUERN_ASSIGN(made_.emplace_back(), Copy(node));
      }
    }
    std::vector<hir::Value> outputs;
    for (const hir::Value& output : from_.outputs) outputs.push_back(made_[output.node][output.result]);
    return outputs;
  }

 private:
  Status BindSizes(const std::vector<hir::Value>& values) {
    std::vector<const hir::Node*> inputs;
    for (const hir::Node& node : from_.nodes()) {
      if (hir::IsInput(node)) inputs.push_back(&node);
    }
    if (inputs.size() != values.size()) {
      return ToStatus({DiagnosticCode::kInputCount, "Inline", "", absl::StrCat(inputs.size()),
                       absl::StrCat(values.size()), from_.name});
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<Extent>& dims = inputs[i]->results[0].dims;
      const std::vector<Extent>& given = to_.type(values[i]).dims;
      for (size_t d = 0; d < std::min(dims.size(), given.size()); ++d) {
        for (const std::string& symbol : dims[d].Symbols()) {
          if (dims[d] == Extent::Symbol(symbol) && !sizes_.away.contains(symbol)) sizes_.Bind(symbol, given[d]);
        }
      }
    }
    for (const auto& [symbol, range] : from_.symbols) {
      const auto bound = sizes_.away.find(symbol);
      // One that no input gives is this graph's own, under its name.
      if (bound == sizes_.away.end()) sizes_.Bind(symbol, Extent::Symbol(symbol));
      if (bound == sizes_.away.end() && to_.symbols.emplace(symbol, range).second) continue;
      const Extent size = sizes_.Of(Extent::Symbol(symbol));
      const std::optional<int64_t> low = size.LowerBound(to_.symbols), high = size.UpperBound(to_.symbols);
      if (low && *low >= range.low && (range.high == INT64_MAX || (high && *high <= range.high))) continue;
      return ToStatus(
          {DiagnosticCode::kOutOfRange, "", absl::StrCat("symbol ", symbol), absl::StrCat(range.low, "..", range.high),
           absl::StrCat(size.ToString(), ", ", low.value_or(0), "..", high ? absl::StrCat(*high) : ""), from_.name});
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::TensorType wanted = sizes_.Of(inputs[i]->results[0]), &given = to_.type(values[i]);
      if (wanted == given) continue;
      const bool dtype = wanted.dtype != given.dtype;
      return ToStatus({dtype ? DiagnosticCode::kDTypeMismatch : DiagnosticCode::kShapeMismatch, "Inline",
                       inputs[i]->attributes.String("name"),
                       dtype ? std::string(Name(wanted.dtype)) : wanted.ToString(),
                       dtype ? std::string(Name(given.dtype)) : given.ToString(), from_.name});
    }
    return absl::OkStatus();
  }

  StatusOr<hir::Value> Param(const hir::Node& node) {
    const std::string& name = node.attributes.String("name");
    for (size_t n = 0; n < to_.nodes().size(); ++n) {
      const hir::Node& known = to_.nodes()[n];
      if (!hir::IsParam(known) || known.attributes.String("name") != name) continue;
      if (known.results == node.results) return hir::Value{static_cast<int>(n), 0};
      break;
    }
    return to_.AddParam(name, node.results[0]);
  }

  StatusOr<std::vector<hir::Value>> Copy(const hir::Node& node) {
    hir::Node copy = node;
    for (hir::Value& operand : copy.inputs) {
      if (!operand.absent()) operand = made_[operand.node][operand.result];
    }
    for (const auto& [name, value] : node.attributes.values()) {
      const auto* extents = std::get_if<std::vector<Extent>>(&value);
      if (extents == nullptr) continue;
      std::vector<Extent> now;
      for (const Extent& extent : *extents) now.push_back(sizes_.Of(extent));
      copy.attributes.Set(name, std::move(now));
    }
    for (ir::TensorType& type : copy.results) type = sizes_.Of(type);
    for (std::shared_ptr<const ir::Graph>& body : copy.bodies) {
      QUERN_ASSIGN(const ir::Graph between, opt::Substitute(
                                                *body, sizes_.away,
                                                [&](SymbolRanges& symbols) {
                                                  symbols = to_.symbols;
                                                  for (const auto& [symbol, name] : sizes_.away)
                                                    symbols[name.ToString()] = from_.symbols.at(symbol);
                                                  return absl::OkStatus();
                                                },
                                                "inline"));
      QUERN_ASSIGN(ir::Graph there, opt::Substitute(
                                        between, sizes_.back,
                                        [&](SymbolRanges& symbols) {
                                          symbols = to_.symbols;
                                          return absl::OkStatus();
                                        },
                                        "inline"));
      body = std::make_shared<const ir::Graph>(std::move(there));
    }
    return to_.AddCopy(std::move(copy));
  }

  const hir::Module& from_;
  hir::Module& to_;
  Sizes sizes_;
  std::vector<std::vector<hir::Value>> made_;  // of each node of from_
};

}  // namespace

std::vector<Value> Graph::Inline(const Graph& graph, const std::vector<Value>& values, std::string_view label) {
  State& s = *state_;
  const State& from = *graph.state_;
  std::vector<Value> results;
  if (s.ok() && !from.ok()) s.error = from.error;
  if (s.ok()) {
    std::vector<hir::Value> given;
    for (const Value& value : values) {
      if (!s.Has(value))
        s.Check(ToStatus({DiagnosticCode::kUnknownOperand, "Inline", absl::StrCat("value ", given.size()), "",
                          absl::StrFormat("%%%d.%d", value.node, value.result), from.module.name}));
      given.push_back({value.node, value.result});
    }
    const auto append = [&]() -> Status {
      for (const auto& [name, bytes] : from.params) {
        const auto known = s.params.find(name);
        if (known != s.params.end() && known->second.data() != bytes.data())
          return ToStatus(
              {DiagnosticCode::kDuplicateName, "Inline", absl::StrCat("parameter ", name), "", "", from.module.name});
      }
      Inliner inliner(from.module, s.module);
      QUERN_ASSIGN(const std::vector<hir::Value> outputs, inliner.Run(given));
      for (const hir::Value& output : outputs) results.push_back({output.node, output.result});
      s.params.insert(from.params.begin(), from.params.end());
      return absl::OkStatus();
    };
    if (s.ok()) s.Check(s.module.Named(label.empty() ? std::string_view(from.module.name) : label, append));
  }
  if (!s.ok()) results.resize(std::max<size_t>(results.size(), 64));  // callers index without looking
  return results;
}

}  // namespace quern
