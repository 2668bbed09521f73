// The block table, and what `infer` of a block sees.

#include "hir/block.h"

#include <algorithm>

namespace quern::hir {

#define QUERN_BLOCK(stem) const BlockDef& Block_##stem();
#include "hir_blocks.inc"
#undef QUERN_BLOCK

std::span<const BlockDef* const> Blocks() {
  static const std::vector<const BlockDef*>* const blocks = [] {
    auto* table = new std::vector<const BlockDef*>{
#define QUERN_BLOCK(stem) &Block_##stem(),
#include "hir_blocks.inc"
#undef QUERN_BLOCK
    };
    std::sort(table->begin(), table->end(), [](const BlockDef* a, const BlockDef* b) {
      return std::string_view(a->name) < std::string_view(b->name);
    });
    return table;
  }();
  return *blocks;
}

const BlockDef* FindBlock(std::string_view name) {
  for (const BlockDef* block : Blocks()) {
    if (block->name == name) return block;
  }
  return nullptr;
}

Status InferContext::Error(DiagnosticCode code, std::string operand, std::string expected, std::string got) const {
  return ToStatus({code, block.name, std::move(operand), std::move(expected), std::move(got), label});
}

Status InferContext::ShapeError(int index, std::string expected) const {
  return Error(DiagnosticCode::kShapeMismatch, block.operands[index].name, std::move(expected),
               operand(index).ToString());
}

Status InferContext::DTypeError(int index, std::string expected) const {
  return Error(DiagnosticCode::kDTypeMismatch, block.operands[index].name, std::move(expected),
               std::string(Name(operand(index).dtype)));
}

Status InferContext::UnsupportedError(int index, std::string supported) const {
  return Error(DiagnosticCode::kUnsupported, block.operands[index].name, std::move(supported),
               operand(index).ToString());
}

Status InferContext::AttributeError(std::string_view attribute, std::string expected) const {
  return Error(DiagnosticCode::kBadAttribute, std::string(attribute), std::move(expected),
               ir::ToString(*attributes.Find(attribute)));
}

Status InferContext::ExpectDims(int index, const std::vector<Extent>& dims) const {
  if (!has(index)) return absl::OkStatus();
  const std::vector<Extent>& got = operand(index).dims;
  bool fits = got.size() == dims.size();
  for (size_t d = 0; fits && d < dims.size(); ++d) {
    fits = !ir::ExtentConstraint{got[d], dims[d]}.Never(symbols);  // MIR records what is left to the run
  }
  if (fits) return absl::OkStatus();
  return ShapeError(index, ir::ToString(dims));
}

Status InferContext::ExpectDType(int index, DType dtype) const {
  if (!has(index) || operand(index).dtype == dtype) return absl::OkStatus();
  return DTypeError(index, std::string(Name(dtype)));
}

Status InferContext::ExpectRankAtLeast(int index, int rank) const {
  if (!has(index) || operand(index).rank() >= rank) return absl::OkStatus();
  return ShapeError(index, absl::StrFormat("rank %d or more", rank));
}

}  // namespace quern::hir
