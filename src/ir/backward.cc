#include "ir/backward.h"

#include <numeric>

namespace quern::ir {

Term Term::Like(double number) const {
  if (!e->ok()) return *this;
  return {*e, e->Scalar(number, e->type(value).dtype)};
}

Term Term::Times(const Term& b, bool rows) const {
  return {*e, e->Add("MatMul", {value, b.value}, {{"transpose_b", rows}})};
}

Term Term::Turned() const {
  if (!e->ok()) return *this;
  std::vector<int64_t> perm(e->type(value).dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
  return Transposed(std::move(perm));
}

Term Term::Choose(const Term& condition, const Term& a, const Term& b) {
  return {*a.e, a.e->Add("Where", {condition.value, a.value, b.value})};
}

Value IntegerOf(Expansion& e, int64_t number) {
  return e.Stored(e.Scalar(static_cast<double>(number), DType::kF64), DType::kI64);
}

}  // namespace quern::ir
