// One writer: two iterations of a grid, vec, thread loop or map must not touch the same element of a buffer that
// outlives the iteration, unless both only read it.
//
// For two accesses, take two copies of everything that one iteration decides. Iterations that differ do so in the first
// of their indices, in some order, that differs; for each index in turn, earlier ones equal and this one apart by at
// least one step, some dimension of the two positions must be proved to differ.
//
//   grid n0 in 0..2048 by 32 { map (i, j) in y [1, 32] { h[n0 + j] = ... } }
//   n0 = 32 q:  q' >= q + 1  gives  32 q' + j' - 32 q - j >= 32 - 31 > 0
//
// Threads stride: y[t + 128 q] is apart when q differs, and when it does not because t differs. So for them, inner
// variables of the positions may be split, one after the other, into the cases less, equal and more. Accesses with a
// barrier between them on every path do not meet.
#include <algorithm>
#include <functional>
#include <set>

#include "kir/describe.h"
#include "kir/verify_state.h"

namespace quern::kir {

void Verifier::Record(const std::string& buffer, bool write, const std::vector<Extent>& position, bool by_block) {
  const Entity& entity = names_.find(buffer)->second;
  if (write && entity.kind == EntityKind::kAlloc) NoteScratchWrite(buffer, position);
  // A parameter and the one it may share memory with are one buffer.
  std::string name = buffer;
  for (const Param& param : kernel_.params) {
    if (param.name == buffer && !param.inplace.empty()) name = param.inplace;
  }
  for (size_t s = entity.depth; s < parallel_.size(); ++s) {
    Parallel& scope = parallel_[s];
    if (by_block && scope.thread) continue;
    scope.accesses.push_back({statement_, name, write, position, prover_.Facts(scope.facts), phase_, scope_});
  }
  if (threads_ > 0 && entity.depth <= 1) {
    const int scope = by_block || !InThread() ? ++scopes_ : scope_;
    block_accesses_.push_back({statement_, name, write, position, prover_.Facts(parallel_[0].facts), phase_, scope});
  }
}

Status Verifier::CheckRaces(const Parallel& scope) {
  for (size_t a = 0; a < scope.accesses.size(); ++a) {
    for (size_t b = a; b < scope.accesses.size(); ++b) {
      const Access& first = scope.accesses[a];
      const Access& second = scope.accesses[b];
      if (first.buffer != second.buffer || (!first.write && !second.write)) continue;
      if (scope.thread && Phase(first.phase) != Phase(second.phase)) continue;
      if (Separate(scope, first, second)) continue;
      statement_ = first.write ? first.stmt : second.stmt;
      const Access& other = first.write ? second : first;
      if (&other == &(first.write ? first : second) || other.stmt == statement_) {
        return Fail(absl::StrFormat("two iterations of %s are not proved to touch different elements of %s", scope.text,
                                    first.buffer));
      }
      return Fail(absl::StrFormat("an iteration of %s may write an element of %s that another %s in %s", scope.text,
                                  first.buffer, other.write ? "writes" : "reads", Describe(*other.stmt)));
    }
  }
  return absl::OkStatus();
}

bool Verifier::Separate(const Parallel& scope, const Access& a, const Access& b) {
  std::vector<IndexProver::Id> order;
  for (IndexProver::Id id : scope.variables) {
    // An index with one value never differs.
    const Extent index = prover_.Variable(id);
    const std::optional<int64_t> low = prover_.Low(index), high = prover_.High(index);
    if (!(low && high && *low >= *high)) order.push_back(id);
  }
  if (order.empty() || SeparateAlways(scope, a, b, {}, -1, 0)) return true;
  if (!scope.thread) return SeparateInOrder(scope, a, b, {});
  if (SeparateInOrder(scope, a, b, {})) return true;
  std::set<IndexProver::Id> inner;
  // What max(0, S - p) is follows from p, which may be what sets two positions apart.
  const std::function<void(const Extent&)> note = [&](const Extent& value) {
    for (const std::string& symbol : value.Symbols()) {
      const std::optional<IndexProver::Id> id = prover_.Find(symbol);
      if (!id || *id < scope.first || std::find(order.begin(), order.end(), *id) != order.end()) continue;
      if (!inner.insert(*id).second) continue;
      for (const Extent& argument : prover_.ArgumentsOf(*id)) note(argument);
    }
  };
  for (const Access* access : {&a, &b}) {
    for (const Extent& at : access->position) note(at);
  }
  // A variable whose cases less and more are apart may be taken as equal; that can only help with the others.
  std::vector<IndexProver::Id> equal;
  for (bool more = true; more;) {
    more = false;
    for (auto id = inner.begin(); id != inner.end();) {
      if (!SeparateAlways(scope, a, b, equal, *id, 1) || !SeparateAlways(scope, a, b, equal, *id, -1)) {
        ++id;
        continue;
      }
      equal.push_back(*id);
      id = inner.erase(id);
      more = true;
      if (SeparateInOrder(scope, a, b, equal)) return true;
    }
  }
  return false;
}

// By the first of the indices, in some order, that differs; `given` are equal in both.
bool Verifier::SeparateInOrder(const Parallel& scope, const Access& a, const Access& b,
                               std::vector<IndexProver::Id> given) {
  std::vector<IndexProver::Id> order;
  for (IndexProver::Id id : scope.variables) {
    const Extent index = prover_.Variable(id);
    const std::optional<int64_t> low = prover_.Low(index), high = prover_.High(index);
    if (!(low && high && *low >= *high)) order.push_back(id);
  }
  const bool same = &a == &b;
  do {
    bool separate = true;
    std::vector<IndexProver::Id> shared = given;
    for (IndexProver::Id id : scope.variables) {
      if (std::find(order.begin(), order.end(), id) == order.end()) shared.push_back(id);
    }
    for (size_t k = 0; k < order.size() && separate; ++k) {
      separate = SeparateAlways(scope, a, b, shared, order[k], 1) &&
                 (same || SeparateAlways(scope, a, b, shared, order[k], -1));
      shared.push_back(order[k]);
    }
    if (separate) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

bool Verifier::SeparateAlways(const Parallel& scope, const Access& a, const Access& b,
                              const std::vector<IndexProver::Id>& shared, IndexProver::Id pinned, int direction) {
  const IndexProver::Id size = prover_.size();
  const size_t facts = prover_.fact_count();
  const std::map<std::string, Extent> names = prover_.Clone(scope.first, shared, pinned, direction);
  std::vector<Extent> both = a.facts;
  for (const Extent& fact : b.facts) both.push_back(IndexProver::Rename(fact, names));
  for (const Extent& fact : both) prover_.PushFact(fact);
  // Guards may leave no two such iterations at all, as those of the branches of an `if` on what both share.
  bool separate = std::any_of(both.begin(), both.end(), [&](const Extent& fact) { return prover_.AtMost(fact, -1); });
  if (scope.thread && direction != 0) {
    const Extent original = prover_.Variable(pinned), copy = IndexProver::Rename(original, names);
    separate = direction > 0 ? prover_.AtMost(copy, original) : prover_.AtMost(original, copy);
  }
  const auto apart = [&] {
    for (size_t d = 0; d < a.position.size(); ++d) {
      const std::optional<Extent> gap = CheckedSubtract(IndexProver::Rename(b.position[d], names), a.position[d]);
      if (gap && (prover_.AtMost(1, *gap) || prover_.AtMost(*gap, -1))) return true;
    }
    return false;
  };
  separate = separate || apart();
  // Only where it takes that: each fact is one more to go through.
  if (!separate && direction != 0 && !scope.thread) {
    prover_.PushRoom(pinned, direction);
    separate = apart();
  }
  prover_.PopFacts(facts);
  prover_.Truncate(size);
  return separate;
}

}  // namespace quern::kir
