// ScaledMatMul: a product of floats of 8, 6 or 4 bits, codes in u8, of which both sides have scales: one for all, or
// one for each row and each `block` elements of it (the last of which may be short), or for each whole row.
//
//   a [.., M, K]   b [.., N, K]   a_scale [] or [.., M, ceil(K / block)]   b_scale [] or [.., N, ceil(K / block)]
//   y[m, n] = sum_k a[m, k] sa[m, k / block] b[n, k] sb[n, k / block]
// Elements times their scales are f32: scales of e8m0 near the ends of its range leave it.

#include <cmath>

#include "ir/linear_quantise.h"
#include "ir/shape.h"
#include "ir/small_float.h"

namespace quern::ir {
namespace {

enum : int { kA, kB, kScaleA, kScaleB };

constexpr const char* kFormats[] = {"a_format", "b_format"};

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &a = context.operands[kA], &b = context.operands[kB];
  const int64_t block = context.attributes.Int("block");
  if (block < 0) return context.AttributeError("block", "0 or more");
  const DType to = context.attributes.Type("to");
  if (!IsFloat(to) || to == DType::kF64) return context.AttributeError("to", "f32, f16 or bf16");
  for (const int operand : {kA, kB}) {
    if (context.operands[operand].dtype != DType::kU8) return context.DTypeError(operand, "u8");
    if (context.operands[operand].rank() < 2) return context.ShapeError(operand, "rank 2 or more");
  }
  const Extent& k = a.dims.back();
  if (!context.Equal(b.dims.back(), k)) return context.ShapeError(kB, absl::StrFormat("[.., N, %s]", k.ToString()));
  for (int operand = kScaleA; operand < static_cast<int>(context.operands.size()); ++operand) {
    QUERN_RETURN_IF_ERROR(CheckScaleDType(context, operand));
    const TensorType& scale = context.operands[operand];
    if (scale.rank() == 0) continue;
    std::vector<Extent> wanted = context.operands[operand - kScaleA].dims;
    wanted.back() = block == 0 ? Extent(1) : k.CeilDividedBy(block);
    if (!context.Equal(scale.dims, wanted))
      return context.ShapeError(operand, absl::StrCat("[] or ", ToString(wanted)));
  }
  const std::vector<Extent> batch = {a.dims.begin(), a.dims.end() - 2};
  StatusOr<std::vector<Extent>> broadcast =
      BroadcastDims(batch, {b.dims.begin(), b.dims.end() - 2}, context.constraints);
  if (!broadcast.ok()) return context.ShapeError(kB, absl::StrCat("batches that broadcast with ", ToString(batch)));
  std::vector<Extent> dims = *std::move(broadcast);
  dims.push_back(a.dims[a.rank() - 2]);
  dims.push_back(b.dims[b.rank() - 2]);
  return std::vector<TensorType>{{to, std::move(dims)}};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::string& scales = node.attributes.String("scale_format");
  const auto side = [&](int operand) {
    Attributes attributes = {{"format", node.attributes.String(kFormats[operand])}, {"scale_format", scales}};
    std::vector<Value> operands = {inputs[operand]};
    const size_t scale = operand + kScaleA;
    if (inputs.size() <= scale) return e.Add("DequantizeFloat", operands, attributes);
    const int64_t block = node.attributes.Int("block");
    const bool one = graph.type(inputs[scale]).rank() == 0;
    if (one || block > 0) {
      operands.push_back(inputs[scale]);
      if (!one) attributes.Set("axis", int64_t{-1}), attributes.Set("block", block);
      return e.Add("DequantizeFloat", operands, attributes);
    }
    // A scale of each row.
    const Value rows = ScaleFloats(e, inputs[scale], node.attributes, DType::kF32);
    return e.Add("Mul", {e.Add("DequantizeFloat", operands, attributes), rows});
  };
  const Value a = side(kA), b = side(kB);
  return e.Finish({e.Stored(e.Add("MatMul", {a, b}, {{"transpose_b", true}}), node.results[0].dtype)});
}

// The element of operand kA or kB at `index`, scaled.
double Element(const RefContext& context, int operand, const std::vector<int64_t>& index) {
  const Attributes& attributes = context.node.attributes;
  const RefTensor& x = *context.operands[operand];
  const SmallFloat& format = FindSmallFloat(attributes.String(kFormats[operand]));
  const double value = ValueOf(format, static_cast<int>(x.integers[x.Offset(index)]) % format.codes());
  const size_t scale = operand + kScaleA;
  if (context.operands.size() <= scale) return value;
  const RefTensor& by = *context.operands[scale];
  if (by.dims.empty()) return value * ScaleFloat(by, 0, attributes);
  std::vector<int64_t> at = index;
  const int64_t block = attributes.Int("block");
  at.back() = block == 0 ? 0 : at.back() / block;
  return value * ScaleFloat(by, by.Offset(at), attributes);
}

template <bool kSizes>
Status Product(RefContext& context) {
  RefTensor& y = context.results[0];
  const int64_t k = context.operands[kA]->dims.back(), elements = y.elements();
  std::vector<int64_t> index(y.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    std::vector<int64_t> left = index, right = index;
    right[right.size() - 2] = index.back();
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      left.back() = right.back() = p;
      const double term = Element(context, kA, left) * Element(context, kB, right);
      sum += kSizes ? std::fabs(term) : term;
    }
    y.data[at] = kSizes ? sum : RoundTo(y.dtype, sum);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_scaled_mat_mul() {
  static const OpDef* const op = [] {
    AttrDef format = {.name = "", .kind = AttrKind::kString, .default_value = std::string(kE4m3.name)};
    format.choices = SmallFloats();
    AttrDef a_format = format, b_format = format;
    a_format.name = kFormats[kA], b_format.name = kFormats[kB];
    return Make({
        .name = "ScaledMatMul",
        .doc = "a product of floats of 8, 6 or 4 bits with scales, as floats",
        .kind = OpKind::kComposite,
        .operands =
            {{.name = "a", .kind = OperandKind::kInteger, .shape = "u8 [.., M, K], a code each"},
             {.name = "b", .kind = OperandKind::kInteger, .shape = "u8 [.., N, K]"},
             {.name = "a_scale",
              .shape = "[] or [.., M, ceil(K / block)]; floats, or codes in u8",
              .optional = true,
              .own_dtype = true},
             {.name = "b_scale", .shape = "[] or [.., N, ceil(K / block)]", .optional = true, .own_dtype = true}},
        .attributes = {a_format,
                       b_format,
                       {.name = "block",
                        .kind = AttrKind::kInt,
                        .default_value = int64_t{0},
                        .doc = "elements of a row that share a scale; 0: all"},
                       ScaleFormat(),
                       {.name = "to", .kind = AttrKind::kDType, .default_value = DType::kF32}},
        .infer = Infer,
        .reference = Product<false>,
        .expand = Expand,
        .rtol = 2e-5,
        .magnitude = Product<true>,
        .examples = {{{"u8[3, 37]", "u8[5, 37]"}},
                     {{"u8[S, 64]", "u8[7, 64]", "u8[S, 2]", "u8[7, 2]"},
                      {{"a_format", std::string("e2m1")},
                       {"b_format", std::string("e2m3")},
                       {"block", int64_t{32}},
                       {"scale_format", std::string("e4m3")}}},
                     {{"u8[2, 3, 17]", "u8[5, 17]", "f32[2, 3, 1]", "f32[]"},
                      {{"b_format", std::string("e3m2")}, {"to", DType::kF16}}}},
    });
  }();
  return *op;
}

}  // namespace quern::ir
