// Constant{bytes}: a literal, dense and little-endian. No block formats: those are Params.

#include "absl/strings/str_cat.h"
#include "hir/block.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const TensorType& type = c.node.results[0];
  if (IsBlock(type.dtype) || !type.elements().is_constant()) {
    return c.Error(DiagnosticCode::kUnsupported, "type", "", absl::StrCat("a constant of type ", type.ToString()));
  }
  const int64_t bytes = type.elements().constant() * ScalarBytes(type.dtype);
  if (bytes != static_cast<int64_t>(c.node.data->size())) {
    return c.Error(DiagnosticCode::kShapeMismatch, absl::StrCat("data of ", type.ToString()),
                   absl::StrCat(bytes, " bytes"), absl::StrCat(c.node.data->size(), " bytes"));
  }
  return c.node.results;
}

}  // namespace

const BlockDef& Block_constant() {
  static const BlockDef* const block = Make({
      .name = "Constant",
      .doc = "a literal",
      .label = "constant",
      .needs = "type",
      .infer = Infer,
      .lower = [](LowerContext& c) -> StatusOr<std::vector<ir::Value>> {
        QUERN_ASSIGN(const ir::Value value, c.graph.AddConstant(c.node.results[0], *c.node.data, c.origin()));
        return std::vector<ir::Value>{value};
      },
  });
  return *block;
}

}  // namespace quern::hir
