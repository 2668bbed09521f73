#include "jit/identity.h"

#if defined(__linux__)
#include <elf.h>
#include <link.h>
#endif

#include <cstdint>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/TargetParser/Host.h"

namespace quern::jit {
namespace {

#if defined(__linux__)
struct Search {
  uintptr_t address;  // of something in the wanted library
  std::string id;
};

// The note that the linker leaves in every library of a distribution.
std::string BuildIdNote(const char* notes, size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof(header));
    const size_t name = (header.n_namesz + 3u) & ~size_t{3}, description = (header.n_descsz + 3u) & ~size_t{3};
    if (sizeof(header) + name + description > bytes) break;
    if (header.n_type == NT_GNU_BUILD_ID)
      return absl::BytesToHexString({notes + sizeof(header) + name, header.n_descsz});
    notes += sizeof(header) + name + description;
    bytes -= sizeof(header) + name + description;
  }
  return "";
}

int Visit(struct dl_phdr_info* info, size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  bool holds = false;
  std::string id;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) holds |= start <= search.address && search.address < start + header.p_memsz;
    if (header.p_type == PT_NOTE && id.empty()) id = BuildIdNote(reinterpret_cast<const char*>(start), header.p_memsz);
  }
  if (holds) search.id = id;
  return holds ? 1 : 0;
}
#endif

}  // namespace

std::string SourcesIdentity() {
  return
#include "code_hash.inc"
      ;
}

std::string LlvmIdentity() {
  std::string identity = LLVM_VERSION_STRING;
#if defined(__linux__)
  Search search{reinterpret_cast<uintptr_t>(&llvm::sys::getDefaultTargetTriple), ""};
  dl_iterate_phdr(Visit, &search);
  if (!search.id.empty()) absl::StrAppend(&identity, " ", search.id);
#endif
  return identity;
}

}  // namespace quern::jit
