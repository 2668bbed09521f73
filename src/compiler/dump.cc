// Dump and Inspect of the public interface: what a model file holds, and what it becomes.

#include "absl/strings/str_cat.h"
#include "compiler/model.h"
#include "jit/engine.h"

namespace quern {
namespace {

SymbolRanges GuardFor(int64_t tokens) {
  for (const SymbolRanges& guard : compiler::StepGuards()) {
    const SymbolRange& range = guard.at(models::kSequenceSymbol);
    if (range.low <= tokens && tokens <= range.high) return guard;
  }
  return compiler::StepGuards()[0];
}

// Kernels of the plan whose label or name contains `filter`, with the label of their first use.
std::vector<std::pair<int, std::string>> Select(const lir::Plan& plan, const std::string& filter) {
  std::vector<std::pair<int, std::string>> selected;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    std::string first;
    bool wanted = filter.empty();
    for (const lir::Launch& launch : plan.launches) {
      if (launch.kernel != static_cast<int>(k)) continue;
      if (first.empty()) first = launch.label;
      wanted |= launch.label.find(filter) != std::string::npos;
    }
    if (wanted) selected.emplace_back(static_cast<int>(k), first);
  }
  return selected;
}

StatusOr<std::string> Machine(const lir::Plan& plan, const Options& options, const DumpOptions& dump) {
  jit::EngineOptions engine_options;
  engine_options.cpu = options.cpu;
  engine_options.threads = 1;
  engine_options.emit.specialise = options.specialise;
  engine_options.emit.dump_ir = dump.stage == "llvm";
  engine_options.emit.dump_assembly = dump.stage == "asm";
  QUERN_ASSIGN(std::shared_ptr<jit::Engine> engine, jit::Engine::Create(engine_options));
  std::string text;
  for (const auto& [kernel, label] : Select(plan, dump.kernel)) {
    QUERN_ASSIGN(const jit::Module module, engine->Compile({&plan.kernels[kernel], 1}));
    absl::StrAppend(&text, "; ", label, "\n", dump.stage == "llvm" ? module.ir_after(0) : module.assembly(0), "\n");
  }
  return text;
}

StatusOr<std::string> DumpText(const std::string& path, const Options& options, const DumpOptions& dump) {
  QUERN_ASSIGN(const compiler::OpenedModel model, compiler::OpenModel(path, options));
  if (dump.stage == "hir") return hir::Print(model.spec.module);
  QUERN_ASSIGN(compiler::PipelineOptions pipeline, compiler::PipelineOptionsOf(options));
  std::string after;
  if (!dump.after.empty()) {
    bool known = false;
    std::string names;
    for (const std::string_view name : compiler::StepNames()) {
      known |= name == dump.after;
      absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(name));
    }
    if (!known) return absl::InvalidArgumentError(absl::StrFormat("there is no step %s; there are %s", dump.after, names));
    pipeline.after_step = [&](std::string_view step, const ir::Graph& graph) {
      if (step == dump.after) after = ir::Print(graph);
    };
  }
  QUERN_ASSIGN(const ir::Graph graph, compiler::PrepareGraph(model.spec.module, pipeline));
  QUERN_ASSIGN(const compiler::PlannedVariant variant, compiler::PlanVariant(graph, GuardFor(dump.tokens), pipeline));
  if (!dump.after.empty()) return after;
  if (dump.stage == "mir") return absl::StrCat(ir::Print(variant.graph), "\n", variant.report.ToString());
  if (dump.stage == "lir") return lir::Print(variant.plan);
  if (dump.stage == "kir") {
    std::string text;
    for (const auto& [kernel, label] : Select(variant.plan, dump.kernel)) {
      absl::StrAppend(&text, "# ", label, "\n", kir::Print(variant.plan.kernels[kernel]), "\n");
    }
    return text;
  }
  if (dump.stage == "llvm" || dump.stage == "asm") return Machine(variant.plan, options, dump);
  return absl::InvalidArgumentError(absl::StrFormat("there is no stage %s; there are hir, mir, lir, kir, llvm and asm", dump.stage));
}

}  // namespace

Result<std::string> Dump(const std::string& path, const Options& options, const DumpOptions& dump) {
  StatusOr<std::string> text = DumpText(path, options, dump);
  if (!text.ok()) return Result<std::string>::Failed(std::string(text.status().message()));
  return *std::move(text);
}

Result<std::string> Inspect(const std::string& path) {
  const StatusOr<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return Result<std::string>::Failed(std::string(file.status().message()));
  std::string text = absl::StrFormat("%s: GGUF v%u, %u keys, %u tensors\n", path, file->version(), file->metadata().size(), file->tensors().size());
  for (const auto& [key, value] : file->metadata()) absl::StrAppend(&text, "  ", key, " = ", ToString(value), "\n");
  for (const GgufTensor& tensor : file->tensors()) {
    std::string dims;
    for (const int64_t dim : tensor.dims) absl::StrAppend(&dims, dims.empty() ? "" : ", ", dim);
    absl::StrAppendFormat(&text, "  %-32s %-6s [%s]  %u bytes\n", tensor.name, tensor.type_name, dims, tensor.bytes.size());
  }
  return text;
}

}  // namespace quern
