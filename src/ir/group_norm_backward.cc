#include "ir/group_norm_backward.h"

#include <algorithm>
#include <cmath>

#include "ir/backward.h"
#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr int kX = 0;

// Operands: x, gamma, dy of kInput; x, dy of kGamma; dy of kBeta, whose dims are those of x.
int DyOf(GroupNormGradient of) { return of == GroupNormGradient::kInput ? 2 : of == GroupNormGradient::kGamma ? 1 : 0; }

template <GroupNormGradient kOf>
StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[kX];
  if (x.rank() < 2 || x.rank() >= static_cast<int>(kMostDims))
    return context.ShapeError(kX, absl::StrFormat("[N, C, ..] of rank 2 to %u", kMostDims - 1));
  const std::vector<Extent> channels = {x.dims[1]};
  if (kOf == GroupNormGradient::kBeta) return std::vector<TensorType>{{x.dtype, channels}};
  const int64_t groups = context.attributes.Int("groups");
  if (groups < 1 || !x.dims[1].DividedBy(Extent(groups)))
    return context.AttributeError("groups", absl::StrFormat("a divisor of %s", x.dims[1].ToString()));
  if (kOf == GroupNormGradient::kInput && !context.Equal(context.operands[1].dims, channels))
    return context.ShapeError(1, ToString(channels));
  constexpr int dy = kOf == GroupNormGradient::kInput ? 2 : 1;
  if (!context.Equal(context.operands[dy].dims, x.dims)) return context.ShapeError(dy, ToString(x.dims));
  if (kOf == GroupNormGradient::kInput) return std::vector<TensorType>{x};
  return std::vector<TensorType>{{x.dtype, channels}};
}

template <GroupNormGradient kOf>
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent> dims = graph.type(inputs[kX]).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const Term dy = Term::Wide(e, inputs[DyOf(kOf)]);
  const auto by_channel = [&](const Term& terms) {
    std::vector<int64_t> others = {0};
    for (int64_t d = 2; d < rank; ++d) others.push_back(d);
    return e.Finish({e.Stored(terms.Sum(others).Sized({dims[1]}).value, node.results[0].dtype)});
  };
  if (kOf == GroupNormGradient::kBeta) return by_channel(dy);
  // [N, C, ..] as [N, groups, C / groups, ..], and means over what is behind the groups.
  const Extent groups(node.attributes.Int("groups"));
  std::vector<Extent> grouped = {dims[0], groups, *dims[1].DividedBy(groups)};
  grouped.insert(grouped.end(), dims.begin() + 2, dims.end());
  std::vector<int64_t> axes;
  for (int64_t d = 2; d <= rank; ++d) axes.push_back(d);
  const Term x = Term::Wide(e, inputs[kX]).Sized(grouped), centred = x - x.Mean(axes);
  const Term scale = ((centred * centred).Mean(axes) + node.attributes.Float("eps")).Call("Rsqrt");
  const Term normal = centred * scale;
  if (kOf == GroupNormGradient::kGamma) return by_channel(dy * normal.Sized(dims));
  const Term g = (dy * Term(e, ByChannel(e, inputs[1], static_cast<int>(rank)))).Sized(grouped);
  const Term dx = scale * (g - g.Mean(axes) - normal * (g * normal).Mean(axes));
  return e.Finish({e.Stored(dx.Sized(dims).value, node.results[0].dtype)});
}

// Of one image and group: the positions of its elements, the channel of each, what is normal, and the scale.
struct Group {
  std::vector<int64_t> places, channels;
  std::vector<double> normal;
  double scale = 1;
};

template <typename Visit>
void ForEachGroup(const RefTensor& x, const Attributes& attributes, const Visit& visit) {
  const int64_t groups = attributes.Int("groups"), each = x.dims[1] / groups;
  const int64_t inner = x.elements() == 0 ? 0 : x.elements() / (x.dims[0] * x.dims[1]);
  for (int64_t at = 0; at < x.dims[0] * groups && inner > 0; ++at) {
    Group group;
    double mean = 0, square = 0;
    const double n = static_cast<double>(each * inner);
    for (int64_t i = 0; i < each * inner; ++i) {
      group.places.push_back(at * each * inner + i);
      group.channels.push_back(at % groups * each + i / inner);
      mean += x.data[group.places.back()] / n;
    }
    for (const int64_t place : group.places) square += (x.data[place] - mean) * (x.data[place] - mean) / n;
    group.scale = 1 / std::sqrt(square + attributes.Float("eps"));
    for (const int64_t place : group.places) group.normal.push_back((x.data[place] - mean) * group.scale);
    visit(group);
  }
}

template <bool kSizes>
void InputGradient(RefContext& context) {
  const RefTensor &x = *context.operands[0], &gamma = *context.operands[1], &dy = *context.operands[2];
  RefTensor& dx = context.results[0];
  ForEachGroup(x, context.node.attributes, [&](const Group& group) {
    const size_t n = group.places.size();
    double mean = 0, along = 0, largest = 1;
    std::vector<double> g(n);
    for (size_t i = 0; i < n; ++i) {
      g[i] = gamma.data[group.channels[i]] * dy.data[group.places[i]];
      mean += (kSizes ? std::fabs(g[i]) : g[i]) / static_cast<double>(n);
      along += g[i] * group.normal[i] / static_cast<double>(n);
      largest = std::max({largest, std::fabs(group.normal[i]), std::fabs(x.data[group.places[i]]) * group.scale});
    }
    for (size_t i = 0; i < n; ++i) {
      // Of the terms by their size, as of LayerNormBackwardInput.
      dx.data[group.places[i]] = kSizes ? group.scale * (std::fabs(g[i]) + mean * (1 + 4 * largest * largest))
                                        : RoundTo(dx.dtype, group.scale * (g[i] - mean - group.normal[i] * along));
    }
  });
}

template <bool kSizes>
void GammaGradient(RefContext& context) {
  const RefTensor &x = *context.operands[0], &dy = *context.operands[1];
  RefTensor& sum = context.results[0];
  ForEachGroup(x, context.node.attributes, [&](const Group& group) {
    for (size_t i = 0; i < group.places.size(); ++i) {
      const double d = dy.data[group.places[i]], n = group.normal[i];
      sum.data[group.channels[i]] +=
          kSizes ? std::fabs(d) * (std::fabs(n) + 2 * std::fabs(x.data[group.places[i]]) * group.scale) : d * n;
    }
  });
}

template <bool kSizes>
void BetaGradient(RefContext& context) {
  const RefTensor& dy = *context.operands[0];
  RefTensor& sum = context.results[0];
  const int64_t channels = dy.dims[1];
  const int64_t inner = dy.elements() == 0 ? 1 : dy.elements() / (dy.dims[0] * channels);
  for (size_t i = 0; i < dy.data.size(); ++i)
    sum.data[static_cast<int64_t>(i) / inner % channels] += kSizes ? std::fabs(dy.data[i]) : dy.data[i];
}

template <GroupNormGradient kOf, bool kSizes>
Status Reference(RefContext& context) {
  switch (kOf) {
    case GroupNormGradient::kInput: InputGradient<kSizes>(context); break;
    case GroupNormGradient::kGamma: GammaGradient<kSizes>(context); break;
    case GroupNormGradient::kBeta: BetaGradient<kSizes>(context); break;
  }
  if (!kSizes && kOf != GroupNormGradient::kInput) {
    for (double& value : context.results[0].data) value = RoundTo(context.results[0].dtype, value);
  }
  return absl::OkStatus();
}

template <GroupNormGradient kOf>
OpDef Row() {
  return {.name = "",
          .doc = "",
          .kind = OpKind::kComposite,
          .infer = Infer<kOf>,
          .reference = Reference<kOf, false>,
          .expand = Expand<kOf>,
          .rtol = 2e-5,
          .magnitude = Reference<kOf, true>};
}

}  // namespace

const OpDef* GroupNormBackward(const char* name, const char* doc, GroupNormGradient of) {
  OpDef op = of == GroupNormGradient::kInput   ? Row<GroupNormGradient::kInput>()
             : of == GroupNormGradient::kGamma ? Row<GroupNormGradient::kGamma>()
                                               : Row<GroupNormGradient::kBeta>();
  op.name = name;
  op.doc = doc;
  const OperandDef x = {.name = "x", .kind = OperandKind::kFloat, .shape = "[N, C, ..]"},
                   gamma = {.name = "gamma", .kind = OperandKind::kFloat, .shape = "[C]"},
                   dy = {.name = "dy", .kind = OperandKind::kFloat, .shape = "[N, C, ..]"};
  if (of == GroupNormGradient::kBeta) {
    op.operands = {dy};
    op.examples = {{{"f32[2, 6, 5, 3]"}}, {{"f32[S, 4]"}}, {{"f16[1, 5, S]"}}};
    return Make(std::move(op));
  }
  op.attributes = {{.name = "groups", .kind = AttrKind::kInt, .doc = "divides C"},
                   {.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}};
  const Attributes three = {{"groups", int64_t{3}}}, one = {{"groups", int64_t{1}}, {"eps", 0.01}};
  if (of == GroupNormGradient::kGamma) {
    op.operands = {x, dy};
    op.examples = {{{"f32[2, 6, 5, 3]", "f32[2, 6, 5, 3]"}, three}, {{"f16[2, 5, S]", "f16[2, 5, S]"}, one}};
    return Make(std::move(op));
  }
  op.operands = {x, gamma, dy};
  op.examples = {{{"f32[2, 6, 5, 3]", "f32[6]", "f32[2, 6, 5, 3]"}, three},
                 {{"f16[2, 5, S]", "f16[5]", "f16[2, 5, S]"}, one}};
  return Make(std::move(op));
}

}  // namespace quern::ir
