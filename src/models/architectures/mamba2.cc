// Mamba-2: the scan has heads, whose decay is one number, and groups of heads that share B and C; the result is
// normalised group by group (Dao and Gu, arXiv:2405.21060).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
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
  const Extent rows = Extent::Symbol(kSequenceSymbol);
  const int64_t mixed = inner + 2 * groups * state, of_group = inner / groups, head = inner / heads;
  // [SEQ, groups * n] as a batch of the groups: [groups, SEQ, n].
  auto by_group = [&](Value value, int64_t n) {
    return b.Transpose(b.Reshape(value, {rows, Extent(groups), Extent(n)}), {1, 0, 2});
  };
  // A number for each head, for each channel of the head.
  auto by_channel = [&](Value value, Extent before) {
    value = b.Expand(b.Reshape(value, {before, Extent(heads), Extent(1)}), {before, Extent(heads), Extent(head)});
    return b.Reshape(value, {before, Extent(inner)});
  };
  for (const Layer& layer : d.layers()) {
    const Value all = d.Linear(d.RmsNorm(x, layer("attn_norm")), layer("ssm_in"), inner + mixed + heads);
    const Value u = b.Silu(d.CausalConvolution(d.Columns(all, inner, mixed), layer, layer("ssm_conv1d"), kernel));
    const Value step = b.Unary(
        "Softplus", b.Add(d.Columns(all, inner + mixed, heads), d.tensors().Vector(layer("ssm_dt.bias"), {heads})));
    const Value a = by_channel(d.tensors().Vector(layer("ssm_a"), {heads, 1}), Extent(1)),
                skip = by_channel(d.tensors().Vector(layer("ssm_d"), {heads, 1}), Extent(1));
    // Channels and their state, group by group: every group's scan has decays of its own.
    const Value values = d.Columns(u, 0, inner);
    std::vector<Value> y;
    std::vector<Value> states;
    const Value before = d.State(layer, "state", {groups, of_group, state});
    const Value v = by_group(values, of_group), steps = by_group(by_channel(step, rows), of_group),
                in = by_group(d.Columns(u, inner, groups * state), state),
                out = by_group(d.Columns(u, inner + groups * state, groups * state), state);
    for (int64_t g = 0; g < groups; ++g) {
      auto of = [&](Value value) { return groups == 1 ? value : b.Narrow(value, 0, Extent(g), Extent(1)); };
      const Value decay =
          b.Reshape(b.Narrow(a, 1, Extent(g * of_group), Extent(of_group)), {Extent(of_group), Extent(1)});
      const std::vector<Value> scanned =
          b.Results("SelectiveScan", {of(v), of(steps), decay, of(in), of(out), {}, of(before)});
      y.push_back(scanned[0]);
      states.push_back(scanned[1]);
    }
    d.Carry(layer, "state", groups == 1 ? states[0] : b.Concat(states, 0));
    Value mixed_rows = b.Transpose(groups == 1 ? y[0] : b.Concat(y, 0), {1, 0, 2});
    mixed_rows = b.Add(b.Reshape(mixed_rows, {rows, Extent(inner)}), b.Mul(values, skip));
    const Value gated = b.Mul(mixed_rows, b.Silu(d.Columns(all, 0, inner)));
    const Value normed = d.RmsNormHeads(gated, layer("ssm_norm"), {.head_dim = of_group});
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
