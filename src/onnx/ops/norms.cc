// Normalisations.

#include <algorithm>

#include "onnx/norms.h"
#include "onnx/table.h"

namespace quern::onnx {

Value PerChannel(Call& c, Value vector, Value x) {
  Extents dims = {c.dim(vector, 0)};
  for (int d = 2; d < c.rank(x); ++d) dims.emplace_back(1);
  return c.Reshape(vector, dims);
}

namespace {

void BatchNorm(Call& c) {
  Value x = c.x(0);
  const Value gamma = c.x(1), beta = c.x(2), mean = c.x(3), variance = c.x(4);
  const double eps = c.Float("epsilon", 1e-5);
  if (c.Int("training_mode", 0) == 0) {
    const bool flat = c.rank(x) < 3;  // ours wants images
    const DType dtype = c.dtype(x);
    if (flat || c.dtype(gamma) != dtype || c.dtype(mean) != dtype) {
      // (x - mean) gamma / sqrt(variance + eps) + beta, in the dtype of the statistics.
      const DType in = c.dtype(mean);
      const Value rate =
          c.Add("Div", {c.Cast(gamma, in), c.Add("Sqrt", {c.Add("Add", {variance, c.Like(eps, variance)})})});
      const Value centred = c.Add("Sub", {c.Cast(x, in), PerChannel(c, mean, x)});
      const Value y =
          c.Add("Add", {c.Add("Mul", {centred, PerChannel(c, rate, x)}), PerChannel(c, c.Cast(beta, in), x)});
      return c.Return(c.Cast(y, dtype));
    }
    return c.Return(c.Add("BatchNormInference", {x, gamma, beta, mean, variance}, {{"eps", eps}}));
  }
  // Of the batch itself, and the running statistics behind it.
  Ints axes;
  for (int64_t d = 0; d < c.rank(x); ++d) {
    if (d != 1) axes.push_back(d);
  }
  const double momentum = c.Float("momentum", 0.9);
  const Value now = c.Reduce("mean", x, axes, true);
  const Value off = c.Add("Sub", {x, now});
  const Value spread = c.Reduce("mean", c.Add("Mul", {off, off}), axes, true);
  const Value scaled = c.Add("Div", {off, c.Add("Sqrt", {c.Add("Add", {spread, c.Like(eps, spread)})})});
  c.Return(c.Add("Add", {c.Add("Mul", {scaled, PerChannel(c, gamma, x)}), PerChannel(c, beta, x)}));
  const auto running = [&](Value before, Value batch) {
    const Value last = c.Reshape(batch, c.type(before).dims);
    return c.Add("Add",
                 {c.Add("Mul", {before, c.Like(momentum, before)}), c.Add("Mul", {last, c.Like(1 - momentum, last)})});
  };
  c.Return(1, running(mean, now));
  c.Return(2, running(variance, spread));
}

void InstanceNorm(Call& c) {
  c.Return(c.Add("InstanceNorm", {c.x(0), c.x(1), c.x(2)}, {{"eps", c.Float("epsilon", 1e-5)}}));
}

void GroupNorm(Call& c) {
  const Value x = c.x(0);
  Value gamma = c.x(1), beta = c.x(2);
  const int64_t groups = c.Int("num_groups", 1);
  const Extent channels = c.dim(x, 1);
  if (c.dim(gamma, 0) != channels && c.dim(gamma, 0) == Extent(groups) && groups > 0) {
    // Before version 21 a group had one of each.
    const std::optional<Extent> each = channels.DividedBy(Extent(groups));
    if (!each) return c.Fail(absl::InvalidArgumentError("the groups do not divide the channels"));
    const auto spread = [&](Value vector) {
      return c.Reshape(c.Expand(c.Reshape(vector, {Extent(groups), Extent(1)}), {Extent(groups), *each}), {channels});
    };
    gamma = spread(gamma);
    beta = spread(beta);
  }
  c.Return(c.Add("GroupNorm", {x, gamma, beta}, {{"groups", groups}, {"eps", c.Float("epsilon", 1e-5)}}));
}

Ints From(int64_t axis, int64_t rank) {
  Ints axes;
  for (int64_t d = axis; d < rank; ++d) axes.push_back(d);
  return axes;
}

void LayerNorm(Call& c) {
  const Value x = c.x(0), gamma = c.x(1);
  const int64_t axis = c.Axis(c.Int("axis", -1), c.rank(x));
  const double eps = c.Float("epsilon", 1e-5);
  const bool mean = c.Wants(1), rate = c.Wants(2);
  const Ints axes = From(axis, c.rank(x));
  const bool whole = c.rank(gamma) == static_cast<int>(axes.size());
  if (!mean && !rate && whole) {
    Values operands = {x, gamma};
    if (c.Has(2)) operands.push_back(c.x(2));
    return c.Return(c.Add("LayerNorm", operands, {{"eps", eps}, {"axis", axis}}));
  }
  const Value wide = c.Wide(x), centre = c.Reduce("mean", wide, axes, true), off = c.Add("Sub", {wide, centre});
  const Value spread = c.Reduce("mean", c.Add("Mul", {off, off}), axes, true);
  const Value inverse = c.Add("Rsqrt", {c.Add("Add", {spread, c.Like(eps, spread)})});
  Value y = c.Add("Mul", {c.Cast(c.Add("Mul", {off, inverse}), c.dtype(x)), gamma});
  if (c.Has(2)) y = c.Add("Add", {y, c.x(2)});
  c.Return(y);
  const DType stash = DTypeOf(static_cast<int>(c.Int("stash_type", 1))).value_or(DType::kF32);
  c.Return(1, c.Cast(centre, stash));
  c.Return(2, c.Cast(inverse, stash));
}

void RmsNorm(Call& c) {
  const Value x = c.x(0);
  c.Return(c.Add("RmsNorm", {x, c.x(1)},
                 {{"eps", c.Float("epsilon", 1e-5)}, {"axis", c.Axis(c.Int("axis", -1), c.rank(x))}}));
}

void LpNorm(Call& c) {
  const Value x = c.x(0);
  const int64_t axis = c.Axis(c.Int("axis", -1), c.rank(x)), p = c.Int("p", 2);
  const Value size = c.Add(p == 1 ? "ReduceL1" : "ReduceL2", {x}, {{"axes", Ints{axis}}, {"keep_dim", true}});
  const Value zero = c.Like(0, size);
  const Value divisor = c.Add("Where", {c.Add("Eq", {size, zero}), c.Like(1, size), size});
  c.Return(c.Add("Div", {x, divisor}));
}

void MeanVarianceNorm(Call& c) {
  const Value x = c.x(0);
  Ints axes = c.IntList("axes");
  if (axes.empty()) axes = {0, 2, 3};
  for (int64_t& axis : axes) axis = c.Axis(axis, c.rank(x));
  const Value off = c.Add("Sub", {x, c.Reduce("mean", x, axes, true)});
  const Value spread = c.Add("Sqrt", {c.Reduce("mean", c.Add("Mul", {off, off}), axes, true)});
  c.Return(c.Add("Div", {off, c.Add("Add", {spread, c.Like(1e-9, spread)})}));
}

// x / (bias + alpha / size sum of squares of the neighbouring channels)^beta: a sum of moved copies.
void Lrn(Call& c) {
  const Value x = c.x(0);
  const int64_t size = c.Int("size", 1);
  if (size < 1 || size > 1024) return c.Fail(absl::InvalidArgumentError("its size is wrong"));
  const int64_t before = (size - 1) / 2, behind = size - 1 - before;
  Ints low(c.rank(x)), high(c.rank(x));
  const Extent channels = c.dim(x, 1);
  if (!c.ok()) return;
  low[1] = before;
  high[1] = behind;
  const Value squares = c.Add("Pad", {c.Add("Mul", {x, x})}, {{"low", low}, {"high", high}});
  Value sum = c.Slice(squares, 1, Extent(0), channels);
  for (int64_t i = 1; i < size; ++i) sum = c.Add("Add", {sum, c.Slice(squares, 1, Extent(i), channels)});
  const Value scaled = c.Add("Mul", {sum, c.Like(c.Float("alpha", 1e-4) / static_cast<double>(size), sum)});
  const Value base = c.Add("Add", {scaled, c.Like(c.Float("bias", 1), sum)});
  c.Return(c.Add("Div", {x, c.Add("Pow", {base, c.Like(c.Float("beta", 0.75), base)})}));
}

constexpr Importer kRows[] = {
    {"BatchNormalization", BatchNorm, "", 5},        {"GroupNormalization", GroupNorm, "", 3},
    {"InstanceNormalization", InstanceNorm, "", 3},  {"LRN", Lrn},
    {"LayerNormalization", LayerNorm, "", 2},        {"LpNormalization", LpNorm},
    {"MeanVarianceNormalization", MeanVarianceNorm}, {"RMSNormalization", RmsNorm, "", 2},
};

}  // namespace

std::span<const Importer> NormImporters() { return kRows; }

}  // namespace quern::onnx
