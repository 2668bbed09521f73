#include "codegen/cpu/link_bitcode.h"

#include <set>

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Linker/Linker.h"
#include "simd/library.h"

namespace quern::cpu {
namespace {

// Whether `name` is `<function>_<level>` of src/simd, and of which form.
const simd::Function* FindFunction(llvm::StringRef name, const Target& target) {
  if (!name.consume_back(std::string("_") + target.name)) return nullptr;
  for (const simd::Function& function : simd::Functions()) {
    if (name == llvm::StringRef(function.name.data(), function.name.size())) return &function;
  }
  return nullptr;
}

}  // namespace

Status LinkBitcode(llvm::Module& module, const Target& target, Link link) {
  const bool tiles = link != Link::kInline;
  const simd::Level* level = simd::FindLevel(target.name);
  if (level == nullptr) return absl::InternalError(absl::StrFormat("no SIMD functions were built for %s", target.name));
  bool needed = false;
  std::set<std::string> own;  // defined by the emitter
  for (const llvm::Function& function : module) {
    if (!function.isDeclaration()) {
      own.insert(function.getName().str());
      continue;
    }
    const simd::Function* known = FindFunction(function.getName(), target);
    if (known == nullptr) continue;
    needed = needed || (link == Link::kTiles ? !known->is_inline : known->is_inline || tiles);
  }
  if (needed) {
    const std::span<const uint8_t> bytes = tiles ? simd::Bitcode(level->name) : simd::MathBitcode(level->name);
    const llvm::StringRef text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    auto library = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(text, "simd"), module.getContext());
    if (!library) return absl::InternalError("SIMD bitcode: " + llvm::toString(library.takeError()));
    (*library)->setDataLayout(module.getDataLayout());
    (*library)->setTargetTriple(module.getTargetTriple());
    if (llvm::Linker::linkModules(module, std::move(*library), llvm::Linker::LinkOnlyNeeded)) {
      return absl::InternalError("SIMD bitcode does not link");
    }
  }
  // One set of features everywhere: always-inline ignores a mismatch and the code generator would abort on it. The
  // vector width attributes go too, so that 512-bit types are legal wherever the level has them.
  const std::string cpu(level->target_cpu);
  std::string features(level->target_features);
  if (target.lanes == 16) features += std::string(features.empty() ? "" : ",") + "-prefer-256-bit";
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    if (link == Link::kTiles) {
      // As compiled: what runs is then what the library's object form runs.
      if (!own.contains(function.getName().str())) function.setLinkage(llvm::GlobalValue::InternalLinkage);
      continue;
    }
    for (const char* attribute : {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width",
                                  "prefer-vector-width", "stack-protector-buffer-size"}) {
      function.removeFnAttr(attribute);
    }
    function.addFnAttr("target-cpu", cpu);
    function.addFnAttr("target-features", features);
    if (own.contains(function.getName().str())) continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.setVisibility(llvm::GlobalValue::DefaultVisibility);
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.removeFnAttr(llvm::Attribute::OptimizeNone);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  for (llvm::GlobalVariable& global : module.globals()) {
    if (!global.isDeclaration()) global.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  return absl::OkStatus();
}

}  // namespace quern::cpu
