// Convolutions, pools, windows and contractions in random graphs: over 1 to 3 dimensions, with strides, dilations,
// groups and pads that differ from side to side; sums over any dimensions of tensors whose dimensions stand in any
// order.
#include <algorithm>

#include "support/random_generator.h"

namespace quern::testing {

void Generator::AnyConvolution() {
  const int64_t spatial = 1 + Below(Below(3) == 0 ? 3 : 2);
  const int64_t groups = Pick<int64_t>({1, 1, 2, 3}), channels = groups * Pick<int64_t>({1, 1, 2, 5}),
                rows = Pick<int64_t>({1, 3, 8, 9, 13});
  const char* const op = Pick<const char*>({"Conv", "Conv", "Conv", "ConvTranspose", "Pool", "Window"});
  const bool transposed = std::string_view(op) == "ConvTranspose";
  std::vector<Extent> dims = {Below(3) == 0 ? Extent::Symbol("B") : Extent(1 + Below(3)), Extent(channels)}, w;
  std::vector<int64_t> kernel, strides, pads, dilations;
  for (int64_t d = 0; d < spatial; ++d) {
    kernel.push_back(1 + Below(4));
    strides.push_back(Below(2) == 0 ? 1 : 1 + Below(3));
    dilations.push_back(Below(3) == 0 ? 1 + Below(3) : 1);
    // Long enough for the window, and what a transposed one loses to its pads.
    const Extent size(dilations[d] * (kernel[d] - 1) + 1 + Below(spatial == 1 ? 70 : spatial == 2 ? 11 : 5));
    dims.push_back(d == 0 && Below(4) == 0 ? Extent::Symbol("S") + size : size);
  }
  for (int64_t side = 0; side < 2; ++side) {
    for (int64_t d = 0; d < spatial; ++d) pads.push_back(Below(dilations[d] * (kernel[d] - 1) + 1));
  }
  if (Elements(dims) > kMaxElements) return;
  const bool known = dims[2].is_constant();
  Attributes attributes = {{"strides", strides}, {"pads", pads}, {"dilations", dilations}};
  if ((std::string_view(op) == "Conv" || std::string_view(op) == "Pool") && Below(3) == 0) {
    attributes.Set("channels_last", true);
    std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  }
  const DType dtype = Below(5) == 0 ? Pick<DType>({DType::kF16, DType::kBF16, DType::kF64}) : DType::kF32;
  Value x = NewLeaf({dtype, dims});
  if (Below(2) == 0) x = Add(Pick<const char*>({"Tanh", "Abs", "Neg"}), {x});
  std::vector<Value> operands = {x};
  if (std::string_view(op) == "Pool" || std::string_view(op) == "Window") {
    attributes.Set("kernel", kernel);
    if (std::string_view(op) == "Pool") {
      attributes.Set("kind", std::string(Below(2) == 0 ? "max" : "mean"));
      attributes.Set("count_include_pad", Below(2) == 0);
      attributes.Set("ceil", known && Below(2) == 0);
    }
  } else {
    w = transposed ? std::vector<Extent>{Extent(channels), Extent(rows)}
                   : std::vector<Extent>{Extent(rows * groups), Extent(channels / groups)};
    for (const int64_t size : kernel) w.push_back(Extent(size));
    operands.push_back(Below(4) == 0 ? NewLeaf({dtype, w}) : NewWeight(dtype, w));
    if (Below(2) == 0) operands.push_back(NewLeaf({dtype, {Extent(rows * groups)}}));
    attributes.Set("groups", groups);
  }
  if (made_.graph.Add(op, operands, attributes).ok()) Tame({static_cast<int>(made_.graph.nodes().size()) - 1, 0});
}

void Generator::AnyContraction() {
  struct Shared {
    Extent extent;
    bool batch;  // or contracted
  };
  std::vector<Shared> shared;
  for (int64_t i = Below(2); i > 0; --i) shared.push_back({RandomExtent(), true});
  for (int64_t i = Below(3); i > 0; --i) shared.push_back({RandomExtent(), false});
  // Those and one or two of its own, shuffled.
  struct Side {
    std::vector<Extent> dims;
    std::vector<int64_t> batch, contract;
  };
  const auto side = [&] {
    std::vector<size_t> order(shared.size() + 1 + static_cast<size_t>(Below(2)));
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[Below(static_cast<int64_t>(i))]);
    Side made;
    for (const size_t i : order) made.dims.push_back(i < shared.size() ? shared[i].extent : RandomExtent());
    for (size_t i = 0; i < shared.size(); ++i) {
      const int64_t place = std::find(order.begin(), order.end(), i) - order.begin();
      (shared[i].batch ? made.batch : made.contract).push_back(place);
    }
    return made;
  };
  const Side left = side(), right = side();
  int64_t products = Elements(left.dims) * Elements(right.dims);
  for (const Shared& dim : shared) products /= std::max<int64_t>(1, Size(dim.extent));
  if (products > 16 * kMaxElements) return;
  Tame(Add("DotGeneral", {NewLeaf({DType::kF32, left.dims}), NewLeaf({DType::kF32, right.dims})},
           {{"lhs_batch", left.batch},
            {"rhs_batch", right.batch},
            {"lhs_contract", left.contract},
            {"rhs_contract", right.contract}}));
}

}  // namespace quern::testing
