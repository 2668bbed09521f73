#include "ir/reference_chain.h"

#include <algorithm>
#include <cmath>

namespace quern::ir {

const RefTensor* ReferenceChain::Run(std::string_view op, std::vector<const RefTensor*> operands,
                                     Attributes attributes) {
  const auto missing = std::find(operands.begin(), operands.end(), nullptr);
  if (!status_.ok() || missing != operands.end()) return nullptr;
  for (const RefTensor*& operand : operands) {
    if (operand->dtype != DType::kF16 && operand->dtype != DType::kBF16) continue;
    RefTensor& wide = made_.emplace_back(*operand);
    wide.dtype = DType::kF32;
    operand = &wide;
  }
  Node node = context_.node;
  node.op = FindOp(op);
  node.attributes = std::move(attributes);
  std::vector<TensorType> types;
  for (const RefTensor* operand : operands)
    types.push_back({operand->dtype, std::vector<Extent>(operand->dims.begin(), operand->dims.end())});
  std::vector<ExtentConstraint> constraints;
  const StatusOr<std::vector<TensorType>> inferred =
      InferResults(*node.op, types, node.attributes, SymbolRanges(), &constraints);
  status_ = inferred.status();
  if (!status_.ok()) return nullptr;
  node.results = *inferred;
  std::vector<RefTensor> results;
  for (const TensorType& type : node.results) {
    RefTensor& result = results.emplace_back();
    result.dtype = type.dtype;
    for (const Extent& dim : type.dims) result.dims.push_back(dim.constant());
    result.Allocate();
  }
  RefContext part{node, operands, context_.binding, results};
  status_ = magnitude_ && node.op->magnitude != nullptr ? node.op->magnitude(part) : node.op->reference(part);
  if (!status_.ok()) return nullptr;
  if (magnitude_) {
    for (double& value : results[0].data) value = std::fabs(value);
  }
  return &made_.emplace_back(std::move(results[0]));
}

Status ReferenceChain::Give(int r, const RefTensor* value) {
  if (!status_.ok()) return status_;
  RefTensor& y = context_.results[r];
  for (size_t i = 0; i < y.data.size(); ++i) y.data[i] = RoundTo(y.dtype, value->data[i]);
  return absl::OkStatus();
}

}  // namespace quern::ir
