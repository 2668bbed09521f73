// Sizes that a recorded equality ties become one: of S == T, T is S everywhere, and kernels see one symbol.
//
// An equality is solved for a symbol that it has alone in a term, with a coefficient that divides the others:
//   T == PAST + SEQ  ->  T is PAST + SEQ        2*S == A  ->  A is 2*S        30 == 2*S  ->  S is 15
// The symbol stays declared, for a run still gives it: the equality is kept and checked then. What its range says of
// the sizes that take its place narrows theirs (A in 2..64, A == S: S in 2..64), or is kept as a constraint.

#include <algorithm>
#include <optional>

#include "base/diagnostic.h"
#include "opt/passes.h"
#include "opt/substitute.h"

namespace quern::opt {
namespace {

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

struct Solution {
  std::string symbol;
  Extent value;
};

// Sizes are not negative, and bounds are found of sums rather than of differences.
bool IsPlain(const Extent& value) {
  const bool linear = value.Symbols().size() <= 1 && (value.terms().empty() || value.terms()[0].symbols.size() <= 1);
  return linear || std::all_of(value.terms().begin(), value.terms().end(),
                               [](const Extent::Term& term) { return term.coefficient >= 0; });
}

// What `zero` == 0 says of one of its symbols. The last by name is taken, so that equal equalities solve alike.
std::optional<Solution> Solve(const Extent& zero) {
  const std::vector<std::string> symbols = zero.Symbols();
  for (auto symbol = symbols.rbegin(); symbol != symbols.rend(); ++symbol) {
    int64_t coefficient = 0;
    bool alone = true;
    Extent rest;
    for (const Extent::Term& term : zero.terms()) {
      if (term.symbols == std::vector<std::string>{*symbol}) {
        coefficient = term.coefficient;
        continue;
      }
      alone &= std::find(term.symbols.begin(), term.symbols.end(), *symbol) == term.symbols.end();
      Extent part(term.coefficient);
      for (const std::string& name : term.symbols) part = part * Extent::Symbol(name);
      rest = rest + part;
    }
    if (!alone || coefficient == 0) continue;
    const std::optional<Extent> value = rest.DividedBy(Extent(-coefficient));
    if (value && IsPlain(*value)) return Solution{*symbol, *value};
  }
  return std::nullopt;
}

// Makes the ranges of `symbols` say, as far as ranges can, that `value` lies in `range`.
Status Narrow(SymbolRanges& symbols, const Solution& solution, const SymbolRange& range) {
  const std::vector<std::string> names = solution.value.Symbols();
  auto conflict = [&] {
    return ToStatus({DiagnosticCode::kSizeConflict, "", "",
                     absl::StrCat(solution.symbol, " == ", solution.value.ToString()), "any sizes of their ranges",
                     ""});
  };
  const std::optional<int64_t> most = solution.value.UpperBound(symbols), least = solution.value.LowerBound(symbols);
  if ((most && *most < range.low) || (least && *least > range.high)) return conflict();
  if (names.size() != 1 || solution.value.terms()[0].symbols.size() != 1) return absl::OkStatus();
  const int64_t by = solution.value.terms()[0].coefficient;
  const int64_t offset = solution.value.terms().size() > 1 ? solution.value.terms()[1].coefficient : 0;
  SymbolRange& other = symbols[names[0]];
  int64_t low = 0, high = 0;
  if (__builtin_sub_overflow(range.low, offset, &low)) return absl::OkStatus();
  if (range.high == INT64_MAX || __builtin_sub_overflow(range.high, offset, &high)) high = INT64_MAX;
  if (by > 0) {
    other.low = std::max(other.low, CeilDiv(low, by));
    if (high != INT64_MAX) other.high = std::min(other.high, FloorDiv(high, by));
  } else {
    other.high = std::min(other.high, FloorDiv(low, by));
    if (high != INT64_MAX) other.low = std::max(other.low, CeilDiv(high, by));
  }
  return other.low > other.high ? conflict() : absl::OkStatus();
}

// Of the graph and of all bodies in it: they name the same symbols.
std::vector<ir::ExtentConstraint> AllConstraints(const ir::Graph& graph) {
  std::vector<ir::ExtentConstraint> all = graph.constraints;
  for (const ir::Node& node : graph.nodes()) {
    for (const auto& body : node.bodies) ir::AddConstraints(all, AllConstraints(*body));
  }
  return all;
}

}  // namespace

StatusOr<ir::Graph> UnifySizes(const ir::Graph& graph) {
  SymbolRanges symbols = graph.symbols;
  Substitution values;
  std::vector<ir::ExtentConstraint> kept;
  for (const ir::ExtentConstraint& constraint : AllConstraints(graph)) {
    if (constraint.relation != ir::SizeRelation::kEqual) continue;
    Extent zero = constraint.difference();
    for (const auto& [symbol, value] : values) zero = zero.Substitute(symbol, value);
    const std::optional<Solution> solution = Solve(zero);
    if (!solution) continue;
    const SymbolRange range = symbols.at(solution->symbol);
    // A number is a range of one; anything else must hold what the symbol's range says, or nothing would.
    QUERN_RETURN_IF_ERROR(Narrow(symbols, *solution, range));
    for (auto& [symbol, value] : values) value = value.Substitute(solution->symbol, solution->value);
    values[solution->symbol] = solution->value;
    ir::AddConstraints(kept, {constraint});
    for (const ir::ExtentConstraint& bound :
         {ir::ExtentConstraint{solution->value, range.low, ir::SizeRelation::kAtLeast},
          ir::ExtentConstraint{range.high, solution->value, ir::SizeRelation::kAtLeast}}) {
      if (range.high != INT64_MAX || bound.left == solution->value) ir::AddConstraints(kept, {bound});
    }
  }
  if (values.empty()) return graph;
  auto change = [&](SymbolRanges& own) -> Status {
    for (auto& [symbol, range] : own) range = symbols.at(symbol);
    for (const auto& [symbol, value] : values) {
      if (!own.contains(symbol)) continue;
      for (const std::string& name : value.Symbols()) own[name] = symbols.at(name);
    }
    return absl::OkStatus();
  };
  QUERN_ASSIGN(ir::Graph unified, Substitute(graph, values, change, "unify_sizes"));
  for (const ir::ExtentConstraint& constraint : kept) {
    if (!constraint.Always(unified.symbols)) ir::AddConstraints(unified.constraints, {constraint});
  }
  return unified;
}

}  // namespace quern::opt
