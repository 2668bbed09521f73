// Quantize: f32 rows to the int8 activation formats q8_0 and q8_K, exactly as ggml quantises them.

#include "ir/shape.h"
#include "kir/quantise.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const DType format = context.attributes.Type("format");
  if (format != DType::kQ8_0 && format != DType::kQ8_K)
    return absl::InvalidArgumentError("Quantize: the format is q8_0 or q8_K");
  if (x.dtype != DType::kF32 || x.rank() < 1 || !x.dims.back().is_constant() ||
      x.dims.back().constant() % Row(format).block_elements != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("Quantize: %s has no rows of whole %s blocks", x.ToString(), std::string(Name(format))));
  }
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

}  // namespace

const OpDef& Op_quantize() {
  static const OpDef* const op = Make({
      .name = "Quantize",
      .doc = "f32 rows to int8 blocks, as ggml quantises activations",
      .kind = OpKind::kPack,
      .family = "lines",
      .operands = {{.name = "x", .kind = OperandKind::kFloat}},
      .attributes = {{.name = "format", .kind = AttrKind::kDType}},
      .infer = Infer,
      .reference = Reference,
      .rtol = 1e-2,
      .atol = 1e-2,
  });
  return *op;
}

}  // namespace quern::ir
