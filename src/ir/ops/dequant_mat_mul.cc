// DequantMatMul: x by a weight [K, N] in one of the schemes of ir/packed_weight.h. Of a Param the weight is unpacked
// once per binding.

#include <cmath>

#include "base/divide.h"
#include "ir/packed_weight.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

// K and N of operands that have passed.
struct Sizes {
  int64_t k, n;
};

StatusOr<Sizes> SizesOf(const InferContext& context, const PackedScheme& scheme) {
  const TensorType &x = context.operands[kPackedX], &w = context.operands[kPackedWeight];
  if (!x.dims.back().is_constant()) return context.UnsupportedError(kPackedX, "a last dimension that is known");
  const int64_t k = x.dims.back().constant();
  if (!scheme.nibbles) {
    if (w.rank() != 2 || w.dims[0] != Extent(k) || !w.dims[1].is_constant())
      return context.ShapeError(kPackedWeight, absl::StrFormat("[%d, N]", k));
    return Sizes{k, w.dims[1].constant()};
  }
  const TensorType& scale = context.operands[kPackedScale];
  if (scale.rank() != 2 || !scale.dims[1].is_constant()) return context.ShapeError(kPackedScale, "[groups, N]");
  const int64_t n = scale.dims[1].constant(), bytes = CeilDiv(k * n, 2);
  if (w.elements() != Extent(bytes)) return context.ShapeError(kPackedWeight, absl::StrFormat("%d bytes", bytes));
  return Sizes{k, n};
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const PackedScheme& scheme = FindPackedScheme(context.attributes.String("scheme"));
  const TensorType &x = context.operands[kPackedX], &w = context.operands[kPackedWeight];
  const auto given = static_cast<int>(context.operands.size());
  if (x.rank() < 2) return context.ShapeError(kPackedX, "rank 2 or more");
  if (w.dtype != scheme.dtype) return context.DTypeError(kPackedWeight, std::string(Name(scheme.dtype)));
  const bool scaled_by_column = scheme.floats != nullptr && !scheme.nibbles;
  const int needed = scaled_by_column ? 2 : scheme.has_zero_point ? 4 : 3;
  if (given < needed)
    return context.Error(DiagnosticCode::kInputCount, needed == 4 && given == 3 ? "extra" : "scale",
                         absl::StrFormat("%d operands", needed), absl::StrFormat("%d", given));
  const int64_t block = context.attributes.Int("block");
  if (block < 1) return context.AttributeError("block", "1 or more");
  QUERN_ASSIGN(const Sizes sizes, SizesOf(context, scheme));
  const Extent groups(CeilDiv(sizes.k, RowsOfScale(scheme, context.attributes)));
  std::vector<Extent> wanted = {groups, Extent(sizes.n)};
  if (scaled_by_column) wanted = {Extent(sizes.n)};
  if (given > kPackedScale) {
    if (context.operands[kPackedScale].dtype != scheme.scale)
      return context.DTypeError(kPackedScale, std::string(Name(scheme.scale)));
    if (context.operands[kPackedScale].dims != wanted) return context.ShapeError(kPackedScale, ToString(wanted));
  }
  if (given > kPackedExtra && scheme.has_zero_point) {
    if (scheme.nibbles && scheme.floats != nullptr) wanted = {Extent(1)};
    if (context.operands[kPackedExtra].dims != wanted) return context.ShapeError(kPackedExtra, ToString(wanted));
  }
  TensorType result = x;
  result.dims.back() = Extent(sizes.n);
  return std::vector<TensorType>{std::move(result)};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value x = e.Wide(inputs[kPackedX]);
  if (!e.ok()) return e.Finish({});
  const TensorType type = e.type(x);
  const Value w = UnpackedWeight(e, node, inputs, type.dims.back(), node.results[0].dims.back(), type.dtype);
  return e.Finish({e.Stored(e.Add("MatMul", {x, w}), node.results[0].dtype)});
}

// The weight at row p and column j.
double WeightAt(const RefContext& context, int64_t n, int64_t p, int64_t j) {
  const PackedScheme& scheme = FindPackedScheme(context.node.attributes.String("scheme"));
  const auto operand = [&](PackedOperand which) -> const RefTensor* {
    return context.operands.size() > static_cast<size_t>(which) ? context.operands[which] : nullptr;
  };
  const int64_t number = p * n + j, group = p / RowsOfScale(scheme, context.node.attributes) * n + j;
  auto code = static_cast<int>(operand(kPackedWeight)->Integer(scheme.nibbles ? number / 2 : number));
  if (scheme.nibbles) code = number % 2 == 0 ? code & 15 : code >> 4;
  const RefTensor *scale = operand(kPackedScale), *extra = operand(kPackedExtra);
  if (scheme.floats != nullptr && scheme.nibbles)
    return ValueOf(*scheme.floats, code) * ValueOf(kE4m3, static_cast<int>(scale->Integer(group))) * extra->data[0];
  if (scheme.floats != nullptr) return ValueOf(*scheme.floats, code) * (scale == nullptr ? 1 : scale->data[j]);
  return (code - (scheme.has_zero_point ? extra->data[group] : 0)) * scale->data[group];
}

template <bool kSizes>
Status Product(RefContext& context) {
  const RefTensor& x = *context.operands[kPackedX];
  RefTensor& y = context.results[0];
  const int64_t k = x.dims.back(), n = y.dims.back(), elements = y.elements();
  for (int64_t at = 0; at < elements; ++at) {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      const double term = x.data[at / n * k + p] * WeightAt(context, n, p, at % n);
      sum += kSizes ? std::fabs(term) : term;
    }
    y.data[at] = kSizes ? sum : RoundTo(y.dtype, sum);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_dequant_mat_mul() {
  static const OpDef* const op = Make({
      .name = "DequantMatMul",
      .doc = "x by a weight of 8 or 4 bits a number with scales beside it",
      .kind = OpKind::kComposite,
      .operands =
          {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., M, K]"},
           {.name = "w",
            .kind = OperandKind::kInteger,
            .shape = "[K, N], or as many bytes as pairs of numbers",
            .own_dtype = true},
           {.name = "scale", .shape = "[ceil(K / block), N]; of float8 [N]", .optional = true, .own_dtype = true},
           {.name = "extra",
            .kind = OperandKind::kFloat,
            .shape = "zero points, as scale; of nvfp4 a scale of all, [1]",
            .optional = true,
            .own_dtype = true}},
      .attributes = {{.name = "scheme", .kind = AttrKind::kString, .choices = PackedSchemes()},
                     {.name = "block",
                      .kind = AttrKind::kInt,
                      .default_value = int64_t{32},
                      .doc = "rows of K that share a scale, of int8, int8a and int4"}},
      .infer = Infer,
      .reference = Product<false>,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Product<true>,
      .examples = {{{"f32[3, 37]", "i8[37, 5]", "f32[2, 5]"}, {{"scheme", std::string("int8")}}},
                   {{"f32[S, 16]", "u8[56]", "f32[2, 7]", "f32[2, 7]"},
                    {{"scheme", std::string("int4")}, {"block", int64_t{8}}}},
                   {{"f16[2, 17]", "u8[17, 3]"}, {{"scheme", std::string("fp8e4m3")}}},
                   {{"f32[2, 33]", "u8[83]", "u8[3, 5]", "f32[1]"}, {{"scheme", std::string("nvfp4")}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
