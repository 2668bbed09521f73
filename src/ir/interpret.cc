#include "ir/interpret.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/half.h"
#include "ir/counted.h"
#include "kir/decode.h"

namespace quern::ir {
namespace {

template <typename T>
T ReadAs(const uint8_t* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

double ReadReal(DType dtype, const uint8_t* data, int64_t i) {
  if (dtype == DType::kF32) return ReadAs<float>(data, i);
  if (dtype == DType::kF64) return ReadAs<double>(data, i);
  if (dtype == DType::kF16) return HalfToFloat(ReadAs<uint16_t>(data, i));
  if (dtype == DType::kBF16) return BFloat16ToFloat(ReadAs<uint16_t>(data, i));
  return data[i] != 0;  // a bool
}

int64_t ReadInteger(DType dtype, const uint8_t* data, int64_t i) {
  switch (ScalarBytes(dtype)) {
    case 1: return IsUnsigned(dtype) ? int64_t{ReadAs<uint8_t>(data, i)} : ReadAs<int8_t>(data, i);
    case 2: return IsUnsigned(dtype) ? int64_t{ReadAs<uint16_t>(data, i)} : ReadAs<int16_t>(data, i);
    case 4: return IsUnsigned(dtype) ? int64_t{ReadAs<uint32_t>(data, i)} : ReadAs<int32_t>(data, i);
    default: return ReadAs<int64_t>(data, i);
  }
}

template <typename T>
void Put(std::vector<uint8_t>& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

void PutReal(DType dtype, double value, std::vector<uint8_t>& bytes) {
  if (dtype == DType::kF32 || dtype == DType::kC64) return Put(bytes, static_cast<float>(value));
  if (dtype == DType::kF64) return Put(bytes, value);
  if (dtype == DType::kF16) return Put(bytes, FloatToHalf(RoundToOdd(value)));
  if (dtype == DType::kBF16) return Put(bytes, FloatToBFloat16(RoundToOdd(value)));
  Put(bytes, static_cast<uint8_t>(value != 0));  // a bool
}

StatusOr<std::vector<int64_t>> Sizes(const TensorType& type, const Binding& binding) {
  std::vector<int64_t> dims;
  for (const Extent& dim : type.dims) {
    QUERN_ASSIGN(const int64_t size, dim.Evaluate(binding));
    if (size < 0) return absl::InvalidArgumentError(absl::StrFormat("extent %s is %d", dim.ToString(), size));
    dims.push_back(size);
  }
  return dims;
}

// `inputs`: values of the Inputs by position, for a body; null: they are fed by name, as Params always are. `binding`
// gets the sizes that are found.
StatusOr<std::vector<RefTensor>> Evaluate(const Graph& graph, Binding& binding,
                                          const std::span<const RefTensor* const>* inputs, const Feeds& feeds) {
  QUERN_RETURN_IF_ERROR(BeginSizes(graph, binding));
  std::vector<std::vector<RefTensor>> values(graph.nodes().size());
  size_t next_input = 0;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (IsCounted(node)) {
      const Value count = node.inputs[1];
      QUERN_RETURN_IF_ERROR(
          WithOrigin(graph, node.origin, BindCount(graph, node, values[count.node][count.result], binding)));
    }
    for (const TensorType& type : node.results) {
      RefTensor result{type.dtype, {}, {}};
      QUERN_ASSIGN(result.dims, Sizes(type, binding));
      result.Allocate();
      values[n].push_back(std::move(result));
    }
    if (IsConstant(node)) {
      QUERN_ASSIGN(values[n][0], RefTensorFromBytes(node.results[0].dtype, values[n][0].dims, *node.data));
    } else if (node.op->kind == OpKind::kLeaf) {
      const RefTensor* fed = nullptr;
      const std::string& name = node.attributes.String("name");
      if (inputs != nullptr && IsInput(node)) {
        fed = (*inputs)[next_input++];
      } else if (const auto it = feeds.find(name); it != feeds.end()) {
        fed = &it->second;
      } else {
        return absl::InvalidArgumentError(absl::StrFormat("no value for %s %s", node.op->name, name));
      }
      if (fed->dtype != node.results[0].dtype || fed->dims != values[n][0].dims) {
        return absl::InvalidArgumentError(
            absl::StrFormat("the value for %s is not of type %s", name, node.results[0].ToString()));
      }
      values[n][0] = *fed;
    } else {
      std::vector<const RefTensor*> operands;
      for (const Value& input : node.inputs) operands.push_back(&values[input.node][input.result]);
      const auto run = [&](int body, std::span<const RefTensor* const> given) {
        return Evaluate(node.body(body), binding, &given, feeds);
      };
      if (node.op->kind == OpKind::kRegion) {
        QUERN_ASSIGN(values[n], run(0, operands));
        continue;
      }
      if (node.op->reference == nullptr)
        return absl::UnimplementedError(absl::StrFormat("%s has no reference", node.op->name));
      RefContext context{node, operands, binding, values[n], run};
      QUERN_RETURN_IF_ERROR(WithOrigin(graph, node.origin, node.op->reference(context)));
    }
  }
  std::vector<RefTensor> outputs;
  for (const Value& output : graph.outputs) outputs.push_back(values[output.node][output.result]);
  return outputs;
}

// Whether the sizes are as the graph requires, those apart that `binding` lacks and nodes find.
Status CheckConstraints(const Graph& graph, const Binding& binding) {
  std::optional<CountedSizes> counted;
  for (const ExtentConstraint& constraint : graph.constraints) {
    const std::vector<std::string> symbols = constraint.difference().Symbols();
    const bool early = std::any_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) {
      if (binding.contains(symbol)) return false;
      if (!counted) counted = AllCountedSizes(graph);
      return counted->contains(symbol);
    });
    if (early) continue;
    QUERN_ASSIGN(const int64_t left, constraint.left.Evaluate(binding));
    QUERN_ASSIGN(const int64_t right, constraint.right.Evaluate(binding));
    if (!constraint.Holds(left - right))
      return absl::InvalidArgumentError(absl::StrFormat("%s is %d and %d", constraint.ToString(), left, right));
  }
  return absl::OkStatus();
}

}  // namespace

Status BeginSizes(const Graph& graph, Binding& binding) {
  for (const auto& [symbol, node] : CountingNodes(graph)) binding.erase(symbol);
  return CheckConstraints(graph, binding);
}

Status BindCount(const Graph& graph, const Node& node, const RefTensor& count, Binding& binding) {
  const std::string& symbol = CountedSymbol(node);
  const SymbolRange& range = graph.symbols.at(symbol);
  const int64_t value = count.integers[0];
  QUERN_ASSIGN(const int64_t most, graph.type(node.inputs[0]).dims[node.attributes.Int("axis")].Evaluate(binding));
  const int64_t high = std::min(most, range.high);
  if (value < range.low || value > high) {
    return ToStatus({DiagnosticCode::kOutOfRange, node.op->name, absl::StrCat("symbol ", symbol),
                     absl::StrCat(range.low, "..", high), absl::StrCat(value), ""});
  }
  binding[symbol] = value;
  return CheckConstraints(graph, binding);
}

StatusOr<RefTensor> RefTensorFromBytes(DType dtype, std::vector<int64_t> dims, std::span<const uint8_t> bytes) {
  RefTensor tensor{dtype, std::move(dims), {}};
  const int64_t elements = tensor.elements();
  const int64_t row = tensor.dims.empty() ? 1 : tensor.dims.back();
  if (row % Row(dtype).block_elements != 0 ||
      elements / Row(dtype).block_elements * Row(dtype).block_bytes != static_cast<int64_t>(bytes.size())) {
    return absl::InvalidArgumentError(absl::StrFormat("%u bytes are no tensor of %d elements of %s", bytes.size(),
                                                      elements, std::string(Name(dtype))));
  }
  tensor.Allocate();
  if (IsBlock(dtype)) {
    std::vector<float> values(elements);  // rows are whole blocks, so all of them are one long row
    kir::DecodeRow(dtype, bytes.data(), elements, values.data());
    tensor.data.assign(values.begin(), values.end());
    return tensor;
  }
  if (IsComplex(dtype)) {
    for (int64_t i = 0; i < 2 * elements; ++i) tensor.data[i] = ReadAs<float>(bytes.data(), i);
    return tensor;
  }
  for (int64_t i = 0; i < elements; ++i) {
    if (IsInteger(dtype))
      tensor.integers[i] = ReadInteger(dtype, bytes.data(), i);
    else
      tensor.data[i] = ReadReal(dtype, bytes.data(), i);
  }
  return tensor;
}

std::vector<uint8_t> BytesOf(const RefTensor& tensor) {
  QUERN_CHECK(!IsBlock(tensor.dtype));
  std::vector<uint8_t> bytes;
  bytes.reserve(tensor.elements() * ScalarBytes(tensor.dtype));
  for (const double value : tensor.data) PutReal(tensor.dtype, value, bytes);
  for (const int64_t value : tensor.integers) {  // wrapped already: the low bytes are the number
    const auto* low = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), low, low + ScalarBytes(tensor.dtype));
  }
  return bytes;
}

StatusOr<std::vector<RefTensor>> Interpret(const Graph& graph, const Binding& binding, const Feeds& feeds) {
  Binding sizes = binding;
  return Evaluate(graph, sizes, nullptr, feeds);
}

}  // namespace quern::ir
