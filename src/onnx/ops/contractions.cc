// Products of matrices.

#include <map>

#include "onnx/products.h"
#include "onnx/table.h"

namespace quern::onnx {

Value MatMulOf(Call& c, Value a, Value b) {
  const bool row = c.rank(a) == 1, column = c.rank(b) == 1;
  if (row) a = c.Reshape(a, {Extent(1), c.dim(a, 0)});
  if (column) b = c.Reshape(b, {c.dim(b, 0), Extent(1)});
  const Value product = c.Add("MatMul", {a, b});
  if (!row && !column) return product;
  Extents dims = c.type(product).dims;
  if (column && !dims.empty()) dims.pop_back();
  if (row && dims.size() >= (column ? 1 : 2)) dims.erase(dims.end() - (column ? 1 : 2));
  return c.Reshape(product, dims);
}

namespace {

void MatMul(Call& c) { c.Return(MatMulOf(c, c.x(0), c.x(1))); }

void Gemm(Call& c) {
  Value a = c.x(0), b = c.x(1);
  const double alpha = c.Float("alpha", 1), beta = c.Float("beta", 1);
  if (c.Int("transA", 0) != 0) a = c.Transpose(a, {1, 0});
  Value y = c.Add("MatMul", {a, b}, {{"transpose_b", c.Int("transB", 0) != 0}});
  if (alpha != 1) y = c.Add("Mul", {y, c.Like(alpha, y)});
  if (c.Has(2)) {
    Value bias = c.x(2);
    if (beta != 1) bias = c.Add("Mul", {bias, c.Like(beta, bias)});
    y = c.Add("Add", {y, bias});
  }
  c.Return(y);
}

// Einsum of one operand or more: each letter is an axis of all, and those that the result lacks are summed. Products of
// two are DotGeneral; a letter that one operand has twice is its diagonal.
struct Term {
  Value value;
  std::string letters;
};

// The elements whose places along axes i and j, which are of one extent, are the same, along axis i.
Value Diagonal(Call& c, Value x, size_t i, size_t j) {
  Extents dims = c.type(x).dims;
  if (dims[i].is_constant() && dims[j].is_constant() && dims[i] != dims[j])
    c.Fail(absl::InvalidArgumentError("a letter that an operand has twice is of two sizes"));
  const auto axis = static_cast<int64_t>(j);
  if (dims[j] == Extent(0)) return c.Reduce("sum", x, {axis}, false);
  dims[j] = Extent(1);
  const Value place = c.Add("Iota", {}, {{"shape", dims}, {"axis", static_cast<int64_t>(i)}, {"dtype", DType::kI64}});
  dims.erase(dims.begin() + axis);
  return c.Reshape(c.Add("GatherElements", {x, place}, {{"axis", axis}}), dims);
}

void Einsum(Call& c) {
  std::string equation;
  for (const char letter : c.Str("equation", "")) {
    if (letter != ' ') equation += letter;
  }
  const size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow), right = arrow == std::string::npos ? "" : equation.substr(arrow + 2);
  std::vector<Term> terms;
  for (size_t at = 0; at <= left.size() && static_cast<int>(terms.size()) < c.inputs();) {
    const size_t comma = std::min(left.find(',', at), left.size());
    terms.push_back({c.x(static_cast<int>(terms.size())), left.substr(at, comma - at)});
    at = comma + 1;
  }
  // The dimensions of an ellipsis are digits, which no equation has.
  size_t most = 0;
  for (Term& term : terms) {
    const size_t dots = term.letters.find("...");
    if (dots == std::string::npos) continue;
    const size_t count = c.rank(term.value) + 3 - term.letters.size();
    if (count > 8) return c.Fail(absl::InvalidArgumentError("the ellipsis does not fit the operand"));
    std::string names;
    for (size_t i = 0; i < count; ++i) names += static_cast<char>('0' + 9 - (count - 1 - i));
    term.letters.replace(dots, 3, names);
    most = std::max(most, count);
  }
  std::string ellipsis;
  for (size_t i = 0; i < most; ++i) ellipsis += static_cast<char>('0' + 9 - (most - 1 - i));
  std::map<char, int> uses;
  for (const Term& term : terms) {
    if (static_cast<int>(term.letters.size()) != c.rank(term.value))
      return c.Fail(absl::InvalidArgumentError(absl::StrFormat("\"%s\" does not fit its operands", equation)));
    for (const char letter : term.letters) ++uses[letter];
  }
  if (arrow == std::string::npos) {
    right = ellipsis;
    for (const auto& [letter, count] : uses) {
      if (count == 1 && (letter < '0' || letter > '9')) right += letter;
    }
  } else if (const size_t dots = right.find("..."); dots != std::string::npos) {
    right.replace(dots, 3, ellipsis);
  }
  for (Term& term : terms) {
    for (size_t i = 0; i < term.letters.size(); ++i) {
      for (size_t j = i + 1; j < term.letters.size();) {
        if (term.letters[i] != term.letters[j]) {
          ++j;
          continue;
        }
        term.value = Diagonal(c, term.value, i, j);
        term.letters.erase(j, 1);
      }
    }
  }
  // What only one operand has, and the result lacks, is summed first.
  const auto needed = [&](char letter, size_t from) {
    if (right.find(letter) != std::string::npos) return true;
    for (size_t t = from; t < terms.size(); ++t) {
      if (terms[t].letters.find(letter) != std::string::npos) return true;
    }
    return false;
  };
  const auto sum = [&](Term& term, const auto& kept) {
    Ints axes;
    std::string letters;
    for (size_t i = 0; i < term.letters.size(); ++i) {
      if (kept(term.letters[i]))
        letters += term.letters[i];
      else
        axes.push_back(static_cast<int64_t>(i));
    }
    if (!axes.empty()) term.value = c.Reduce("sum", term.value, axes, false);
    term.letters = letters;
  };
  if (terms.empty()) return c.Fail(absl::InvalidArgumentError("there is nothing to sum"));
  Term all = terms[0];
  for (size_t t = 1; t < terms.size(); ++t) {
    Term next = terms[t];
    sum(all, [&](char letter) { return needed(letter, t); });
    sum(next, [&](char letter) { return needed(letter, t + 1) || all.letters.find(letter) != std::string::npos; });
    Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
    std::string batch, free_left, free_right;
    for (size_t i = 0; i < all.letters.size(); ++i) {
      const size_t j = next.letters.find(all.letters[i]);
      if (j == std::string::npos) {
        free_left += all.letters[i];
      } else if (needed(all.letters[i], t + 1)) {
        lhs_batch.push_back(static_cast<int64_t>(i));
        rhs_batch.push_back(static_cast<int64_t>(j));
        batch += all.letters[i];
      } else {
        lhs_contract.push_back(static_cast<int64_t>(i));
        rhs_contract.push_back(static_cast<int64_t>(j));
      }
    }
    for (const char letter : next.letters) {
      if (all.letters.find(letter) == std::string::npos) free_right += letter;
    }
    const DType dtype = c.dtype(all.value);
    all.value = c.Add("DotGeneral", {all.value, next.value},
                      {{"lhs_contract", lhs_contract},
                       {"rhs_contract", rhs_contract},
                       {"lhs_batch", lhs_batch},
                       {"rhs_batch", rhs_batch}});
    all.value = c.Cast(all.value, dtype);
    all.letters = batch + free_left + free_right;
  }
  sum(all, [&](char letter) { return right.find(letter) != std::string::npos; });
  Ints perm;
  for (const char letter : right) {
    const size_t at = all.letters.find(letter);
    if (at == std::string::npos)
      return c.Fail(absl::InvalidArgumentError(absl::StrFormat("nothing has the axis %c", letter)));
    perm.push_back(static_cast<int64_t>(at));
  }
  c.Return(c.Transpose(all.value, perm));
}

void Det(Call& c) { c.Return(c.Add("Det", {c.x(0)})); }

constexpr Importer kRows[] = {
    {"Det", Det},
    {"Einsum", Einsum},
    {"Gemm", Gemm, "", 2},
    {"MatMul", MatMul, "", 2},
};

}  // namespace

std::span<const Importer> ContractionImporters() { return kRows; }

}  // namespace quern::onnx
