#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "base/diagnostic.h"
#include "onnx/importer.h"
#include "onnx/known.h"

namespace quern::onnx {
namespace {

constexpr int64_t kConstantBytes = 256, kConstantIntegers = 4096;  // what of the file's data is a Constant, not a Param

std::string NameOf(const format::Node& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return node.op_type();
}

}  // namespace

StatusOr<ir::Value> ValueOf(Session& session, Builder& builder, const Item& item) {
  if (item.kind != Item::Kind::kTensor) return absl::InvalidArgumentError("a tensor is needed, and there is none");
  if (item.value.node >= 0) return item.value;
  const Data& data = *item.data;
  const auto known = builder.params.find(item.name);
  if (known != builder.params.end()) return known->second;
  ir::TensorType type{data.dtype, {data.dims.begin(), data.dims.end()}};
  const auto bytes = static_cast<int64_t>(data.bytes.size());
  const bool whole = IsInteger(data.dtype) || data.dtype == DType::kBool;
  if (bytes <= kConstantBytes || (whole && bytes <= kConstantIntegers * ScalarBytes(data.dtype))) {
    QUERN_ASSIGN(const ir::Value value,
                 builder.graph.AddConstant(std::move(type), {data.bytes.begin(), data.bytes.end()}));
    return builder.params[item.name] = value;
  }
  QUERN_ASSIGN(const ir::Value value, builder.graph.AddParam(item.name, std::move(type)));
  session.params[item.name] = data.bytes;
  if (data.owner != nullptr) session.owners.push_back(data.owner);
  return builder.params[item.name] = value;
}

Call::Call(Scope& scope, const format::Node& node, const Importer& row, int64_t opset, int depth)
    : scope(scope),
      session(scope.session),
      builder(scope.builder),
      node(node),
      row(row),
      opset(opset),
      depth(depth),
      origin_(builder.graph.AddOrigin({absl::StrCat(scope.label, NameOf(node)), "import"})) {}

std::string Call::Where() const { return absl::StrCat(node.op_type(), " ", scope.label, NameOf(node)); }

void Call::Fail(Status status) {
  if (!status_.ok() || status.ok()) return;
  status_ =
      DiagnosticOf(status) ? std::move(status) : WithMessage(status, absl::StrCat(Where(), ": ", status.message()));
}

Value Call::Nothing() {
  const auto made = builder.graph.AddConstant({DType::kF32, {}}, std::vector<uint8_t>(4));
  return made.ok() ? *made : Value{};
}

const Item& Call::item(int i) {
  static const Item* const none = new Item;
  if (!Has(i)) return *none;
  const Item* const found = scope.Find(node.input(i));
  if (found != nullptr) return *found;
  Fail(absl::InvalidArgumentError(absl::StrFormat("there is no value called %s before it", node.input(i))));
  return *none;
}

Value Call::x(int i) {
  const Item& from = item(i);
  if (!ok()) return Nothing();
  if (from.kind == Item::Kind::kStrings) Fail("%s is of strings, which tensors here are not", node.input(i));
  if (from.kind == Item::Kind::kSequence) Fail("%s is a sequence, and a tensor is needed", node.input(i));
  if (from.kind == Item::Kind::kNone) Fail("operand %d is needed", i);
  if (!ok()) return Nothing();
  const StatusOr<Value> value = ValueOf(session, builder, from);
  if (value.ok()) return *value;
  Fail(value.status());
  return Nothing();
}

Values Call::all() {
  Values values;
  for (int i = 0; i < inputs(); ++i) values.push_back(x(i));
  return values;
}

Extent Call::dim(Value value, int64_t axis) {
  const std::vector<Extent>& dims = type(value).dims;
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  if (axis >= 0 && axis < static_cast<int64_t>(dims.size())) return dims[axis];
  Fail(absl::InvalidArgumentError(absl::StrFormat("%s has too few dimensions", type(value).ToString())));
  return Extent(1);
}

int64_t Call::fixed_dim(Value value, int64_t axis) {
  const Extent size = dim(value, axis);
  if (size.is_constant()) return size.constant();
  for (const std::string& symbol : size.Symbols()) session.wanted_sizes.insert(symbol);
  Fail("the size %s of %s must be a number", size.ToString(), type(value).ToString());
  return 1;
}

int64_t Call::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  Fail(absl::InvalidArgumentError(absl::StrFormat("there is no axis %d of %d dimensions", axis, rank)));
  return 0;
}

const format::Attribute* Call::Find(std::string_view name) const {
  for (const format::Attribute& attribute : node.attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.ref_attr_name().empty()) return &attribute;
    if (scope.attributes == nullptr) return nullptr;
    const auto found = scope.attributes->find(attribute.ref_attr_name());
    return found == scope.attributes->end() ? nullptr : found->second;
  }
  return nullptr;
}

int64_t Call::Int(std::string_view name, int64_t otherwise) const {
  const format::Attribute* const found = Find(name);
  return found != nullptr && found->has_i() ? found->i() : otherwise;
}
double Call::Float(std::string_view name, double otherwise) const {
  const format::Attribute* const found = Find(name);
  return found != nullptr && found->has_f() ? found->f() : otherwise;
}
std::string Call::Str(std::string_view name, std::string_view otherwise) const {
  const format::Attribute* const found = Find(name);
  return found != nullptr && found->has_s() ? found->s() : std::string(otherwise);
}
Ints Call::IntList(std::string_view name) const {
  const format::Attribute* const found = Find(name);
  return found == nullptr ? Ints{} : Ints(found->ints().begin(), found->ints().end());
}
std::vector<double> Call::FloatList(std::string_view name) const {
  const format::Attribute* const found = Find(name);
  return found == nullptr ? std::vector<double>{} : std::vector<double>(found->floats().begin(), found->floats().end());
}
std::vector<std::string> Call::StrList(std::string_view name) const {
  const format::Attribute* const found = Find(name);
  return found == nullptr ? std::vector<std::string>{}
                          : std::vector<std::string>(found->strings().begin(), found->strings().end());
}

std::optional<Extents> Call::MaybeExtents(Value value) {
  if (!ok()) return std::nullopt;
  return KnownExtents(session, builder, value);
}

Extents Call::ExtentsOf(Value value) {
  std::optional<Extents> known = MaybeExtents(value);
  if (known) return *std::move(known);
  if (!ok()) return {};
  std::set<std::string> inputs, symbols;
  Dependences(session, builder, value, &inputs, &symbols);
  session.wanted_inputs.insert(inputs.begin(), inputs.end());
  session.wanted_sizes.insert(symbols.begin(), symbols.end());
  const std::vector<std::string_view> names(inputs.begin(), inputs.end()), sizes(symbols.begin(), symbols.end());
  Fail("it needs numbers before anything runs, and they are made of the inputs %s and the sizes %s", NamesText(names),
       NamesText(sizes));
  return {};
}

std::optional<Ints> Call::MaybeInts(Value value) {
  const std::optional<Extents> known = MaybeExtents(value);
  if (!known) return std::nullopt;
  Ints ints;
  for (const Extent& extent : *known) {
    if (!extent.is_constant()) return std::nullopt;
    ints.push_back(extent.constant());
  }
  return ints;
}

Ints Call::IntsOf(Value value) {
  Ints ints;
  for (const Extent& extent : ExtentsOf(value)) {
    if (!extent.is_constant()) {
      for (const std::string& symbol : extent.Symbols()) session.wanted_sizes.insert(symbol);
      Fail("it needs a number, and %s is none", extent.ToString());
      return {};
    }
    ints.push_back(extent.constant());
  }
  return ints;
}

std::optional<std::vector<double>> Call::MaybeReals(Value value) {
  if (!ok()) return std::nullopt;
  const std::optional<ir::RefTensor> tensor = KnownTensor(session, builder, value);
  if (!tensor || IsComplex(tensor->dtype)) return std::nullopt;
  std::vector<double> reals;
  for (int64_t i = 0; i < tensor->elements(); ++i) reals.push_back(tensor->Real(i));
  return reals;
}

std::vector<double> Call::RealsOf(Value value) {
  const std::optional<std::vector<double>> known = MaybeReals(value);
  if (known) return *known;
  if (ok()) {
    std::set<std::string> inputs, symbols;
    Dependences(session, builder, value, &inputs, &symbols);
    session.wanted_inputs.insert(inputs.begin(), inputs.end());
    session.wanted_sizes.insert(symbols.begin(), symbols.end());
    const std::vector<std::string_view> names(inputs.begin(), inputs.end());
    Fail("it needs numbers before anything runs, and they are made of the inputs %s", NamesText(names));
  }
  return {};
}

std::vector<double> Call::NumbersOf(int i) {
  const Data* const data = item(i).data.get();
  if (data == nullptr) return RealsOf(x(i));
  const StatusOr<ir::RefTensor> tensor = ir::RefTensorFromBytes(data->dtype, data->dims, data->bytes);
  if (!tensor.ok()) Fail(tensor.status());
  std::vector<double> numbers;
  for (int64_t at = 0; tensor.ok() && at < tensor->elements(); ++at) numbers.push_back(tensor->Real(at));
  return numbers;
}

std::optional<Ints> Call::IntsFrom(int i, std::string_view attribute) {
  if (Has(i)) return IntsOf(x(i));
  const format::Attribute* const found = Find(attribute);
  if (found == nullptr) return std::nullopt;
  return Ints(found->ints().begin(), found->ints().end());
}

Extent Call::OpenSize(const Values& from) {
  std::string symbol;
  for (const char letter : scope.label + NameOf(node)) symbol += absl::ascii_isalnum(letter) ? letter : '_';
  symbol.insert(0, "DATA_");
  const auto solved = session.solved.find(symbol);
  if (solved != session.solved.end()) return solved->second;
  if (builder.outer != nullptr) {
    for (const Value value : from) ExtentsOf(value);
    return Extent(1);
  }
  session.open.insert(symbol);
  for (const Value value : from) {
    std::set<std::string> symbols;
    Dependences(session, builder, value, &session.open_inputs[symbol], &symbols);
  }
  builder.graph.symbols.emplace(symbol, SymbolRange{0, int64_t{1} << 20});
  return Extent::Symbol(symbol);
}

Extent Call::FoundSize(const Extent& most) {
  std::string symbol = "FOUND_";
  for (const char letter : scope.label + NameOf(node)) symbol += absl::ascii_isalnum(letter) ? letter : '_';
  SymbolRanges& symbols = builder.graph.symbols;
  while (symbols.contains(symbol) || session.found.contains(symbol)) symbol += "_";  // bodies have their own
  session.found.insert(symbol);
  symbols.emplace(symbol, SymbolRange{0, most.UpperBound(symbols).value_or(INT64_MAX)});
  return Extent::Symbol(symbol);
}

Value Call::Add(std::string_view op, Values inputs, ir::Attributes attributes) {
  const Values results = AddAll(op, std::move(inputs), std::move(attributes));
  return results[0];
}

Values Call::AddAll(std::string_view op, Values inputs, ir::Attributes attributes,
                    std::vector<std::shared_ptr<const ir::Graph>> bodies) {
  if (ok()) {
    const StatusOr<Value> added = builder.graph.Add(op, inputs, attributes, origin_, std::move(bodies));
    if (added.ok()) {
      Values results;
      for (size_t r = 0; r < builder.graph.node(added->node).results.size(); ++r)
        results.push_back({added->node, static_cast<int>(r)});
      return results;
    }
    Refuse(inputs, added.status());
  }
  return Values(8, Nothing());
}

Value Call::Chain(const Values& from, const std::function<Value(ir::Expansion& e)>& make) {
  if (!ok()) return Nothing();
  ir::Expansion e(builder.graph, origin_);
  const Value made = make(e);
  const StatusOr<Values> finished = e.Finish({made});
  if (finished.ok()) return made;
  Refuse(from, finished.status());
  return Nothing();
}

void Call::Refuse(const Values& inputs, const Status& status) {
  // What is refused of a symbol may be taken of a number.
  for (const Value input : inputs) {
    for (const Extent& extent : type(input).dims) {
      for (const std::string& symbol : extent.Symbols()) session.wanted_sizes.insert(symbol);
    }
  }
  Fail(status);
}

Value Call::Constant(ir::TensorType type, std::vector<uint8_t> bytes) {
  if (!ok()) return Nothing();
  const StatusOr<Value> added = builder.graph.AddConstant(std::move(type), std::move(bytes), origin_);
  if (added.ok()) return *added;
  Fail(added.status());
  return Nothing();
}

Value Call::Param(std::string name, ir::TensorType type, std::vector<uint8_t> bytes) {
  if (!ok()) return Nothing();
  while (session.params.contains(name) || session.input_names.contains(name)) name += "_";
  const StatusOr<Value> added = builder.graph.AddParam(name, std::move(type), origin_);
  if (!added.ok()) {
    Fail(added.status());
    return Nothing();
  }
  session.owners.push_back(std::make_shared<const std::vector<uint8_t>>(std::move(bytes)));
  session.params[name] = *session.owners.back();
  return *added;
}

Value Call::Scalar(double value, DType dtype) { return Reals({value}, dtype, {}); }

Value Call::Integers(const Ints& values) {
  std::vector<uint8_t> bytes(values.size() * 8);
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Constant({DType::kI64, {Extent(static_cast<int64_t>(values.size()))}}, std::move(bytes));
}

Value Call::Reals(const std::vector<double>& values, DType dtype, Extents dims) {
  ir::RefTensor tensor{dtype, {}, {}};
  for (const Extent& dim : dims) tensor.dims.push_back(dim.is_constant() ? dim.constant() : 1);
  tensor.Allocate();
  if (IsComplex(dtype) || tensor.elements() != static_cast<int64_t>(values.size())) {
    Fail("no constant of that type");
    return Nothing();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (IsInteger(dtype))
      tensor.SetInteger(static_cast<int64_t>(i), ir::Saturated(dtype, values[i]));
    else
      tensor.data[i] = dtype == DType::kBool ? (values[i] != 0 ? 1 : 0) : ir::RoundOnce(dtype, values[i]);
  }
  return Constant({dtype, std::move(dims)}, ir::BytesOf(tensor));
}

Value Call::Size(const Extent& extent) {
  if (extent.is_constant()) return Reshape(Integers({extent.constant()}), {});
  return Add("Size", {}, {{"extent", Extents{extent}}});
}

Value Call::Sizes(const Extents& extents) {
  Ints numbers;
  for (const Extent& extent : extents) {
    if (extent.is_constant()) numbers.push_back(extent.constant());
  }
  if (numbers.size() == extents.size()) return Integers(numbers);
  Values parts;
  for (const Extent& extent : extents) parts.push_back(Reshape(Size(extent), {Extent(1)}));
  return parts.size() == 1 ? parts[0] : Add("Concat", parts, {{"axis", int64_t{0}}});
}

Value Call::Filled(double value, DType dtype, const Extents& dims) { return Expand(Scalar(value, dtype), dims); }
Value Call::Cast(Value value, DType to) { return dtype(value) == to ? value : Add("Cast", {value}, {{"to", to}}); }
Value Call::Reshape(Value value, const Extents& dims) {
  return type(value).dims == dims ? value : Add("Reshape", {value}, {{"shape", dims}});
}
Value Call::Transpose(Value value, const Ints& perm) {
  bool same = true;
  for (size_t d = 0; d < perm.size(); ++d) same = same && perm[d] == static_cast<int64_t>(d);
  return same ? value : Add("Transpose", {value}, {{"perm", perm}});
}
Value Call::Expand(Value value, const Extents& dims) {
  return type(value).dims == dims ? value : Add("Expand", {value}, {{"shape", dims}});
}
Value Call::Slice(Value value, int64_t axis, const Extent& start, const Extent& length) {
  return Add("Narrow", {value}, {{"axis", axis}, {"start", Extents{start}}, {"length", Extents{length}}});
}
Value Call::Reduce(const char* op, Value value, const Ints& axes, bool keep) {
  return Add("Reduce", {value}, {{"op", std::string(op)}, {"axes", axes}, {"keep_dim", keep}});
}
Value Call::Wide(Value value) {
  const DType now = dtype(value);
  return now == DType::kF32 || now == DType::kF64 ? value : Cast(value, DType::kF32);
}

void Call::ReturnItem(int output, Item item) {
  if (Wants(output)) scope.Set(node.output(output), std::move(item));
}

void SameOp(Call& c) {
  Values x = c.all();
  if (c.opset < 7 && x.size() == 2 && c.Find("axis") != nullptr) {
    // Before version 7 the second operand stood at an axis of the first.
    Extents dims = c.type(x[1]).dims;
    const int64_t behind = c.rank(x[0]) - c.Axis(c.Int("axis", 0), std::max(c.rank(x[0]), 1)) - c.rank(x[1]);
    for (int64_t d = 0; d < behind; ++d) dims.emplace_back(1);
    x[1] = c.Reshape(x[1], dims);
  }
  c.Return(c.Add(c.row.op, x));
}

}  // namespace quern::onnx
