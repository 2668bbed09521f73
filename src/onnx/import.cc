#include "onnx/import.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "onnx/functions.h"
#include "onnx/importer.h"

namespace quern::onnx {
namespace {

constexpr int kDeepest = 32;                        // functions and bodies inside each other
constexpr int64_t kMostNodes = int64_t{1} << 18;    // with those of functions and unrolled loops
constexpr int64_t kLargestSize = int64_t{1} << 20;  // of a dimension by itself
constexpr int kLargestBits = 36;                    // of those of one tensor together

// The domain as the table has it.
std::string_view DomainOf(const format::Node& node) {
  return node.domain() == "ai.onnx" ? std::string_view() : std::string_view(node.domain());
}

int64_t OpsetOf(const Scope& scope, std::string_view domain) {
  const auto found = scope.opsets.find(std::string(domain));
  return found == scope.opsets.end() ? 1 : found->second;
}

std::map<std::string, int64_t> Opsets(const google::protobuf::RepeatedPtrField<format::Opset>& imports) {
  std::map<std::string, int64_t> opsets;
  for (const format::Opset& opset : imports)
    opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  return opsets;
}

Status ImportNode(Scope& scope, const format::Node& node, int depth) {
  Session& session = scope.session;
  if (++session.nodes > kMostNodes)
    return absl::ResourceExhaustedError(absl::StrFormat("the model has more than %d nodes", kMostNodes));
  const std::string_view domain = DomainOf(node);
  static const Importer* const function = new Importer{.name = "", .import = nullptr, .inputs = 0, .any_items = true};
  const auto local = session.functions.find({std::string(domain), node.op_type()});
  const Importer* const row = local != session.functions.end() ? function : FindImporter(domain, node.op_type());
  if (row == nullptr) {
    return absl::UnimplementedError(absl::StrFormat(
        "there is no importer of the op %s%s%s, which the node %s is", std::string(domain), domain.empty() ? "" : ".",
        node.op_type(), node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name()));
  }
  Call call(scope, node, *row, OpsetOf(scope, domain), depth);
  if (depth > kDeepest) call.Fail("functions and bodies are more than %d deep", kDeepest);
  for (int i = 0; i < row->inputs && call.ok(); ++i) {
    if (!call.Has(i)) call.Fail(absl::InvalidArgumentError(absl::StrFormat("operand %d is needed", i)));
  }
  for (int i = 0; i < call.inputs() && call.ok(); ++i) call.item(i);
  if (!call.ok()) return call.status();
  if (local != session.functions.end())
    CallFunction(call, *local->second);
  else
    row->import(call);
  if (!call.ok()) return call.status();
  for (const std::string& output : node.output()) {
    if (!output.empty() && scope.Find(output) == nullptr)
      return absl::UnimplementedError(absl::StrCat(call.Where(), ": no importer makes its result ", output));
  }
  return absl::OkStatus();
}

// A symbol's name of a dimension's: letters, digits and _.
std::string Sanitised(std::string_view name) {
  std::string text;
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) text.insert(0, "d");
  return text;
}

// The symbol of a dimension, or the number that it is.
Extent SizeOf(Session& session, ir::Graph& graph, const std::string& dimension, int symbols,
              std::optional<int64_t> given) {
  const auto known = session.symbol_names.find(dimension);
  std::string symbol = known == session.symbol_names.end() ? Sanitised(dimension) : known->second;
  while (known == session.symbol_names.end() && graph.symbols.contains(symbol)) symbol += "_";
  session.symbol_names.emplace(dimension, symbol);
  const auto fixed = session.sizes.find(symbol);
  if (fixed != session.sizes.end()) return Extent(fixed->second);
  if (given) session.available.emplace(symbol, *given);
  if (session.options.fix_sizes) {
    const auto asked = session.options.sizes.find(symbol);
    const auto found = session.available.find(symbol);
    const int64_t size = asked != session.options.sizes.end() ? asked->second
                         : found != session.available.end()   ? found->second
                                                              : session.options.usual_size;
    session.sizes.emplace(symbol, size);
    return Extent(size);
  }
  // What a tensor of several may have together is bounded: its bytes must be numbers.
  const int64_t most = int64_t{1} << std::max(kLargestBits / std::max(symbols, 1), 12);
  graph.symbols.emplace(symbol, SymbolRange{0, std::min(most, kLargestSize)});
  return Extent::Symbol(symbol);
}

StatusOr<ir::TensorType> TypeOf(Session& session, ir::Graph& graph, const format::ValueInfo& info) {
  const auto unsupported = [&](std::string what) {
    return absl::UnimplementedError(absl::StrFormat("the input %s is %s", info.name(), what));
  };
  if (!info.type().has_tensor_type()) return unsupported("no dense tensor");
  const StatusOr<DType> dtype = DTypeOf(info.type().tensor_type().elem_type());
  if (!dtype.ok()) return unsupported(absl::StrCat("of ", TypeName(info.type().tensor_type().elem_type())));
  ir::TensorType type{*dtype, {}};
  const format::Shape& shape = info.type().tensor_type().shape();
  int rank = shape.dim_size();
  const auto given = session.options.values.find(info.name());
  if (!info.type().tensor_type().has_shape()) {
    if (given == session.options.values.end()) return unsupported("of any number of dimensions: a value says how many");
    rank = static_cast<int>(given->second.shape.size());
  }
  if (rank > static_cast<int>(ir::kMostDims)) return unsupported(absl::StrFormat("of %d dimensions", rank));
  int symbols = 0;
  for (int d = 0; d < rank; ++d) symbols += d >= shape.dim_size() || !shape.dim(d).has_dim_value();
  for (int d = 0; d < rank; ++d) {
    const bool said = d < shape.dim_size();
    if (said && shape.dim(d).has_dim_value()) {
      if (shape.dim(d).dim_value() < 0 || shape.dim(d).dim_value() > int64_t{1} << 31)
        return unsupported(absl::StrFormat("of a size of %d", shape.dim(d).dim_value()));
      type.dims.emplace_back(shape.dim(d).dim_value());
      continue;
    }
    const bool fits = given != session.options.values.end() && d < static_cast<int>(given->second.shape.size());
    const bool named = said && shape.dim(d).has_dim_param() && !shape.dim(d).dim_param().empty();
    type.dims.push_back(SizeOf(session, graph,
                               named ? shape.dim(d).dim_param() : absl::StrFormat("%s_%d", info.name(), d), symbols,
                               fits ? std::optional(given->second.shape[d]) : std::nullopt));
  }
  return type;
}

Status ImportModel(Session& session, Builder& builder) {
  const format::Graph& graph = session.file.model().graph();
  builder.graph.name = graph.name().empty() ? "model" : graph.name();
  for (const format::Function& function : session.file.model().functions())
    session.functions[{function.domain() == "ai.onnx" ? "" : function.domain(), function.name()}] = &function;
  Scope scope(session, builder, nullptr);
  scope.opsets = Opsets(session.file.model().opset_import());
  for (const format::ValueInfo& input : graph.input()) session.input_names.insert(input.name());
  QUERN_RETURN_IF_ERROR(TakeInitializers(scope, graph));
  for (const format::ValueInfo& input : graph.input()) {
    if (scope.Find(input.name()) != nullptr) continue;
    QUERN_ASSIGN(ir::TensorType type, TypeOf(session, builder.graph, input));
    QUERN_ASSIGN(const ir::Value value, builder.graph.AddInput(input.name(), std::move(type)));
    scope.Set(input.name(), TensorItem(value));
  }
  QUERN_RETURN_IF_ERROR(ImportNodes(scope, graph.node(), 0));
  std::vector<std::string>& names = builder.graph.output_names;
  const auto output = [&](const std::string& name, const Item& item) -> Status {
    StatusOr<ir::Value> value = ValueOf(session, builder, item);
    if (!value.ok())
      return absl::UnimplementedError(absl::StrFormat("the output %s: %s", name, value.status().message()));
    builder.graph.outputs.push_back(*value);
    names.push_back(name);
    return absl::OkStatus();
  };
  for (const format::ValueInfo& info : graph.output()) {
    const Item* const item = scope.Find(info.name());
    if (item == nullptr)
      return absl::InvalidArgumentError(absl::StrFormat("the output %s is made by no node", info.name()));
    if (item->kind != Item::Kind::kSequence) {
      QUERN_RETURN_IF_ERROR(output(info.name(), *item));
    } else {
      for (size_t i = 0; i < item->items.size(); ++i)
        QUERN_RETURN_IF_ERROR(output(absl::StrCat(info.name(), ".", i), item->items[i]));
    }
  }
  return absl::OkStatus();
}

// Sizes that data gives, from what the graph requires of them: "RANGE_0 == P + T". Whether there was one.
bool Solve(Session& session, const ir::Graph& graph) {
  bool found = false;
  for (const ir::ExtentConstraint& need : graph.constraints) {
    if (need.relation != ir::SizeRelation::kEqual) continue;
    for (const auto& [left, right] : {std::pair(need.left, need.right), std::pair(need.right, need.left)}) {
      for (const std::string& open : session.open) {
        if (left != Extent::Symbol(open) || session.solved.contains(open)) continue;
        const std::vector<std::string> symbols = right.Symbols();
        const bool others = std::any_of(symbols.begin(), symbols.end(),
                                        [&](const std::string& symbol) { return session.open.contains(symbol); });
        if (others) continue;
        session.solved.emplace(open, right);
        found = true;
      }
    }
  }
  return found;
}

}  // namespace

Status TakeInitializers(Scope& scope, const format::Graph& graph) {
  Session& session = scope.session;
  if (graph.sparse_initializer_size() > 0) {
    return absl::UnimplementedError(
        absl::StrFormat("the initializer %s is a sparse tensor", graph.sparse_initializer(0).values().name()));
  }
  for (const format::Tensor& tensor : graph.initializer()) {
    Item item{.kind = Item::Kind::kTensor, .name = tensor.name()};
    if (TypeName(tensor.data_type()) == "STRING") {
      item.kind = Item::Kind::kStrings;
    } else {
      QUERN_ASSIGN(Data data, session.file.Read(tensor));
      item.data = std::make_shared<const Data>(std::move(data));
    }
    // A body or function may have names of its own.
    while (session.params.contains(item.name) ||
           (scope.builder.outer != nullptr && session.input_names.contains(item.name)))
      item.name += "_";
    scope.Set(tensor.name(), std::move(item));
  }
  return absl::OkStatus();
}

Status ImportNodes(Scope& scope, const google::protobuf::RepeatedPtrField<format::Node>& nodes, int depth) {
  for (const format::Node& node : nodes) QUERN_RETURN_IF_ERROR(ImportNode(scope, node, depth));
  return absl::OkStatus();
}

StatusOr<Imported> Import(const ModelFile& file, const ImportOptions& options) {
  std::map<std::string, int64_t, std::less<>> sizes;
  std::set<std::string> fixed;
  std::map<std::string, Extent> solved;
  while (true) {
    Session session{.file = file, .options = options, .sizes = sizes, .fixed_inputs = fixed, .solved = solved};
    Builder builder;
    Imported result;
    Status status = ImportModel(session, builder);
    if (status.ok() && Solve(session, builder.graph)) {
      solved = session.solved;
      continue;
    }
    if (status.ok()) {
      for (const std::string& open : session.open) {
        if (session.solved.contains(open)) continue;
        const std::set<std::string>& inputs = session.open_inputs[open];
        session.wanted_inputs.insert(inputs.begin(), inputs.end());
        const std::vector<std::string_view> names(inputs.begin(), inputs.end());
        status = absl::UnimplementedError(absl::StrFormat(
            "the size of %s depends on the values of %s, and nothing else says what it is", open, NamesText(names)));
      }
    }
    if (status.ok()) status = ir::Verify(builder.graph);  // sizes that no op looks at by itself
    if (status.ok()) {
      result.graph = std::move(builder.graph);
      result.params = std::move(session.params);
      result.owners = std::move(session.owners);
      result.fixed_sizes = std::move(session.sizes);
      result.fixed_inputs = std::move(fixed);
      return result;
    }
    const size_t before = sizes.size() + fixed.size();
    for (const std::string& symbol : session.wanted_sizes) {
      if (session.found.contains(symbol)) continue;
      const auto given = options.sizes.find(symbol);
      const auto found = session.available.find(symbol);
      if (given != options.sizes.end())
        sizes.emplace(symbol, given->second);
      else if (found != session.available.end())
        sizes.emplace(symbol, found->second);
      else if (options.usual_size > 0 && !session.open.contains(symbol))
        sizes.emplace(symbol, options.usual_size);
    }
    for (const std::string& input : session.wanted_inputs) {
      if (options.values.contains(input)) fixed.insert(input);
    }
    if (sizes.size() + fixed.size() == before) return status;
  }
}

}  // namespace quern::onnx
