#include "compiler/program_identity.h"

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "codegen/cpu/target.h"
#include "compiler/device_targets.h"
#include "ir/binary.h"
#include "jit/identity.h"

namespace quern::compiler {

std::string TextOfGuard(const SymbolRanges& guard) {
  std::string text;
  for (const auto& [symbol, range] : guard)
    absl::StrAppend(&text, text.empty() ? "" : ", ", symbol, " in ", range.low, "..", range.high);
  return text;
}

std::string IdentityOf(const ir::Graph& graph, const Options& options) {
  const std::string kernels = options.kernels.empty() ? Environment("QUERN_KERNELS") : options.kernels;
  return absl::StrCat(ir::Fingerprint(graph).ToHex(), "\n", options.cpu, "\n", options.exact ? "exact" : "", "\n",
                      options.invariant ? "invariant" : "", "\n", kernels);
}

uint64_t VariantKey(const std::string& identity, const SymbolRanges& guard) {
  return HashBytes(absl::StrCat(identity, "\n", TextOfGuard(guard))).high;
}

StatusOr<Hash128> ProgramFingerprint(const ir::Graph& graph, std::span<const SymbolRanges> guards, Options options) {
  std::string features;
  if (FindDeviceCpu(options.cpu) == nullptr) {
    QUERN_ASSIGN(const cpu::Target* target, cpu::ResolveTarget(options.cpu));
    options.cpu = target->name;
    features = target->required;
  }
  std::string text = absl::StrCat(IdentityOf(graph, options), "\n", features, options.specialise ? "\nspecialise" : "");
  for (const SymbolRanges& guard : guards) absl::StrAppend(&text, "\nguard ", TextOfGuard(guard));
  return HashBytes(absl::StrCat(text, "\n", jit::SourcesIdentity(), "\n", jit::LlvmIdentity()));
}

}  // namespace quern::compiler
