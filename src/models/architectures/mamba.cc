// Mamba: a short convolution and a selective scan in place of attention and feed-forward (Gu and Dao,
// arXiv:2312.00752). The file has A, negative, itself; the step's logarithm is softplus of a projection.
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  d.BeRecurrent();
  Value x = d.Embed();
  Hyperparameters& numbers = d.numbers();
  const int64_t kernel = numbers.Int("ssm.conv_kernel", 2, 64), inner = numbers.Int("ssm.inner_size", 1, kMostWidth),
                state = numbers.Int("ssm.state_size", 1, kMostHeadDim),
                rank = numbers.Int("ssm.time_step_rank", 1, kMostWidth);
  hir::Builder& b = d.graph();
  const Extent rows = Extent::Symbol(kSequenceSymbol);
  auto batch = [&](Value value, int64_t width) { return b.Reshape(value, {d.batch(), rows, Extent(width)}); };
  for (const Layer& layer : d.layers()) {
    const Value both = d.Linear(d.RmsNorm(x, layer("attn_norm")), layer("ssm_in"), 2 * inner);
    const Value u = b.Silu(d.CausalConvolution(d.Columns(both, 0, inner), layer, layer("ssm_conv1d"), kernel));
    const Value choice = d.Linear(u, layer("ssm_x"), rank + 2 * state);
    const Value step = b.Unary("Softplus", d.Linear(d.Columns(choice, 0, rank), layer("ssm_dt"), inner));
    const std::vector<Value> scanned =
        b.Results("SelectiveScan",
                  {batch(u, inner), batch(step, inner), d.tensors().Vector(layer("ssm_a"), {inner, state}),
                   batch(d.Columns(choice, rank, state), state), batch(d.Columns(choice, rank + state, state), state),
                   d.tensors().Vector(layer("ssm_d"), {inner}), d.State(layer, "state", {inner, state})});
    d.Carry(layer, "state", scanned[1]);
    const Value y = b.Mul(b.Reshape(scanned[0], {d.rows(), Extent(inner)}), b.Silu(d.Columns(both, inner, inner)));
    x = d.Add(x, d.Linear(y, layer("ssm_out"), d.width()));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_mamba() {
  static constexpr Architecture architecture = {.name = "mamba", .doc = "Mamba", .build = Build};
  return architecture;
}

}  // namespace quern::models
