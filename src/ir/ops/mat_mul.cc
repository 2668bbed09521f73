// MatMul: a [.., M, K] by b [.., K, N], or b [.., N, K] with transpose_b; batch dimensions broadcast.
//
// b may be a weight in a block format (rows of K, so transpose_b), and a then f32 or quantised (q8_0, q8_K). The result
// is f32 for block formats, i32 of bytes (i8 and u8 in any pair), else a's dtype; halves accumulate in f32, integers
// wrap.

#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/product.h"
#include "ir/shape.h"
#include "ir/sum_products.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckAsBf16(context));
  const TensorType &a = context.operands[0], &b = context.operands[1];
  const bool transposed = context.attributes.Bool("transpose_b");
  if (a.rank() < 2) return context.ShapeError(0, "[.., M, K]");
  if (b.rank() < 2) return context.ShapeError(1, transposed ? "[.., N, K]" : "[.., K, N]");
  if (IsBlock(b.dtype) && !transposed) return context.AttributeError("transpose_b", "true beside a block-format b");
  if (IsBlock(b.dtype) && b.rank() != 2) return context.ShapeError(1, "[N, K]");
  if (IsComplex(a.dtype) != IsComplex(b.dtype))
    return context.DTypeError(1, IsComplex(a.dtype) ? "c64" : "a real number");
  if (!IsBlock(a.dtype) && !IsComplex(a.dtype) && !Multiplies(a.dtype, b.dtype)) {
    // Of two dtypes that do not go together a block format is the one to keep: it is a weight.
    return IsBlock(b.dtype) ? context.DTypeError(0, "f32 beside a block-format b")
                            : context.DTypeError(1, WeightsOf(a.dtype));
  }
  if (IsBlock(a.dtype) && !IsBlock(b.dtype)) return context.DTypeError(1, "a block format beside quantised a");
  if (const DType format = ActivationFormat(b.dtype).value_or(DType::kF32); IsBlock(a.dtype) && a.dtype != format) {
    return context.UnsupportedError(
        0, absl::StrFormat("%s beside %s", std::string(Name(format)), std::string(Name(b.dtype))));
  }
  const Extent &k = a.dims.back(), &b_k = transposed ? b.dims.back() : b.dims[b.rank() - 2];
  if (!context.Equal(k, b_k)) {
    return context.ShapeError(1,
                              absl::StrCat("[.., ", transposed ? "N, " : "", k.ToString(), transposed ? "]" : ", N]"));
  }
  const std::vector<Extent> batch = {a.dims.begin(), a.dims.end() - 2};
  StatusOr<std::vector<Extent>> broadcast =
      BroadcastDims(batch, {b.dims.begin(), b.dims.end() - 2}, context.constraints);
  if (!broadcast.ok()) return context.ShapeError(1, absl::StrCat("batches that broadcast with ", ToString(batch)));
  std::vector<Extent> dims = *std::move(broadcast);
  dims.push_back(a.dims[a.rank() - 2]);
  dims.push_back(transposed ? b.dims[b.rank() - 2] : b.dims.back());
  return std::vector<TensorType>{{ProductType(a.dtype, b.dtype), std::move(dims)}};
}

// Every result is a sum over K.
struct Terms {
  template <typename Visit>
  static void ForEach(RefContext& context, const Visit& visit) {
    const RefTensor &a = *context.operands[0], &b = *context.operands[1];
    const RefTensor& y = context.results[0];
    const bool transposed = context.node.attributes.Bool("transpose_b");
    const int64_t k = a.dims.back();
    const size_t rank = y.dims.size();
    std::vector<int64_t> index(rank), at_a(rank), at_b(rank);
    const int64_t step = transposed ? 1 : y.dims.back();  // of b, from one term to the next
    const int64_t elements = y.elements();
    for (int64_t at = 0; at < elements; ++at) {
      at_a = at_b = index;
      at_a[rank - 1] = at_b[rank - 2] = at_b[rank - 1] = 0;
      at_b[rank - (transposed ? 2 : 1)] = index[rank - 1];
      const int64_t x = a.Offset(at_a), w = b.Offset(at_b);
      for (int64_t i = 0; i < k; ++i) visit(at, x + i, w + i * step);
      NextIndex(y.dims, index);
    }
  }
};

// One product of reals: rows of re, im, re, im, .. of a by rows (re, im) and (-im, re) of b.
StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  Value b = context.x[1];
  const auto batch = [&](int side) {
    return std::vector<Extent>(context.types[side].dims.begin(), context.types[side].dims.end() - 2);
  };
  std::vector<Extent> rows = batch(0), turned = batch(1);
  if (context.node.attributes.Bool("transpose_b")) {
    std::vector<int64_t> perm(context.rank(1) + 1);
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[perm.size() - 2], perm[perm.size() - 3]);
    b = e.Add("Transpose", {b}, {{"perm", perm}});
  }
  if (!e.ok()) return e.Finish({});
  const std::vector<Extent> shape = e.type(b).dims;  // [.., K, N, 2]
  const Extent k = shape[shape.size() - 3], n = shape[shape.size() - 2];
  const Parts parts = PartsOf(e, b);
  const Value other = PairsOf(e, {e.Add("Neg", {parts.im}), parts.re});
  // [.., K, 2, N 2]
  std::vector<Extent> row = turned;
  row.insert(row.end(), {k, Extent(1), n * 2});
  const Value both = e.Add("Concat", {e.Sized(b, row), e.Sized(other, row)}, {{"axis", int64_t{-2}}});
  turned.insert(turned.end(), {k * 2, n * 2});
  rows.insert(rows.end(), {context.types[0].dims[context.rank(0) - 2], context.types[0].dims.back() * 2});
  const Value product = e.Add("MatMul", {e.Sized(context.x[0], rows), e.Sized(both, turned)});
  std::vector<Extent> dims = context.node.results[0].dims;
  dims.emplace_back(2);
  return e.Finish({e.Sized(product, std::move(dims))});
}

Status Reference(RefContext& context) {
  const RefTensor &a = *context.operands[0], &b = *context.operands[1];
  RefTensor& y = context.results[0];
  if (!IsComplex(y.dtype)) return ReferenceOfTerms<Terms>(context);
  Terms::ForEach(context, [&](int64_t at, int64_t x, int64_t w) {
    y.SetComplex(at, y.Complex(at) + a.Complex(x) * b.Complex(w));
  });
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  const RefTensor &a = *context.operands[0], &b = *context.operands[1];
  if (!IsComplex(a.dtype)) return MagnitudeOfProducts<SumsOf<Terms>>(context);
  Terms::ForEach(context, [&](int64_t at, int64_t x, int64_t w) {
    context.results[0].data[at] += std::abs(a.Complex(x)) * std::abs(b.Complex(w));
  });
  return absl::OkStatus();
}

// The permutation that exchanges the last two of `rank` dimensions.
std::vector<int64_t> LastExchanged(size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

// A transposed right side is read as it lies, and so is one column, which is a row.
// Blocks that are read as numbers before a product does so itself: only where it does no more than that, and multiplies
// no bytes with them.
Replacement OfBlocks(const IdentityContext& context, Value rows) {
  const std::optional<Value> blocks = AllRowsOf(context.graph, rows);
  if (!blocks || context.type(0).dtype != DType::kF32) return std::nullopt;
  const TensorType& type = context.graph.type(*blocks);
  if (type.rank() != 2 || !IsBlock(type.dtype) || ActivationFormat(type.dtype)) return std::nullopt;
  return MakeProductOfRows(context.make, context.inputs[0], *blocks);
}

Replacement Identity(const IdentityContext& context) {
  if (context.node.attributes.Bool("transpose_b")) return OfBlocks(context, context.inputs[1]);
  if (std::vector<Extent> dims = context.type(1).dims; dims.back() == Extent(1)) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    QUERN_ASSIGN(const Value row, MakeReshaped(context.make, context.inputs[1], std::move(dims)));
    return MakeProductOfRows(context.make, context.inputs[0], row);
  }
  const Node& behind = context.behind(1);
  if (behind.op->name != std::string_view("Transpose")) return std::nullopt;
  const std::vector<int64_t>& perm = behind.attributes.Ints("perm");
  if (perm != LastExchanged(perm.size())) return std::nullopt;
  QUERN_ASSIGN(const std::optional<Value> of_blocks, OfBlocks(context, behind.inputs[0]));
  if (of_blocks) return of_blocks;
  return MakeProductOfRows(context.make, context.inputs[0], behind.inputs[0]);
}

// Element k along an axis, as a dimension of one.
StatusOr<Value> At(const MakeNode& make, const Graph& graph, Value value, int axis, int64_t k) {
  if (graph.type(value).dims[axis] == Extent(1)) return value;
  return make("Narrow", {value},
              {{"axis", static_cast<int64_t>(axis)},
               {"start", std::vector<Extent>{Extent(k)}},
               {"length", std::vector<Extent>{Extent(1)}}});
}

// Rows of K as [.., K, N]. Each row of the result reads them, so what is turned has memory of its own.
StatusOr<Value> Turned(const MakeNode& make, const Graph& graph, Value rows) {
  const TensorType type = graph.type(rows);
  QUERN_ASSIGN(const Value turned, MakePermuted(make, rows, LastExchanged(type.dims.size())));
  if (type.dims.back() == Extent(1)) return turned;
  return MakeCopy(make, turned, type.dtype);
}

}  // namespace

StatusOr<Value> MakeShortSum(const MakeNode& make, const Graph& graph, Value a, Value b, bool rows, Value zero) {
  if (rows) {
    QUERN_ASSIGN(b, Turned(make, graph, b));
  }
  const int64_t terms = graph.type(a).dims.back().constant();
  Value sum = zero;
  for (int64_t k = 0; k < terms; ++k) {
    QUERN_ASSIGN(const Value column, At(make, graph, a, graph.type(a).rank() - 1, k));
    QUERN_ASSIGN(const Value row, At(make, graph, b, graph.type(b).rank() - 2, k));
    QUERN_ASSIGN(const Value term, make("Mul", {column, row}, {}));
    QUERN_ASSIGN(sum, make("Add", {term, sum}, {}));
  }
  return sum;
}

const OpDef& Op_mat_mul() {
  static const OpDef* const op = Make({
      .name = "MatMul",
      .doc = "matrix product; batch dimensions broadcast",
      .kind = OpKind::kRoot,
      .family = "matmul",
      .operands = {{.name = "a", .kind = OperandKind::kLeftSide, .shape = "[.., M, K]", .own_dtype = true},
                   {.name = "b",
                    .kind = OperandKind::kRightSide,
                    .shape = "[.., K, N], transposed [.., N, K]",
                    .own_dtype = true}},
      .attributes = {{.name = "transpose_b", .kind = AttrKind::kBool, .default_value = false, .doc = "b is [N, K]"},
                     AsBf16Attribute()},
      .infer = Infer,
      .identity = Identity,
      .reference = Reference,
      .pairs = Pairs,
      .rtol = kProductError,
      .contract = ContractOfProduct,
      .magnitude = Magnitude,
      .onnx = "MatMul",
      .examples = {{{"f32[2, 3]", "f32[3, 5]"}}},
  });
  return *op;
}

bool IsMatMul(const Node& node) { return node.op == &Op_mat_mul(); }

AttrDef AsBf16Attribute() {
  return {.name = "as_bf16",
          .kind = AttrKind::kBool,
          .default_value = false,
          .doc = "f32 and halves may be taken as sums of two bf16: off by 7.2e-5 of the terms",
          .rare = true};
}

bool MayTakeAsBf16(DType activation, DType weight) {
  return activation == DType::kF32 && (weight == DType::kF16 || weight == DType::kBF16);
}

bool MayBeAsBf16(const Node& product) { return product.attributes.Find("as_bf16") != nullptr; }

Contract ContractOfProduct(const Node& product) {
  Contract contract = ContractOf(*product.op, product.results[0].dtype);
  if (MayBeAsBf16(product)) contract.rtol = kAsBf16Error;
  return contract;
}

Status CheckAsBf16(const InferContext& context) {
  const bool taken = MayTakeAsBf16(context.operands[0].dtype, context.operands[1].dtype);
  if (taken || context.attributes.Find("as_bf16") == nullptr) return absl::OkStatus();
  return context.AttributeError("as_bf16", "false but of f32 by f16 or bf16");
}

bool ReadsRows(const Node& product) { return product.attributes.Bool("transpose_b"); }

StatusOr<Value> MakeProductOfRows(const MakeNode& make, Value a, Value rows) {
  return make("MatMul", {a, rows}, {{"transpose_b", true}});
}

}  // namespace quern::ir
