// Integers for floats, by a scale: what QuantizeLinear and DequantizeLinear have in common. A scale stands for all of
// the tensor, for each index along an axis, or for each run of `block` elements along it, the last of which may be
// short.
#pragma once

#include <optional>
#include <vector>

#include "ir/composite.h"
#include "ir/identity.h"
#include "ir/op.h"

namespace quern::ir {

// Whether the node is a QuantizeLinear, or a DequantizeLinear.
bool IsQuantizeLinear(const Node& node);
bool IsDequantizeLinear(const Node& node);

// `axis` and `block`.
std::vector<AttrDef> ScaleAttributes();
// OpDef::channels_last of both ops.
std::optional<Attributes> ScalesChannelsLast(const Node& node, std::span<const TensorType> operands);
// The scale (operand 1) and a zero point (operand 2, where there is one) against x (operand 0).
Status CheckScales(const InferContext& context);
// The scale or zero point `value` with an element for each of x that it is for, or that broadcasts to them.
Value ScaleOf(Expansion& e, Value value, const TensorType& x, const Attributes& attributes);
// The quotient as kernels have it, which a rounding follows: in f64, or in f32 of everything else.
double QuotientIn(DType dtype, double x, double scale);
// Where the scale of the element of x at `index` lies.
int64_t ScaleAt(const RefTensor& scale, const std::vector<int64_t>& index, const Attributes& attributes);

// A number, or one for each index along `axis`, with a zero point or none: how bytes of `dtype` stand for floats.
struct LinearForm {
  Value scale;
  std::optional<Value> zero = {};
  int64_t axis = 0;
  DType dtype = DType::kU8;
};
// The nodes of what an expanded DequantizeLinear makes of bytes, last first, where `n` is the last of them: a Cast, a
// difference from a zero point, a Cast and a factor, as many as there are; `once` says of each node whether it is
// computed once per binding, as what stands beside the bytes is. None where it is anything else.
std::vector<int> DequantisedBy(const Graph& graph, int n, const std::vector<bool>& once);
// x in that form, and the floats that bytes in it are.
StatusOr<Value> MakeQuantized(const MakeNode& make, Value x, const LinearForm& form);
StatusOr<Value> MakeDequantized(const MakeNode& make, Value bytes, const LinearForm& form);
// The form that a QuantizeLinear or DequantizeLinear without blocks has; nothing of any other node.
std::optional<LinearForm> LinearFormOf(const Graph& graph, const Node& node);
// The 256 bytes of a dtype in the order of their bits.
StatusOr<Value> MakeAllBytes(const MakeNode& make, DType dtype);
// What a table, [256] in that order, has for each of `bytes`.
StatusOr<Value> MakeLookedUp(const MakeNode& make, Value table, Value bytes);
// max |x| / most over all of x, f32, or for each index along `axis`; 1 where that is 0.
Value SymmetricScale(Expansion& e, Value x, std::optional<int64_t> axis, int64_t most);
// The larger of bytes and a number of their dtype, and the smaller.
StatusOr<Value> MakeAtLeast(const MakeNode& make, Value x, Value least);
StatusOr<Value> MakeAtMost(const MakeNode& make, Value x, Value most);

}  // namespace quern::ir
