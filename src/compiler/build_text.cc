// What was built, and what it finds here.

#include "absl/strings/str_cat.h"
#include "codegen/cpu/target.h"
#include "jit/identity.h"
#include "quern/quern.h"
#include "version.inc"

namespace quern {

std::string BuildText() {
  const std::string llvm = jit::LlvmIdentity();
  const std::vector<const cpu::Target*> targets = cpu::HostTargets();
  return absl::StrCat("quern " QUERN_VERSION_TEXT ", LLVM ", llvm.substr(0, llvm.find(' ')), ", level ",
                      targets.empty() ? "none" : targets.back()->name, " here");
}

}  // namespace quern
