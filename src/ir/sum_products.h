// The reference and the magnitude of an op whose results are sums of products: `Sums` is a struct with
//
//   template <typename Term> static void Run(RefContext& context, const Term& term);
//
// which writes to each result the sum of term(x, w) over its factors x and w, rounded to the result's dtype.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/op.h"

namespace quern::ir {

template <typename Sums>
Status ReferenceOfProducts(RefContext& context) {
  Sums::Run(context, [](double x, double w) { return x * w; });
  return absl::OkStatus();
}

template <typename Sums>
Status MagnitudeOfProducts(RefContext& context) {
  Sums::Run(context, [](double x, double w) { return std::fabs(x * w); });
  return absl::OkStatus();
}

// The magnitude of an op of which some kernels multiply by padding, and others leave it out: an infinity times 0 is NaN
// in the ones and nothing in the others. So where one of the first two operands that meets padding has an element that
// is not finite, results may be anything.
template <typename Sums>
Status MagnitudeBesidePadding(RefContext& context, std::array<bool, 2> meets_padding) {
  for (size_t o = 0; o < meets_padding.size(); ++o) {
    const std::vector<double>& factors = context.operands[o]->data;
    if (!meets_padding[o] || std::ranges::all_of(factors, [](double value) { return std::isfinite(value); })) continue;
    std::ranges::fill(context.results[0].data, std::numeric_limits<double>::infinity());
    return absl::OkStatus();
  }
  return MagnitudeOfProducts<Sums>(context);
}

// Of an op that multiplies integers too, exactly: `Terms` is a struct with
//
//   template <typename Visit> static void ForEach(RefContext& context, const Visit& visit);
//
// which calls visit(where the result is, where its factors are in operands 0 and 1) for each term.
template <typename Terms>
struct SumsOf {
  template <typename Term>
  static void Run(RefContext& context, const Term& term) {
    const RefTensor &a = *context.operands[0], &b = *context.operands[1];
    RefTensor& y = context.results[0];
    Terms::ForEach(context, [&](int64_t at, int64_t x, int64_t w) { y.data[at] += term(a.data[x], b.data[w]); });
    for (double& out : y.data) out = RoundTo(y.dtype, out);
  }
};

template <typename Terms>
Status ReferenceOfTerms(RefContext& context) {
  const RefTensor &a = *context.operands[0], &b = *context.operands[1];
  RefTensor& y = context.results[0];
  if (!IsInteger(y.dtype)) return ReferenceOfProducts<SumsOf<Terms>>(context);
  Terms::ForEach(context, [&](int64_t at, int64_t x, int64_t w) {
    y.SetInteger(at, y.Integer(at) + Times(a.Integer(x), b.Integer(w)));
  });
  return absl::OkStatus();
}

}  // namespace quern::ir
