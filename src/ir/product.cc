#include "ir/product.h"

#include "base/block_format.h"

namespace quern::ir {
bool Multiplies(DType activation, DType weight) {
  if (!IsFloat(activation)) return false;
  if (activation == weight) return true;
  return activation == DType::kF32 && weight != DType::kF64 && (IsFloat(weight) || IsBlock(weight));
}

std::string WeightsOf(DType activation) {
  return activation == DType::kF32 ? "f32, f16, bf16 or a block format" : std::string(Name(activation));
}

std::optional<DType> ActivationFormat(DType weight) {
  return IsBlock(weight) ? FormatOf(weight).activation : std::nullopt;
}

}  // namespace quern::ir
