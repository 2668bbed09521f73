#include "ir/diff.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/match.h"
#include "ir/op.h"
#include "ir/print_node.h"
#include "ir/value_names.h"

namespace quern::ir {
namespace {

// The node but for its operands and its place: nodes of equal text may be each other's.
std::string OwnText(const Graph& graph, const Node& node, const DiffOptions& options) {
  std::string text = node.op->name;
  for (const auto& [name, value] : node.attributes.values()) {
    if (options.names || !IsLeaf(node) || name != "name") absl::StrAppend(&text, " ", name, " = ", ToString(value));
  }
  for (const TensorType& type : node.results) absl::StrAppend(&text, " : ", type.ToString());
  if (options.origins && node.origin >= 0) absl::StrAppend(&text, " @", graph.origins()[node.origin].label);
  for (const auto& body : node.bodies) {
    absl::StrAppend(&text, " {");
    for (const Node& inner : body->nodes()) {
      absl::StrAppend(&text, OwnText(*body, inner, options));
      for (const Value& input : inner.inputs) absl::StrAppend(&text, " %", input.node, ".", input.result);
      text += ";";
    }
    for (const Value& output : body->outputs) absl::StrAppend(&text, " %", output.node, ".", output.result);
    text += "}";
  }
  if (node.data == nullptr || !options.constants) return text;
  const std::vector<uint8_t>& data = *node.data;
  const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size());
  return absl::StrCat(text, " ", HashBytes(bytes).ToHex());
}

// "%3 = MatMul(%1, %2) {transpose_b = true} : f32[7, 5]"
std::string Line(const Graph& graph, int n) { return HeadText(graph, n) + TypesText(graph.node(n)); }

// What `graph` makes bytes of and `other` does not, or others; `partner`: the nodes of that one, by node.
void DiffSchemes(const Graph& graph, const Graph& other, const std::vector<int>& partner, const char* mark,
                 std::string& text) {
  const std::map<Value, Scheme> schemes = SchemesOf(graph), others = SchemesOf(other);
  if (schemes.empty()) return;
  const std::map<Value, std::string> names = ValueNames(graph);
  for (const auto& [value, scheme] : schemes) {
    const auto found = others.find({partner[value.node], value.result});
    if (found != others.end() && found->second == scheme) continue;
    absl::StrAppend(&text, mark, SchemeText(names.at(value), scheme), "\n");
  }
}

}  // namespace

std::string Diff(const Graph& a, const Graph& b, const DiffOptions& options) {
  std::vector<std::string> own_a, own_b;
  for (const Node& node : a.nodes()) own_a.push_back(OwnText(a, node, options));
  for (const Node& node : b.nodes()) own_b.push_back(OwnText(b, node, options));
  const std::vector<int> partner = Match(own_a, own_b);
  const auto same = [&](Value in_a, Value in_b) {
    return in_a.result == in_b.result && partner[in_a.node] == in_b.node;
  };
  std::string text;
  const std::string symbols_a = SymbolsText(a.symbols), symbols_b = SymbolsText(b.symbols);
  if (symbols_a != symbols_b) absl::StrAppend(&text, "-", symbols_a, "\n+", symbols_b, "\n");
  size_t next = 0;  // of b
  for (size_t n = 0; n < partner.size(); ++n) {
    if (partner[n] < 0) {
      absl::StrAppend(&text, "- ", Line(a, static_cast<int>(n)), "\n");
      continue;
    }
    for (; next < static_cast<size_t>(partner[n]); ++next)
      absl::StrAppend(&text, "+ ", Line(b, static_cast<int>(next)), "\n");
    next = partner[n] + 1;
    const std::vector<Value>&of_a = a.node(static_cast<int>(n)).inputs, &of_b = b.node(partner[n]).inputs;
    if (std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), same)) continue;
    absl::StrAppend(&text, "~ ", Line(b, partner[n]), "  was ", Line(a, static_cast<int>(n)), "\n");
  }
  for (; next < b.nodes().size(); ++next) absl::StrAppend(&text, "+ ", Line(b, static_cast<int>(next)), "\n");
  for (size_t o = 0; o < std::max(a.outputs.size(), b.outputs.size()); ++o) {
    const bool in_a = o < a.outputs.size(), in_b = o < b.outputs.size();
    if (in_a && in_b && same(a.outputs[o], b.outputs[o])) continue;
    if (in_a) absl::StrAppend(&text, "- output ", o, " is ", RefText(a, a.outputs[o]), "\n");
    if (in_b) absl::StrAppend(&text, "+ output ", o, " is ", RefText(b, b.outputs[o]), "\n");
  }
  for (size_t o = 0; options.names && o < std::min(a.outputs.size(), b.outputs.size()); ++o) {
    const std::string in_a = OutputName(a.output_names, o), in_b = OutputName(b.output_names, o);
    if (in_a != in_b) absl::StrAppend(&text, "~ output ", o, " is called ", in_b, "  was ", in_a, "\n");
  }
  const auto donations = [&](const Graph& graph, const Graph& other, const char* mark) {
    for (const Donation& d : graph.donations) {
      const auto same_donation = [&](const Donation& one) {
        return one.output == d.output && (!options.names || one.input == d.input);
      };
      if (std::none_of(other.donations.begin(), other.donations.end(), same_donation))
        absl::StrAppend(&text, mark, " donate ", d.input, " -> ", d.output, "\n");
    }
  };
  donations(a, b, "-");
  donations(b, a, "+");
  std::vector<int> back(b.nodes().size(), -1);
  for (size_t n = 0; n < partner.size(); ++n) {
    if (partner[n] >= 0) back[partner[n]] = static_cast<int>(n);
  }
  DiffSchemes(a, b, partner, "- ", text);
  DiffSchemes(b, a, back, "+ ", text);
  return text;
}

}  // namespace quern::ir
