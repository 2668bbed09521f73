// What is checked of every block before its own `infer`: operand count and dtypes, attribute names, kinds and choices.

#include "absl/strings/str_cat.h"
#include "hir/block.h"

namespace quern::hir {
namespace {

Status Fail(const Node& node, DiagnosticCode code, std::string operand, std::string expected, std::string got) {
  return ToStatus({code, node.block->name, std::move(operand), std::move(expected), std::move(got), node.label});
}

Status CheckOperands(const Node& node, std::vector<const TensorType*>& operands) {
  const std::vector<OperandDef>& defs = node.block->operands;
  size_t least = 0;
  for (size_t i = 0; i < defs.size(); ++i) {
    if (!defs[i].optional) least = i + 1;
  }
  if (operands.size() < least || operands.size() > defs.size()) {
    return Fail(node, DiagnosticCode::kInputCount, "",
                least == defs.size() ? absl::StrCat(least) : absl::StrCat(least, " to ", defs.size()),
                absl::StrCat(operands.size()));
  }
  operands.resize(defs.size(), nullptr);
  for (size_t i = 0; i < defs.size(); ++i) {
    if (operands[i] == nullptr) {
      if (!defs[i].optional) return Fail(node, DiagnosticCode::kUnknownOperand, defs[i].name, "", "absent");
    } else if (!ir::Accepts(defs[i].kind, operands[i]->dtype) && IsBlock(operands[i]->dtype)) {
      return Fail(node, DiagnosticCode::kUnsupported, defs[i].name, ir::Phrase(defs[i].kind), operands[i]->ToString());
    } else if (!ir::Accepts(defs[i].kind, operands[i]->dtype)) {
      return Fail(node, DiagnosticCode::kDTypeMismatch, defs[i].name, ir::Phrase(defs[i].kind),
                  std::string(Name(operands[i]->dtype)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckNode(Node& node, std::vector<const TensorType*>& operands, const SymbolRanges& symbols) {
  // A Mir block has the operands and attributes of its op; its `infer` checks them.
  if (node.op == nullptr) {
    QUERN_RETURN_IF_ERROR(CheckOperands(node, operands));
    QUERN_RETURN_IF_ERROR(WithProvenance(
        ir::CheckAttributes(node.block->name, node.block->attributes, node.attributes, /*fill_defaults=*/true),
        node.label));
  }
  for (const TensorType& type : node.results) {
    for (const Extent& dim : type.dims) {
      for (const std::string& symbol : dim.Symbols()) {
        if (!symbols.contains(symbol)) return Fail(node, DiagnosticCode::kUnboundSymbol, symbol, "", "");
      }
    }
  }
  QUERN_ASSIGN(node.results, node.block->infer({*node.block, node.label, operands, node.attributes, symbols, node}));
  return absl::OkStatus();
}

}  // namespace quern::hir
