#include "ir/product.h"

namespace quern::ir {
namespace {

struct FormatRow {
  DType weight, activation;
};
constexpr FormatRow kFormats[] = {
    {DType::kQ4_0, DType::kQ8_0}, {DType::kQ8_0, DType::kQ8_0}, {DType::kQ4_K, DType::kQ8_K},
    {DType::kQ5_K, DType::kQ8_K}, {DType::kQ6_K, DType::kQ8_K},
};

}  // namespace

bool Multiplies(DType activation, DType weight) {
  if (!IsFloat(activation)) return false;
  if (activation == weight) return true;
  return activation == DType::kF32 && weight != DType::kF64 && (IsFloat(weight) || IsBlock(weight));
}

std::string WeightsOf(DType activation) {
  return activation == DType::kF32 ? "f32, f16, bf16 or a block format" : std::string(Name(activation));
}

std::optional<DType> ActivationFormat(DType weight) {
  for (const FormatRow& row : kFormats) {
    if (row.weight == weight) return row.activation;
  }
  return std::nullopt;
}

}  // namespace quern::ir
