#include "aot/kernel_table.h"

#include <cctype>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace quern::aot {
namespace {

// "layers.0/ffn: Mul" -> "layers.0.ffn"
std::string Path(const std::string& label) {
  std::string path;
  for (const char c : label.substr(0, label.rfind(':'))) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    path += plain ? c : '.';
  }
  return path;
}

// The dtype of the largest parameter that the launch reads, or "".
std::string Weights(const lir::Plan& plan, const lir::Launch& launch) {
  std::string dtype;
  int64_t most = 0;
  for (const lir::Argument& argument : launch.arguments) {
    const lir::Buffer& buffer = plan.buffers[argument.buffer];
    if (buffer.home != lir::Home::kParam || !buffer.bytes.is_constant() || buffer.bytes.constant() <= most) continue;
    most = buffer.bytes.constant();
    dtype = std::string(Name(buffer.type.dtype));
  }
  return dtype;
}

// What tells kernels of the variant from those of smaller sizes: "SEQ2_8"; "" where the guard leaves no choice.
std::string Sizes(const Variant& variant) {
  std::string text;
  for (const auto& [symbol, range] : variant.guard) {
    if (range.low < range.high) absl::StrAppend(&text, text.empty() ? "" : ".", symbol, range.low, "_", range.high);
  }
  return text;
}

}  // namespace

KernelTable TabulateKernels(const Level& level, const std::string& suffix) {
  KernelTable table;
  std::map<Hash128, int> known;
  std::set<std::string> symbols;
  for (const Variant& variant : level.variants) {
    const lir::Plan& plan = variant.plan;
    std::vector<int>& row = table.rows.emplace_back();
    for (const kir::Kernel& kernel : plan.kernels) {
      const Hash128 key = HashBytes(kir::Print(kernel, {.origins = false, .normalise_names = true}));
      const auto [at, added] = known.emplace(key, static_cast<int>(table.entries.size()));
      if (added) table.entries.push_back({kernel, "", "", 0});
      row.push_back(at->second);
    }
    for (const std::vector<lir::Launch>* launches : {&plan.once, &plan.launches}) {
      for (const lir::Launch& launch : *launches) {
        KernelTable::Entry& entry = table.entries[row[launch.kernel]];
        ++entry.launches;
        if (!entry.symbol.empty()) continue;
        entry.label = launch.label;
        std::string name = Path(launch.label);
        for (const std::string& part : {plan.kernels[launch.kernel].name, Weights(plan, launch), Sizes(variant), suffix}) {
          if (!part.empty()) absl::StrAppend(&name, name.empty() ? "" : ".", part);
        }
        entry.symbol = name;
        for (int i = 2; !symbols.insert(entry.symbol).second; ++i) entry.symbol = absl::StrCat(name, ".", i);
      }
    }
  }
  return table;
}

}  // namespace quern::aot
