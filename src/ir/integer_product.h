// Products of bytes that stay in integers: sums of (a - zero) (b - zero) in i32, and the products of what two
// DequantizeLinear make of bytes, which are such a sum times two scales.
//
//   %4 = DequantizeLinear(%0, %1, %2)            %4 = MatMul(%0, %3) : i32[S, 80]
//   %5 = DequantizeLinear(%3, %6) {axis = 1}  => %5 = Sub(%4, zero * sums of columns of %3)
//   %7 = MatMul(%4, %5) : f32[S, 80]             %7 = Mul(Cast(%5) {to = f32}, Mul(%1, %6))
#pragma once

#include <optional>
#include <vector>

#include "ir/composite.h"
#include "ir/window.h"

namespace quern::ir {

// What bytes have where the number that they stand for is 0.
struct ZeroPoint {
  std::optional<Value> value = {};                 // a number, or one for each row or column; none: 0
  std::optional<std::vector<int64_t>> known = {};  // the same, where it is known before anything runs

  bool IsZero() const;
};

// The zero point of values of `dtype` that an attribute says.
ZeroPoint KnownZero(Expansion& e, int64_t zero, DType dtype);

// The sums of a product of bytes, a [.., M, K] by b [.., K, N], or [.., N, K] where `rows`: i32[.., M, N]. Zero points
// are a number, or [M] of a and [N] of b.
Value ProductOfBytes(Expansion& e, Value a, const ZeroPoint& a_zero, Value b, const ZeroPoint& b_zero,
                     bool rows = false);
// The sums of a convolution of bytes, x [N, C, s..] by w [M, C / groups, k..] of known extents: i32[N, M, places..].
// Padding is the zero point of x, a number; that of w is a number, or [M]. `groups` divide M.
Value ConvolutionOfBytes(Expansion& e, Value x, const ZeroPoint& x_zero, Value w, const ZeroPoint& w_zero,
                         const Window& window, int64_t groups);

// What takes the place of `node`, a MatMul or Conv over values of `graph`, where both operands are what
// DequantizeLinear makes of bytes with scales that a sum over K may be multiplied by: one of the first operand, one or
// one for each column or channel of the second. Nothing for any other node.
StatusOr<std::optional<Value>> MakeIntegerProduct(Graph& graph, const Node& node, int origin);

}  // namespace quern::ir
