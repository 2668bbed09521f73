// Module text, in the manner of graph text; an absent operand prints as "-". parse.cc reads it back.

#include "absl/strings/str_cat.h"
#include "hir/block.h"
#include "ir/print_node.h"

namespace quern::hir {

std::string Print(const Module& module) {
  std::string text = absl::StrCat("module ", ir::NameText(module.name), ir::SymbolsText(module.symbols), " fusion ",
                                  module.policy == FusionPolicy::kDirect ? "direct" : "fusable", " {\n");
  auto ref = [&](Value value) {
    if (value.absent()) return std::string("-");
    if (module.nodes()[value.node].results.size() == 1) return absl::StrCat("%", value.node);
    return absl::StrCat("%", value.node, ".", value.result);
  };
  for (size_t n = 0; n < module.nodes().size(); ++n) {
    const Node& node = module.nodes()[n];
    absl::StrAppend(&text, "  %", n);
    if (node.results.size() > 1) absl::StrAppend(&text, ":", node.results.size());
    absl::StrAppend(&text, " = ", node.block->name);
    if (node.op != nullptr) absl::StrAppend(&text, ".", node.op->name);
    size_t shown = node.inputs.size();
    while (shown > 0 && node.inputs[shown - 1].absent()) --shown;
    text += "(";
    for (size_t i = 0; i < shown; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", ref(node.inputs[i]));
    text += ")";
    text += ir::AttributesText(node.attributes);
    if (node.data != nullptr) text += ir::DataText(*node.data);
    for (size_t r = 0; r < node.results.size(); ++r)
      absl::StrAppend(&text, r == 0 ? " : " : ", ", node.results[r].ToString());
    absl::StrAppend(&text, "  @", ir::ToString(ir::AttrValue(node.label)));
    for (size_t b = 0; b < node.bodies.size(); ++b)
      absl::StrAppend(&text, " ", node.op->bodies[b], " ", ir::GraphText(*node.bodies[b], 2));
    text += "\n";
  }
  text += "  return";
  for (size_t i = 0; i < module.outputs.size(); ++i)
    absl::StrAppend(&text, i == 0 ? " " : ", ", ref(module.outputs[i]), ir::AsText(module.output_names, i));
  text += "\n";
  for (const ir::Donation& donation : module.donations) {
    absl::StrAppend(&text, "  donate ", ir::ToString(ir::AttrValue(donation.input)), " -> ", donation.output, "\n");
  }
  return text + ir::QuantisationText(module.quantisation, 2) + "}\n";
}

}  // namespace quern::hir
