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
      const Hash128 key = HashBytes(kir::Print(kernel, {.origins = false, .normalise_names = true}));
      const auto [at, added] = known.emplace(key, static_cast<int>(table.entries.size()));
      row.push_back(at->second);
      if (!added) continue;
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

}  // namespace quern::aot
