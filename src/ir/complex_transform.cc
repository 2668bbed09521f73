#include "ir/complex_transform.h"

#include <cmath>

#include "ir/fourier.h"
#include "ir/pairs.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  if (!IsComplex(context.operands[0].dtype)) return context.DTypeError(0, "c64");
  QUERN_RETURN_IF_ERROR(LineOf(context).status());
  return std::vector<TensorType>{context.operands[0]};
}

template <bool kInverse>
Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  ForEachLine(x, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& at) {
    std::vector<std::complex<double>> line;
    for (const int64_t offset : at) line.push_back(x.Complex(offset));
    line = ReferenceTransform(line, kInverse);
    const double scale = ScaleOf(context.node.attributes, static_cast<int64_t>(at.size()), kInverse);
    for (size_t k = 0; k < at.size(); ++k) y.SetComplex(at[k], line[k] * scale);
  });
  return absl::OkStatus();
}

// Of each result the root of the sum of the squares that it is made of.
template <bool kInverse>
Status Magnitude(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  ForEachLine(x, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& at) {
    double squares = 0;
    for (const int64_t offset : at) squares += std::norm(x.Complex(offset));
    const double scale = ScaleOf(context.node.attributes, static_cast<int64_t>(at.size()), kInverse);
    for (const int64_t offset : at) context.results[0].data[offset] = std::sqrt(squares) * scale;
  });
  return absl::OkStatus();
}

template <bool kInverse>
StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const std::vector<Extent>& dims = context.types[0].dims;
  const int64_t axis = FromStart(context.node.attributes.Int("axis"), dims.size()), n = dims[axis].constant();
  const double scale = ScaleOf(context.node.attributes, n, kInverse);
  const Lines lines = {.n = n, .inverse = kInverse, .scale = scale, .have = n, .keep = n};
  if (AreShort(dims, axis)) return e.Finish({TransformedRows(e, context.x[0], lines, dims)});
  const Value planes = Transformed(e, AsPlanes(e, context.x[0], axis, true, n), lines);
  return e.Finish({FromPlanes(e, planes, axis, dims, n)});
}

}  // namespace

const OpDef* ComplexTransform(const char* name, const char* doc, bool inverse, std::vector<Example> examples) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .shape = "c64, rank 1 or more"}},
      .attributes = FourierAttributes(),
      .infer = Infer,
      .reference = inverse ? Reference<true> : Reference<false>,
      .pairs = inverse ? Pairs<true> : Pairs<false>,
      .rtol = 2e-6,
      .magnitude = inverse ? Magnitude<true> : Magnitude<false>,
      .examples = std::move(examples),
  });
}

}  // namespace quern::ir
