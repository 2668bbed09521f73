// From plans to an object file: kernels of each level, their tiles, the driver; one module, generated once.
#include <memory>

#include "absl/strings/str_cat.h"
#include "aot/driver.h"
#include "aot/header.h"
#include "aot/kernel_table.h"
#include "aot/manifest.h"
#include "aot/model.h"
#include "aot/workspace.h"
#include "codegen/cpu/module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "simd/library.h"

namespace quern::aot {
namespace {

// Code reaches data with 32-bit offsets.
constexpr int64_t kMostEmbedded = int64_t{1} << 30;

// Kernels and tiles of one level.
StatusOr<std::unique_ptr<llvm::Module>> EmitLevel(llvm::LLVMContext& context, const Level& level, const KernelTable& table) {
  const cpu::EmitOptions options;
  QUERN_ASSIGN(const std::unique_ptr<llvm::TargetMachine> machine, cpu::MakeMachine(*level.target, true));
  cpu::ModuleEmitter emitter(*level.target, options, *machine);
  std::vector<kir::Kernel> kernels;
  std::vector<std::string> symbols;
  for (const KernelTable::Entry& entry : table.entries) {
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
    if (simd::FindTile(text) != nullptr) tiles.emplace_back(text);
  }
  std::sort(tiles.begin(), tiles.end());
  return tiles;
}

Status CheckUndefined(const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    if (!function.isDeclaration() || function.isIntrinsic() || function.use_empty()) continue;
    const llvm::StringRef name = function.getName();
    if (!cpu::IsLibcSymbol(std::string_view(name.data(), name.size()))) {
      return absl::InternalError(absl::StrFormat("the object would leave %s undefined", name.str()));
    }
  }
  return absl::OkStatus();
}

// The model file, where the driver looks for it.
void AppendWeights(llvm::Module& module, const WeightFile& weights) {
  std::string path;
  for (const char c : weights.path) {
    if (c == '"' || c == '\\') path += '\\';
    path += c;
  }
  module.appendModuleInlineAsm(absl::StrCat(".section .rodata.quern_weights,\"a\",@progbits\n.balign 64\n.local quern_weights\n"
                                            "quern_weights:\n.incbin \"", path, "\"\n.size quern_weights, .-quern_weights\n.text"));
}

}  // namespace

StatusOr<Artefacts> Compile(const Model& model, const Options& options) {
  if (model.levels.empty()) return absl::InvalidArgumentError("no cpu level to compile for");
  if (options.embed_weights && static_cast<int64_t>(model.weights.bytes.size()) > kMostEmbedded) {
    return absl::InvalidArgumentError(absl::StrFormat("%s has %u bytes; at most %d can be put into an object", model.weights.path,
                                                      model.weights.bytes.size(), kMostEmbedded));
  }
  QUERN_ASSIGN(const Workspace workspace, PlaceWorkspace(model));
  std::vector<KernelTable> kernels;
  for (const Level& level : model.levels) kernels.push_back(TabulateKernels(level, model.levels.size() > 1 ? level.target->name : ""));

  llvm::LLVMContext context;
  QUERN_ASSIGN(const std::unique_ptr<llvm::TargetMachine> machine, cpu::MakeMachine(*model.levels[0].target, true));
  QUERN_ASSIGN(const std::unique_ptr<llvm::Module> module, EmitDriver(context, *machine, model, kernels, workspace, options.embed_weights));
  std::vector<std::vector<std::string>> tiles;
  for (size_t l = 0; l < model.levels.size(); ++l) {
    QUERN_ASSIGN(std::unique_ptr<llvm::Module> level, EmitLevel(context, model.levels[l], kernels[l]));
    tiles.push_back(TilesOf(*level));
    if (llvm::Linker::linkModules(*module, std::move(level))) return absl::InternalError("kernels do not link");
    for (const KernelTable::Entry& entry : kernels[l].entries) {
      module->getFunction(entry.symbol)->setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
  if (options.embed_weights) AppendWeights(*module, model.weights);
  module->setSourceFileName(model.name);
  QUERN_RETURN_IF_ERROR(CheckUndefined(*module));
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(*module, &problems)) return absl::InternalError("compiled model: " + problem);

  Artefacts artefacts;
  if (options.llvm) artefacts.llvm = cpu::Text(*module);
  if (options.assembly) {
    // The code generator changes the module: assembly is made from a copy.
    QUERN_ASSIGN(artefacts.assembly, cpu::Generate(*machine, *llvm::CloneModule(*module), llvm::CodeGenFileType::AssemblyFile));
  }
  QUERN_ASSIGN(artefacts.object, cpu::Generate(*machine, *module, llvm::CodeGenFileType::ObjectFile));
  artefacts.header = Header(model, workspace, options);
  QUERN_ASSIGN(artefacts.manifest, Manifest(model, workspace, kernels, tiles, artefacts.object, options));
  return artefacts;
}

}  // namespace quern::aot
