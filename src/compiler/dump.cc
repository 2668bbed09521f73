// Dump and Inspect of the public interface: what a model file holds, and what it becomes.

#include <algorithm>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "codegen/cpu/object.h"
#include "compiler/device_targets.h"
#include "compiler/dump_module.h"
#include "compiler/model.h"
#include "compiler/public_error.h"
#include "device/program.h"
#include "import/mixture.h"
#include "lir/kernel_symbols.h"
#include "text/folder_vocabulary.h"

namespace quern {
namespace {

constexpr std::string_view kStages[] = {"hir", "mir", "lir", "kir", "llvm", "asm"};

// Kernels of the plan whose label or name contains `filter`, with the label of their first use.
std::vector<std::pair<int, std::string>> Select(const lir::Plan& plan, const std::string& filter) {
  std::vector<std::pair<int, std::string>> selected;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (plan.calls.contains(static_cast<int>(k))) continue;  // a C function
    std::string first;
    bool wanted = filter.empty();
    for (const std::vector<lir::Launch>* launches : {&plan.once, &plan.launches}) {
      for (const lir::Launch& launch : *launches) {
        if (launch.kernel != static_cast<int>(k)) continue;
        if (first.empty()) first = launch.label;
        wanted |= launch.label.find(filter) != std::string::npos;
      }
    }
    if (wanted) selected.emplace_back(static_cast<int>(k), first);
  }
  return selected;
}

StatusOr<std::string> Machine(const lir::Plan& plan, const SymbolRanges& guard, const Options& options,
                              const DumpOptions& dump) {
  // Nothing runs, so the level may be one that this machine lacks.
  QUERN_ASSIGN(const cpu::Target* target, cpu::ResolveTarget(options.cpu));
  cpu::EmitOptions emit;
  emit.specialise = options.specialise;
  emit.dump_ir = dump.stage == "llvm";
  emit.dump_assembly = dump.stage == "asm";
  cpu::ObjectCompiler compiler(*target, emit);
  const std::vector<std::string> symbols = lir::KernelSymbols(plan, guard);
  std::string text;
  for (const auto& [kernel, label] : Select(plan, dump.kernel)) {
    QUERN_ASSIGN(const cpu::Object object, compiler.Compile(plan.kernels[kernel], symbols[kernel]));
    absl::StrAppend(&text, "; ", label, "\n", dump.stage == "llvm" ? object.ir_after : object.assembly, "\n");
  }
  return text;
}

// The text of the selected kernels for a device, and nothing where none is selected.
StatusOr<std::string> DeviceText(const lir::Plan& plan, const SymbolRanges& guard, const codegen::DeviceTarget& target,
                                 const DumpOptions& dump) {
  const std::vector<std::string> names = device::EntryNames(lir::KernelSymbols(plan, guard));
  std::vector<kir::Kernel> kernels;
  std::vector<std::string> symbols;
  for (const auto& [kernel, label] : Select(plan, dump.kernel)) {
    kernels.push_back(plan.kernels[kernel]);
    symbols.push_back(names[kernel]);
  }
  if (kernels.empty()) return std::string();
  QUERN_ASSIGN(const codegen::DeviceModule module, target.emit(kernels, symbols, target));
  return module.text;
}

bool Contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status CheckPasses(const DumpOptions& dump) {
  const std::vector<std::string_view> steps = compiler::StepNames();
  std::vector<std::string> named = dump.skip;
  if (!dump.after.empty()) named.push_back(dump.after);
  if (!dump.stop_after.empty()) named.push_back(dump.stop_after);
  for (const std::string& name : named) {
    if (Contains(steps, name)) continue;
    std::string names;
    for (const std::string_view step : steps) absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(step));
    return absl::InvalidArgumentError(absl::StrFormat("there is no pass %s; there are %s", name, names));
  }
  for (const std::string& name : dump.skip) {
    if (name == "lower" || name == "plan")
      return absl::InvalidArgumentError(
          absl::StrFormat("%s cannot be skipped: it is no pass but a change of form", name));
    if (name == dump.after || name == dump.stop_after)
      return absl::InvalidArgumentError(absl::StrFormat("pass %s is skipped, so nothing comes after it", name));
  }
  if (!dump.after.empty() && !dump.stop_after.empty())
    return absl::InvalidArgumentError("either the graph after a pass, or stop after it: not both");
  if (dump.stage != "mir" && !(dump.after.empty() && dump.stop_after.empty())) {
    return absl::InvalidArgumentError(absl::StrFormat("what is there after pass %s is no stage %s: one or the other",
                                                      dump.after + dump.stop_after, dump.stage));
  }
  return absl::OkStatus();
}

}  // namespace

namespace compiler {

StatusOr<std::string> DumpModule(const hir::Module& module, const std::vector<SymbolRanges>& guards,
                                 const Options& given, const DumpOptions& dump) {
  const codegen::DeviceTarget* device = FindDeviceStage(dump.stage);
  if (device == nullptr && !Contains({std::begin(kStages), std::end(kStages)}, dump.stage)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("there is no stage %s; there are hir, mir, lir, kir, llvm and asm, and of devices %s",
                        dump.stage, DeviceStageNames()));
  }
  QUERN_RETURN_IF_ERROR(CheckPasses(dump));
  Options options = given;
  if (device != nullptr) {
    QUERN_ASSIGN(device, ResolveDeviceTarget(device->name, options.cpu));
    options.cpu = device->cpu;
  }
  QUERN_ASSIGN(PipelineOptions pipeline, PipelineOptionsOf(options));
  if (dump.stage == "hir") return hir::Print(module);
  pipeline.skip = dump.skip;
  pipeline.stop_after = dump.stop_after == "plan" ? "" : dump.stop_after;
  const std::string wanted = dump.after + dump.stop_after;  // one of them at most
  opt::FusionReport report;
  if (dump.stage == "mir" && wanted.empty()) pipeline.report = &report;
  std::string after;
  bool seen = false;
  pipeline.after_step = [&](std::string_view step, const ir::Graph& graph) {
    if (dump.each) dump.each(step, ir::Print(graph));
    if (step == wanted) after = ir::Print(graph), seen = true;
  };
  QUERN_ASSIGN(const ir::Graph graph, PrepareGraph(module, pipeline));
  if (seen && !dump.stop_after.empty()) return after;
  QUERN_ASSIGN(const std::vector<SymbolRanges> possible, PossibleGuards(graph, guards));
  SymbolRanges guard;
  for (const SymbolRanges& candidate : possible) {
    guard = candidate;
    const bool takes = candidate.empty() ||
                       (candidate.begin()->second.low <= dump.tokens && dump.tokens <= candidate.begin()->second.high);
    if (takes) break;
  }
  QUERN_ASSIGN(PlannedVariant variant, FuseVariant(graph, guard, pipeline));
  if (seen && !dump.each) return after;
  if (dump.each) {
    QUERN_RETURN_IF_ERROR(AddPlan(variant, pipeline));
    dump.each("plan", lir::Print(variant.plan));
    return std::string();
  }
  if (pipeline.report != nullptr) return absl::StrCat(ir::Print(variant.graph), "\n", report.ToString());
  QUERN_RETURN_IF_ERROR(AddPlan(variant, pipeline));
  if (dump.stage == "lir" || wanted == "plan") return lir::Print(variant.plan);
  std::string text;
  if (dump.stage == "kir") {
    for (const auto& [kernel, label] : Select(variant.plan, dump.kernel)) {
      absl::StrAppend(&text, "# ", label, "\n", kir::Print(variant.plan.kernels[kernel]), "\n");
    }
  } else if (device != nullptr) {
    QUERN_ASSIGN(text, DeviceText(variant.plan, guard, *device, dump));
  } else {
    QUERN_ASSIGN(text, Machine(variant.plan, guard, options, dump));
  }
  if (text.empty())
    return absl::InvalidArgumentError(absl::StrFormat("no kernel has a label that contains \"%s\"", dump.kernel));
  return text;
}

}  // namespace compiler

namespace {

StatusOr<std::string> DumpText(const std::string& path, const Options& options, const DumpOptions& dump) {
  QUERN_ASSIGN(const compiler::OpenedModel model, compiler::OpenModel(path, options));
  const int64_t most = std::min(models::kMaxSequence, model.spec.context);
  if (dump.tokens < 1 || dump.tokens > most) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a step of %d tokens was asked for, 1 to %d can be had", dump.tokens, most));
  }
  // The guards of steps that want logits of the last row alone come first among those of a length.
  for (const SymbolRanges& guard : compiler::StepGuards(options.invariant)) {
    const SymbolRange& range = guard.at(models::kSequenceSymbol);
    if (range.low <= dump.tokens && dump.tokens <= range.high)
      return compiler::DumpModule(model.spec.module, {guard}, options, dump);
  }
  return absl::InternalError("no variant takes a step of this length");
}

// "65.5 KB", as file managers count.
std::string BytesText(int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 1000) return absl::StrFormat("%d B", bytes);
  if (bytes < 1'000'000) return absl::StrFormat("%.1f KB", number * 1e-3);
  if (bytes < 1'000'000'000) return absl::StrFormat("%.1f MB", number * 1e-6);
  return absl::StrFormat("%.2f GB", number * 1e-9);
}

// "1.3M", as models are named.
std::string CountText(int64_t count) {
  const auto number = static_cast<double>(count);
  if (count < 1000) return absl::StrCat(count);
  if (count < 1'000'000) return absl::StrFormat("%.1fK", number * 1e-3);
  if (count < 1'000'000'000) return absl::StrFormat("%.1fM", number * 1e-6);
  return absl::StrFormat("%.2fB", number * 1e-9);
}

}  // namespace

std::vector<std::string> DumpStages() {
  std::vector<std::string> stages(std::begin(kStages), std::end(kStages));
  for (const std::string& stage : compiler::DeviceStages()) stages.push_back(stage);
  return stages;
}

std::vector<std::string> DumpPasses() {
  const std::vector<std::string_view> names = compiler::StepNames();
  return {names.begin(), names.end()};
}

Result<std::string> Dump(const std::string& path, const Options& options, const DumpOptions& dump) {
  StatusOr<std::string> text = DumpText(path, options, dump);
  if (!text.ok()) return Result<std::string>::Failed(compiler::ErrorOf(text.status()));
  return *std::move(text);
}

Result<std::string> Inspect(const std::string& path) {
  const StatusOr<std::shared_ptr<const ModelFile>> opened = OpenModelFile(path);
  if (!opened.ok()) return Result<std::string>::Failed(compiler::ErrorOf(opened.status()));
  const ModelFile& file = **opened;
  // A terminal is not steered; quotes are those of text.
  const auto safe = [](const std::string& text) {
    return absl::StrReplaceAll(absl::Utf8SafeCEscape(text), {{"\\\"", "\""}, {"\\'", "'"}});
  };
  std::string keys;
  size_t count = file.metadata().size();
  const auto list = [&](const Metadata& metadata) {
    for (const auto& [key, value] : metadata.metadata()) {
      absl::StrAppend(&keys, "  ", safe(key), " = ", safe(ToString(value)));
      const auto* const number = std::get_if<uint64_t>(&value);
      if (key == "general.file_type" && number != nullptr && !NameOfFileType(*number).empty())
        absl::StrAppend(&keys, " (", std::string(NameOfFileType(*number)), ")");
      keys += '\n';
    }
  };
  list(file);
  if (!file.folder().empty()) {
    const StatusOr<std::shared_ptr<const Metadata>> vocabulary = text::VocabularyOf(*opened);
    if (vocabulary.ok()) {
      list(**vocabulary);
      count += (*vocabulary)->metadata().size();
    } else {
      absl::StrAppend(&keys, "  (no tokenizer: ", safe(std::string(vocabulary.status().message())), ")\n");
    }
  }
  std::string text =
      absl::StrFormat("%s: %s, %u keys, %u tensors\n", safe(path), file.kind(), count, file.tensors().size());
  text += keys;
  // Columns as wide as what is in them; and by type what there is in all.
  struct Sum {
    int64_t tensors = 0, parameters = 0, bytes = 0;
  };
  std::map<std::string, Sum> types;
  Sum all;
  size_t widest = 0, widest_dims = 0;
  std::vector<std::pair<std::string, std::string>> columns;
  for (const ModelTensor& tensor : file.tensors()) {
    std::string dims = absl::StrCat("[", absl::StrJoin(tensor.dims, ", "), "]");
    double parameters = 1;
    for (const int64_t dim : tensor.dims) parameters *= static_cast<double>(dim);
    for (Sum* sum : {&all, &types[tensor.type_name]}) {
      ++sum->tensors;
      sum->parameters += static_cast<int64_t>(std::min(parameters, 1e15));
      sum->bytes += static_cast<int64_t>(tensor.bytes.size());
    }
    columns.emplace_back(safe(tensor.name), std::move(dims));
    widest = std::max(widest, columns.back().first.size());
    widest_dims = std::max(widest_dims, columns.back().second.size());
  }
  for (size_t t = 0; t < columns.size(); ++t) {
    const ModelTensor& tensor = file.tensors()[t];
    absl::StrAppendFormat(&text, "  %-*s  %-6s %-*s  %9s\n", static_cast<int>(widest), columns[t].first,
                          tensor.type_name, static_cast<int>(widest_dims), columns[t].second,
                          BytesText(static_cast<int64_t>(tensor.bytes.size())));
  }
  absl::StrAppendFormat(&text, "%s parameters in %d tensors, %s", CountText(all.parameters), all.tensors,
                        BytesText(all.bytes));
  for (const auto& [type, sum] : types) {
    absl::StrAppendFormat(&text, "%s%s %s", &type == &types.begin()->first ? ": " : ", ", type, BytesText(sum.bytes));
  }
  text += "\n";
  // Whether it runs here: what opening it says.
  const StatusOr<compiler::OpenedModel> model = compiler::OpenModel(path, {});
  absl::StrAppend(&text,
                  model.ok() ? "runs" : "does not run: ", model.ok() ? "" : safe(std::string(model.status().message())),
                  "\n");
  return text;
}

}  // namespace quern
