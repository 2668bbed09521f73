// The tables of blocks and ops as plain values.

#include "compiler/op_table.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"

namespace quern {
namespace compiler {
namespace {

// In the order of ir::AttrKind.
constexpr const char* kAttrKinds[] = {"bool", "int", "float", "string", "dtype", "ints", "extents"};

// "number" of "a number".
std::string WithoutArticle(std::string_view phrase) {
  for (const std::string_view article : {"a ", "an "}) {
    if (phrase.starts_with(article)) return std::string(phrase.substr(article.size()));
  }
  return std::string(phrase);
}

template <typename Def>
OpInfo DescribeAny(const Def& def, std::string section) {
  OpInfo info;
  info.name = def.name;
  info.doc = def.doc;
  info.section = std::move(section);
  for (const auto& operand : def.operands) {
    OperandInfo& added = info.operands.emplace_back();
    added.name = operand.name;
    if (operand.kind != ir::OperandKind::kAny) added.kind = WithoutArticle(ir::Phrase(operand.kind));
    added.shape = operand.shape;
    added.optional = operand.optional;
    if constexpr (requires { operand.variadic; }) added.variadic = operand.variadic;
  }
  for (const ir::AttrDef& attribute : def.attributes) {
    AttributeInfo& added = info.attributes.emplace_back();
    added.name = attribute.name;
    added.kind = kAttrKinds[static_cast<int>(attribute.kind)];
    added.required = !attribute.default_value;
    if (attribute.default_value) added.default_value = ir::ToString(*attribute.default_value);
    added.doc = attribute.doc;
    added.choices.assign(attribute.choices.begin(), attribute.choices.end());
  }
  return info;
}

}  // namespace

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

OpInfo Describe(const ir::OpDef& op) {
  OpInfo info = DescribeAny(op, SectionOf(op).second);
  info.bodies.assign(op.bodies.begin(), op.bodies.end());
  return info;
}

OpInfo Describe(const hir::BlockDef& block) { return DescribeAny(block, "blocks"); }

}  // namespace compiler

std::vector<OpInfo> OpTable() {
  std::vector<OpInfo> table;
  for (const ir::OpDef* op : ir::Ops()) {
    if (op->kind != ir::OpKind::kLeaf && op->kind != ir::OpKind::kRegion) table.push_back(compiler::Describe(*op));
  }
  return table;
}

std::vector<OpInfo> BlockTable() {
  std::vector<OpInfo> table;
  for (const hir::BlockDef* block : hir::Blocks()) {
    if (block->needs == nullptr) table.push_back(compiler::Describe(*block));
  }
  return table;
}

}  // namespace quern
