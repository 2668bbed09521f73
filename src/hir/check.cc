// What is checked of every block before its own `infer`: operand count and dtypes, attribute names, kinds and choices.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "hir/block.h"

namespace quern::hir {
namespace {

// In the order of ir::OperandKind and ir::AttrKind.
constexpr const char* kOperandKinds[] = {"any dtype",
                                         "a number",
                                         "a float",
                                         "an integer",
                                         "i32 or i64",
                                         "bool",
                                         "an integer or bool",
                                         "a float or a block format",
                                         "a float or q8_0 or q8_K"};
constexpr const char* kAttrKinds[] = {"a bool",  "an int",         "a float",          "a string",
                                      "a dtype", "a list of ints", "a list of extents"};

Status Fail(const Node& node, DiagnosticCode code, std::string operand, std::string expected, std::string got) {
  return ToStatus({code, node.block->name, std::move(operand), std::move(expected), std::move(got), node.label});
}

Status CheckAttributes(Node& node) {
  for (const ir::AttrDef& def : node.block->attributes) {
    const ir::AttrValue* value = node.attributes.Find(def.name);
    const char* kind = kAttrKinds[static_cast<size_t>(def.kind)];
    if (value == nullptr) {
      if (!def.default_value) return Fail(node, DiagnosticCode::kBadAttribute, def.name, kind, "absent");
      node.attributes.Set(def.name, *def.default_value);
    } else if (value->index() != static_cast<size_t>(def.kind)) {
      return Fail(node, DiagnosticCode::kBadAttribute, def.name, kind, ir::ToString(*value));
    } else if (!def.choices.empty() &&
               std::find(def.choices.begin(), def.choices.end(), std::get<std::string>(*value)) == def.choices.end()) {
      return Fail(node, DiagnosticCode::kBadAttribute, def.name,
                  absl::StrCat("one of ", absl::StrJoin(def.choices, ", ")), ir::ToString(*value));
    }
  }
  for (const auto& [name, value] : node.attributes.values()) {
    const bool known = std::any_of(node.block->attributes.begin(), node.block->attributes.end(),
                                   [&](const ir::AttrDef& def) { return name == def.name; });
    if (!known) return Fail(node, DiagnosticCode::kBadAttribute, name, "no such attribute", ir::ToString(value));
  }
  return absl::OkStatus();
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
    } else if (!ir::Accepts(defs[i].kind, operands[i]->dtype)) {
      return Fail(node, DiagnosticCode::kDTypeMismatch, defs[i].name, kOperandKinds[static_cast<size_t>(defs[i].kind)],
                  std::string(Name(operands[i]->dtype)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckNode(Node& node, std::vector<const TensorType*>& operands, const SymbolRanges& symbols) {
  // A Mir block has the operands and attributes of its op; its `infer` checks them.
  if (node.op == nullptr && node.body == nullptr) {
    QUERN_RETURN_IF_ERROR(CheckOperands(node, operands));
    QUERN_RETURN_IF_ERROR(CheckAttributes(node));
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
