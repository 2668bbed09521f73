// Rfft: the first half of the Fft of real numbers, n / 2 + 1 results; the others are their conjugates in reverse. It
// has half the work: the first product meets one plane, the last one gives half of the rows.

#include <cmath>

#include "ir/fourier.h"
#include "ir/pairs.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  if (result.dtype != DType::kF32) return context.UnsupportedError(0, "f32");
  QUERN_ASSIGN(const LineAxis line, LineOf(context));
  result.dtype = DType::kC64;
  result.dims[line.axis] = Extent(line.n / 2 + 1);
  return std::vector<TensorType>{std::move(result)};
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  ForEachPairOfLines(x, y, context.node.attributes.Int("axis"),
                     [&](const std::vector<int64_t>& of, const std::vector<int64_t>& to) {
                       std::vector<std::complex<double>> line;
                       for (const int64_t offset : of) line.emplace_back(x.data[offset]);
                       line = ReferenceTransform(line, false);
                       const double scale = ScaleOf(context.node.attributes, static_cast<int64_t>(of.size()), false);
                       for (size_t k = 0; k < to.size(); ++k) y.SetComplex(to[k], line[k] * scale);
                     });
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  ForEachPairOfLines(x, y, context.node.attributes.Int("axis"),
                     [&](const std::vector<int64_t>& of, const std::vector<int64_t>& to) {
                       double squares = 0;
                       for (const int64_t offset : of) squares += x.data[offset] * x.data[offset];
                       const double scale = ScaleOf(context.node.attributes, static_cast<int64_t>(of.size()), false);
                       for (const int64_t offset : to) y.data[offset] = std::sqrt(squares) * scale;
                     });
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const std::vector<Extent>& dims = context.types[0].dims;
  const int64_t axis = FromStart(context.node.attributes.Int("axis"), dims.size()), n = dims[axis].constant();
  const double scale = ScaleOf(context.node.attributes, n, false);
  const Lines lines = {.n = n, .scale = scale, .planes_in = 1, .have = n, .keep = n / 2 + 1};
  if (AreShort(dims, axis)) return e.Finish({TransformedRows(e, context.x[0], lines, context.node.results[0].dims)});
  const Value planes = Transformed(e, AsPlanes(e, context.x[0], axis, false, n), lines);
  return e.Finish({FromPlanes(e, planes, axis, context.node.results[0].dims, n)});
}

}  // namespace

const OpDef& Op_rfft() {
  static const OpDef* const op = Make({
      .name = "Rfft",
      .doc = "the first n / 2 + 1 results of the Fft of real numbers",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "f32, rank 1 or more"}},
      .attributes = FourierAttributes(),
      .infer = Infer,
      .reference = Reference,
      .pairs = Pairs,
      .rtol = 2e-6,
      .magnitude = Magnitude,
      .examples = {{{"f32[3, 8]"}},
                   {{"f32[63, S]"}, {{"axis", int64_t{0}}, {"norm", std::string("ortho")}}},
                   {{"f32[2, 100, 3]"}, {{"axis", int64_t{1}}, {"norm", std::string("forward")}}}},
  });
  return *op;
}

}  // namespace quern::ir
