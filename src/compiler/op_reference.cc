// The reference of blocks and ops: docs/ops.md, made from the tables.

#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/op_table.h"
#include "compiler/op_targets.h"
#include "hir/block.h"
#include "ir/examples.h"
#include "ir/op.h"
#include "quern/ops.h"
#include "quern/quern.h"

namespace quern {
namespace {

using compiler::Cell;

std::string Attributes(const std::vector<AttributeInfo>& attributes) {
  std::string text;
  for (const AttributeInfo& attribute : attributes) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "`", attribute.name, "` ");
    if (attribute.choices.empty()) {
      text += attribute.kind;
    } else {
      std::string choices;
      for (const std::string& choice : attribute.choices)
        absl::StrAppend(&choices, choices.empty() ? "" : ", ", choice.empty() ? "\"\"" : choice);
      absl::StrAppend(&text, "one of ", choices);
    }
    if (!attribute.required) absl::StrAppend(&text, " = ", attribute.default_value);
    if (!attribute.doc.empty()) absl::StrAppend(&text, " (", attribute.doc, ")");
  }
  return text;
}

// "x [.., N], gamma [N]: float, beta?: float": a question mark where the operand may be absent, dots where more may
// follow.
std::string Operands(const std::vector<OperandInfo>& operands) {
  std::string text;
  for (const OperandInfo& operand : operands) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", operand.name, operand.optional ? "?" : "",
                    operand.variadic ? "..." : "");
    if (!operand.shape.empty()) absl::StrAppend(&text, " ", operand.shape);
    if (!operand.kind.empty()) absl::StrAppend(&text, ": ", operand.kind);
  }
  return text;
}

void Line(std::string& text, const OpInfo& op) {
  absl::StrAppend(&text, "| `", op.name, "` | ", Cell(op.doc), " | ", Cell(Operands(op.operands)), " | ",
                  Cell(Attributes(op.attributes)), " |\n");
}

// Which ops are computed in which dtypes: a row for each that has examples.
std::string DTypeTable() {
  std::string text =
      "\n## Dtypes\n\n"
      "What is computed where operand 0, and those that have its dtype, have this one (+). Anything else is refused "
      "when "
      "the op is added. A test compiles and runs each of these.\n\n| op |";
  std::string under = "\n|---|";
  for (const DType dtype : ir::ScalarDTypes()) {
    absl::StrAppend(&text, " ", std::string(Name(dtype)), " |");
    under += "---|";
  }
  text += under + "\n";
  for (const ir::OpDef* op : ir::Ops()) {
    const bool shown = op->kind == ir::OpKind::kElementwise || !op->examples.empty();
    if (!shown || op->operands.empty()) continue;
    absl::StrAppend(&text, "| `", op->name, "` |");
    for (const DType dtype : ir::ScalarDTypes()) text += ir::Computes(*op, dtype) ? " + |" : "  |";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string OpReference(bool compile) {
  std::string text =
      "# Blocks and ops\n\n"
      "Made by `quern ops --compile` from the tables of `src/hir/blocks` and `src/ir/ops`; a test holds this page to "
      "them.\n"
      "An operand with a question mark may be absent, one with dots stands for one or more. After its name stand its "
      "sizes, where there is a rule: `..` is any number of dimensions. Where no kind is given any dtype but a block "
      "format will do. Attributes without a default are required. Constant, Input, Param, Mir and Region are added by "
      "functions of their own.\n\n"
      "## Blocks\n\n| block | computes | operands | attributes |\n|---|---|---|---|\n";
  for (const hir::BlockDef* block : hir::Blocks()) Line(text, compiler::Describe(*block));
  std::map<compiler::Section, std::vector<const ir::OpDef*>> sections;
  for (const ir::OpDef* op : ir::Ops()) sections[compiler::SectionOf(*op)].push_back(op);
  for (const auto& [section, ops] : sections) {
    absl::StrAppend(&text, "\n## Ops: ", section.second,
                    "\n\n| op | computes | operands | attributes |\n|---|---|---|---|\n");
    for (const ir::OpDef* op : ops) Line(text, compiler::Describe(*op));
  }
  return absl::StrCat(text, DTypeTable(), compiler::TargetSection(compile));
}

}  // namespace quern
