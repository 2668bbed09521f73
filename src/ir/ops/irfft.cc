// Irfft: n real numbers whose Fft begins with x; the rest of it is taken for their conjugates in reverse. Imaginary
// parts where those are their own conjugates, of result 0 and of n / 2 where n is even, are not looked at.

#include <cmath>

#include "ir/fourier.h"
#include "ir/pairs.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  if (!IsComplex(result.dtype)) return context.DTypeError(0, "c64");
  QUERN_ASSIGN(const LineAxis line, LineOf(context));
  const int64_t n = context.attributes.Int("n");
  if (n < 1 || n > kLongestLine) return context.AttributeError("n", absl::StrFormat("1 to %d", kLongestLine));
  if (line.n != n / 2 + 1)
    return context.ShapeError(0, absl::StrFormat("%d elements along axis %d", n / 2 + 1, line.axis));
  result.dtype = DType::kF32;
  result.dims[line.axis] = Extent(n);
  return std::vector<TensorType>{std::move(result)};
}

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const int64_t n = context.node.attributes.Int("n");
  ForEachPairOfLines(x, y, context.node.attributes.Int("axis"),
                     [&](const std::vector<int64_t>& of, const std::vector<int64_t>& to) {
                       std::vector<std::complex<double>> line(n);
                       for (int64_t k = 0; k < n; ++k) {
                         const int64_t half = std::min(k, n - k);
                         const std::complex<double> value = x.Complex(of[half]);
                         line[k] = 2 * k % n == 0 ? value.real() : k == half ? value : std::conj(value);
                       }
                       line = ReferenceTransform(line, true);
                       const double scale = ScaleOf(context.node.attributes, n, true);
                       for (int64_t j = 0; j < n; ++j) y.data[to[j]] = line[j].real() * scale;
                     });
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const int64_t n = context.node.attributes.Int("n");
  ForEachPairOfLines(x, y, context.node.attributes.Int("axis"),
                     [&](const std::vector<int64_t>& of, const std::vector<int64_t>& to) {
                       double squares = 0;
                       for (const int64_t offset : of) squares += 2 * std::norm(x.Complex(offset));
                       const double scale = ScaleOf(context.node.attributes, n, true);
                       for (const int64_t offset : to) y.data[offset] = std::sqrt(squares) * scale;
                     });
  return absl::OkStatus();
}

// Twice what has a conjugate, and the real part of the transform of that.
StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const std::vector<Extent>& dims = context.types[0].dims;
  const int64_t axis = FromStart(context.node.attributes.Int("axis"), dims.size()),
                n = context.node.attributes.Int("n"), half = n / 2 + 1;
  std::vector<double> times;
  for (const int plane : {0, 1}) {
    for (int64_t k = 0; k < half; ++k) times.push_back(2 * k % n == 0 ? 1 - plane : 2);
  }
  const Value weights = e.Sized(e.Floats(times, DType::kF32), {Extent(2), Extent(half), Extent(1)});
  const Value zero = e.Scalar(0, DType::kF32);
  const Value counted = e.Add("Mul", {AsPlanes(e, context.x[0], axis, true, n), weights});
  const Value seen = e.Add("Where", {e.Add("Ne", {weights, zero}), counted, zero});
  const Value planes = Transformed(e, seen,
                                   {.n = n,
                                    .inverse = true,
                                    .scale = ScaleOf(context.node.attributes, n, true),
                                    .planes_out = 1,
                                    .have = half,
                                    .keep = n});
  return e.Finish({FromPlanes(e, planes, axis, context.node.results[0].dims, n)});
}

std::vector<AttrDef> WithSize() {
  std::vector<AttrDef> attributes = FourierAttributes();
  attributes.push_back({.name = "n", .kind = AttrKind::kInt, .doc = "how many results"});
  return attributes;
}

}  // namespace

const OpDef& Op_irfft() {
  static const OpDef* const op = Make({
      .name = "Irfft",
      .doc = "n real numbers whose Fft begins with x",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .shape = "c64, n / 2 + 1 elements along axis"}},
      .attributes = WithSize(),
      .infer = Infer,
      .reference = Reference,
      .pairs = Pairs,
      .rtol = 2e-6,
      .magnitude = Magnitude,
      .examples = {{{"c64[3, 5]"}, {{"n", int64_t{8}}}},
                   {{"c64[32, S]"}, {{"n", int64_t{63}}, {"axis", int64_t{0}}, {"norm", std::string("ortho")}}},
                   {{"c64[2, 51]"}, {{"n", int64_t{100}}}}},
  });
  return *op;
}

}  // namespace quern::ir
