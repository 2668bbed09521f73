#include "lir/kernel_symbols.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "absl/strings/str_cat.h"

namespace quern::lir {
namespace {

// "layers.0/ffn: Mul" -> "layers.0.ffn"; "%7: Mul" -> "n7"
std::string Path(const std::string& label) {
  std::string path;
  for (const char c : label.substr(0, label.rfind(':'))) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    path += plain ? c : c == '%' ? 'n' : '.';
  }
  return path;
}

// The dtype of the largest parameter that the launch reads, or "".
std::string Weights(const Plan& plan, const Launch& launch) {
  std::string dtype;
  int64_t most = 0;
  for (const Argument& argument : launch.arguments) {
    const Buffer& buffer = plan.buffers[argument.buffer];
    if (buffer.home != Home::kParam || !buffer.bytes.is_constant() || buffer.bytes.constant() <= most) continue;
    most = buffer.bytes.constant();
    dtype = std::string(Name(buffer.type.dtype));
  }
  return dtype;
}

// "SEQ2_8": what the guard leaves open of the kernel's sizes.
std::string Sizes(const kir::Kernel& kernel, const SymbolRanges& guard) {
  std::string text;
  for (const auto& [symbol, range] : guard) {
    const bool declared = std::any_of(kernel.symbols.begin(), kernel.symbols.end(),
                                      [&](const kir::SymbolDecl& s) { return s.name == symbol; });
    if (declared && range.low < range.high)
      absl::StrAppend(&text, text.empty() ? "" : ".", symbol, range.low, "_", range.high);
  }
  return text;
}

}  // namespace

std::string KernelIdentity(const kir::Kernel& kernel, const ir::CustomDef* call) {
  std::string text = kir::Print(kernel, {.origins = false, .normalise_names = true});
  for (const kir::SymbolDecl& symbol : kernel.symbols) absl::StrAppend(&text, "|", symbol.name);
  if (call != nullptr) absl::StrAppend(&text, "|", call->name);
  return text;
}

std::vector<std::string> KernelSymbols(const Plan& plan, const SymbolRanges& guard) {
  std::vector<std::string> symbols(plan.kernels.size());
  std::set<std::string> known;
  for (const std::vector<Launch>* launches : {&plan.once, &plan.launches}) {
    for (const Launch& launch : *launches) {
      std::string& symbol = symbols[launch.kernel];
      if (!symbol.empty()) continue;
      if (const auto call = plan.calls.find(launch.kernel); call != plan.calls.end()) {
        symbol = call->second->symbol;
        continue;
      }
      std::string name = Path(launch.label);
      for (const std::string& part :
           {plan.kernels[launch.kernel].name, Weights(plan, launch), Sizes(plan.kernels[launch.kernel], guard)}) {
        if (!part.empty()) absl::StrAppend(&name, name.empty() ? "" : ".", part);
      }
      symbol = name;
      for (int i = 2; !known.insert(symbol).second; ++i) symbol = absl::StrCat(name, ".", i);
    }
  }
  return symbols;
}

}  // namespace quern::lir
