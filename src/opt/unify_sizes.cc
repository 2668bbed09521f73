// Sizes that a recorded equality ties become one: of S == T, T is S everywhere, and kernels see one symbol.
//
// An equality is solved for a symbol that it has alone in a term, with a coefficient that divides the others:
//   T == PAST + SEQ  ->  T is PAST + SEQ        2*S == A  ->  A is 2*S        30 == 2*S  ->  S is 15
// The symbol stays declared, for a run still gives it: the equality is kept and checked then. What its range says of
// the sizes that take its place narrows theirs (A in 2..64, A == S: S in 2..64), or is kept as a constraint. What has
// to be at least something narrows them too: of S >= 32, kernels and the arena know that S - 31 is a size. A size that
// a run finds (Counted) takes no other's place, nor another its: it is known later. Kernels have the equality as it is.

#include <algorithm>
#include <optional>
#include <span>

#include "base/diagnostic.h"
#include "base/divide.h"
#include "ir/counted.h"
#include "opt/passes.h"
#include "opt/substitute.h"

namespace quern::opt {
namespace {

struct Solution {
  std::string symbol;
  Extent value;
};

// Whether it is a*S + b, or b.
bool IsLinear(const Extent& value) {
  return value.is_constant() || (value.Factors().size() == 1 && value.terms()[0].symbols == value.Symbols());
}

// Sizes are not negative, and bounds are found of sums rather than of differences.
bool IsPlain(const Extent& value, const SymbolRanges& ranges) {
  return IsLinear(value) || (value.LowerBound(ranges).value_or(-1) >= 0 &&
                             std::all_of(value.terms().begin(), value.terms().end(), [](const Extent::Term& term) {
                               return term.coefficient >= 0 || term.symbols.empty();
                             }));
}

// What `zero` == 0 says of one of its symbols. The last by name is taken, so that equal equalities solve alike.
std::optional<Solution> Solve(const Extent& zero, const SymbolRanges& ranges) {
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
      const std::vector<std::string> within = Extent(term).Symbols();
      alone &= std::find(within.begin(), within.end(), *symbol) == within.end();
      rest = rest + Extent(term);
    }
    if (!alone || coefficient == 0) continue;
    const std::optional<Extent> value = rest.DividedBy(Extent(-coefficient));
    if (value && IsPlain(*value, ranges)) return Solution{*symbol, *value};
  }
  return std::nullopt;
}

// Makes the ranges of `symbols` say, as far as ranges can, that `value` lies in `range`; `because` is what says so.
Status Narrow(SymbolRanges& symbols, const Extent& value, const SymbolRange& range, const std::string& because) {
  auto conflict = [&] {
    return ToStatus({DiagnosticCode::kSizeConflict, "", "", because, "any sizes of their ranges", ""});
  };
  const std::optional<int64_t> most = value.UpperBound(symbols), least = value.LowerBound(symbols);
  if ((most && *most < range.low) || (least && *least > range.high)) return conflict();
  if (value.is_constant() || !IsLinear(value)) return absl::OkStatus();
  const int64_t by = value.terms()[0].coefficient;
  const int64_t offset = value.terms().size() > 1 ? value.terms()[1].coefficient : 0;
  SymbolRange& other = symbols[value.Symbols()[0]];
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

// What the equalities say of sizes in `ranges`.
struct SolvedSizes {
  SymbolRanges ranges;                              // narrowed
  Substitution values;                              // of symbols that are others, in symbols that are not
  std::vector<ir::ExtentConstraint> kept;           // to be checked at a run
  std::vector<ir::ExtentConstraint> at_least = {};  // those that narrowed ranges: a run is told of them, not of a range
};

// Whether sizes of these ranges can meet the constraints together, as far as the bounds of each tell of the others:
// N is at most 9 where S >= N is, and K at most 27 where 3*N >= K is. Nothing is narrowed by it: a run is told which
// constraint it broke.
Status CheckTogether(std::span<const ir::ExtentConstraint> constraints, SymbolRanges ranges) {
  constexpr int64_t kMost = int64_t{1} << 60;
  const auto narrow = [&](const Extent& room) {  // room >= 0
    for (const Extent::Term& term : room.terms()) {
      if (term.symbols.size() != 1) continue;
      const Extent rest = room - Extent(term);
      const std::vector<std::string> others = rest.Symbols();
      const std::optional<int64_t> most = rest.UpperBound(ranges);
      if (!most || std::abs(*most) > kMost || std::ranges::find(others, term.symbols[0]) != others.end()) continue;
      const auto found = ranges.find(term.symbols[0]);
      if (found == ranges.end()) continue;
      SymbolRange& range = found->second;
      if (term.coefficient > 0)
        range.low = std::max(range.low, CeilDiv(-*most, term.coefficient));
      else
        range.high = std::min(range.high, FloorDiv(*most, -term.coefficient));
      if (range.low > range.high) return false;
    }
    return true;
  };
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    const SymbolRanges before = ranges;
    for (const ir::ExtentConstraint& constraint : constraints) {
      const Extent difference = constraint.difference();
      if (narrow(difference) && (constraint.relation != ir::SizeRelation::kEqual || narrow(Extent(0) - difference)))
        continue;
      return ToStatus(
          {DiagnosticCode::kSizeConflict, "", "", constraint.ToString(), "any sizes that the others leave", ""});
    }
    if (ranges == before) break;
  }
  return absl::OkStatus();
}

StatusOr<SolvedSizes> SolveSizes(std::span<const ir::ExtentConstraint> constraints, SymbolRanges ranges,
                                 const ir::CountedSizes& found) {
  SolvedSizes solved{std::move(ranges), {}, {}, {}};
  auto& [symbols, values, kept, at_least] = solved;
  for (const ir::ExtentConstraint& constraint : constraints) {
    const std::vector<std::string> names = constraint.difference().Symbols();
    const bool later = std::any_of(names.begin(), names.end(), [&](const auto& name) { return found.contains(name); });
    if (constraint.relation != ir::SizeRelation::kEqual || later) continue;
    const std::optional<Solution> solution = Solve(Substitute(constraint.difference(), values), symbols);
    if (!solution) continue;
    const SymbolRange range = symbols.at(solution->symbol);
    // A number is a range of one; anything else must hold what the symbol's range says, or nothing would.
    const std::string because = absl::StrCat(solution->symbol, " == ", solution->value.ToString());
    QUERN_RETURN_IF_ERROR(Narrow(symbols, solution->value, range, because));
    for (auto& [symbol, value] : values) value = value.Substitute(solution->symbol, solution->value);
    values[solution->symbol] = solution->value;
    ir::AddConstraints(kept, {constraint});
    ir::AddConstraints(kept, {{solution->value, range.low, ir::SizeRelation::kAtLeast}});
    if (range.high != INT64_MAX) ir::AddConstraints(kept, {{range.high, solution->value, ir::SizeRelation::kAtLeast}});
  }
  for (const ir::ExtentConstraint& constraint : constraints) {
    if (constraint.relation != ir::SizeRelation::kAtLeast) continue;
    const Extent room = Substitute(constraint.difference(), values);
    QUERN_RETURN_IF_ERROR(Narrow(symbols, room, {0, INT64_MAX}, constraint.ToString()));
    ir::AddConstraints(at_least, {{Substitute(constraint.left, values), Substitute(constraint.right, values),
                                   ir::SizeRelation::kAtLeast}});
  }
  QUERN_RETURN_IF_ERROR(CheckTogether(constraints, symbols));
  return solved;
}

}  // namespace

Status CheckSizes(const ir::Graph& graph, const SymbolRanges& ranges) {
  const std::vector<ir::ExtentConstraint> constraints = AllConstraints(graph);
  QUERN_ASSIGN(const SolvedSizes solved, SolveSizes(constraints, ranges, ir::AllCountedSizes(graph)));
  return Substitute(constraints, solved.values, solved.ranges).status();
}

StatusOr<ir::Graph> UnifySizes(const ir::Graph& graph) {
  QUERN_ASSIGN(const SolvedSizes solved, SolveSizes(AllConstraints(graph), graph.symbols, ir::AllCountedSizes(graph)));
  if (solved.values.empty() && solved.ranges == graph.symbols) return graph;
  auto change = [&](SymbolRanges& own) -> Status {
    for (auto& [symbol, range] : own) range = solved.ranges.at(symbol);
    for (const auto& [symbol, value] : solved.values) {
      if (!own.contains(symbol)) continue;
      for (const std::string& name : value.Symbols()) own[name] = solved.ranges.at(name);
    }
    return absl::OkStatus();
  };
  QUERN_ASSIGN(ir::Graph unified, Substitute(graph, solved.values, change, "unify_sizes"));
  for (const ir::ExtentConstraint& constraint : solved.kept) {
    if (!constraint.Always(unified.symbols)) ir::AddConstraints(unified.constraints, {constraint});
  }
  for (const ir::ExtentConstraint& constraint : solved.at_least) {
    if (!constraint.Always(graph.symbols)) ir::AddConstraints(unified.constraints, {constraint});
  }
  return unified;
}

}  // namespace quern::opt
