// What Window, Conv, ConvTranspose and Pool have in common: how a window of `kernel` slides over spatial dimensions.
#pragma once

#include <span>
#include <vector>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// Whether the node is a Conv, or one with an activation behind it; a Window.
bool IsConvolution(const Node& node);
const OpDef* FindConvolution();  // Conv
bool IsWindow(const Node& node);

// What a kernel, stride, pad or dilation may be: products of them stay far from 2^63.
inline constexpr int64_t kMostOfWindow = 1 << 20;

// By spatial dimension.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, low, high;  // the last two: padding before and after

  // From the first element that a window reads along a dimension to behind the last one.
  int64_t Span(size_t d) const { return dilations[d] * (kernel[d] - 1) + 1; }
  bool IsPadded() const;
  // Whether each window is one element, and there is one for each element.
  bool IsTrivial() const;
};

// The axes of an image x [N, C, s..], or where the attribute channels_last says so [N, s.., C].
struct ImageAxes {
  size_t channels, spatial;  // `spatial`: the first of them

  ImageAxes(const Attributes& attributes, size_t rank);
};
// Where dimension `axis` of an image [N, C, s..] of that rank is with channels last.
int64_t AxisWithChannelsLast(int64_t axis, size_t rank);
// OpDef::channels_last of an op whose attribute `axis` is of operand 0, and says the rest.
std::optional<Attributes> AxisChannelsLast(const Node& node, std::span<const TensorType> operands);
// The attribute `channels_last`, and `node`'s attributes with it: what an op that has it is to images with channels
// last.
AttrDef ChannelsLastAttribute();
Attributes WithChannelsLast(const Node& node);
// An image with its channels behind the spatial dimensions, and before them.
Value ChannelsToLast(Expansion& e, Value x);
Value ChannelsToFirst(Expansion& e, Value x);
// The dimensions that either has, as those of the other: perm[d] is the dimension of it that becomes d.
std::vector<int64_t> LastFromFirst(size_t rank);
std::vector<int64_t> FirstFromLast(size_t rank);
// The op Window: [.., k.., o..] of the last dimensions of x; `value` outside of it.
Value Windows(Expansion& e, Value x, const Window& window, double value);
// Windows of x [N, s.., C] over its spatial dimensions, channel by channel: [N, k.., o.., C]; `value` outside of x.
Value WindowsBesideChannels(Expansion& e, Value x, const Window& window, double value);
// How many dimensions those have at the most.
inline constexpr int kMostSpatialBesideChannels = 2;
// Windows of x [N, s.., C] that take all channels of each place: [N, o.., k.. C], one row of k.. C elements for each;
// `value` outside of x.
Value WindowsOfChannels(Expansion& e, Value x, const Window& window, double value);

// `strides`, `pads` (before each dimension, then after each) and `dilations`, none of which need be given: 1, 0 and 1.
std::vector<AttrDef> WindowAttributes(std::vector<AttrDef> others);
// Of a node whose attributes have been checked by WindowPlaces, or are about to be.
Window WindowOf(const Attributes& attributes, std::span<const int64_t> kernel);
// The same of a pool, with as much padding behind it as its `places` need where the attribute `ceil` lets windows reach
// past the end.
Window WindowReaching(const Attributes& attributes, std::span<const Extent> dims, std::span<const Extent> places);
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
