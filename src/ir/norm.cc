#include "ir/norm.h"

#include <cmath>
#include <map>

#include "ir/shape.h"

namespace quern::ir {

AttrDef NormAxisAttribute() {
  return {.name = "axis",
          .kind = AttrKind::kInt,
          .default_value = int64_t{-1},
          .doc = "the first that is normalised; all behind it are too"};
}

std::vector<int64_t> NormAxes(int64_t axis, size_t rank) {
  std::vector<int64_t> axes;
  for (auto d = FromStart(axis, rank); d < static_cast<int64_t>(rank); ++d) axes.push_back(d);
  return axes;
}

Status CheckNorm(const InferContext& context, int affine, int64_t axis) {
  const TensorType& x = context.operands[0];
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  QUERN_ASSIGN(const int first, AxisOf(context, "axis", axis));
  const std::vector<Extent> row(x.dims.begin() + first, x.dims.end());
  for (int i = affine; i < static_cast<int>(context.operands.size()); ++i) {
    if (!context.Equal(context.operands[i].dims, row)) return context.ShapeError(i, ToString(row));
  }
  return absl::OkStatus();
}

Value ScaleAndShift(Expansion& e, Value normal, std::span<const Value> affine) {
  const Value scaled = e.Add("Mul", {normal, e.Wide(affine[0])});
  return affine.size() > 1 ? e.Add("Add", {scaled, e.Wide(affine[1])}) : scaled;
}

Value Normal(Expansion& e, Value x, const std::vector<int64_t>& axes, double eps) {
  if (!e.ok()) return {};
  const Value centred = e.Add("Sub", {x, e.Reduced("mean", x, axes)});
  const Value variance = e.Reduced("mean", e.Add("Mul", {centred, centred}), axes);
  return e.Add("Mul", {centred, e.Add("Rsqrt", {e.Add("Add", {variance, e.Scalar(eps, e.type(x).dtype)})})});
}

Status CheckChannels(const InferContext& context, int affine, int least) {
  const TensorType& x = context.operands[0];
  if (x.rank() < least) return context.ShapeError(0, absl::StrFormat("rank %d or more", least));
  const std::vector<Extent> channels = {x.dims[1]};
  for (int i = affine; i < static_cast<int>(context.operands.size()); ++i) {
    if (!context.Equal(context.operands[i].dims, channels)) return context.ShapeError(i, ToString(channels));
  }
  return absl::OkStatus();
}

Value ByChannel(Expansion& e, Value value, int rank) {
  if (!e.ok()) return {};
  std::vector<Extent> dims(rank - 1, Extent(1));
  dims[0] = e.type(value).dims[0];
  return e.Sized(e.Wide(value), std::move(dims));
}

namespace {

// `combine` makes an element of x, the mean, the deviation, gamma and beta.
template <typename Combine>
void ForEachOfGroups(RefContext& context, const GroupOf& group, const Combine& combine) {
  const RefTensor &x = *context.operands[0], &gamma = *context.operands[1], &beta = *context.operands[2];
  const double eps = context.node.attributes.Float("eps");
  struct Sums {
    double count = 0, mean = 0, variance = 0;
  };
  std::map<int64_t, Sums> sums;
  std::vector<int64_t> index(x.dims.size());
  const int64_t elements = x.elements();
  const auto walk = [&](const auto& visit) {
    for (int64_t at = 0; at < elements; ++at, NextIndex(x.dims, index)) visit(at, sums[group(index)]);
  };
  walk([&](int64_t at, Sums& s) { ++s.count, s.mean += x.data[at]; });
  for (auto& [id, s] : sums) s.mean /= s.count;
  walk([&](int64_t at, Sums& s) { s.variance += (x.data[at] - s.mean) * (x.data[at] - s.mean) / s.count; });
  walk([&](int64_t at, Sums& s) {
    context.results[0].data[at] =
        combine(x.data[at], s.mean, std::sqrt(s.variance + eps), gamma.data[index[1]], beta.data[index[1]]);
  });
}

}  // namespace

void ReferenceChannelNorm(RefContext& context, const GroupOf& group) {
  ForEachOfGroups(context, group, [&](double value, double mean, double deviation, double gamma, double beta) {
    return RoundTo(context.results[0].dtype, (value - mean) / deviation * gamma + beta);
  });
}

void MagnitudeOfChannelNorm(RefContext& context, const GroupOf& group) {
  ForEachOfGroups(context, group, [](double value, double mean, double deviation, double gamma, double beta) {
    return (std::fabs(value) + std::fabs(mean)) / deviation * std::fabs(gamma) + std::fabs(beta);
  });
}

namespace {

// `combine` makes an element of x, the mean, the deviation, gamma and beta.
template <typename Combine>
void ForEachNormal(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps, RefTensor& y,
                   int64_t axis, const Combine& combine) {
  int64_t width = 1;
  for (const int64_t d : NormAxes(axis, x.dims.size())) width *= x.dims[d];
  const int64_t elements = x.elements(), n = std::max<int64_t>(1, width);
  for (int64_t row = 0; row < elements; row += n) {
    double mean = 0, variance = 0;
    for (int64_t i = row; centred && i < row + n; ++i) mean += x.data[i] / static_cast<double>(n);
    for (int64_t i = row; i < row + n; ++i)
      variance += (x.data[i] - mean) * (x.data[i] - mean) / static_cast<double>(n);
    for (int64_t c = 0; c < n; ++c) {
      y.data[row + c] = combine(x.data[row + c], mean, std::sqrt(variance + eps), affine[0]->data[c],
                                affine.size() > 1 ? affine[1]->data[c] : 0);
    }
  }
}

}  // namespace

void ReferenceNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps, RefTensor& y,
                   int64_t axis) {
  ForEachNormal(x, affine, centred, eps, y, axis,
                [&](double value, double mean, double deviation, double gamma, double beta) {
                  return RoundTo(y.dtype, (value - mean) / deviation * gamma + beta);
                });
}

void MagnitudeOfNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps,
                     RefTensor& y, int64_t axis) {
  ForEachNormal(x, affine, centred, eps, y, axis,
                [&](double value, double mean, double deviation, double gamma, double beta) {
                  return (std::fabs(value) + std::fabs(mean)) / deviation * std::fabs(gamma) + std::fabs(beta);
                });
}

}  // namespace quern::ir
