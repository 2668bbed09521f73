#include "ir/product.h"

#include "base/block_format.h"
#include "ir/spelled_out.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

constexpr int64_t kShortSum = 4;

// Whether it is windows of an image, of which products read what they need.
bool IsWindows(const Graph& graph, Value value) {
  int n = value.node;
  while (IsReshape(graph, graph.node(n)) || IsCast(graph.node(n)) || PermutationOf(graph.node(n)) != nullptr)
    n = graph.node(n).inputs[0].node;
  return IsWindow(graph.node(n));
}

}  // namespace

bool IsShortFloat(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }
bool IsByte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

bool IsShortSum(const Graph& graph, const Node& node) {
  if (!IsMatMul(node)) return false;
  const TensorType &a = graph.type(node.inputs[0]), &b = graph.type(node.inputs[1]);
  const bool whole = a.dtype == DType::kF32 || a.dtype == DType::kF64;
  const Extent& k = a.dims.back();
  return IsFloat(a.dtype) && a.dtype == b.dtype && k.is_constant() && k.constant() > 0 &&
         k.constant() <= (whole ? kShortSum : 1) && !IsWindows(graph, node.inputs[0]) &&
         !IsWindows(graph, node.inputs[1]);
}

bool Multiplies(DType activation, DType weight) {
  if (IsByte(activation)) return IsByte(weight);
  if (activation == DType::kI32 || activation == DType::kI64) return activation == weight;
  if (!IsFloat(activation)) return false;
  if (activation == weight) return true;
  return activation == DType::kF32 && weight != DType::kF64 && (IsFloat(weight) || IsBlock(weight));
}

DType ProductType(DType activation, DType weight) {
  if (IsBlock(weight)) return DType::kF32;
  return IsByte(activation) ? DType::kI32 : activation;
}

std::string WeightsOf(DType activation) {
  if (IsByte(activation)) return "i8 or u8";
  return activation == DType::kF32 ? "f32, f16, bf16 or a block format" : std::string(Name(activation));
}

std::optional<DType> ActivationFormat(DType weight) {
  return IsBlock(weight) ? FormatOf(weight).activation : std::nullopt;
}

}  // namespace quern::ir
