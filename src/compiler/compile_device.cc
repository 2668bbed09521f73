// CompileModel for devices: the kernels of all variants as one text, and the manifest that says how a host runs them.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "aot/support/support.h"
#include "base/output_file.h"
#include "compiler/compile_parts.h"
#include "compiler/device_program.h"
#include "compiler/device_targets.h"
#include "device/manifest.h"

namespace quern::compiler {
namespace {

Status CheckOptions(const CompileOptions& compile) {
  const char* const what = compile.target.c_str();
  if (compile.cpus.size() > 1)
    return absl::InvalidArgumentError(
        absl::StrFormat("a text for %s is for one cpu, not for %u", what, compile.cpus.size()));
  if (compile.pack_weights)
    return absl::InvalidArgumentError(absl::StrFormat("a text for %s has no weights to pack", what));
  if (compile.embed_vocabulary)
    return absl::InvalidArgumentError(absl::StrFormat("a text for %s holds no vocabulary", what));
  if (compile.embed_weights) return absl::InvalidArgumentError(absl::StrFormat("a text for %s holds no weights", what));
  if (compile.emit != "obj" && compile.emit != "kir") {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cannot emit \"%s\" for %s; there are obj (the text and its manifest) and kir", compile.emit, what));
  }
  return absl::OkStatus();
}

std::string KirText(const device::LoadableProgram& program) {
  std::string text;
  for (size_t k = 0; k < program.source.kernels.size(); ++k) {
    absl::StrAppend(&text, "# ", program.source.entries[k].symbol, "\n", kir::Print(program.source.kernels[k]), "\n");
  }
  return text;
}

// The program with one kernel alone and no variant: a text to look at.
Status KeepKernel(device::LoadableProgram& program, const std::string& symbol) {
  const std::vector<device::ModuleSource::Entry>& entries = program.source.entries;
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.symbol == symbol; });
  if (found == entries.end()) {
    std::string known;
    for (const device::ModuleSource::Entry& entry : entries)
      absl::StrAppend(&known, known.empty() ? "" : ", ", entry.symbol);
    return absl::NotFoundError(
        absl::StrFormat("%s has no kernel %s; it has %s", program.program.signature.name, symbol, known));
  }
  const size_t k = static_cast<size_t>(found - entries.begin());
  program.source.kernels = {program.source.kernels[k]};
  program.source.entries = {program.source.entries[k]};
  return absl::OkStatus();
}

Status AddSources(device::Program& program, const std::vector<aot::Param>& params) {
  for (const Port& port : program.signature.params) {
    const auto param =
        std::find_if(params.begin(), params.end(), [&](const aot::Param& p) { return p.name == port.name; });
    if (param == params.end()) return absl::InternalError(absl::StrFormat("parameter %s has no data", port.name));
    device::ParamSource source{param->file_offset, nullptr};
    if (source.file_offset < 0)
      source.data = std::make_shared<const std::vector<uint8_t>>(param->bytes.begin(), param->bytes.end());
    program.sources.push_back(std::move(source));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<CompiledFiles> CompileDeviceFiles(const CompileSource& source, const std::string& name, const Options& given,
                                           const CompileOptions& compile) {
  QUERN_RETURN_IF_ERROR(CheckOptions(compile));
  Options options = given;
  if (!compile.cpus.empty()) options.cpu = compile.cpus[0];
  QUERN_ASSIGN(const codegen::DeviceTarget* const target, ResolveDeviceTarget(compile.target, options.cpu));
  options.cpu = target->cpu;
  QUERN_ASSIGN(const PipelineOptions pipeline, PipelineOptionsOf(options));
  QUERN_ASSIGN(const ir::Graph graph, PrepareGraph(*source.module, pipeline));
  QUERN_ASSIGN(device::LoadableProgram program, PlanProgram(graph, source.guards(graph), pipeline));
  program.program.signature = SignatureOf(*source.module, graph);
  program.program.signature.name = name;
  if (!compile.kernel.empty()) QUERN_RETURN_IF_ERROR(KeepKernel(program, compile.kernel));
  const std::string stem =
      (std::filesystem::path(compile.folder) / (compile.kernel.empty() ? name : compile.kernel)).string();
  const std::span<const std::string> keep(&source.weights.path, 1);
  CompiledFiles files;
  if (compile.emit == "kir") {
    files.body = stem + ".kir";
    QUERN_RETURN_IF_ERROR(MakeFolder(compile.folder));
    QUERN_RETURN_IF_ERROR(WriteFile(files.body, KirText(program), keep));
    return files;
  }
  files.body = absl::StrCat(stem, ".", target->extension);
  if (!compile.kernel.empty()) {
    QUERN_ASSIGN(const codegen::DeviceModule module,
                 target->emit(program.source.kernels, {{program.source.entries[0].symbol}}, *target));
    QUERN_RETURN_IF_ERROR(MakeFolder(compile.folder));
    QUERN_RETURN_IF_ERROR(WriteFile(files.body, module.text, keep));
    return files;
  }
  QUERN_RETURN_IF_ERROR(AddText(program, *target));
  QUERN_RETURN_IF_ERROR(AddSources(program.program, source.params));
  const aot::WeightFile& weights = source.weights;
  const device::ManifestFiles said{
      absl::StrCat(name, ".", target->extension), static_cast<int64_t>(weights.bytes.size()), weights.header_bytes,
      absl::StrFormat("%016x", quern_header_hash(weights.bytes.data(), weights.header_bytes))};
  QUERN_RETURN_IF_ERROR(MakeFolder(compile.folder));
  files.manifest = files.body + ".json";  // beside those of other targets, and of the C library
  const std::string manifest = device::WriteManifest(program.program, said);
  const OutputFile written[] = {{files.body, program.source.text}, {files.manifest, manifest}};
  QUERN_RETURN_IF_ERROR(WriteFiles(written, keep));
  return files;
}

}  // namespace quern::compiler
