// Quantised numbers: sums of products stay in integers.

#include "onnx/quantised.h"

#include <algorithm>

#include "ir/integer_product.h"
#include "onnx/block_codes.h"
#include "onnx/products.h"
#include "onnx/table.h"

namespace quern::onnx {

Value One(Call& c, Value value) { return c.type(value).elements() == Extent(1) ? c.Reshape(value, {}) : value; }

namespace {

// `zero` may be absent; [1] is a number.
ir::ZeroPoint ZeroOf(Call& c, const std::optional<Value>& zero) {
  if (!zero) return {};
  return {One(c, *zero), c.MaybeInts(*zero)};
}

}  // namespace

Value ByteProduct(Call& c, Value a, std::optional<Value> a_zero, Value b, std::optional<Value> b_zero, bool rows) {
  const ir::ZeroPoint za = ZeroOf(c, a_zero), zb = ZeroOf(c, b_zero);
  return c.Chain({a, b}, [&](ir::Expansion& e) { return ir::ProductOfBytes(e, a, za, b, zb, rows); });
}

Value Dequantised(Call& c, Value x, Value scale, std::optional<Value> zero, int64_t axis) {
  Values operands = {x, One(c, scale)};
  if (zero) operands.push_back(One(c, *zero));
  if (c.rank(operands[1]) == 0) axis = 0;
  return c.Add("DequantizeLinear", operands, {{"axis", axis}});
}

std::optional<Value> Maybe(Call& c, int i) {
  if (!c.Has(i)) return std::nullopt;
  return c.x(i);
}

Value DequantisedAt(Call& c, int i) { return Dequantised(c, c.x(i), c.x(i + 1), Maybe(c, i + 2)); }

Value Quantised(Call& c, Value x, Value scale, Value zero) {
  return c.Add("QuantizeLinear", {x, One(c, scale), One(c, zero)}, {{"axis", int64_t{0}}});
}

Value QuantisedBy(Call& c, Value x, int scale) {
  const std::optional<Value> zero = Maybe(c, scale + 1);
  return Quantised(c, x, c.x(scale), zero ? *zero : c.Scalar(0, c.dtype(c.x(0))));
}

Value Requantised(Call& c, Value sum, Value scale, Value zero) {
  const Value scaled = c.Add("Round", {c.Add("Mul", {c.Cast(sum, DType::kF32), scale})});
  const Value moved = c.Add("Add", {scaled, c.Cast(zero, DType::kF32)});
  return c.Cast(moved, c.dtype(zero));  // which saturates
}

DynamicForm DynamicFormOf(Call& c, Value x) {
  Ints axes;
  for (int64_t d = 0; d < c.rank(x); ++d) axes.push_back(d);
  const Value zero = c.Scalar(0, DType::kF32), most = c.Scalar(255, DType::kF32);
  const Value low = c.Add("Min", {c.Reduce("min", x, axes, false), zero});
  const Value high = c.Add("Max", {c.Reduce("max", x, axes, false), zero});
  const Value scale = c.Add("Div", {c.Add("Sub", {high, low}), most});
  const Value divisor = c.Add("Where", {c.Add("Eq", {scale, zero}), c.Scalar(1, DType::kF32), scale});
  const Value place = c.Add("Clamp", {c.Add("Round", {c.Add("Neg", {c.Add("Div", {low, divisor})})}), zero, most});
  return {scale, c.Cast(place, DType::kU8), divisor};
}

namespace {

// The attributes and scales of QuantizeLinear and DequantizeLinear.
void ScaleForm(Call& c, Value x, Values& operands, ir::Attributes& attributes) {
  const int64_t block = c.Int("block_size", 0);
  for (size_t i = 1; i < operands.size() && block == 0; ++i) operands[i] = One(c, operands[i]);
  const bool one = c.rank(operands[1]) == 0 && block == 0;
  attributes.Set("axis", one ? 0 : c.Axis(c.Int("axis", 1), c.rank(x)));
  attributes.Set("block", block);
}

void QuantizeLinear(Call& c) {
  const Value x = c.x(0);
  const DType dtype = IsFloat(c.dtype(x)) ? c.dtype(x) : DType::kF32;
  Values operands = {c.Cast(x, dtype), c.Cast(c.x(1), dtype)};
  ir::Attributes attributes;
  if (c.Has(2)) {
    operands.push_back(c.x(2));
  } else if (const int64_t to = c.Int("output_dtype", 0); to != 0) {
    const StatusOr<DType> dtype = DTypeOf(static_cast<int>(to));
    if (!dtype.ok() || to > 16) return c.Fail("there is no quantisation to %s", TypeName(static_cast<int>(to)));
    attributes.Set("to", *dtype);
  }
  ScaleForm(c, x, operands, attributes);
  c.Return(c.Add("QuantizeLinear", operands, attributes));
}

// A matrix of the file in whole blocks of 32 along K, with scales of f32, [K, N] or, along the last axis, [N, K]: kept
// in blocks, which products and gathers read as they are. Nothing for any other.
std::optional<Value> AsBlocks(Call& c) {
  const Data *const codes = c.item(0).data.get(), *const scales = c.item(1).data.get();
  const int64_t block = c.Int("block_size", 0);
  if (codes == nullptr || scales == nullptr || (codes->dtype != DType::kI8 && codes->dtype != DType::kU8) ||
      codes->dims.size() != 2 || scales->dtype != DType::kF32 || block < 1 || block > 1 << 24)
    return std::nullopt;
  const Data* const zeros = c.Has(2) ? c.item(2).data.get() : nullptr;
  if (c.Has(2) && (zeros == nullptr || zeros->dtype != codes->dtype || zeros->dims != scales->dims))
    return std::nullopt;
  const int64_t axis = c.Axis(c.Int("axis", 1), 2);
  BlockCodes w = {codes->dims[axis], codes->dims[1 - axis], block, 4};
  if (!c.ok() || !w.FitBlocks() || w.k == 0 || w.n == 0) return std::nullopt;
  const std::vector<int64_t> turned = {w.blocks(), w.n}, straight = {w.n, w.blocks()};
  if (scales->dims != (axis == 0 ? turned : straight)) return std::nullopt;
  const int low = codes->dtype == DType::kI8 ? -8 : 0;
  const bool is_small = std::ranges::all_of(codes->bytes, [&](uint8_t byte) {
    const int code = codes->dtype == DType::kI8 ? static_cast<int8_t>(byte) : byte;
    return code >= low && code < low + 16;
  });
  if (!is_small) w.bits = 8;
  ReadBlockCodes(c, {.codes = 0, .scales = 1, .zeros = 2, .zero = 0, .turned = axis == 0}, w);
  if (!c.ok()) return std::nullopt;
  const Value numbers = c.Add("Dequantise", {BlocksOfFloats(c, c.item(0).name, w)});
  return axis == 0 ? c.Transpose(numbers, {1, 0}) : numbers;
}

void DequantizeLinear(Call& c) {
  if (const std::optional<Value> blocks = AsBlocks(c); blocks || !c.ok()) return c.Return(blocks.value_or(Value()));
  const Value x = c.x(0);
  const Value scale = c.x(1);
  if (IsFloat(c.dtype(x))) {
    // Floats of 8 bits, which are f16 here.
    if (c.rank(One(c, scale)) != 0) return c.Fail("floats of 8 bits with a scale of each index have no op");
    return c.Return(c.Add("Mul", {c.Cast(x, c.dtype(scale)), One(c, scale)}));
  }
  Values operands = {x, scale};
  if (c.Has(2)) operands.push_back(c.x(2));
  ir::Attributes attributes;
  ScaleForm(c, x, operands, attributes);
  c.Return(c.Add("DequantizeLinear", operands, attributes));
}

void DynamicQuantizeLinear(Call& c) {
  const Value x = c.x(0);
  const DynamicForm form = DynamicFormOf(c, x);
  c.Return(c.Add("QuantizeLinear", {x, form.divisor, form.zero}));
  c.Return(1, form.scale);
  c.Return(2, form.zero);
}

void MatMulInteger(Call& c) {
  Value a = c.x(0), b = c.x(1);
  const bool row = c.rank(a) == 1, column = c.rank(b) == 1;
  if (row) a = c.Reshape(a, {Extent(1), c.dim(a, 0)});
  if (column) b = c.Reshape(b, {c.dim(b, 0), Extent(1)});
  const Value sum = ByteProduct(c, a, Maybe(c, 2), b, Maybe(c, 3));
  Extents dims = c.type(sum).dims;
  if (column && !dims.empty()) dims.pop_back();
  if (row && dims.size() >= (column ? 1 : 2)) dims.erase(dims.end() - (column ? 1 : 2));
  c.Return(c.Reshape(sum, dims));
}

void QLinearMatMul(Call& c) {
  const Value a = c.x(0), b = c.x(3);
  const Value sum = ByteProduct(c, a, c.x(2), b, c.x(5));
  const auto rows = [&](Value scale) {
    scale = One(c, scale);
    return c.rank(scale) == 1 ? c.Reshape(scale, {c.dim(scale, 0), Extent(1)}) : scale;
  };
  const Value scale = c.Add("Div", {c.Add("Mul", {rows(c.x(1)), One(c, c.x(4))}), rows(c.x(6))});
  c.Return(Requantised(c, sum, scale, rows(c.x(7))));
}

// The sums of a convolution of bytes, [N, M, places..], i32.
Value ConvSums(Call& c, Value x, std::optional<Value> x_zero, Value w, std::optional<Value> w_zero) {
  Ints kernel;
  for (int d = 2; d < c.rank(w); ++d) kernel.push_back(c.fixed_dim(w, d));
  const Windows windows = WindowsOf(c, x, kernel);
  const int64_t groups = std::max<int64_t>(c.Int("group", 1), 1);
  const ir::ZeroPoint zx = ZeroOf(c, x_zero), zw = ZeroOf(c, w_zero);
  if (!c.dim(w, 0).DividedBy(Extent(groups)) || (zx.known && zx.known->size() != 1)) {
    c.Fail(absl::InvalidArgumentError("its groups or zero points do not fit"));
    return x;
  }
  const ir::Window window = ir::WindowOf(windows.Attributes(), kernel);
  return c.Chain({x, w}, [&](ir::Expansion& e) { return ir::ConvolutionOfBytes(e, x, zx, w, zw, window, groups); });
}

void ConvInteger(Call& c) { c.Return(ConvSums(c, c.x(0), Maybe(c, 2), c.x(1), Maybe(c, 3))); }

void QLinearConv(Call& c) {
  const Value x = c.x(0), w = c.x(3);
  Value sum = ConvSums(c, x, c.x(2), w, c.x(5));
  Extents beside(std::max(1, c.rank(x) - 1), Extent(1));
  beside[0] = c.dim(w, 0);
  const auto per_channel = [&](Value vector) {
    vector = One(c, vector);
    return c.rank(vector) == 0 ? vector : c.Reshape(vector, beside);
  };
  if (c.Has(8)) sum = c.Add("Add", {sum, c.Reshape(c.x(8), beside)});
  const Value scale = c.Add("Div", {c.Add("Mul", {One(c, c.x(1)), per_channel(c.x(4))}), One(c, c.x(6))});
  c.Return(Requantised(c, sum, scale, One(c, c.x(7))));
}

constexpr Importer kRows[] = {
    {"ConvInteger", ConvInteger, "", 2},
    {"DequantizeLinear", DequantizeLinear, "", 2},
    {"DequantizeLinear", DequantizeLinear, "", 2, kContrib},
    {"DynamicQuantizeLinear", DynamicQuantizeLinear},
    {"MatMulInteger", MatMulInteger, "", 2},
    {"QLinearConv", QLinearConv, "", 8},
    {"QLinearMatMul", QLinearMatMul, "", 8},
    {"QuantizeLinear", QuantizeLinear, "", 2},
    {"QuantizeLinear", QuantizeLinear, "", 2, kContrib},
};

}  // namespace

std::span<const Importer> QuantisedImporters() { return kRows; }

}  // namespace quern::onnx
