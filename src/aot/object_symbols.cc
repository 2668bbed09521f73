#include "aot/object_symbols.h"

#include <algorithm>

#include "codegen/cpu/module.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

namespace quern::aot {

bool ObjectSymbols::needs_mathematics() const {
  return std::any_of(undefined.begin(), undefined.end(),
                     [](const std::string& name) { return cpu::IsLibcSymbol(name) && !name.starts_with("mem"); });
}

StatusOr<ObjectSymbols> ReadObjectSymbols(const std::string& object) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "model"));
  if (!file) return absl::InternalError(llvm::toString(file.takeError()));
  ObjectSymbols symbols;
  for (const llvm::object::ELFSymbolRef symbol : (*file)->symbols()) {
    auto name = symbol.getName();
    auto flags = symbol.getFlags();
    if (!name || !flags) {
      if (!name) llvm::consumeError(name.takeError());
      if (!flags) llvm::consumeError(flags.takeError());
      continue;
    }
    if (name->empty()) continue;
    if (*flags & llvm::object::SymbolRef::SF_Undefined)
      symbols.undefined.push_back(name->str());
    else
      symbols.sizes[name->str()] = symbol.getSize();
  }
  std::sort(symbols.undefined.begin(), symbols.undefined.end());
  return symbols;
}

}  // namespace quern::aot
