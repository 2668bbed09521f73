#include "lir/arena.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace quern::lir {
namespace {

// Bounds up to this are reserved whole: untouched pages of the arena cost nothing.
constexpr int64_t kLargestReserved = int64_t{1} << 30;

bool Meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

int64_t RoundUp64(int64_t bytes) { return bytes > INT64_MAX - 63 ? INT64_MAX / 64 * 64 : (bytes + 63) / 64 * 64; }

struct Placed {
  int64_t begin, end;
};

// The start of the smallest gap of at least `bytes` between the occupied stretches, or the end of the last one.
int64_t BestGap(std::vector<Placed> occupied, int64_t bytes) {
  std::sort(occupied.begin(), occupied.end(), [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  int64_t at = 0, best = -1, best_size = INT64_MAX;
  for (const Placed& stretch : occupied) {
    const int64_t gap = stretch.begin - at;
    if (gap >= bytes && gap < best_size) best = at, best_size = gap;
    at = std::max(at, stretch.end);
  }
  return best >= 0 ? best : at;
}

// Memory that several buffers take turns in.
struct Slot {
  Extent bytes;
  std::vector<size_t> users;
};

// At least as much, by a sum that shows it: sizes are not negative, so terms below zero only take away. Of
// (X - 1)*(Y - 1)*B nothing else would prove that it is at least 0, and so that what comes before it lies in the arena.
Extent WithoutNegativeTerms(const Extent& bytes) {
  Extent sum;
  for (const Extent::Term& term : bytes.terms()) {
    if (term.coefficient > 0) sum = sum + Extent(term);
  }
  return sum;
}

}  // namespace

Extent RoundUp64(const Extent& bytes) {
  Extent rounded;
  for (const Extent::Term& term : bytes.terms()) {
    // A negative coefficient is rounded towards zero, which is up.
    const int64_t c = term.coefficient;
    rounded = rounded + Extent({term.symbols, c >= 0 ? RoundUp64(c) : -(-c / 64 * 64)});
  }
  return rounded;
}

ArenaLayout PlaceArena(std::span<const Lifetime> lifetimes, const SymbolRanges& ranges) {
  ArenaLayout layout;
  layout.offsets.resize(lifetimes.size());
  std::vector<std::optional<int64_t>> fixed;  // bytes, of those that are reserved whole
  for (const Lifetime& lifetime : lifetimes) {
    const std::optional<int64_t> bound = lifetime.bytes.UpperBound(ranges);
    fixed.push_back(bound && *bound <= kLargestReserved ? std::optional(RoundUp64(*bound)) : std::nullopt);
  }
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-fixed[a].value_or(0), a) < std::pair(-fixed[b].value_or(0), b);
  });

  int64_t end = 0;
  std::vector<size_t> done;
  for (const size_t i : order) {
    if (!fixed[i]) continue;
    std::vector<Placed> occupied;
    for (const size_t other : done) {
      const int64_t begin = layout.offsets[other].constant();
      if (Meet(lifetimes[i], lifetimes[other])) occupied.push_back({begin, begin + *fixed[other]});
    }
    const int64_t at = BestGap(std::move(occupied), *fixed[i]);
    layout.offsets[i] = at;
    end = std::max(end, at + *fixed[i]);
    done.push_back(i);
  }

  std::vector<Slot> slots;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (fixed[i]) continue;
    const Extent bytes = WithoutNegativeTerms(RoundUp64(lifetimes[i].bytes));
    Slot* home = nullptr;
    for (Slot& slot : slots) {
      const bool comparable = slot.bytes.ProvablyAtLeast(bytes, ranges) || bytes.ProvablyAtLeast(slot.bytes, ranges);
      const bool taken = std::any_of(slot.users.begin(), slot.users.end(),
                                     [&](size_t user) { return Meet(lifetimes[i], lifetimes[user]); });
      if (comparable && !taken) {
        home = &slot;
        break;
      }
    }
    if (home == nullptr) {
      slots.push_back({bytes, {}});
      home = &slots.back();
    }
    if (bytes.ProvablyAtLeast(home->bytes, ranges)) home->bytes = bytes;
    home->users.push_back(i);
  }
  layout.bytes = end;
  for (const Slot& slot : slots) {
    for (const size_t user : slot.users) layout.offsets[user] = layout.bytes;
    layout.bytes = layout.bytes + slot.bytes;
  }
  return layout;
}

}  // namespace quern::lir
