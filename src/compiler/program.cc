// Program of the public interface: tensors by name and shape over an Executable.

#include "compiler/program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/diagnostic.h"
#include "base/stopwatch.h"
#include "compiler/device_run.h"
#include "compiler/model.h"
#include "compiler/program_identity.h"
#include "compiler/public_error.h"
#include "quern/profile.h"

namespace quern {
namespace {

std::vector<TensorInfo> Infos(const std::vector<Port>& ports) {
  std::vector<TensorInfo> infos;
  for (const Port& port : ports) infos.push_back({port.name, port.type.ToString()});
  return infos;
}

// The binding and checks of one run. `Tensor` is ConstTensor or MutableTensor.
class RunChecks {
 public:
  RunChecks(const std::string& graph, const Binding& symbols) : graph_(graph), symbols_(symbols) {}

  const Binding& symbols() const { return symbols_; }

  // The tensors in the order of the ports. Errors: one that is missing, given twice or unknown, of another dtype or
  // rank.
  template <typename Tensor>
  StatusOr<std::vector<const Tensor*>> Match(const char* kind, const std::vector<Port>& ports,
                                             const std::vector<Tensor>& tensors) const {
    std::vector<const Tensor*> ordered(ports.size());
    for (const Tensor& tensor : tensors) {
      const auto port = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == tensor.name; });
      const std::string operand = absl::StrCat(kind, " ", std::string(tensor.name));
      if (port == ports.end()) {
        std::vector<std::string_view> names;
        for (const Port& p : ports) names.emplace_back(p.name);
        return UnknownName(kind, tensor.name, names, graph_);
      }
      const Tensor*& slot = ordered[port - ports.begin()];
      if (slot != nullptr) return ToStatus({DiagnosticCode::kDuplicateName, "Run", operand, "", "", graph_});
      slot = &tensor;
      QUERN_RETURN_IF_ERROR(CheckType(operand, *port, tensor));
    }
    for (size_t p = 0; p < ports.size(); ++p) {
      if (ordered[p] == nullptr) return Fail(DiagnosticCode::kMissing, absl::StrCat(kind, " ", ports[p].name), "", "");
    }
    return ordered;
  }

  // Symbols take the values that the dimensions of inputs say: S of [S, 8] first, then A of [2*A + S].
  void BindSymbols(const std::vector<Port>& ports, const std::vector<const ConstTensor*>& tensors) {
    for (bool more = true; more;) {
      more = false;
      for (size_t p = 0; p < ports.size(); ++p) {
        for (size_t d = 0; d < tensors[p]->shape.size(); ++d) {
          const auto solved = ports[p].type.dims[d].SolvedFor(tensors[p]->shape[d], symbols_);
          if (solved && symbols_.insert(*solved).second) more = true;
        }
      }
    }
  }

  // Every symbol has a value in its range, and there is no other.
  Status CheckSymbols(const SymbolRanges& ranges) const {
    for (const auto& [name, range] : ranges) {
      const auto value = symbols_.find(name);
      if (value == symbols_.end()) return Fail(DiagnosticCode::kMissing, absl::StrCat("symbol ", name), "", "");
      if (value->second < range.low || value->second > range.high) {
        return Fail(DiagnosticCode::kOutOfRange, absl::StrCat("symbol ", name),
                    absl::StrCat(range.low, "..", range.high), absl::StrCat(value->second));
      }
    }
    for (const auto& [name, value] : symbols_) {
      if (ranges.contains(name)) continue;
      std::vector<std::string_view> names;
      for (const auto& [symbol, range] : ranges) names.emplace_back(symbol);
      return UnknownName("symbol", name, names, graph_);
    }
    return absl::OkStatus();
  }

  // Shapes are those of the types.
  template <typename Tensor>
  Status CheckExtents(const char* kind, const std::vector<Port>& ports,
                      const std::vector<const Tensor*>& tensors) const {
    for (size_t p = 0; p < ports.size(); ++p) {
      const ir::TensorType& type = ports[p].type;
      for (size_t d = 0; d < tensors[p]->shape.size(); ++d) {
        QUERN_ASSIGN(const int64_t size, type.dims[d].Evaluate(symbols_));
        if (tensors[p]->shape[d] != size) {
          return Fail(DiagnosticCode::kShapeMismatch, absl::StrCat(kind, " ", ports[p].name), Expected(type),
                      Given(type.dtype, tensors[p]->shape));
        }
      }
    }
    return absl::OkStatus();
  }

  // The memory is of the size of the shapes, aligned to its elements.
  template <typename Tensor>
  Status CheckMemory(const char* kind, const std::vector<Port>& ports,
                     const std::vector<const Tensor*>& tensors) const {
    for (size_t p = 0; p < ports.size(); ++p) {
      const Tensor& tensor = *tensors[p];
      const std::string operand = absl::StrCat(kind, " ", ports[p].name);
      const ir::TensorType& type = ports[p].type;
      // The sizes are those of memory that exists, or the count below is not.
      int64_t elements = 1;
      bool overflow = false;
      for (const int64_t size : tensor.shape) overflow |= __builtin_mul_overflow(elements, size, &elements);
      overflow |= elements > (int64_t{1} << 48);
      const int64_t bytes = overflow ? -1 : RowBytes(type.dtype, elements);
      if (static_cast<int64_t>(tensor.bytes) != bytes) {
        return Fail(
            DiagnosticCode::kShapeMismatch, operand,
            absl::StrCat(overflow ? "more" : absl::StrCat(bytes, " bytes"), " of ", Given(type.dtype, tensor.shape)),
            absl::StrCat(tensor.bytes, " bytes"));
      }
      if (tensor.data == nullptr && bytes > 0)
        return Fail(DiagnosticCode::kMissing, absl::StrCat("memory of ", operand), "", "");
      const int alignment = IsBlock(type.dtype) ? 2 : ScalarBytes(type.dtype);
      if (reinterpret_cast<uintptr_t>(tensor.data) % alignment != 0) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s is not aligned to %d bytes (in %s)", operand, alignment, graph_));
      }
    }
    return absl::OkStatus();
  }

  // No output shares a byte with another or with an input.
  Status CheckOverlap(const std::vector<const ConstTensor*>& inputs,
                      const std::vector<const MutableTensor*>& outputs) const {
    const auto overlap = [](const auto& a, const auto& b) {
      const auto a0 = reinterpret_cast<uintptr_t>(a.data), b0 = reinterpret_cast<uintptr_t>(b.data);
      return a.bytes > 0 && b.bytes > 0 && a0 < b0 + b.bytes && b0 < a0 + a.bytes;
    };
    for (size_t o = 0; o < outputs.size(); ++o) {
      for (const ConstTensor* input : inputs) {
        if (overlap(*outputs[o], *input)) return Overlap(*outputs[o], "input", *input);
      }
      for (size_t other = 0; other < o; ++other) {
        if (overlap(*outputs[o], *outputs[other])) return Overlap(*outputs[o], "output", *outputs[other]);
      }
    }
    return absl::OkStatus();
  }

 private:
  Status Fail(DiagnosticCode code, std::string operand, std::string expected, std::string got) const {
    return ToStatus({code, "", std::move(operand), std::move(expected), std::move(got), graph_});
  }

  template <typename A, typename B>
  Status Overlap(const A& output, const char* kind, const B& other) const {
    return absl::InvalidArgumentError(absl::StrFormat("output %s overlaps %s %s in memory (in %s)",
                                                      std::string(output.name), kind, std::string(other.name), graph_));
  }

  template <typename Tensor>
  Status CheckType(const std::string& operand, const Port& port, const Tensor& tensor) const {
    const std::string_view wanted = Name(port.type.dtype);
    // C++ has no array of bools to point at: bytes will do.
    const bool bytes_for_bools =
        port.type.dtype == DType::kBool && tensor.dtype != nullptr && tensor.dtype == std::string_view("u8");
    if (tensor.dtype != nullptr && tensor.dtype != wanted && !bytes_for_bools) {
      return Fail(DiagnosticCode::kDTypeMismatch, operand, std::string(wanted), tensor.dtype);
    }
    if (static_cast<int>(tensor.shape.size()) != port.type.rank()) {
      return Fail(DiagnosticCode::kShapeMismatch, operand, Expected(port.type), Given(port.type.dtype, tensor.shape));
    }
    return absl::OkStatus();
  }

  static std::string Given(DType dtype, const std::vector<int64_t>& shape) {
    return absl::StrCat(std::string(Name(dtype)), "[", absl::StrJoin(shape, ", "), "]");
  }

  // "f32[BATCH, 48] with BATCH = 3": the symbols that have a value.
  std::string Expected(const ir::TensorType& type) const {
    std::vector<std::string> values;
    for (const Extent& dim : type.dims) {
      for (const std::string& symbol : dim.Symbols()) {
        const auto value = symbols_.find(symbol);
        if (value == symbols_.end()) continue;
        std::string text = absl::StrCat(symbol, " = ", value->second);
        if (std::find(values.begin(), values.end(), text) == values.end()) values.push_back(std::move(text));
      }
    }
    return values.empty() ? type.ToString() : absl::StrCat(type.ToString(), " with ", absl::StrJoin(values, ", "));
  }

  const std::string& graph_;
  Binding symbols_;
};

StatusOr<std::vector<std::vector<int64_t>>> ShapesOf(const std::vector<Port>& ports, const Binding& symbols) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Port& port : ports) {
    std::vector<int64_t>& shape = shapes.emplace_back();
    for (const Extent& dim : port.type.dims) {
      QUERN_ASSIGN(const int64_t size, dim.Evaluate(symbols));
      shape.push_back(size);
    }
  }
  return shapes;
}

}  // namespace

StatusOr<std::vector<std::vector<int64_t>>> Program::State_::OutputShapes(const std::vector<ConstTensor>& inputs,
                                                                          const Binding& symbols) const {
  const Signature& signature = made.executable->signature();
  RunChecks checks(signature.name, symbols);
  QUERN_ASSIGN(const std::vector<const ConstTensor*> in, checks.Match("input", signature.inputs, inputs));
  checks.BindSymbols(signature.inputs, in);
  QUERN_RETURN_IF_ERROR(checks.CheckSymbols(signature.symbols));
  QUERN_RETURN_IF_ERROR(checks.CheckExtents("input", signature.inputs, in));
  return ShapesOf(rooms, checks.symbols());
}

StatusOr<std::vector<std::vector<int64_t>>> Program::State_::LastShapes() const {
  const Signature& signature = made.executable->signature();
  if (!last) return ToStatus({DiagnosticCode::kMissing, "LastShapes", "a run before it", "", "", signature.name});
  return ShapesOf(signature.outputs, *last);
}

Status Program::State_::Run(const std::vector<ConstTensor>& given_inputs,
                            const std::vector<MutableTensor>& given_outputs, const Binding& symbols) {
  const Signature& signature = made.executable->signature();
  RunChecks checks(signature.name, symbols);
  QUERN_ASSIGN(const std::vector<const ConstTensor*> in, checks.Match("input", signature.inputs, given_inputs));
  QUERN_ASSIGN(const std::vector<const MutableTensor*> out, checks.Match("output", rooms, given_outputs));
  checks.BindSymbols(signature.inputs, in);
  QUERN_RETURN_IF_ERROR(checks.CheckSymbols(signature.symbols));
  QUERN_RETURN_IF_ERROR(checks.CheckExtents("input", signature.inputs, in));
  QUERN_RETURN_IF_ERROR(checks.CheckMemory("input", signature.inputs, in));
  QUERN_RETURN_IF_ERROR(checks.CheckExtents("output", rooms, out));
  QUERN_RETURN_IF_ERROR(checks.CheckMemory("output", rooms, out));
  QUERN_RETURN_IF_ERROR(checks.CheckOverlap(in, out));
  std::vector<ConstBytes> input_bytes;
  std::vector<MutableBytes> output_bytes;
  for (const ConstTensor* tensor : in) input_bytes.push_back({tensor->data, static_cast<int64_t>(tensor->bytes)});
  for (const MutableTensor* tensor : out) output_bytes.push_back({tensor->data, static_cast<int64_t>(tensor->bytes)});
  QUERN_RETURN_IF_ERROR(made.executable->CheckApart(output_bytes));
  QUERN_RETURN_IF_ERROR(made.executable->Run(input_bytes, output_bytes, checks.symbols()));
  last = signature.counted.empty() ? checks.symbols() : made.executable->last_sizes();
  return absl::OkStatus();
}

Status Program::State_::Precompile(const Binding& symbols) {
  const Signature& signature = made.executable->signature();
  QUERN_RETURN_IF_ERROR(RunChecks(signature.name, symbols).CheckSymbols(signature.symbols));
  return made.executable->Prepare(symbols);
}

namespace compiler {

std::vector<SymbolRanges> DefaultGuards(const SymbolRanges& symbols) {
  std::vector<SymbolRanges> guards;
  if (symbols.size() != 1) return guards;
  const auto& [name, range] = *symbols.begin();
  for (const SymbolRange& guard : {SymbolRange{1, 1}, SymbolRange{2, 8}}) {
    const SymbolRange clipped = {std::max(guard.low, range.low), std::min(guard.high, range.high)};
    if (clipped.low <= clipped.high) guards.push_back({{name, clipped}});
  }
  return guards;
}

StatusOr<std::unique_ptr<Program::State_>> MakeProgram(const ProgramSpec& spec, const Options& options) {
  const Stopwatch watch;
  QUERN_RETURN_IF_ERROR(NoAdapters(options));
  auto state = std::make_unique<Program::State_>();
  if (OnDevice(options))
    return absl::UnimplementedError(absl::StrFormat("graphs run on device cpu, not on %s", options.device));
  QUERN_ASSIGN(PipelineOptions pipeline, PipelineOptionsOf(options));
  pipeline.spans = std::make_shared<TimeSpans>();
  state->module = *spec.module;
  std::vector<SymbolRanges> guards = spec.guards;
  guards.push_back({});
  QUERN_ASSIGN(state->made, MakeExecutable(state->module, std::move(guards), options, pipeline));
  Executable& executable = *state->made.executable;
  const Signature& made = executable.signature();
  state->inputs = Infos(made.inputs);
  state->outputs = Infos(made.outputs);
  for (const Port& output : made.outputs) state->rooms.push_back(RoomFor(made, output));
  state->params = Infos(made.params);
  state->states = Infos(made.states);
  bool bound = true;
  for (const Port& port : made.params) {
    const auto param = spec.params.find(port.name);
    bound &= param != spec.params.end();
    if (param == spec.params.end()) continue;
    const std::span<const std::byte> bytes = param->second;
    QUERN_RETURN_IF_ERROR(
        executable.BindParam(port.name, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  }
  state->prepare_seconds = watch.Seconds();
  state->options = options;
  state->profiled = {&executable,    made.name,         "",       options.exact,     0, pipeline.spans,
                     &state->module, state->made.graph, pipeline, options.specialise};
  state->profiled.pipeline.spans = nullptr;
  if (bound) {
    Binding smallest;
    for (const auto& [name, range] : made.symbols) smallest[name] = range.low;
    QUERN_RETURN_IF_ERROR(executable.Prepare(smallest));
  }
  return state;
}

}  // namespace compiler

Program::Program(std::unique_ptr<State_> state) : state_(std::move(state)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

const std::vector<TensorInfo>& Program::inputs() const { return state_->inputs; }
const std::vector<TensorInfo>& Program::outputs() const { return state_->outputs; }
const std::vector<TensorInfo>& Program::params() const { return state_->params; }
const std::vector<TensorInfo>& Program::states() const { return state_->states; }

Result<void> Program::Bind(std::string_view param, std::span<const std::byte> bytes) {
  return Bind(param, bytes, nullptr);
}

Result<void> Program::Bind(std::string_view param, std::span<const std::byte> bytes, std::function<void()> release) {
  return compiler::ToResult(state_->made.executable->BindParam(
      param, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, std::move(release)));
}

Result<void> Program::Run(const std::vector<ConstTensor>& inputs, const std::vector<MutableTensor>& outputs,
                          const std::map<std::string, int64_t>& symbols) {
  return compiler::ToResult(state_->Run(inputs, outputs, {symbols.begin(), symbols.end()}),
                            state_->made.executable->signature().name);
}

Result<std::vector<std::vector<int64_t>>> Program::OutputShapes(const std::vector<ConstTensor>& inputs,
                                                                const std::map<std::string, int64_t>& symbols) const {
  return compiler::ToResult(state_->OutputShapes(inputs, {symbols.begin(), symbols.end()}),
                            state_->made.executable->signature().name);
}

Result<std::vector<std::vector<int64_t>>> Program::LastShapes() const {
  return compiler::ToResult(state_->LastShapes(), state_->made.executable->signature().name);
}

Result<std::span<std::byte>> Program::State(std::string_view name) {
  const StatusOr<std::span<uint8_t>> bytes = state_->made.executable->State(name);
  if (!bytes.ok()) return Result<std::span<std::byte>>::Failed(compiler::ErrorOf(bytes.status()));
  return std::as_writable_bytes(*bytes);
}

void Program::ResetState() { state_->made.executable->ResetState(); }

std::string Program::CheckSummary() const {
  return state_->made.checker == nullptr ? "" : state_->made.checker->Summary();
}

Result<Profiler> Profiler::Attach(Program& program, const ProfilerOptions& options) {
  return AttachTo(program.state_->profiled, options);
}

std::vector<Program::VariantInfo> Program::Variants() const {
  const Executable& executable = *state_->made.executable;
  const StatusOr<ir::Graph> graph = hir::Lower(state_->module);
  const std::string identity = graph.ok() ? compiler::IdentityOf(*graph, state_->options) : "";
  std::vector<VariantInfo> variants;
  for (int v = 0; v < executable.variants(); ++v) {
    VariantInfo& made = variants.emplace_back();
    made.guard = compiler::TextOfGuard(executable.guard(v));
    made.key = compiler::VariantKey(identity, executable.guard(v));
    const BoundPlan* const plan = executable.plan(v);
    if (plan == nullptr) continue;
    made.compiled = true;
    made.runs = executable.runs(v);
    made.launches = static_cast<int>(plan->plan().launches.size());
    made.code_bytes = plan->code_bytes();
    made.packed_bytes = plan->packed_bytes();
    made.constant_bytes = plan->constant_bytes();
    made.scratch_bytes = plan->scratch_bytes();
  }
  return variants;
}

Result<void> Program::Precompile(const std::map<std::string, int64_t>& symbols) {
  return compiler::ToResult(state_->Precompile({symbols.begin(), symbols.end()}),
                            state_->made.executable->signature().name);
}

Result<int> Program::DropUnused() {
  return compiler::ToResult(state_->made.executable->DropUnused(), state_->made.executable->signature().name);
}

Program::Memory Program::memory() const {
  const Executable::MemoryReport held = state_->made.executable->memory();
  const BoundPlan* const last = state_->made.executable->last();
  return {.states = held.states,
          .packed = held.packed,
          .constants = held.constants,
          .code = held.code,
          .arena = held.arena,
          .arena_used = last == nullptr ? 0 : last->arena_bytes(),
          .scratch = held.scratch,
          .copied = held.copied};
}

Program::Counters Program::counters() const {
  const Executable::Report& report = state_->made.executable->report();
  const KernelCache::Report kernels = state_->made.cache->report();
  return {.variants = report.variants,
          .kernels = kernels.compiled,
          .code_bytes = kernels.compile.code_bytes,
          .launches = state_->made.executable->last() == nullptr
                          ? 0
                          : static_cast<int>(state_->made.executable->last()->launched()),
          .arena_bytes = report.arena_bytes,
          .packed_bytes = report.packed_bytes,
          .compile = state_->prepare_seconds + static_cast<double>(report.plan_ns + report.compile_ns) * 1e-9,
          .bind = static_cast<double>(report.bind_ns) * 1e-9,
          .run = static_cast<double>(report.run_ns) * 1e-9};
}

}  // namespace quern
