// Mamba-2: the scan has heads, whose decay is one number, and groups of heads that share B and C; the result is
// normalised group by group (Dao and Gu, arXiv:2405.21060).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  d.BeRecurrent();
  Value x = d.Embed();
  Hyperparameters& numbers = d.numbers();
  const int64_t kernel = numbers.Int("ssm.conv_kernel", 2, 64), inner = numbers.Int("ssm.inner_size", 1, kMostWidth),
                state = numbers.Int("ssm.state_size", 1, kMostHeadDim),
                heads = numbers.Int("ssm.time_step_rank", 1, kMostHeads),
                groups = numbers.Int("ssm.group_count", 1, kMostHeads);
  if (inner % heads != 0 || heads % groups != 0) {
    numbers.Fail("ssm.time_step_rank", absl::StrFormat("%d heads divide no inner size %d, or %d groups divide no heads",
                                                       heads, inner, groups));
    return {};
  }
  hir::Builder& b = d.graph();
  const int64_t mixed = inner + 2 * groups * state, head = inner / heads;
  auto batch = [&](Value value, std::vector<int64_t> dims) {
    std::vector<Extent> all = {d.batch(), Extent::Symbol(kSequenceSymbol)};
    all.insert(all.end(), dims.begin(), dims.end());
    return b.Reshape(value, std::move(all));
  };
  for (const Layer& layer : d.layers()) {
    const Value all = d.Linear(d.RmsNorm(x, layer("attn_norm")), layer("ssm_in"), inner + mixed + heads);
    const Value u = b.Silu(d.CausalConvolution(d.Columns(all, inner, mixed), layer, layer("ssm_conv1d"), kernel));
    const Value step = b.Unary(
        "Softplus", b.Add(d.Columns(all, inner + mixed, heads), d.tensors().Vector(layer("ssm_dt.bias"), {heads})));
    auto of_heads = [&](const char* name) {
      return b.Reshape(d.tensors().Vector(layer(name), {heads, 1}), {Extent(heads)});
    };
    const std::vector<Value> scanned =
        b.MirResults("Mamba2",
                     {batch(d.Columns(u, 0, inner), {heads, head}), batch(step, {heads}), of_heads("ssm_a"),
                      batch(d.Columns(u, inner, groups * state), {groups, state}),
                      batch(d.Columns(u, inner + groups * state, groups * state), {groups, state}), of_heads("ssm_d"),
                      d.State(layer, "state", {heads, head, state})},
                     {}, absl::StrFormat("layers.%d/scan", layer.index));
    d.Carry(layer, "state", scanned[1]);
    const Value y = b.Reshape(scanned[0], {d.rows(), Extent(inner)});
    const Value gated = b.Mul(y, b.Silu(d.Columns(all, 0, inner)));
    const Value normed = d.RmsNormHeads(gated, layer("ssm_norm"), {.head_dim = inner / groups});
    x = d.Add(x, d.Linear(normed, layer("ssm_out"), d.width()));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_mamba2() {
  static constexpr Architecture architecture = {.name = "mamba2", .doc = "Mamba-2", .build = Build};
  return architecture;
}

}  // namespace quern::models
