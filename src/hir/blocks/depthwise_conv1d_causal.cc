// DepthwiseConv1dCausal: y[b, s, c] = sum_k w[c, 0, 0, k] P[b, s + k, c], where P is left_pad followed by x along S. It
// is a correlation: tap K - 1 meets the current token.
//
//   x [B, S, C], w [C, 1, 1, K], left_pad [B, K-1, C]; results y [B, S, C] and the state, the last K - 1 rows of P.
//
// A bias [C] is added to y, and the activation is of that. With one tap y is x by channel, and the state has no rows.
// left_pad is zeros for a prompt and the state of the step before for decoding. Lowered to K shifted products, which
// fuse into one kernel; S may be symbolic.

#include "absl/strings/str_cat.h"
#include "hir/linear.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const TensorType &x = c.operand(0), &w = c.operand(1);
  if (x.rank() != 3) return c.ShapeError(0, "[B, S, C]");
  const Extent channels = x.dims[2];
  if (w.rank() != 4 || !w.dims[3].is_constant() || w.dims[3].constant() < 1) {
    return c.ShapeError(1, absl::StrCat("[", channels.ToString(), ", 1, 1, K] with K of 1 or more"));
  }
  QUERN_RETURN_IF_ERROR(c.ExpectDims(1, {channels, Extent(1), Extent(1), w.dims[3]}));
  const TensorType state{x.dtype, {x.dims[0], w.dims[3] - Extent(1), channels}};
  QUERN_RETURN_IF_ERROR(c.ExpectDims(2, state.dims));
  QUERN_RETURN_IF_ERROR(c.ExpectDims(3, {channels}));
  QUERN_RETURN_IF_ERROR(CheckActivation(c));
  for (const int operand : {1, 2, 3}) QUERN_RETURN_IF_ERROR(c.ExpectDType(operand, x.dtype));
  return std::vector<TensorType>{x, state};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  const TensorType x = c.type(c.inputs[0]), w = c.type(c.inputs[1]);
  const int64_t taps = w.dims[3].constant();
  auto narrow = [&](ir::Value value, int64_t axis, Extent start, Extent length) {
    return c.Add("Narrow", {value},
                 {{"axis", axis}, {"start", std::vector<Extent>{start}}, {"length", std::vector<Extent>{length}}});
  };
  const ir::Value padded =
      taps == 1 ? c.inputs[0] : c.Add("Concat", {c.inputs[2], c.inputs[0]}, {{"axis", int64_t{1}}});
  const ir::Value weights = c.Reshape(c.inputs[1], {x.dims[2], Extent(taps)});
  ir::Value y;
  for (int64_t k = 0; k < taps; ++k) {
    const ir::Value tap = c.Reshape(narrow(weights, 1, Extent(k), Extent(1)), {x.dims[2]});
    const ir::Value term = c.Add("Mul", {narrow(padded, 1, Extent(k), x.dims[1]), tap});
    y = k == 0 ? term : c.Add("Add", {y, term});
  }
  if (c.has(3) && !c.IsNothing(c.inputs[3])) y = c.Add("Add", {y, c.inputs[3]});
  if (const std::string& act = c.attributes().String("act"); !act.empty()) y = c.Add(act, {y});
  if (taps == 1) return c.Finish({y, c.inputs[2]});
  return c.Finish({y, narrow(padded, 1, x.dims[1], Extent(taps - 1))});
}

}  // namespace

const BlockDef& Block_depthwise_conv1d_causal() {
  static const BlockDef* const block = Make({
      .name = "DepthwiseConv1dCausal",
      .doc = "causal convolution of each channel with its own taps, and the state for the next step",
      .label = "depthwise_conv1d_causal",
      .operands = {{.name = "x", .shape = "[B, S, C]"},
                   {.name = "w", .shape = "[C, 1, 1, K]"},
                   {.name = "left_pad", .shape = "[B, K - 1, C]"},
                   {.name = "b", .optional = true, .shape = "[C]"}},
      .attributes = {ActivationAttribute()},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
