// Quantize: f32 rows to the int8 activation formats q8_0 and q8_K, exactly as ggml quantises them.

#include <algorithm>
#include <cmath>

#include "ir/identity.h"
#include "ir/shape.h"
#include "kir/quantise.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const DType format = context.attributes.Type("format");
  if (format != DType::kQ8_0 && format != DType::kQ8_K) return context.AttributeError("format", "q8_0 or q8_K");
  if (x.dtype != DType::kF32) return context.UnsupportedError(0, "f32");
  if (x.rank() < 1 || !x.dims.back().is_constant() || x.dims.back().constant() % Row(format).block_elements != 0)
    return context.ShapeError(0, absl::StrFormat("rows of a multiple of %d", Row(format).block_elements));
  return std::vector<TensorType>{{format, x.dims}};
}

// The decoded values of the quantised blocks.
Status Reference(RefContext& context) {
  const DType format = context.node.attributes.Type("format");
  const int block = Row(format).block_elements;
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  std::vector<float> values(block);
  for (size_t i = 0; i < x.data.size(); i += block) {
    for (int j = 0; j < block; ++j) values[j] = static_cast<float>(x.data[i + j]);
    const kir::QuantisedBlock quantised = kir::QuantiseBlock(format, values.data());
    for (int j = 0; j < block; ++j) y.data[i + j] = static_cast<double>(quantised.d) * quantised.quants[j];
  }
  return absl::OkStatus();
}

// The largest of the block: a quant more or less is 1/127 of it.
Status Magnitude(RefContext& context) {
  const size_t block = Row(context.node.attributes.Type("format")).block_elements;
  const RefTensor& x = *context.operands[0];
  for (size_t i = 0; i < x.data.size(); i += block) {
    double largest = 0;
    for (size_t j = 0; j < block; ++j) largest = std::max(largest, std::fabs(x.data[i + j]));
    std::fill_n(context.results[0].data.begin() + static_cast<int64_t>(i), block, largest);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_quantize() {
  static const OpDef* const op = Make({
      .name = "Quantize",
      .doc = "f32 rows to int8 blocks, as ggml quantises activations",
      .kind = OpKind::kPack,
      .family = "lines",
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "rows of whole blocks"}},
      .attributes = {{.name = "format", .kind = AttrKind::kDType}},
      .infer = Infer,
      .reference = Reference,
      .rtol = 1e-2,
      .magnitude = Magnitude,
  });
  return *op;
}

StatusOr<Value> MakeQuantised(const MakeNode& make, Value x, DType format) {
  return make("Quantize", {x}, {{"format", format}});
}

}  // namespace quern::ir
