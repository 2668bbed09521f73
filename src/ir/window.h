// What Window, Conv, ConvTranspose and Pool have in common: how a window of `kernel` slides over spatial dimensions.
#pragma once

#include <span>
#include <vector>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// By spatial dimension.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, low, high;  // the last two: padding before and after

  // From the first element that a window reads along a dimension to behind the last one.
  int64_t Span(size_t d) const { return dilations[d] * (kernel[d] - 1) + 1; }
  bool IsPadded() const;
  // Whether each window is one element, and there is one for each element.
  bool IsTrivial() const;
};

// `strides`, `pads` (before each dimension, then after each) and `dilations`, none of which need be given: 1, 0 and 1.
std::vector<AttrDef> WindowAttributes(std::vector<AttrDef> others);
// Of a node whose attributes have been checked by WindowPlaces, or are about to be.
Window WindowOf(const Attributes& attributes, std::span<const int64_t> kernel);
// Of a convolution with weights [.., .., k..].
Window WindowOf(const Attributes& attributes, const TensorType& weights);
// What x [N, C, s..], w (`form` of it, for errors) and b of a convolution have in common: 1 to 3 spatial dimensions,
// weights of known extents, groups that divide the first of them, and a bias of `rows` groups' rows.
Status CheckConvolution(const InferContext& context, const char* form, const Extent& rows);
// [M] as it is added to [N, M, o..] of that rank.
Value BiasOfChannels(Expansion& e, Value bias, int rank);
// The attributes that say the same, for another op of these.
Attributes AttributesOf(const Window& window);
// How many places a window has along each of `dims`, those of `operand`: floor((in + low + high - span) / stride) + 1.
// Errors: attributes that are no numbers for these dimensions; windows that fit nowhere.
StatusOr<std::vector<Extent>> WindowPlaces(const InferContext& context, int operand, std::span<const Extent> dims,
                                           const Window& window);
// The first part of that: that strides, pads, dilations and kernel are what they may be.
Status CheckWindow(const InferContext& context, size_t spatial, const Window& window);

}  // namespace quern::ir
