// CompileModel and CompileGraph of the public interface: blocks through the pipeline, once for each level, to files.

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "aot/model.h"
#include "base/hash.h"
#include "base/output_file.h"
#include "codegen/text/helpers.h"
#include "compiler/compile_parts.h"
#include "compiler/device_targets.h"
#include "compiler/model.h"
#include "compiler/public_error.h"
#include "quern/compile.h"
#include "text/compile_vocabulary.h"

namespace quern {

namespace fs = std::filesystem;

namespace compiler {
namespace {

// "stories-Q4_K" -> "stories_Q4_K"
std::string Identifier(std::string_view text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "model_" + name;
  return name;
}

Status CheckName(const std::string& name) {
  const bool first = !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_');
  const bool rest = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (first && rest && !name.starts_with("quern_") && !text::IsKeyword(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("\"%s\" cannot be the prefix of C functions", name));
}

// The levels in the order of the table of targets, each once.
StatusOr<std::vector<const cpu::Target*>> TargetsOf(const Options& options, const CompileOptions& compile) {
  const StatusOr<const cpu::Platform*> resolved = cpu::ResolvePlatform(compile.target);
  if (!resolved.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(resolved.status().message(), "; of devices: ", DeviceTargetNames()));
  }
  const cpu::Platform* const platform = *resolved;
  QUERN_ASSIGN(const cpu::Platform* host, cpu::ResolvePlatform(""));
  if (compile.cpus.empty() && options.cpu == "native" && platform != host)
    return std::vector{cpu::LeastTarget(*platform)};
  std::set<const cpu::Target*> targets;
  for (const std::string& name : compile.cpus.empty() ? std::vector{options.cpu} : compile.cpus) {
    QUERN_ASSIGN(const cpu::Target* target, cpu::ResolveTarget(name, *platform));
    targets.insert(target);
  }
  return std::vector<const cpu::Target*>(targets.begin(), targets.end());
}

StatusOr<aot::Level> PlanLevel(const CompileSource& source, Options options, const cpu::Target* target,
                               Signature& signature) {
  options.cpu = target->name;
  QUERN_ASSIGN(const PipelineOptions pipeline, PipelineOptionsOf(options));
  QUERN_ASSIGN(const ir::Graph graph, PrepareGraph(*source.module, pipeline));
  signature = SignatureOf(*source.module, graph);
  aot::Level level{target, {}};
  QUERN_ASSIGN(const std::vector<SymbolRanges> guards, PossibleGuards(graph, source.guards(graph)));
  for (const SymbolRanges& guard : guards) {
    QUERN_ASSIGN(PlannedVariant planned, PlanVariant(graph, guard, pipeline));
    level.variants.push_back({guard, std::move(planned.plan)});
  }
  return level;
}

// One file of all parameters that the model takes, which becomes its weights; the places of the parameters are those in
// it. It begins with a hash of what follows, so that another model's is known by its beginning.
constexpr int64_t kPackedHeader = 64;
std::string PackWeights(aot::Model& model) {
  constexpr std::string_view kMark = "Quern's packed weights, version 1\n";
  static_assert(kPackedHeader % lir::kParamAlign == 0 && kMark.size() + sizeof(Hash128) <= kPackedHeader);
  std::string packed(kPackedHeader, '\0');
  for (aot::Param& param : model.params) {
    const std::vector<Port>& taken = model.signature.params;
    if (std::none_of(taken.begin(), taken.end(), [&](const Port& port) { return port.name == param.name; })) continue;
    packed.resize((packed.size() + lir::kParamAlign - 1) / lir::kParamAlign * lir::kParamAlign);
    param.file_offset = static_cast<int64_t>(packed.size());
    packed.append(reinterpret_cast<const char*>(param.bytes.data()), param.bytes.size());
  }
  const Hash128 hash = HashBytes(std::string_view(packed).substr(kPackedHeader));
  std::copy(kMark.begin(), kMark.end(), packed.begin());
  std::memcpy(packed.data() + kPackedHeader - sizeof(hash), &hash, sizeof(hash));
  return packed;
}

struct NamedForm {
  std::string_view name;
  aot::Form form;
  const char* suffix;
};
constexpr NamedForm kForms[] = {{"obj", aot::Form::kObject, ".o"},
                                {"asm", aot::Form::kAssembly, ".s"},
                                {"llvm", aot::Form::kLlvm, ".ll"},
                                {"bc", aot::Form::kBitcode, ".bc"},
                                {"kir", aot::Form::kKir, ".kir"}};

}  // namespace

StatusOr<CompiledFiles> CompileFiles(const CompileSource& source, std::string_view default_name, const Options& options,
                                     const CompileOptions& compile) {
  const std::string name = !compile.name.empty()   ? compile.name
                           : !compile.file.empty() ? Identifier(compile.file)
                                                   : Identifier(default_name);
  QUERN_RETURN_IF_ERROR(CheckName(name));
  if (IsDeviceTarget(compile.target)) return CompileDeviceFiles(source, name, options, compile);
  const auto* form =
      std::find_if(std::begin(kForms), std::end(kForms), [&](const NamedForm& f) { return f.name == compile.emit; });
  if (form == std::end(kForms)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cannot emit \"%s\"; there are obj, asm, llvm, bc and kir", compile.emit));
  }
  QUERN_ASSIGN(const std::vector<const cpu::Target*> targets, TargetsOf(options, compile));
  aot::Model model;
  model.name = name;
  model.weights = source.weights;
  model.params = source.params;
  model.tokens = source.tokens;
  for (const cpu::Target* target : targets) {
    if (compile.progress) compile.progress(absl::StrCat("planning for ", target->name));
    QUERN_ASSIGN(aot::Level level, PlanLevel(source, options, target, model.signature));
    model.levels.push_back(std::move(level));
  }

  std::string packed;
  if (compile.pack_weights) {
    if (compile.embed_weights)
      return absl::InvalidArgumentError("weights are either embedded or packed into a file of their own");
    packed = PackWeights(model);
    model.weights = {"", {reinterpret_cast<const uint8_t*>(packed.data()), packed.size()}, kPackedHeader};
  }
  QUERN_ASSIGN(const aot::Artefacts artefacts,
               aot::Compile(std::move(model), {form->form, compile.kernel, compile.embed_weights, compile.progress}));
  QUERN_RETURN_IF_ERROR(MakeFolder(compile.folder));
  const std::string& file = !compile.kernel.empty() ? compile.kernel : !compile.file.empty() ? compile.file : name;
  const std::string stem = (fs::path(compile.folder) / file).string();
  CompiledFiles files;
  files.body = stem + form->suffix;
  std::vector<OutputFile> written = {{files.body, artefacts.body}};
  if (!artefacts.header.empty()) {
    files.header = stem + ".h";
    files.manifest = stem + ".json";
    written.push_back({files.header, artefacts.header});
    written.push_back({files.manifest, artefacts.manifest});
    if (compile.pack_weights) {
      files.weights = stem + ".weights";
      written.push_back({files.weights, packed});
    }
  }
  QUERN_RETURN_IF_ERROR(WriteFiles(written, {&source.weights.path, 1}));
  return files;
}

}  // namespace compiler

namespace compiler {
namespace {

// What the header says of a model's tokens: nothing, where its file has no tokenizer that is known. Error: why the
// vocabulary that was asked for is not to be had.
StatusOr<std::optional<aot::Tokens>> TokensOf(const OpenedModel& opened, bool embed) {
  const auto tokenizer = TokenizerOf(opened.file, opened.spec.vocabulary);
  if (!tokenizer.ok()) {
    if (embed) return tokenizer.status();
    return std::nullopt;
  }
  const text::Vocabulary& vocabulary = (*tokenizer)->vocabulary();
  aot::Tokens tokens{static_cast<int32_t>(opened.spec.vocabulary), vocabulary.begin(), vocabulary.end(), ""};
  if (embed) {
    QUERN_ASSIGN(tokens.vocabulary, text::CompileVocabulary(**tokenizer));
  }
  return std::optional(std::move(tokens));
}

}  // namespace
}  // namespace compiler

Result<CompiledFiles> CompileModel(const std::string& path, const Options& options, const CompileOptions& compile) {
  const auto made = [&]() -> StatusOr<CompiledFiles> {
    QUERN_ASSIGN(compiler::OpenedModel opened, compiler::OpenModel(path, options));
    aot::WeightFile weights;
    if (!compile.pack_weights) {
      QUERN_ASSIGN(weights, compiler::WeightsOf(*opened.file));
    }
    QUERN_ASSIGN(std::optional<aot::Tokens> tokens, compiler::TokensOf(opened, compile.embed_vocabulary));
    const fs::path file(opened.file->weights()[0].path), folder(opened.file->folder());
    hir::Module& module = opened.spec.module;
    module.output_names.resize(module.outputs.size());  // those behind the first are states, named as the input is
    module.output_names[0] = opened.spec.encoder ? "rows" : "logits";
    return compiler::CompileFiles(
        {.module = &module,
         .params = compiler::ParamsOf(opened.spec, *opened.file),
         .weights = std::move(weights),
         .tokens = std::move(tokens),
         .guards = [&](const ir::Graph& graph) { return compiler::StepGuardsOf(graph, options.invariant); }},
        (folder.empty() ? file.stem() : fs::canonical(folder).filename()).string(), options, compile);
  };
  return compiler::ToResult(made(), path);
}

}  // namespace quern
