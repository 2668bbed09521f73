// PsdReal: the power of real numbers by frequency, |Rfft|^2 / (fs n), doubled where a result stands for its conjugate
// too: scipy.signal.periodogram(x, fs, detrend=False), one-sided density.

#include <cmath>

#include "ir/fourier.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  if (result.dtype != DType::kF32) return context.UnsupportedError(0, "f32");
  const double fs = context.attributes.Float("fs");
  if (!(fs > 0) || !std::isfinite(fs)) return context.AttributeError("fs", "a number above 0");
  QUERN_ASSIGN(const LineAxis line, LineOf(context));
  result.dims[line.axis] = Extent(line.n / 2 + 1);
  return std::vector<TensorType>{std::move(result)};
}

double Weight(const Attributes& attributes, int64_t k, int64_t n) {
  return (2 * k % n == 0 ? 1 : 2) / (attributes.Float("fs") * static_cast<double>(n));
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  ForEachPairOfLines(
      x, y, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& of, const std::vector<int64_t>& to) {
        std::vector<std::complex<double>> line;
        for (const int64_t offset : of) line.emplace_back(x.data[offset]);
        line = ReferenceTransform(line, false);
        for (size_t k = 0; k < to.size(); ++k) {
          y.data[to[k]] = std::norm(line[k]) *
                          Weight(context.node.attributes, static_cast<int64_t>(k), static_cast<int64_t>(of.size()));
        }
      });
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  ForEachPairOfLines(
      x, y, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& of, const std::vector<int64_t>& to) {
        double squares = 0;
        for (const int64_t offset : of) squares += x.data[offset] * x.data[offset];
        for (size_t k = 0; k < to.size(); ++k) {
          y.data[to[k]] +=
              4 * squares * Weight(context.node.attributes, static_cast<int64_t>(k), static_cast<int64_t>(of.size()));
        }
      });
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent> dims = e.type(inputs[0]).dims;
  const int64_t axis = FromStart(node.attributes.Int("axis"), dims.size()), n = dims[axis].constant();
  std::vector<double> weights;
  for (int64_t k = 0; k <= n / 2; ++k) weights.push_back(Weight(node.attributes, k, n));
  std::vector<Extent> along(dims.size() - static_cast<size_t>(axis), Extent(1));
  along[0] = Extent(n / 2 + 1);
  const Value power = e.Add("ComplexNormSq", {e.Add("Rfft", {inputs[0]}, {{"axis", axis}})});
  return e.Finish({e.Add("Mul", {power, e.Sized(e.Floats(weights, DType::kF32), std::move(along))})});
}

}  // namespace

const OpDef& Op_psd_real() {
  static const OpDef* const op = Make({
      .name = "PsdReal",
      .doc = "the power of real numbers by frequency, one-sided density",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "f32, rank 1 or more"}},
      .attributes = {{.name = "fs", .kind = AttrKind::kFloat, .default_value = 1.0, .doc = "elements a second"},
                     {.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 5e-6,
      .magnitude = Magnitude,
      .examples = {{{"f32[3, 30]"}, {{"fs", 10.0}}}, {{"f32[33, S]"}, {{"axis", int64_t{0}}}}},
  });
  return *op;
}

}  // namespace quern::ir
