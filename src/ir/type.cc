#include "ir/type.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quern::ir {

Extent TensorType::elements() const {
  Extent product(1);
  for (const Extent& dim : dims) product = product * dim;
  return product;
}

std::string ToString(const std::vector<Extent>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", dims[i].ToString());
  return text + "]";
}

std::string TensorType::ToString() const { return absl::StrCat(std::string(Name(dtype)), ir::ToString(dims)); }

StatusOr<TensorType> TensorType::Parse(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || text.empty() || text.back() != ']') {
    return absl::InvalidArgumentError(absl::StrFormat("bad tensor type \"%s\"", std::string(text)));
  }
  const std::optional<DType> dtype = DTypeFromName(text.substr(0, open));
  if (!dtype) {
    return absl::InvalidArgumentError(absl::StrFormat("unknown dtype in tensor type \"%s\"", std::string(text)));
  }
  TensorType type{*dtype, {}};
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    QUERN_ASSIGN(Extent dim, Extent::Parse(rest.substr(0, comma)));
    type.dims.push_back(std::move(dim));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
    QUERN_RETURN_IF_ERROR(CheckExtents(type.dims));
    if (rest.empty()) return absl::InvalidArgumentError(absl::StrFormat("bad tensor type \"%s\"", std::string(text)));
  }
  QUERN_RETURN_IF_ERROR(CheckExtents(type.dims));
  return type;
}

Status CheckExtents(std::span<const Extent> extents) {
  if (extents.size() > kMostDims) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%u dimensions are more than the %u a tensor may have", extents.size(), kMostDims));
  }
  size_t terms = 1;
  for (const Extent& extent : extents) {
    terms *= std::max<size_t>(1, extent.terms().size());
    const bool long_term = std::any_of(extent.terms().begin(), extent.terms().end(),
                                       [](const Extent::Term& term) { return term.symbols.size() > kMostFactors; });
    if (terms > kMostTerms || long_term)
      return absl::InvalidArgumentError("the product of the sizes has too many terms of symbols");
  }
  return absl::OkStatus();
}

bool ExtentConstraint::Always(const SymbolRanges& ranges) const {
  return relation == SizeRelation::kEqual ? left == right : left.ProvablyAtLeast(right, ranges);
}

bool ExtentConstraint::Never(const SymbolRanges& ranges) const {
  const std::optional<int64_t> high = difference().UpperBound(ranges);
  if (high && *high < 0) return true;
  if (relation != SizeRelation::kEqual) return false;
  const Extent between = difference();
  if (between.LowerBound(ranges).value_or(0) > 0) return true;
  // 66*B*S is no 16384.
  int64_t number = 0;
  for (const Extent::Term& term : between.terms()) {
    if (term.overflowed()) return false;
    if (term.symbols.empty()) number = term.coefficient;
  }
  const int64_t common = between.CommonFactor();
  return common != 0 && number % common != 0;
}

std::string ExtentConstraint::ToString() const {
  return absl::StrCat(left.ToString(), relation == SizeRelation::kEqual ? " == " : " >= ", right.ToString());
}

void AddConstraints(std::vector<ExtentConstraint>& constraints, const std::vector<ExtentConstraint>& more) {
  for (const ExtentConstraint& constraint : more) {
    if (const Extent difference = constraint.difference();
        difference.is_constant() && constraint.Holds(difference.constant()))
      continue;
    if (std::find(constraints.begin(), constraints.end(), constraint) == constraints.end())
      constraints.push_back(constraint);
  }
}

StatusOr<std::vector<Extent>> BroadcastDims(const std::vector<Extent>& a, const std::vector<Extent>& b,
                                            std::vector<ExtentConstraint>* constraints) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<Extent> result(rank);
  const Extent one(1);
  for (size_t i = 0; i < rank; ++i) {
    const Extent& x = i + a.size() >= rank ? a[i + a.size() - rank] : one;
    const Extent& y = i + b.size() >= rank ? b[i + b.size() - rank] : one;
    if (x == y || y == one) {
      result[i] = x;
    } else if (x == one) {
      result[i] = y;
    } else if (x.is_constant() && y.is_constant()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("extents %s and %s do not broadcast", x.ToString(), y.ToString()));
    } else {
      result[i] = x.is_constant() ? x : y;
      if (!y.is_constant() && !x.is_constant()) result[i] = x;
      constraints->push_back({x, y});
    }
  }
  return result;
}

}  // namespace quern::ir
