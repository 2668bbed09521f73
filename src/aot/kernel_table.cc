#include "aot/kernel_table.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "lir/kernel_symbols.h"

namespace quern::aot {

KernelTable TabulateKernels(const Level& level, const std::string& suffix) {
  KernelTable table;
  std::map<Hash128, int> known;
  std::set<std::string> symbols;
  for (const Variant& variant : level.variants) {
    const lir::Plan& plan = variant.plan;
    std::vector<int>& row = table.rows.emplace_back();
    const std::vector<std::string> names = lir::KernelSymbols(plan, variant.guard);
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      const kir::Kernel& kernel = plan.kernels[k];
      const auto call = plan.calls.find(static_cast<int>(k));
      std::string text = kir::Print(kernel, {.origins = false, .normalise_names = true});
      if (call != plan.calls.end()) absl::StrAppend(&text, call->second->name);
      const Hash128 key = HashBytes(text);
      const auto [at, added] = known.emplace(key, static_cast<int>(table.entries.size()));
      row.push_back(at->second);
      if (!added) continue;
      if (call != plan.calls.end()) {
        table.entries.push_back({kernel, call->second->symbol, "", 0, call->second});
        continue;
      }
      std::string name = names[k];
      if (!suffix.empty()) absl::StrAppend(&name, ".", suffix);
      std::string symbol = name;
      for (int i = 2; !symbols.insert(symbol).second; ++i) symbol = absl::StrCat(name, ".", i);
      table.entries.push_back({kernel, std::move(symbol), "", 0});
    }
    for (const std::vector<lir::Launch>* launches : {&plan.once, &plan.launches}) {
      for (const lir::Launch& launch : *launches) {
        KernelTable::Entry& entry = table.entries[row[launch.kernel]];
        ++entry.launches;
        if (entry.label.empty()) entry.label = launch.label;
      }
    }
  }
  return table;
}

std::vector<const ir::CustomDef*> CallsOf(const std::vector<KernelTable>& tables) {
  std::map<std::string_view, const ir::CustomDef*> calls;
  for (const KernelTable& table : tables) {
    for (const KernelTable::Entry& entry : table.entries) {
      if (entry.call != nullptr) calls.emplace(entry.call->name, entry.call);
    }
  }
  std::vector<const ir::CustomDef*> rows;
  for (const auto& [name, call] : calls) rows.push_back(call);
  return rows;
}

}  // namespace quern::aot
