#include "jit/line_table.h"

#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/Object/ELFObjectFile.h"

namespace quern::jit {

std::vector<CodeLine> LineTable(std::string_view object, const std::string& symbol) {
  std::vector<CodeLine> lines;
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "kernel"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return lines;
  }
  const std::unique_ptr<llvm::DWARFContext> debug = llvm::DWARFContext::create(**file);
  for (const llvm::object::ELFSymbolRef at : (*file)->symbols()) {
    const auto name = llvm::expectedToOptional(at.getName());
    const auto start = llvm::expectedToOptional(at.getAddress());
    const auto section = llvm::expectedToOptional(at.getSection());
    if (name != llvm::StringRef(symbol) || !start || !section || *section == (*file)->section_end()) continue;
    for (const auto& [address, line] :
         debug->getLineInfoForAddressRange({*start, (*section)->getIndex()}, at.getSize())) {
      lines.push_back({address - *start, line.Line});
    }
  }
  return lines;
}

}  // namespace quern::jit
