// Bounds of integer polynomials over variables whose own bounds are polynomials in earlier variables: how the verifier
// proves that an index is inside its buffer.
//
//   m in 0..M by 10:   q new, q >= 0, 10 q <= M - 1;  m is 10 q
//   e = min(M - m, 10):  e new, e <= M - m, e <= 10, and e is one of the two
//   i in 0..e:         i new, i >= 0, i <= e - 1
//   prove m + i < M:   M - 1 - m - i  >= M - m - e  >= M - m - (M - m) = 0
//
// A proof eliminates the latest variable of a polynomial by each of its bounds in turn, until a number is left:
// complete for what loops and guards produce, and bounded in time (a failed proof is an error for the user, never a
// hang).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/extent.h"

namespace quern::kir {

// Sum, difference and product, or nullopt where a coefficient might leave 62 bits.
std::optional<Extent> CheckedAdd(const Extent& a, const Extent& b);
std::optional<Extent> CheckedSubtract(const Extent& a, const Extent& b);
std::optional<Extent> CheckedMultiply(const Extent& a, const Extent& b);
// What is not negative where the value is not, which is whole, without what its terms have in common: 66*B*S - 16896 is
// B*S - 256.
Extent WithoutCommonFactor(const Extent& value);

class IndexProver {
 public:
  // The number of a variable; variables are ordered by it.
  using Id = int;

  // A new variable. `name` must not be in use. Bounds and cases may mention earlier variables only.
  Id Add(std::string name);
  // A new variable with a fresh name made from `hint`.
  Id AddFresh(std::string_view hint);
  void SetLow(Id id, Extent low, int64_t scale = 1);    // scale * v >= low
  void SetHigh(Id id, Extent high, int64_t scale = 1);  // scale * v <= high
  // v equals one of these. A bound in a direction that the cases do not serve comes from SetLow or SetHigh alone.
  void SetCases(Id id, std::vector<Extent> cases, bool for_low, bool for_high);

  // `value`, which is proved to be at most `high` without facts: where it is a variable and a number, the variable
  // keeps that as a bound of its own.
  const Extent& Bounded(const Extent& value, const Extent& high);

  // v is a function of these: where they have the same values, so has v.
  void SetFunctionOf(Id id, std::vector<Extent> arguments);
  // Those; none of a variable that is free.
  const std::vector<Extent>& ArgumentsOf(Id id) const { return variables_[id].arguments; }

  Extent Variable(Id id) const { return Extent::Symbol(variables_[id].name); }
  std::optional<Id> Find(std::string_view name) const;
  Id size() const { return static_cast<Id>(variables_.size()); }
  // Forgets variables [size, ...) and their uses by no one.
  void Truncate(Id size);

  // Assumes `value` >= 0 until PopFacts takes it back. Facts are a stack.
  void PushFact(const Extent& value);
  size_t fact_count() const { return facts_.size(); }
  void PopFacts(size_t count);  // down to `count`
  // The facts pushed from number `from` on.
  std::vector<Extent> Facts(size_t from) const;

  // The best proved constant bound, or nullopt.
  std::optional<int64_t> Low(const Extent& value) const;
  std::optional<int64_t> High(const Extent& value) const;
  bool NonNegative(const Extent& value) const;
  // a <= b for all values.
  bool AtMost(const Extent& a, const Extent& b) const;
  bool Equal(const Extent& a, const Extent& b) const { return a == b || (AtMost(a, b) && AtMost(b, a)); }
  // Whether `value` is a multiple of `divisor` because each of its coefficients is.
  static bool MultipleOf(const Extent& value, int64_t divisor);

  // Copies of the variables numbered first.. that `shared` does not name, and that are no functions of variables
  // without copies: the same bounds over other values. Returns the names of the copies by the names of the originals.
  // `pinned` gives bounds of its own to the copy of one variable: at least the original + 1 (direction 1) or at most
  // the original - 1 (direction -1).
  std::map<std::string, Extent> Clone(Id first, const std::vector<Id>& shared, Id pinned, int direction);
  // Facts: variable `pinned` has room for such a copy beside it. Of one that is more than another, which is 0 or more,
  // it is 1 or more.
  void PushRoom(Id pinned, int direction);
  static Extent Rename(const Extent& value, const std::map<std::string, Extent>& names);

 private:
  struct Bound {
    int64_t scale;
    Extent value;
  };
  struct Info {
    std::string name;
    std::vector<Bound> low, high;
    std::vector<Extent> cases;
    bool cases_low = false, cases_high = false;
    std::vector<Extent> arguments = {};  // of the function that it is; none: it is free
  };
  struct Fact {
    Extent value;
    Id id;
    bool low;
  };  // id: the variable that got a bound from it, or -1

  // NonNegative for each case of the latest variable that has some, `depth` deep.
  bool ByFacts(const Extent& value, int depth, int& budget) const;
  // A proved lower bound; stops looking for better ones at `enough`. Facts that bound no variable (P*S <= 32) are used
  // where their product comes up on the way, `facts` of them.
  std::optional<int64_t> Low(const Extent& value, int64_t enough, int& budget, int facts) const;

  std::vector<Info> variables_;
  std::map<std::string, Id, std::less<>> ids_;
  std::vector<Fact> facts_;
  int fresh_ = 0;
};

}  // namespace quern::kir
