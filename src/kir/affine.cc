#include "kir/affine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/divide.h"

namespace quern::kir {
namespace {

// Coefficients stay below this, so that sums of two cannot overflow.
constexpr __int128 kLimit = __int128{1} << 62;
// Steps of one proof. A bound of a real kernel takes tens; past this the answer is "not proved".
constexpr int kBudget = 20000;
// Facts that one proof uses one after the other.
constexpr int kMostFacts = 2;

__int128 Largest(const Extent& value) {
  __int128 largest = 0;
  for (const Extent::Term& term : value.terms()) {
    const __int128 magnitude = term.coefficient < 0 ? -static_cast<__int128>(term.coefficient) : term.coefficient;
    largest = std::max(largest, magnitude);
  }
  return largest;
}

// value = factor * name + rest, without `name` in the rest; of a square, one `name` stays in the factor.
void Split(const Extent& value, std::string_view name, Extent& factor, Extent& rest) {
  for (Extent::Term term : value.terms()) {
    const auto found = std::find(term.symbols.begin(), term.symbols.end(), name);
    const bool has = found != term.symbols.end();
    if (has) term.symbols.erase(found);
    (has ? factor : rest) = (has ? factor : rest) + Extent(std::move(term));
  }
}

}  // namespace

std::optional<Extent> CheckedAdd(const Extent& a, const Extent& b) {
  if (Largest(a) + Largest(b) >= kLimit) return std::nullopt;
  return a + b;
}

std::optional<Extent> CheckedSubtract(const Extent& a, const Extent& b) {
  if (Largest(a) + Largest(b) >= kLimit) return std::nullopt;
  return a - b;
}

std::optional<Extent> CheckedMultiply(const Extent& a, const Extent& b) {
  const __int128 terms = static_cast<__int128>(std::min(a.terms().size(), b.terms().size()));
  const __int128 left = Largest(a), right = Largest(b);
  if (left >= kLimit || right >= kLimit || (right != 0 && left * terms > kLimit / right)) return std::nullopt;
  if (a.terms().size() * b.terms().size() > 1024) return std::nullopt;
  return a * b;
}

Extent WithoutCommonFactor(const Extent& value) {
  const int64_t common = value.CommonFactor();
  if (common <= 1) return value;
  Extent result;
  for (Extent::Term term : value.terms()) {
    term.coefficient = FloorDiv(term.coefficient, common);  // which only the one without symbols rounds
    result = result + Extent(std::move(term));
  }
  return result;
}

IndexProver::Id IndexProver::Add(std::string name) {
  const Id id = size();
  QUERN_CHECK(ids_.emplace(name, id).second);
  variables_.emplace_back().name = std::move(name);
  return id;
}

IndexProver::Id IndexProver::AddFresh(std::string_view hint) {
  return Add(absl::StrCat(absl::string_view(hint.data(), hint.size()), "#", ++fresh_));
}

void IndexProver::SetLow(Id id, Extent low, int64_t scale) { variables_[id].low.push_back({scale, std::move(low)}); }
void IndexProver::SetHigh(Id id, Extent high, int64_t scale) {
  variables_[id].high.push_back({scale, std::move(high)});
}
void IndexProver::SetCases(Id id, std::vector<Extent> cases, bool for_low, bool for_high) {
  variables_[id].cases = std::move(cases);
  variables_[id].cases_low = for_low;
  variables_[id].cases_high = for_high;
}

const Extent& IndexProver::Bounded(const Extent& value, const Extent& high) {
  const std::vector<std::string> symbols = value.Symbols();
  const std::optional<Id> id = symbols.size() == 1 ? Find(symbols[0]) : std::nullopt;
  if (!id) return value;
  const Extent number = value - Variable(*id);
  const std::vector<std::string> of = high.Symbols();
  const auto is_earlier = [&](const std::string& symbol) {
    const std::optional<Id> other = Find(symbol);
    return other && *other < *id;
  };
  if (number.is_constant() && std::ranges::all_of(of, is_earlier)) SetHigh(*id, high - number);
  return value;
}

std::optional<IndexProver::Id> IndexProver::Find(std::string_view name) const {
  auto it = ids_.find(name);
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

void IndexProver::Truncate(Id size) {
  while (this->size() > size) {
    ids_.erase(variables_.back().name);
    variables_.pop_back();
  }
}

void IndexProver::PushFact(const Extent& given) {
  const Extent value = WithoutCommonFactor(given);
  // value = a v + rest >= 0 with v the latest variable: a bound of v in earlier ones.
  Id latest = -1;
  for (const std::string& symbol : value.Symbols()) {
    if (const std::optional<Id> id = Find(symbol)) latest = std::max(latest, *id);
  }
  Fact fact{value, -1, false};
  Extent factor, rest;
  if (latest >= 0) Split(value, variables_[latest].name, factor, rest);
  if (latest >= 0 && factor.is_constant()) {
    const int64_t a = factor.constant();
    fact.id = latest;
    fact.low = a > 0;
    if (a > 0)
      SetLow(latest, Extent(0) - rest, a);
    else
      SetHigh(latest, rest, -a);
  }
  facts_.push_back(std::move(fact));
}

void IndexProver::PopFacts(size_t count) {
  while (facts_.size() > count) {
    const Fact& fact = facts_.back();
    if (fact.id >= 0) (fact.low ? variables_[fact.id].low : variables_[fact.id].high).pop_back();
    facts_.pop_back();
  }
}

std::vector<Extent> IndexProver::Facts(size_t from) const {
  std::vector<Extent> values;
  for (size_t i = from; i < facts_.size(); ++i) values.push_back(facts_[i].value);
  return values;
}

std::optional<int64_t> IndexProver::Low(const Extent& value, int64_t enough, int& budget, int facts) const {
  if (value.is_constant()) return value.constant();
  if (--budget <= 0) return std::nullopt;
  std::optional<int64_t> best;
  // A fact (A*B - C*D >= 0) is taken off as often as one of its terms is in the value.
  for (size_t f = 0; facts > 0 && f < facts_.size(); ++f) {
    if (facts_[f].id >= 0) continue;
    for (const Extent::Term& known : facts_[f].value.terms()) {
      for (const Extent::Term& term : value.terms()) {
        if (term.symbols.empty() || term.symbols != known.symbols || term.coefficient % known.coefficient != 0)
          continue;
        const int64_t times = term.coefficient / known.coefficient;
        const std::optional<Extent> taken = CheckedMultiply(facts_[f].value, Extent(times));
        const std::optional<Extent> rest = taken ? CheckedSubtract(value, *taken) : std::nullopt;
        const std::optional<int64_t> low = times > 0 && rest ? Low(*rest, enough, budget, facts - 1) : std::nullopt;
        if (low && (!best || *low > *best)) best = low;
        if (best && *best >= enough) return best;
      }
    }
  }
  Id latest = -1;
  for (const std::string& symbol : value.Symbols()) {
    const std::optional<Id> id = Find(symbol);
    if (!id) return best;
    latest = std::max(latest, *id);
  }
  const Info& variable = variables_[latest];
  Extent factor, rest;
  Split(value, variable.name, factor, rest);

  bool rising = false;
  if (factor.is_constant()) {
    rising = factor.constant() > 0;
  } else {
    const std::optional<int64_t> low = Low(factor, 0, budget, 0);
    rising = low && *low >= 0;
    if (!rising) {
      const std::optional<int64_t> negated = Low(Extent(0) - factor, 0, budget, 0);
      if (!negated || *negated < 0) return best;
    }
  }

  // A bound of factor * replacement + scale * rest.
  auto replaced = [&](const Extent& replacement, int64_t scale) -> std::optional<int64_t> {
    const std::optional<Extent> product = CheckedMultiply(factor, replacement);
    const std::optional<Extent> scaled = CheckedMultiply(rest, scale);
    if (!product || !scaled) return std::nullopt;
    const std::optional<Extent> sum = CheckedAdd(*product, *scaled);
    int64_t scaled_enough = 0;
    if (__builtin_mul_overflow(enough, scale, &scaled_enough)) scaled_enough = INT64_MAX;
    if (!sum) return std::nullopt;
    return Low(*sum, scaled_enough, budget, facts);
  };
  for (const Bound& bound : rising ? variable.low : variable.high) {
    const std::optional<int64_t> low = replaced(bound.value, bound.scale);
    if (low && (!best || CeilDiv(*low, bound.scale) > *best)) best = CeilDiv(*low, bound.scale);
    if (best && *best >= enough) return best;
  }
  if (!(rising ? variable.cases_low : variable.cases_high)) return best;
  std::optional<int64_t> worst;
  for (const Extent& value_of_case : variable.cases) {
    const std::optional<int64_t> low = replaced(value_of_case, 1);
    if (!low) return best;
    worst = worst ? std::min(*worst, *low) : *low;
  }
  if (worst && (!best || *worst > *best)) best = worst;
  return best;
}

std::optional<int64_t> IndexProver::Low(const Extent& value) const {
  int budget = kBudget;
  return Low(value, INT64_MAX, budget, /*facts=*/0);
}

std::optional<int64_t> IndexProver::High(const Extent& value) const {
  const std::optional<int64_t> negated = Low(Extent(0) - value);
  if (!negated || *negated == INT64_MIN) return std::nullopt;
  return -*negated;
}

bool IndexProver::NonNegative(const Extent& value) const {
  constexpr int kDeepest = 3;
  int budget = kBudget;
  if (Low(value, 0, budget, kMostFacts).value_or(-1) >= 0) return true;
  const bool facts = std::any_of(facts_.begin(), facts_.end(), [](const Fact& fact) { return fact.id < 0; });
  return facts && ByFacts(value, kDeepest, budget);
}

bool IndexProver::ByFacts(const Extent& value, int depth, int& budget) const {
  if (depth == 0) return false;
  // Of N - 1 - max(0, e) the one case needs the fact N >= 1, and the other does not.
  for (Id id = size(); id-- > 0;) {
    const Info& variable = variables_[id];
    const Extent name = Extent::Symbol(variable.name);
    for (const Extent::Term& term : value.terms()) {
      const bool cases = term.coefficient > 0 ? variable.cases_low : variable.cases_high;
      if (term.symbols != name.terms()[0].symbols || !cases) continue;
      return std::all_of(variable.cases.begin(), variable.cases.end(), [&](const Extent& one) {
        const std::optional<Extent> product = CheckedMultiply(one - name, Extent(term.coefficient));
        const std::optional<Extent> put = product ? CheckedAdd(value, *product) : std::nullopt;
        return put && (Low(*put, 0, budget, kMostFacts).value_or(-1) >= 0 || ByFacts(*put, depth - 1, budget));
      });
    }
  }
  return false;
}

bool IndexProver::AtMost(const Extent& a, const Extent& b) const {
  const std::optional<Extent> difference = CheckedSubtract(b, a);
  return difference && NonNegative(*difference);
}

bool IndexProver::MultipleOf(const Extent& value, int64_t divisor) {
  for (const Extent::Term& term : value.terms()) {
    if (term.coefficient % divisor != 0) return false;
  }
  return true;
}

void IndexProver::SetFunctionOf(Id id, std::vector<Extent> arguments) {
  variables_[id].arguments = std::move(arguments);
}

std::map<std::string, Extent> IndexProver::Clone(Id first, const std::vector<Id>& shared, Id pinned, int direction) {
  std::map<std::string, Extent> names;
  const Id end = size();
  for (Id id = first; id < end; ++id) {
    if (std::find(shared.begin(), shared.end(), id) != shared.end()) continue;
    const std::vector<Extent>& arguments = variables_[id].arguments;
    auto is_copied = [&](const Extent& argument) { return Rename(argument, names) != argument; };
    if (!arguments.empty() && std::none_of(arguments.begin(), arguments.end(), is_copied)) continue;
    const Info original = variables_[id];  // a copy: Add below may move the vector
    const Id copy = AddFresh(original.name);
    for (const Bound& bound : original.low) SetLow(copy, Rename(bound.value, names), bound.scale);
    for (const Bound& bound : original.high) SetHigh(copy, Rename(bound.value, names), bound.scale);
    std::vector<Extent> cases, of;
    for (const Extent& value : original.arguments) of.push_back(Rename(value, names));
    SetFunctionOf(copy, std::move(of));
    for (const Extent& value : original.cases) cases.push_back(Rename(value, names));
    SetCases(copy, std::move(cases), original.cases_low, original.cases_high);
    if (id == pinned) {
      if (direction > 0)
        SetLow(copy, Extent::Symbol(original.name) + 1);
      else
        SetHigh(copy, Extent::Symbol(original.name) - 1);
    }
    names[original.name] = Variable(copy);
  }
  return names;
}

void IndexProver::PushRoom(Id pinned, int direction) {
  const Extent next = Variable(pinned) + direction;
  const std::vector<Bound> bounds = direction > 0 ? variables_[pinned].high : variables_[pinned].low;
  for (const Bound& bound : bounds) {
    if (bound.value.is_constant()) PushFact((bound.value - next * bound.scale) * direction);
  }
}

Extent IndexProver::Rename(const Extent& value, const std::map<std::string, Extent>& names) {
  const auto renamed = [&](const std::string& symbol) { return names.contains(symbol); };
  if (std::ranges::none_of(value.terms(), [&](const auto& term) { return std::ranges::any_of(term.symbols, renamed); }))
    return value;  // most are, and building one anew takes many small steps
  Extent result;
  for (const Extent::Term& term : value.terms()) {
    Extent product(term.coefficient);
    for (const std::string& symbol : term.symbols) {
      auto it = names.find(symbol);
      product = product * (it == names.end() ? Extent::Symbol(symbol) : it->second);
    }
    result = result + product;
  }
  return result;
}

}  // namespace quern::kir
