// Equivalent of the public interface: two graphs on the same random values.

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "check/draw.h"
#include "check/value.h"
#include "compiler/graph_state.h"
#include "lir/signature.h"
#include "quern/plan.h"

namespace quern {
namespace {

using State = compiler::GraphAccess::State;

// "x f32[N, 3], y i32[]".
std::string PortsText(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) absl::StrAppend(&text, text.empty() ? "" : ", ", port.name, " ", port.type.ToString());
  return text;
}

Status Compare(const char* what, const std::string& a, const std::string& b) {
  if (a == b) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("graphs of other %s: %s; %s", what, a, b));
}

// Outputs of one graph on the values, in their order.
StatusOr<std::vector<ir::RefTensor>> RunGraph(Program& program, const Signature& signature, const Binding& sizes,
                                              const check::Bytes& bytes, Error& error) {
  std::vector<ConstTensor> inputs;
  for (const Port& port : signature.inputs) {
    QUERN_ASSIGN(std::vector<int64_t> dims, check::SizesOf(port.type, sizes));
    const std::vector<uint8_t>& data = bytes.find(port.name)->second;
    inputs.push_back({port.name, data.data(), data.size(), nullptr, std::move(dims)});
  }
  std::vector<std::vector<uint8_t>> memory;
  std::vector<MutableTensor> outputs;
  memory.reserve(signature.outputs.size());
  for (const Port& output : signature.outputs) {
    const Port port = RoomFor(signature, output);
    QUERN_ASSIGN(std::vector<int64_t> dims, check::SizesOf(port.type, sizes));
    QUERN_ASSIGN(const int64_t size, check::BytesOf(port.type, false, sizes));
    std::vector<uint8_t>& data = memory.emplace_back(size);
    outputs.push_back({output.name, data.data(), data.size(), nullptr, std::move(dims)});
  }
  program.ResetState();
  const Result<void> ran = program.Run(inputs, outputs, {sizes.begin(), sizes.end()});
  if (!ran.ok()) {
    error = ran.details();
    return absl::InvalidArgumentError(error.message);
  }
  std::vector<ir::RefTensor> results;
  const Result<std::vector<std::vector<int64_t>>> shapes = program.LastShapes();
  for (size_t o = 0; o < memory.size(); ++o) {
    const DType dtype = signature.outputs[o].type.dtype;
    const std::vector<int64_t>& dims = (*shapes)[o];
    const int64_t bytes = RowBytes(dtype, ir::RefTensor{dtype, dims, {}}.elements());
    QUERN_ASSIGN(results.emplace_back(),
                 ir::RefTensorFromBytes(dtype, dims, std::span(memory[o]).first(static_cast<size_t>(bytes))));
  }
  return results;
}

// Where the values differ first, or "".
std::string Difference(const ir::RefTensor& a, const ir::RefTensor& b, double tolerance) {
  double largest = 0;
  for (const double value : a.data) largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  if (a.dims != b.dims) return absl::StrFormat(" is of %s and %s", check::Text(a.dims), check::Text(b.dims));
  for (int64_t e = 0; e < a.elements(); ++e) {
    if (!a.integers.empty()) {
      if (a.integers[e] != b.integers[e])
        return absl::StrFormat("%s is %d and %d", check::Text(check::IndexOf(a.dims, e)), a.integers[e], b.integers[e]);
      continue;
    }
    const double x = a.data[e], y = b.data[e];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    // Halves are as fine as they are.
    const double step = a.dtype == DType::kF16 ? 0x1p-9 : a.dtype == DType::kBF16 ? 0x1p-6 : 0;
    if (std::isfinite(x) && std::isfinite(y) &&
        std::fabs(x - y) <= std::max(tolerance, step) * (std::fabs(x) + largest)) {
      continue;
    }
    return absl::StrFormat("%s is %g and %g", check::Text(check::IndexOf(a.dims, e)), x, y);
  }
  return "";
}

StatusOr<std::string> Try(const State& a, const State& b, Program& first, Program& second,
                          const EquivalenceOptions& options, Error& error) {
  QUERN_ASSIGN(const ir::Graph graph, hir::Lower(a.module));
  QUERN_ASSIGN(const ir::Graph other, hir::Lower(b.module));
  const Signature left = SignatureOf(graph), right = SignatureOf(other);
  QUERN_RETURN_IF_ERROR(Compare("inputs", PortsText(left.inputs), PortsText(right.inputs)));
  QUERN_RETURN_IF_ERROR(Compare("states", PortsText(left.states), PortsText(right.states)));
  QUERN_RETURN_IF_ERROR(Compare("outputs", PortsText(left.outputs), PortsText(right.outputs)));
  std::mt19937_64 random(options.seed);
  std::vector<check::Bytes> kept;  // programs read parameters until the end
  kept.reserve(options.runs);
  for (int run = 0; run < options.runs; ++run) {
    Binding sizes;
    SymbolRanges symbols = left.symbols;
    symbols.insert(right.symbols.begin(), right.symbols.end());
    for (const auto& [symbol, range] : symbols) {
      const int64_t high = std::min(range.high, std::max(range.low, options.largest));
      sizes[symbol] = range.low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - range.low + 1));
    }
    const uint64_t seed = random();
    check::Bytes& bytes = kept.emplace_back();
    QUERN_ASSIGN(bytes, check::DrawBytes(graph, sizes, seed));
    QUERN_ASSIGN(const check::Bytes more, check::DrawBytes(other, sizes, seed));
    bytes.insert(more.begin(), more.end());
    for (const auto& [program, params] : {std::pair(&first, &left.params), std::pair(&second, &right.params)}) {
      for (const Port& param : *params) {
        const Result<void> bound = program->Bind(param.name, std::as_bytes(std::span(bytes.find(param.name)->second)));
        if (bound.ok()) continue;
        error = bound.details();
        return absl::InvalidArgumentError(error.message);
      }
    }
    QUERN_ASSIGN(const std::vector<ir::RefTensor> x, RunGraph(first, left, sizes, bytes, error));
    QUERN_ASSIGN(const std::vector<ir::RefTensor> y, RunGraph(second, right, sizes, bytes, error));
    for (size_t o = 0; o < x.size(); ++o) {
      const std::string difference = Difference(x[o], y[o], options.tolerance);
      if (difference.empty()) continue;
      std::string at;
      for (const auto& [symbol, size] : sizes) absl::StrAppend(&at, at.empty() ? " at " : ", ", symbol, "=", size);
      return absl::StrFormat("output %s%s %s", left.outputs[o].name, difference, at);
    }
  }
  return std::string();
}

}  // namespace

Result<std::string> Equivalent(const Graph& a, const Graph& b, const EquivalenceOptions& equivalence,
                               const Options& options) {
  Result<Program> first = a.Compile(options), second = b.Compile(options);
  for (const Result<Program>* program : {&first, &second}) {
    if (!program->ok()) return Result<std::string>::Failed(program->details());
  }
  Error error;
  StatusOr<std::string> difference =
      Try(compiler::GraphAccess::Of(a), compiler::GraphAccess::Of(b), *first, *second, equivalence, error);
  if (error.code != ErrorCode::kNone) return Result<std::string>::Failed(error);
  return compiler::ToResult(std::move(difference));
}

}  // namespace quern
