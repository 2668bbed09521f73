// Sums of several lines of results at a time, which share most of what they read. Of a depthwise convolution of 3 x 3,
// x the image and w the weights, line q + 1 reads two of the three lines of the image that line q does:
//
//   let a0_0 = w[0] * x[q, c]                        line q of the image, for line q of the results
//   let a0_1 = a0_0 + w[1] * x[q, c + 1]
//   let a0_2 = ..
//   let a0_3 = a0_2 + w[3] * x[q + 1, c]             line q + 1, for both
//   let a1_0 = w[0] * x[q + 1, c]
//   ..
//
// What two lines read is one expression, which ShareValues gives a name: so terms come in the order of the image.
#pragma once

#include <vector>

#include "kir/build.h"

namespace quern::codegen {

// A product of the sum of line `line`; terms of one `place` are beside each other, those of smaller ones before.
struct LineTerm {
  int64_t place;
  int line;
  kir::ExprRef left, right;
};

// Appends to `block` what the sums of `lines` lines take, and returns those. Each is in the order of its places, and of
// the terms of one place that of `terms`.
std::vector<kir::ExprRef> SumLines(const std::vector<LineTerm>& terms, int lines, kir::Block& block);

}  // namespace quern::codegen
