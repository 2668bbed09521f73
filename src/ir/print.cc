// Graph text; parse.cc reads it back.

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/print_node.h"

namespace quern::ir {
namespace {

class Printer {
 public:
  std::string text;

  void PrintGraph(const Graph& graph, int indent) {
    absl::StrAppend(&text, "graph ", NameText(graph.name), SymbolsText(graph.symbols), " {\n");
    const std::string pad(indent + 2, ' ');
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      text += pad;
      PrintNode(graph, static_cast<int>(n), indent + 2);
      text += "\n";
    }
    for (const ExtentConstraint& c : graph.constraints) {
      absl::StrAppend(&text, pad, "require ", c.ToString(), "\n");
    }
    absl::StrAppend(&text, pad, "return");
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      absl::StrAppend(&text, i == 0 ? " " : ", ", RefText(graph, graph.outputs[i]), AsText(graph.output_names, i));
    text += "\n";
    for (const Donation& d : graph.donations) {
      absl::StrAppend(&text, pad, "donate ", ToString(AttrValue(d.input)), " -> ", d.output, "\n");
    }
    text += QuantisationText(graph.quantisation, indent + 2);
    absl::StrAppend(&text, std::string(indent, ' '), "}");
  }

 private:
  void PrintNode(const Graph& graph, int index, int indent) {
    const Node& node = graph.node(index);
    text += HeadText(graph, index);
    if (node.data != nullptr) text += DataText(*node.data);  // the text is the whole graph
    text += TypesText(node);
    if (node.origin >= 0) {
      const Origin& origin = graph.origins()[node.origin];
      absl::StrAppend(&text, "  @", ToString(AttrValue(origin.label)));
      if (!origin.pass.empty()) absl::StrAppend(&text, " by ", ToString(AttrValue(origin.pass)));
    }
    for (size_t b = 0; b < node.bodies.size(); ++b) {
      absl::StrAppend(&text, " ", node.op->bodies[b], " ");
      PrintGraph(node.body(static_cast<int>(b)), indent);
    }
  }
};

}  // namespace

std::string RefText(const Graph& graph, Value value) {
  std::string ref = absl::StrCat("%", value.node);
  if (graph.node(value.node).results.size() > 1) absl::StrAppend(&ref, ".", value.result);
  return ref;
}

std::string HeadText(const Graph& graph, int index) {
  const Node& node = graph.node(index);
  std::string text = absl::StrCat("%", index);
  if (node.results.size() > 1) absl::StrAppend(&text, ":", node.results.size());
  absl::StrAppend(&text, " = ", node.op->name, "(");
  for (size_t i = 0; i < node.inputs.size(); ++i)
    absl::StrAppend(&text, i == 0 ? "" : ", ", RefText(graph, node.inputs[i]));
  return text + ")" + AttributesText(node.attributes);
}

std::string AttributesText(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes.values())
    absl::StrAppend(&text, text.empty() ? " {" : ", ", name, " = ", ToString(value));
  return text.empty() ? text : text + "}";
}

std::string TypesText(const Node& node) {
  std::string text;
  for (size_t i = 0; i < node.results.size(); ++i)
    absl::StrAppend(&text, i == 0 ? " : " : ", ", node.results[i].ToString());
  return text;
}

std::string SymbolsText(const SymbolRanges& symbols) {
  std::string text;
  for (const auto& [name, range] : symbols) {
    absl::StrAppend(&text, text.empty() ? " sym " : ", ", name, " in ", range.low, "..");
    if (range.high != INT64_MAX) absl::StrAppend(&text, range.high);
  }
  return text;
}

std::string AsText(const std::vector<std::string>& names, size_t output) {
  const std::string name = OutputName(names, output);
  return name == absl::StrCat(output) ? "" : absl::StrCat(" as ", ToString(AttrValue(name)));
}

std::string NameText(std::string_view name) {
  const bool word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '/';
  });
  return word ? std::string(name) : ToString(AttrValue(std::string(name)));
}

std::string QuantisationText(const QuantisationMap& map, int indent) {
  std::string text;
  for (const auto& [name, scheme] : map)
    absl::StrAppend(&text, std::string(indent, ' '), SchemeText(name, scheme), "\n");
  return text;
}

std::string SchemeText(const std::string& name, const Scheme& scheme) {
  return absl::StrCat("quantise ", ToString(AttrValue(name)), AttributesText(AttributesOf(scheme)));
}

std::string DataText(const std::vector<uint8_t>& data) {
  std::string text = " hex ";
  for (const uint8_t byte : data) absl::StrAppend(&text, absl::Hex(byte, absl::kZeroPad2));
  return data.empty() ? text + "-" : text;
}

std::string GraphText(const Graph& graph, int indent) {
  Printer printer;
  printer.PrintGraph(graph, indent);
  return std::move(printer.text);
}

std::string Print(const Graph& graph) { return GraphText(graph, 0) + "\n"; }

}  // namespace quern::ir
