// DotGeneral: sums over the contracted dimensions of products of elements that agree on them and on batch dimensions.
// Result dimensions: batch (in the order of lhs), those of lhs that are left, those of rhs that are left.

#include <algorithm>
#include <tuple>

#include "ir/composite.h"
#include "ir/product.h"
#include "ir/shape.h"
#include "ir/sum_products.h"

namespace quern::ir {
namespace {

// Dimensions of one side, from the start: batch, free, contracted.
struct Side {
  std::vector<int64_t> batch, free, contract;
};

Side SideOf(const Attributes& attributes, const char* batch, const char* contract, size_t rank) {
  Side side;
  for (const int64_t d : attributes.Ints(batch)) side.batch.push_back(FromStart(d, rank));
  for (const int64_t d : attributes.Ints(contract)) side.contract.push_back(FromStart(d, rank));
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d) {
    const auto has = [d](const std::vector<int64_t>& dims) {
      return std::find(dims.begin(), dims.end(), d) != dims.end();
    };
    if (!has(side.batch) && !has(side.contract)) side.free.push_back(d);
  }
  return side;
}
Side Left(const Attributes& attributes, size_t rank) { return SideOf(attributes, "lhs_batch", "lhs_contract", rank); }
Side Right(const Attributes& attributes, size_t rank) { return SideOf(attributes, "rhs_batch", "rhs_contract", rank); }

// Each dimension at most once.
Status CheckSide(const InferContext& context, int operand, const char* batch, const char* contract) {
  std::vector<bool> seen(context.operands[operand].dims.size());
  for (const char* const name : {batch, contract}) {
    for (int64_t d : context.attributes.Ints(name)) {
      d = FromStart(d, seen.size());
      if (d < 0 || d >= static_cast<int64_t>(seen.size()) || seen[d])
        return context.AttributeError(name,
                                      absl::StrFormat("dimensions of %s, each once", OperandName(context.op, operand)));
      seen[d] = true;
    }
  }
  return absl::OkStatus();
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &a = context.operands[0], &b = context.operands[1];
  QUERN_RETURN_IF_ERROR(CheckSide(context, 0, "lhs_batch", "lhs_contract"));
  QUERN_RETURN_IF_ERROR(CheckSide(context, 1, "rhs_batch", "rhs_contract"));
  const Side left = Left(context.attributes, a.dims.size()), right = Right(context.attributes, b.dims.size());
  for (const auto& [name, of_left, of_right] : {std::tuple("rhs_batch", &left.batch, &right.batch),
                                                std::tuple("rhs_contract", &left.contract, &right.contract)}) {
    if (of_left->size() != of_right->size())
      return context.AttributeError(name, absl::StrFormat("%u dimensions, as lhs has", of_left->size()));
    for (size_t i = 0; i < of_left->size(); ++i) {
      const Extent& size = a.dims[(*of_left)[i]];
      if (!context.Equal(size, b.dims[(*of_right)[i]]))
        return context.ShapeError(1,
                                  absl::StrFormat("%s elements along dimension %d", size.ToString(), (*of_right)[i]));
    }
  }
  if (!Multiplies(a.dtype, a.dtype)) return context.DTypeError(0, "a float, i8, u8, i32 or i64");
  if (!Multiplies(a.dtype, b.dtype) || (IsFloat(a.dtype) && a.dtype != b.dtype))
    return context.DTypeError(1, IsFloat(a.dtype) ? std::string(Name(a.dtype)) : WeightsOf(a.dtype));
  TensorType result{ProductType(a.dtype, b.dtype), {}};
  for (const int64_t d : left.batch) result.dims.push_back(a.dims[d]);
  for (const int64_t d : left.free) result.dims.push_back(a.dims[d]);
  for (const int64_t d : right.free) result.dims.push_back(b.dims[d]);
  return std::vector<TensorType>{std::move(result)};
}

Extent ProductOf(const std::vector<Extent>& dims, const std::vector<int64_t>& of) {
  Extent product(1);
  for (const int64_t d : of) product = product * dims[d];
  return product;
}

// The side as [batch.., rows, columns], each of those two a list of its dimensions.
Value AsMatrices(Expansion& e, Value value, const Side& side, const std::vector<int64_t>& rows,
                 const std::vector<int64_t>& columns) {
  const std::vector<Extent> dims = e.type(value).dims;
  std::vector<int64_t> perm = side.batch;
  perm.insert(perm.end(), rows.begin(), rows.end());
  perm.insert(perm.end(), columns.begin(), columns.end());
  std::vector<Extent> result;
  for (const int64_t d : side.batch) result.push_back(dims[d]);
  result.insert(result.end(), {ProductOf(dims, rows), ProductOf(dims, columns)});
  return e.Sized(e.Add("Transpose", {value}, {{"perm", perm}}), std::move(result));
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Side left = Left(node.attributes, graph.type(inputs[0]).dims.size()),
             right = Right(node.attributes, graph.type(inputs[1]).dims.size());
  // Rows of k where those are what lies together.
  const bool rows = !right.contract.empty() && right.contract.back() + 1 == graph.type(inputs[1]).rank();
  const Value a = AsMatrices(e, inputs[0], left, left.free, left.contract);
  const Value b = rows ? AsMatrices(e, inputs[1], right, right.free, right.contract)
                       : AsMatrices(e, inputs[1], right, right.contract, right.free);
  return e.Finish({e.Sized(e.Add("MatMul", {a, b}, {{"transpose_b", rows}}), node.results[0].dims)});
}

struct Terms {
  template <typename Visit>
  static void ForEach(RefContext& context, const Visit& visit) {
    const RefTensor &a = *context.operands[0], &b = *context.operands[1];
    const RefTensor& y = context.results[0];
    const Side left = Left(context.node.attributes, a.dims.size()),
               right = Right(context.node.attributes, b.dims.size());
    std::vector<int64_t> index(y.dims.size()), at_a(a.dims.size()), at_b(b.dims.size()), sizes;
    int64_t count = 1;
    for (const int64_t d : left.contract) {
      sizes.push_back(a.dims[d]);
      count *= a.dims[d];
    }
    const int64_t elements = y.elements();
    for (int64_t at = 0; at < elements; ++at) {
      size_t next = 0;
      for (size_t i = 0; i < left.batch.size(); ++i, ++next) at_a[left.batch[i]] = at_b[right.batch[i]] = index[next];
      for (const int64_t d : left.free) at_a[d] = index[next++];
      for (const int64_t d : right.free) at_b[d] = index[next++];
      std::vector<int64_t> k(sizes.size());
      for (int64_t t = 0; t < count; ++t, NextIndex(sizes, k)) {
        for (size_t i = 0; i < k.size(); ++i) at_a[left.contract[i]] = at_b[right.contract[i]] = k[i];
        visit(at, a.Offset(at_a), b.Offset(at_b));
      }
      NextIndex(y.dims, index);
    }
  }
};

AttrDef Dimensions(const char* name) {
  return {.name = name, .kind = AttrKind::kInts, .default_value = std::vector<int64_t>{}};
}

}  // namespace

const OpDef& Op_dot_general() {
  static const OpDef* const op = Make({
      .name = "DotGeneral",
      .doc = "sums of products over contracted dimensions, for each of the batch dimensions",
      .kind = OpKind::kComposite,
      .operands = {{.name = "lhs", .kind = OperandKind::kNumeric, .own_dtype = true},
                   {.name = "rhs", .kind = OperandKind::kNumeric, .own_dtype = true}},
      .attributes = {Dimensions("lhs_contract"), Dimensions("rhs_contract"), Dimensions("lhs_batch"),
                     Dimensions("rhs_batch")},
      .infer = Infer,
      .reference = ReferenceOfTerms<Terms>,
      .expand = Expand,
      .rtol = 2e-6,
      .magnitude = MagnitudeOfProducts<SumsOf<Terms>>,
      .onnx = "Einsum",
      .examples = {{{"f32[2, 3]", "f32[5, 7]"}}},
  });
  return *op;
}

}  // namespace quern::ir
