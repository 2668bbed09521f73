// From plans to a file: kernels of each level, their tiles, the driver; one module, generated once.
#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "aot/driver.h"
#include "aot/header.h"
#include "aot/kernel_table.h"
#include "aot/manifest.h"
#include "aot/model.h"
#include "aot/workspace.h"
#include "codegen/cpu/module.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "simd/library.h"

namespace quern::aot {
namespace {

// Code reaches data with 32-bit offsets.
constexpr int64_t kMostEmbedded = int64_t{1} << 30;

// A kernel and the level it is for.
struct Chosen {
  const KernelTable::Entry* entry = nullptr;
  const cpu::Target* target = nullptr;
};

// Kernels of one level, each a function of its symbol, and their tiles.
StatusOr<std::unique_ptr<llvm::Module>> EmitKernels(llvm::LLVMContext& context, const cpu::Target& target,
                                                    std::span<const KernelTable::Entry> entries) {
  const cpu::EmitOptions options;
  QUERN_ASSIGN(const std::unique_ptr<llvm::TargetMachine> machine, cpu::MakeMachine(target, true));
  cpu::ModuleEmitter emitter(target, options, *machine);
  std::vector<kir::Kernel> kernels;
  std::vector<std::string> symbols;
  for (const KernelTable::Entry& entry : entries) {
    if (entry.call != nullptr) continue;
    kernels.push_back(entry.kernel);
    symbols.push_back(entry.symbol);
  }
  cpu::ModuleReport report;
  QUERN_ASSIGN(std::unique_ptr<llvm::Module> module, emitter.Emit(context, kernels, symbols, report));
  QUERN_RETURN_IF_ERROR(emitter.AddTiles(*module));
  return module;
}

// Names of the library's functions that the module defines: "qk_dot_f16_avx2".
std::vector<std::string> TilesOf(const llvm::Module& module) {
  std::vector<std::string> tiles;
  for (const llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    const llvm::StringRef name = function.getName();
    const std::string_view text(name.data(), name.size());
    if (simd::Exists(text)) tiles.emplace_back(text);
  }
  std::sort(tiles.begin(), tiles.end());
  return tiles;
}

// `calls`: what may stay undefined, besides the C library.
Status Check(const llvm::Module& module, const std::set<std::string, std::less<>>& calls) {
  for (const llvm::Function& function : module) {
    if (!function.isDeclaration() || function.isIntrinsic() || function.use_empty()) continue;
    const llvm::StringRef name = function.getName();
    if (!cpu::IsLibcSymbol(std::string_view(name.data(), name.size())) &&
        !calls.contains(std::string_view(name.data(), name.size()))) {
      return absl::InternalError(absl::StrFormat("the object would leave %s undefined", name.str()));
    }
  }
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems)) return absl::InternalError("compiled model: " + problem);
  return absl::OkStatus();
}

// The model file, where the driver looks for it.
void AppendWeights(llvm::Module& module, const WeightFile& weights) {
  std::string path;
  for (const char c : weights.path) {
    if (c == '"' || c == '\\') path += '\\';
    if (c == '\n')
      path += "\\n";
    else
      path += c;
  }
  module.appendModuleInlineAsm(
      absl::StrCat(".section .rodata.quern_weights,\"a\",@progbits\n.balign 64\n.local quern_weights\n"
                   "quern_weights:\n.incbin \"",
                   path, "\"\n.size quern_weights, .-quern_weights\n.text"));
}

std::string KirText(const std::vector<Chosen>& kernels) {
  std::string text;
  for (const Chosen& chosen : kernels) {
    const KernelTable::Entry& entry = *chosen.entry;
    absl::StrAppend(&text, "# ", entry.symbol, ", for ", chosen.target->name, ": ", entry.label, "\n",
                    kir::Print(entry.kernel), "\n");
  }
  return text;
}

// A form of `module`, which is used up.
StatusOr<std::string> Write(llvm::TargetMachine& machine, llvm::Module& module, Form form) {
  switch (form) {
    case Form::kObject: return cpu::Generate(machine, module, llvm::CodeGenFileType::ObjectFile);
    case Form::kAssembly: return cpu::Generate(machine, module, llvm::CodeGenFileType::AssemblyFile);
    case Form::kLlvm: return cpu::Text(module);
    case Form::kBitcode: {
      std::string bytes;
      llvm::raw_string_ostream stream(bytes);
      llvm::WriteBitcodeToFile(module, stream);
      return bytes;
    }
    case Form::kKir: break;
  }
  return absl::InternalError("KIR is not made from a module");
}

// All kernels, or the one that is asked for.
StatusOr<std::vector<Chosen>> Choose(const Model& model, const std::vector<KernelTable>& kernels,
                                     const std::string& symbol) {
  std::vector<Chosen> chosen;
  std::string known;
  for (size_t l = 0; l < kernels.size(); ++l) {
    for (const KernelTable::Entry& entry : kernels[l].entries) {
      if (entry.call != nullptr) continue;
      if (symbol.empty() || entry.symbol == symbol) chosen.push_back({&entry, model.levels[l].target});
      absl::StrAppend(&known, known.empty() ? "" : ", ", entry.symbol);
    }
  }
  if (chosen.empty())
    return absl::NotFoundError(absl::StrFormat("%s has no kernel %s; it has %s", model.name, symbol, known));
  return chosen;
}

}  // namespace

StatusOr<Artefacts> Compile(Model model, const Options& options) {
  if (model.levels.empty()) return absl::InvalidArgumentError("no cpu level to compile for");
  for (const Level& level : model.levels) {
    if (level.target->platform == model.levels[0].target->platform) continue;
    return absl::InvalidArgumentError(absl::StrFormat("one object cannot be for %s and for %s",
                                                      model.levels[0].target->platform->triple,
                                                      level.target->platform->triple));
  }
  if (options.embed_weights && static_cast<int64_t>(model.weights.bytes.size()) > kMostEmbedded) {
    return absl::InvalidArgumentError(absl::StrFormat("%s has %u bytes; at most %d can be put into an object",
                                                      model.weights.path, model.weights.bytes.size(), kMostEmbedded));
  }
  std::vector<KernelTable> kernels;
  for (const Level& level : model.levels)
    kernels.push_back(TabulateKernels(level, model.levels.size() > 1 ? level.target->name : ""));
  QUERN_ASSIGN(const std::vector<Chosen> chosen, Choose(model, kernels, options.kernel));
  Artefacts artefacts;
  if (options.form == Form::kKir) {
    artefacts.body = KirText(chosen);
    return artefacts;
  }

  const auto say = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  llvm::LLVMContext context;
  if (!options.kernel.empty()) {
    const cpu::Target& target = *chosen[0].target;
    QUERN_ASSIGN(const std::unique_ptr<llvm::TargetMachine> machine, cpu::MakeMachine(target, true));
    QUERN_ASSIGN(const std::unique_ptr<llvm::Module> module, EmitKernels(context, target, {chosen[0].entry, 1}));
    module->setSourceFileName(model.name);
    QUERN_RETURN_IF_ERROR(Check(*module, {}));
    QUERN_ASSIGN(artefacts.body, Write(*machine, *module, options.form));
    return artefacts;
  }

  QUERN_ASSIGN(const Workspace workspace, PlaceWorkspace(model));
  QUERN_ASSIGN(const std::unique_ptr<llvm::TargetMachine> machine, cpu::MakeMachine(*model.levels[0].target, true));
  QUERN_ASSIGN(const std::unique_ptr<llvm::Module> module,
               EmitDriver(context, *machine, model, kernels, workspace, options.embed_weights));
  std::vector<std::vector<std::string>> tiles;
  for (size_t l = 0; l < model.levels.size(); ++l) {
    say(absl::StrCat("optimising ", kernels[l].entries.size(), " kernels for ", model.levels[l].target->name));
    QUERN_ASSIGN(std::unique_ptr<llvm::Module> level,
                 EmitKernels(context, *model.levels[l].target, kernels[l].entries));
    tiles.push_back(TilesOf(*level));
    if (llvm::Linker::linkModules(*module, std::move(level))) return absl::InternalError("kernels do not link");
    for (const KernelTable::Entry& entry : kernels[l].entries) {
      if (entry.call == nullptr) module->getFunction(entry.symbol)->setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
  if (options.embed_weights) AppendWeights(*module, model.weights);
  module->setSourceFileName(model.name);
  std::set<std::string, std::less<>> symbols;
  for (const ir::CustomDef* call : CallsOf(kernels)) {
    symbols.insert(call->symbol);
    if (const llvm::Function* function = module->getFunction(call->symbol);
        function == nullptr || !function->isDeclaration()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: the C function of Custom %s cannot be called that: the object has one of its own",
                          call->symbol, call->name));
    }
  }
  QUERN_RETURN_IF_ERROR(Check(*module, symbols));
  say("generating code");
  QUERN_ASSIGN(artefacts.body, Write(*machine, *module, options.form));
  if (options.form != Form::kObject) return artefacts;
  QUERN_ASSIGN(const ObjectSymbols defined, ReadObjectSymbols(artefacts.body));
  artefacts.header = Header(model, workspace, CallsOf(kernels), defined, options);
  QUERN_ASSIGN(artefacts.manifest, Manifest(model, workspace, kernels, tiles, artefacts.body, defined, options));
  return artefacts;
}

}  // namespace quern::aot
