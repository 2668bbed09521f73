// Symbols replaced by numbers, or their ranges narrowed: what a guard (SEQ == 1, SEQ in 2..8) knows is written into the
// graph that the guarded variant is compiled from. Both go into bodies.

#include "opt/passes.h"
#include "opt/substitute.h"

namespace quern::opt {

StatusOr<ir::Graph> SubstituteSymbols(const ir::Graph& graph, const Binding& values) {
  auto remove = [&](SymbolRanges& symbols) -> Status {
    for (const auto& [symbol, value] : values) {
      const auto it = symbols.find(symbol);
      if (it == symbols.end()) continue;
      if (value < it->second.low || value > it->second.high) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s = %d is not in %d..%d", symbol, value, it->second.low, it->second.high));
      }
      symbols.erase(it);
    }
    return absl::OkStatus();
  };
  return Substitute(graph, {values.begin(), values.end()}, remove, "substitute_symbols");
}

StatusOr<ir::Graph> NarrowRanges(const ir::Graph& graph, const SymbolRanges& ranges) {
  auto narrow = [&](SymbolRanges& symbols) -> Status {
    for (const auto& [symbol, range] : ranges) {
      const auto it = symbols.find(symbol);
      if (it == symbols.end()) continue;
      if (range.low < it->second.low || range.high > it->second.high || range.low > range.high) {
        return absl::InvalidArgumentError(absl::StrFormat("the range %d..%d of %s does not lie in %d..%d", range.low,
                                                          range.high, symbol, it->second.low, it->second.high));
      }
      it->second = range;
    }
    return absl::OkStatus();
  };
  return Substitute(graph, {}, narrow, "narrow_ranges");
}

}  // namespace quern::opt
