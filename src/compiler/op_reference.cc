// The reference of blocks and ops: docs/ops.md, made from the tables.

#include <map>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "hir/block.h"
#include "ir/examples.h"
#include "ir/op.h"
#include "quern/dispatch.h"
#include "quern/quern.h"

namespace quern {
namespace {

// In the order of ir::AttrKind.
constexpr const char* kAttrKinds[] = {"bool", "int", "float", "string", "dtype", "ints", "extents"};

std::string Attributes(const std::vector<ir::AttrDef>& attributes) {
  std::string text;
  for (const ir::AttrDef& attribute : attributes) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "`", attribute.name, "` ");
    if (attribute.choices.empty()) {
      absl::StrAppend(&text, kAttrKinds[static_cast<int>(attribute.kind)]);
    } else {
      std::string choices;
      for (const char* choice : attribute.choices)
        absl::StrAppend(&choices, choices.empty() ? "" : ", ", *choice == 0 ? "\"\"" : choice);
      absl::StrAppend(&text, "one of ", choices);
    }
    if (attribute.default_value) absl::StrAppend(&text, " = ", ir::ToString(*attribute.default_value));
    if (*attribute.doc != 0) absl::StrAppend(&text, " (", attribute.doc, ")");
  }
  return text;
}

// "number" of "a number".
std::string_view WithoutArticle(std::string_view phrase) {
  for (const std::string_view article : {"a ", "an "}) {
    if (phrase.starts_with(article)) return phrase.substr(article.size());
  }
  return phrase;
}

// "x [.., N], gamma [N]: float, beta?: float": a question mark where the operand may be absent, dots where more may
// follow.
template <typename OperandDefs>
std::string Operands(const OperandDefs& operands) {
  std::string text;
  for (const auto& operand : operands) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", operand.name, operand.optional ? "?" : "");
    if constexpr (requires { operand.variadic; }) absl::StrAppend(&text, operand.variadic ? "..." : "");
    if (*operand.shape != 0) absl::StrAppend(&text, " ", operand.shape);
    if (operand.kind != ir::OperandKind::kAny)
      absl::StrAppend(&text, ": ", std::string(WithoutArticle(ir::Phrase(operand.kind))));
  }
  return text;
}

// Text in a table's cell.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

void Line(std::string& text, std::string_view name, std::string_view doc, std::string_view operands,
          std::string_view attributes) {
  absl::StrAppend(&text, "| `", std::string(name), "` | ", Cell(doc), " | ", Cell(operands), " | ", Cell(attributes),
                  " |\n");
}

// The section of an op: its place among the sections, and its title.
using Section = std::pair<int, std::string>;
Section SectionOf(const ir::OpDef& op) {
  switch (op.kind) {
    case ir::OpKind::kLeaf: return {0, "leaves"};
    case ir::OpKind::kElementwise: return {1, "elementwise"};
    case ir::OpKind::kIndex: return {2, "views and index maps"};
    case ir::OpKind::kRoot:
    case ir::OpKind::kPack:
    case ir::OpKind::kWrite: return {3, op.family};
    case ir::OpKind::kComposite: return {4, "composites"};
    case ir::OpKind::kControl: return {5, "control flow"};
    case ir::OpKind::kRegion: return {6, "regions"};
  }
  QUERN_CHECK(false);
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

// Which ops the targets take, by an example of each, and why not.
std::string TargetTable() {
  // Code ahead of time is of the same plans.
  std::vector<std::string> targets;
  for (const std::string& target : DispatchTargets()) {
    if (target != "aot") targets.push_back(target);
  }
  std::string text =
      "\n## Targets\n\n"
      "Which ops are compiled for what (+): this machine, where `cpu` is just in time and ahead of time, plain C, and "
      "devices. What is refused is refused when a graph is compiled, by name; the reasons are below the table. "
      "Of each op the first of its examples counts. `quern ops --target NAME` is the list of one, `quern dispatch` "
      "says "
      "it of a graph.\n\n| op |";
  std::string under = "\n|---|", reasons;
  std::map<std::string, std::string> rows;
  for (const std::string& target : targets) {
    absl::StrAppend(&text, " ", target, " |");
    under += "---|";
    Result<std::vector<OpOnTarget>> ops = OpsOnTarget(target);
    QUERN_CHECK(ops.ok());
    for (const OpOnTarget& op : *ops) {
      absl::StrAppend(&rows[op.op], op.taken ? " + |" : " no |");
      if (!op.taken) absl::StrAppend(&reasons, "- `", op.op, "` on ", target, ": ", Cell(op.reason), "\n");
    }
  }
  text += under + "\n";
  for (const auto& [op, cells] : rows) absl::StrAppend(&text, "| `", op, "` |", cells, "\n");
  return absl::StrCat(text, "\n", reasons);
}

}  // namespace

std::string OpReference() {
  std::string text =
      "# Blocks and ops\n\n"
      "Made by `quern ops` from the tables of `src/hir/blocks` and `src/ir/ops`; a test holds this page to them.\n"
      "An operand with a question mark may be absent, one with dots stands for one or more. After its name stand its "
      "sizes, where there is a rule: `..` is any number of dimensions. Where no kind is given any dtype but a block "
      "format will do. Attributes without a default are required. Constant, Input, Param, Mir and Region are added by "
      "functions of their own.\n\n"
      "## Blocks\n\n| block | computes | operands | attributes |\n|---|---|---|---|\n";
  for (const hir::BlockDef* block : hir::Blocks())
    Line(text, block->name, block->doc, Operands(block->operands), Attributes(block->attributes));
  std::map<Section, std::vector<const ir::OpDef*>> sections;
  for (const ir::OpDef* op : ir::Ops()) sections[SectionOf(*op)].push_back(op);
  for (const auto& [section, ops] : sections) {
    absl::StrAppend(&text, "\n## Ops: ", section.second,
                    "\n\n| op | computes | operands | attributes |\n|---|---|---|---|\n");
    for (const ir::OpDef* op : ops) Line(text, op->name, op->doc, Operands(op->operands), Attributes(op->attributes));
  }
  return absl::StrCat(text, DTypeTable(), TargetTable());
}

}  // namespace quern
