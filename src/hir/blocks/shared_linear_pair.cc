// SharedLinearPair: x W1 and x W2. Pairs on the same (x, W1, W2) share their two products, however often they are asked
// for.

#include "hir/linear.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(0, 2));
  std::vector<TensorType> results;
  for (const int weight : {1, 2}) {
    std::optional<Extent> n;
    QUERN_RETURN_IF_ERROR(CheckWeight(c, weight, c.operand(0).dtype, c.operand(0).dims.back(), n));
    results.push_back(ProductType(c.operand(0), c.operand(weight), *n));
  }
  return results;
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  std::vector<ir::Value> key = c.inputs;
  // A weight read the other way round is another product.
  key.push_back({RowsOfK(c.attributes()) ? -2 : -1, 0});
  const auto found = c.memo.find(key);
  if (found != c.memo.end()) return found->second;
  const std::vector<ir::Value> results = {Product(c, c.inputs[0], c.inputs[1], "0"),
                                          Product(c, c.inputs[0], c.inputs[2], "1")};
  QUERN_RETURN_IF_ERROR(c.status());
  c.memo[key] = results;
  return results;
}

}  // namespace

const BlockDef& Block_shared_linear_pair() {
  static const BlockDef* const block = Make({
      .name = "SharedLinearPair",
      .doc = "x W1 and x W2",
      .label = "shared_linear_pair",
      .operands = {{.name = "x", .shape = "[.., M, K]"},
                   {.name = "w1", .kind = ir::OperandKind::kWeight, .shape = "kn: [K, N]; nk: [N, K]"},
                   {.name = "w2", .kind = ir::OperandKind::kWeight, .shape = "kn: [K, N]; nk: [N, K]"}},
      .attributes = {WeightLayoutAttribute()},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
