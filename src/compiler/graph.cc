// Graph of the public interface: a HIR module behind names and text.

#include <cstring>

#include "compiler/compile_parts.h"
#include "compiler/dump_module.h"
#include "compiler/extensions.h"
#include "compiler/graph_state.h"
#include "ir/binary.h"
#include "ir/op.h"
#include "quern/compile.h"

namespace quern {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 31;

StatusOr<hir::Module> WrapOps(const StatusOr<ir::Graph>& graph) {
  QUERN_RETURN_IF_ERROR(graph.status());
  return hir::WrapGraph(*graph);
}

}  // namespace

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
  if (compiler::FindExtension(block) != nullptr) {
    std::vector<Value> results;
    if (state_->ok()) {
      Result<std::vector<Value>> made = Extend(block, inputs, attributes, label);
      if (made.ok())
        results = *std::move(made);
      else
        state_->error = made.details();
    }
    if (!state_->ok() || results.empty()) results.resize(64);
    return results;
  }
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
  for (const std::string& known : state_->module.output_names) {
    if (known == name) return static_cast<void>(state_->Check(state_->Duplicate("Output", name)));
  }
  state_->module.outputs.push_back({value.node, value.result});
  state_->module.output_names.emplace_back(name);
}

void Graph::Carry(std::string_view input, Value value) {
  if (!state_->ok() || !state_->CheckOutput(input, value)) return;
  state_->module.donations.push_back({static_cast<int>(state_->module.outputs.size()), std::string(input)});
  state_->module.outputs.push_back({value.node, value.result});
  state_->module.output_names.emplace_back(input);
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

Result<void> Graph::Recover() {
  Result<void> error = status();
  state_->error = {};
  return error;
}

Result<Program> Graph::Compile(const Options& options) const {
  if (!state_->ok()) return Result<Program>::Failed(state_->error);
  StatusOr<std::unique_ptr<Program::State_>> program =
      compiler::MakeProgram({&state_->module, state_->Guards(), state_->params}, options);
  if (!program.ok()) return Result<Program>::Failed(compiler::ErrorOf(program.status(), state_->module.name));
  return Program(*std::move(program));
}

Result<CompiledFiles> CompileGraph(const Graph& graph, const Options& options, const CompileOptions& compile) {
  const Graph::State& state = *graph.state_;
  if (!state.ok()) return Result<CompiledFiles>::Failed(state.error);
  const auto made = [&]() -> StatusOr<CompiledFiles> {
    QUERN_RETURN_IF_ERROR(compiler::NoAdapters(options));
    if (compile.embed_vocabulary) return absl::InvalidArgumentError("a graph has no vocabulary to embed");
    compiler::CompileSource source{.module = &state.module};
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
