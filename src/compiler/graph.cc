// Graph of the public interface: a HIR module behind names and text.

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "compiler/compile_parts.h"
#include "compiler/dump_module.h"
#include "compiler/program.h"
#include "compiler/public_error.h"
#include "hir/block.h"
#include "ir/binary.h"
#include "ir/op.h"
#include "quern/compile.h"

namespace quern {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 31;

// What a block or op says of an attribute, or null.
const ir::AttrDef* FindAttribute(const std::vector<ir::AttrDef>& defs, std::string_view name) {
  for (const ir::AttrDef& def : defs) {
    if (name == def.name) return &def;
  }
  return nullptr;
}

StatusOr<std::vector<Extent>> ParseExtents(const std::vector<std::string>& texts) {
  std::vector<Extent> extents;
  for (const std::string& text : texts) {
    QUERN_ASSIGN(Extent extent, Extent::Parse(text));
    extents.push_back(std::move(extent));
  }
  return extents;
}

// The value in the kind that is asked for, where it can be one; else as it is, for the checks that follow to refuse.
StatusOr<ir::AttrValue> Convert(const Attribute& attribute, const ir::AttrDef* def) {
  const auto* text = std::get_if<std::string>(&attribute.value);
  const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value);
  const auto* number = std::get_if<int64_t>(&attribute.value);
  const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute.value);
  if (def != nullptr && def->kind == ir::AttrKind::kFloat && number != nullptr)
    return ir::AttrValue(static_cast<double>(*number));
  if (def != nullptr && def->kind == ir::AttrKind::kDType && text != nullptr) {
    if (const std::optional<DType> dtype = DTypeFromName(*text)) return ir::AttrValue(*dtype);
  }
  if (def != nullptr && def->kind == ir::AttrKind::kExtents) {
    if (numbers != nullptr) return ir::AttrValue(std::vector<Extent>(numbers->begin(), numbers->end()));
    if (number != nullptr) return ir::AttrValue(std::vector<Extent>{Extent(*number)});
    if (text != nullptr) {
      QUERN_ASSIGN(std::vector<Extent> extents, ParseExtents({*text}));
      return ir::AttrValue(std::move(extents));
    }
  }
  if (texts != nullptr) {
    QUERN_ASSIGN(std::vector<Extent> extents, ParseExtents(*texts));
    return ir::AttrValue(std::move(extents));
  }
  if (text != nullptr) return ir::AttrValue(*text);
  if (number != nullptr) return ir::AttrValue(*number);
  if (numbers != nullptr) return ir::AttrValue(*numbers);
  if (const auto* flag = std::get_if<bool>(&attribute.value)) return ir::AttrValue(*flag);
  return ir::AttrValue(std::get<double>(attribute.value));
}

StatusOr<hir::Module> WrapOps(const StatusOr<ir::Graph>& graph) {
  QUERN_RETURN_IF_ERROR(graph.status());
  return hir::WrapGraph(*graph);
}

}  // namespace

struct Graph::State {
  hir::Module module;
  Error error;                       // the first; kNone: none
  std::vector<std::string> outputs;  // names, by output of the module
  std::vector<SymbolRanges> guards;
  std::map<std::string, std::span<const std::byte>> params;

  // The guards that are asked for, or else the usual ones.
  std::vector<SymbolRanges> Guards() const { return guards.empty() ? compiler::DefaultGuards(module.symbols) : guards; }
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
    return Check(ToStatus({DiagnosticCode::kUnsupported, "Output", std::string(output),
                           ir::Phrase(ir::OperandKind::kAny), type.ToString(), ""}));
  }
  Status Duplicate(const char* what, std::string_view name) const {
    return ToStatus({DiagnosticCode::kDuplicateName, what, std::string(name), "", "", ""});
  }

  StatusOr<ir::TensorType> ParseType(std::string_view name, std::string_view text) const {
    StatusOr<ir::TensorType> type = ir::TensorType::Parse(text);
    if (!type.ok()) return Status(type.status().code(), absl::StrCat(std::string(name), ": ", type.status().message()));
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
      ir::Attributes converted;
      for (const Attribute& attribute : attributes) {
        StatusOr<ir::AttrValue> value = Convert(attribute, FindAttribute(defs, attribute.name));
        if (!value.ok()) {
          return ToStatus({DiagnosticCode::kBadAttribute, std::string(name), attribute.name, "extents",
                           std::string(value.status().message()), std::string(label)});
        }
        converted.Set(attribute.name, *std::move(value));
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

  // A graph that was read, its outputs by their numbers.
  static Result<Graph> Wrap(StatusOr<hir::Module> module) {
    auto state = std::make_unique<State>();
    if (!module.ok()) return Result<Graph>::Failed(compiler::ErrorOf(module.status()));
    state->module = *std::move(module);
    for (size_t o = 0; o < state->module.outputs.size(); ++o) {
      state->outputs.push_back(absl::StrCat(o));
      const hir::Value& output = state->module.outputs[o];
      if (!state->CheckOutput(state->outputs[o], {output.node, output.result})) break;
    }
    if (!state->ok()) return Result<Graph>::Failed(state->error);
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

Graph::Graph(std::unique_ptr<State> state) : state_(std::move(state)) {}
Graph::Graph(std::string name) : state_(std::make_unique<State>()) { state_->module.name = std::move(name); }
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Result<Graph> Graph::Parse(std::string_view text) {
  if (hir::IsModuleText(text)) return State::Wrap(hir::Parse(text));
  return State::Wrap(WrapOps(ir::Parse(text)));
}

Result<Graph> Graph::FromBinary(std::span<const std::byte> bytes) {
  return State::Wrap(WrapOps(ir::Decode({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()})));
}

void Graph::Symbol(std::string_view name, int64_t low, int64_t high) {
  if (!state_->ok()) return;
  if (low < 0 || high < low || high > kLargestSize) {
    state_->Check(ToStatus({DiagnosticCode::kOutOfRange, "", absl::StrCat("the range of symbol ", std::string(name)),
                            absl::StrCat("0..", kLargestSize), absl::StrCat(low, "..", high), ""}));
    return;
  }
  const StatusOr<Extent> parsed = Extent::Parse(name);
  if (!parsed.ok() || *parsed != Extent::Symbol(std::string(name)) || Quotient::Of(name)) {
    state_->Check(absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" cannot name a symbol: letters, digits and _ can", std::string(name))));
    return;
  }
  if (!state_->module.symbols.emplace(name, SymbolRange{low, high}).second)
    state_->Check(state_->Duplicate("Symbol", name));
}

void Graph::Specialise(std::string_view symbol, int64_t low, int64_t high) {
  if (!state_->ok()) return;
  const auto known = state_->module.symbols.find(symbol);
  if (known == state_->module.symbols.end()) {
    state_->Check(ToStatus({DiagnosticCode::kUnboundSymbol, "Specialise", std::string(symbol), "", "", ""}));
  } else if (low > high || low < known->second.low || high > known->second.high) {
    state_->Check(
        ToStatus({DiagnosticCode::kOutOfRange, "", absl::StrCat("the guard of ", std::string(symbol)),
                  absl::StrCat(known->second.low, "..", known->second.high), absl::StrCat(low, "..", high), ""}));
  } else {
    state_->guards.push_back({{std::string(symbol), {low, high}}});
  }
}

Value Graph::Input(std::string_view name, std::string_view type) {
  if (!state_->ok()) return {};
  StatusOr<ir::TensorType> parsed = state_->ParseType(name, type);
  if (!state_->Check(parsed.status(), name)) return {};
  return state_->Leaf(state_->module.AddInput(std::string(name), *std::move(parsed)), name);
}

Value Graph::Param(std::string_view name, std::string_view type) {
  if (!state_->ok()) return {};
  StatusOr<ir::TensorType> parsed = state_->ParseType(name, type);
  if (!state_->Check(parsed.status(), name)) return {};
  for (const Extent& dim : parsed->dims) {
    if (dim.is_constant()) continue;
    state_->Check(absl::InvalidArgumentError(absl::StrFormat("parameter %s has a size that is a symbol: %s",
                                                             std::string(name), parsed->ToString())),
                  name);
    return {};
  }
  return state_->Leaf(state_->module.AddParam(std::string(name), *std::move(parsed)), name);
}

Value Graph::Param(std::string_view name, std::string_view type, std::span<const std::byte> bytes, const char* dtype) {
  const Value value = Param(name, type);
  if (!state_->ok()) return {};
  const ir::TensorType& declared = state_->module.type({value.node, value.result});
  if (dtype != nullptr && dtype != Name(declared.dtype)) {
    state_->Check(ToStatus({DiagnosticCode::kDTypeMismatch, "", absl::StrCat("parameter ", std::string(name)),
                            std::string(Name(declared.dtype)), dtype, ""}));
    return {};
  }
  return state_->Check(state_->TakeBytes(name, declared, bytes)) ? value : Value{};
}

Result<void> Graph::Bind(std::string_view param, std::span<const std::byte> bytes) {
  if (!state_->ok()) return status();
  const ir::TensorType* const type = state_->ParamType(param);
  if (type == nullptr)
    return compiler::ToResult(UnknownName("parameter", param, state_->ParamNames(), state_->module.name));
  return compiler::ToResult(state_->TakeBytes(param, *type, bytes));
}

Value Graph::Constant(std::string_view type, std::span<const std::byte> bytes) {
  if (!state_->ok()) return {};
  StatusOr<ir::TensorType> parsed = state_->ParseType("constant", type);
  if (!state_->Check(parsed.status())) return {};
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  return state_->Leaf(state_->module.AddConstant(*std::move(parsed), {data, data + bytes.size()}), "constant");
}

Value Graph::Scalar(float value) { return Constant("f32[]", std::as_bytes(std::span(&value, 1))); }

std::vector<Value> Graph::Blocks(std::string_view block, const std::vector<Value>& inputs,
                                 const std::vector<Attribute>& attributes, std::string_view label) {
  const hir::BlockDef* def = hir::FindBlock(block);
  return state_->Add(block, def == nullptr ? std::vector<ir::AttrDef>{} : def->attributes, inputs, attributes, label,
                     [&](std::vector<hir::Value> operands, ir::Attributes converted) {
                       return state_->module.Add(block, std::move(operands), std::move(converted), std::string(label));
                     });
}

Value Graph::Block(std::string_view block, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes,
                   std::string_view label) {
  return Blocks(block, inputs, attributes, label)[0];
}

Value Graph::Op(std::string_view op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes,
                std::string_view label) {
  return Ops(op, inputs, attributes, label)[0];
}

std::vector<Value> Graph::Ops(std::string_view op, const std::vector<Value>& inputs,
                              const std::vector<Attribute>& attributes, std::string_view label,
                              const std::vector<const Graph*>& bodies) {
  const ir::OpDef* def = ir::FindOp(op);
  return state_->Add(
      op, def == nullptr ? std::vector<ir::AttrDef>{} : def->attributes, inputs, attributes, label,
      [&](std::vector<hir::Value> operands, ir::Attributes converted) -> StatusOr<std::vector<hir::Value>> {
        QUERN_ASSIGN(auto graphs, state_->TakeBodies(op, bodies));
        return state_->module.AddMir(op, std::move(operands), std::move(converted), std::string(label),
                                     std::move(graphs));
      });
}

void Graph::Output(std::string_view name, Value value) {
  if (!state_->ok() || !state_->CheckOutput(name, value)) return;
  for (const std::string& known : state_->outputs) {
    if (known == name) return static_cast<void>(state_->Check(state_->Duplicate("Output", name)));
  }
  state_->module.outputs.push_back({value.node, value.result});
  state_->outputs.emplace_back(name);
}

void Graph::Carry(std::string_view input, Value value) {
  if (!state_->ok() || !state_->CheckOutput(input, value)) return;
  state_->module.donations.push_back({static_cast<int>(state_->module.outputs.size()), std::string(input)});
  state_->module.outputs.push_back({value.node, value.result});
  state_->outputs.emplace_back(input);
}

std::string Graph::TypeOf(Value value) const {
  return state_->Has(value) ? state_->module.type({value.node, value.result}).ToString() : "";
}

std::string Graph::Text() const { return hir::Print(state_->module); }

Result<std::string> Graph::Binary() const {
  return state_->OfLowered([](const ir::Graph& graph) { return ir::Encode(graph); });
}

Result<std::string> Graph::Fingerprint() const {
  return state_->OfLowered([](const ir::Graph& graph) { return ir::Fingerprint(graph).ToHex(); });
}

Result<void> Graph::status() const { return state_->ok() ? Result<void>() : Result<void>::Failed(state_->error); }

Result<Program> Graph::Compile(const Options& options) const {
  if (!state_->ok()) return Result<Program>::Failed(state_->error);
  StatusOr<std::unique_ptr<Program::State_>> program =
      compiler::MakeProgram({&state_->module, state_->outputs, state_->Guards(), state_->params}, options);
  if (!program.ok()) return Result<Program>::Failed(compiler::ErrorOf(program.status(), state_->module.name));
  return Program(*std::move(program));
}

Result<CompiledFiles> CompileGraph(const Graph& graph, const Options& options, const CompileOptions& compile) {
  const Graph::State& state = *graph.state_;
  if (!state.ok()) return Result<CompiledFiles>::Failed(state.error);
  const auto made = [&]() -> StatusOr<CompiledFiles> {
    compiler::CompileSource source{.module = &state.module, .outputs = state.outputs};
    for (const auto& [name, bytes] : state.params)
      source.params.push_back({name, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, -1});
    source.guards = [&](const ir::Graph&) {
      std::vector<SymbolRanges> guards = state.Guards();
      guards.push_back({});
      return guards;
    };
    QUERN_ASSIGN(const ir::Graph lowered, hir::Lower(state.module));
    for (const ir::Node* param : ir::AllParams(lowered)) {
      const std::string& name = param->attributes.String("name");
      if (!state.params.contains(name)) {
        return ToStatus(
            {DiagnosticCode::kMissing, "", absl::StrCat("the bytes of parameter ", name), "", "", state.module.name});
      }
    }
    return compiler::CompileFiles(source, state.module.name, options, compile);
  };
  return compiler::ToResult(made(), state.module.name);
}

Result<std::string> Graph::Dump(const DumpOptions& dump, const Options& options) const {
  if (!state_->ok()) return Result<std::string>::Failed(state_->error);
  std::vector<SymbolRanges> guards = state_->Guards();
  guards.push_back({});
  return compiler::ToResult(compiler::DumpModule(state_->module, guards, options, dump), state_->module.name);
}

}  // namespace quern
