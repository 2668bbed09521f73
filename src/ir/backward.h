// Helpers of the ops that are gradients: arithmetic on values of a graph in C++'s own notation, and what softmax
// cross-entropy, norms and attention go back by.
//
//   Term x(e, input);
//   const Term s = x.Call("Sigmoid");
//   return e.Finish({(s * (1 + x * (1 - s)) * dy).value});
#pragma once

#include <vector>

#include "ir/composite.h"

namespace quern::ir {

// A float value and the expansion that it is part of.
struct Term {
  Expansion* e;
  Value value;

  Term(Expansion& expansion, Value v) : e(&expansion), value(v) {}
  // In f32 where it is of halves.
  static Term Wide(Expansion& e, Value v) { return {e, e.Wide(v)}; }

  Term Call(const char* op, Attributes attributes = {}) const {
    return {*e, e->Add(op, {value}, std::move(attributes))};
  }
  // The number in this one's dtype.
  Term Like(double number) const;
  // Folds over axes, which stay as ones.
  Term Sum(const std::vector<int64_t>& axes) const { return {*e, e->Reduced("sum", value, axes)}; }
  Term Mean(const std::vector<int64_t>& axes) const { return {*e, e->Reduced("mean", value, axes)}; }
  Term Sized(std::vector<Extent> dims) const { return {*e, e->Sized(value, std::move(dims))}; }
  Term Transposed(std::vector<int64_t> perm) const { return Call("Transpose", {{"perm", std::move(perm)}}); }
  // The product with `b`, or with its rows.
  Term Times(const Term& b, bool rows = false) const;
  // The last two dimensions exchanged.
  Term Turned() const;
  Term Join(const char* op, const Term& b) const { return {*e, e->Add(op, {value, b.value})}; }
  // condition ? a : b, of bools.
  static Term Choose(const Term& condition, const Term& a, const Term& b);
};

inline Term operator+(const Term& a, const Term& b) { return a.Join("Add", b); }
inline Term operator-(const Term& a, const Term& b) { return a.Join("Sub", b); }
inline Term operator*(const Term& a, const Term& b) { return a.Join("Mul", b); }
inline Term operator/(const Term& a, const Term& b) { return a.Join("Div", b); }
inline Term operator+(const Term& a, double b) { return a + a.Like(b); }
inline Term operator-(const Term& a, double b) { return a - a.Like(b); }
inline Term operator*(const Term& a, double b) { return a * a.Like(b); }
inline Term operator/(const Term& a, double b) { return a / a.Like(b); }
inline Term operator+(double a, const Term& b) { return b.Like(a) + b; }
inline Term operator-(double a, const Term& b) { return b.Like(a) - b; }
inline Term operator*(double a, const Term& b) { return b.Like(a) * b; }
inline Term operator/(double a, const Term& b) { return b.Like(a) / b; }
inline Term operator-(const Term& a) { return a.Call("Neg"); }

// An i64 number.
Value IntegerOf(Expansion& e, int64_t number);

}  // namespace quern::ir
