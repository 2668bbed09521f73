// Reads the text that print.cc writes. Errors carry line and column and what was expected. The text is not trusted:
// nodes are built through the checking Graph::Add, nesting is limited, and a result type that differs from the inferred
// one is an error.

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "ir/control.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/text_reader.h"
#include "ir/value_names.h"
#include "ir/written.h"

namespace quern::ir {
namespace {

StatusOr<Value> ReadValue(TextReader& reader, const Graph& graph) {
  QUERN_ASSIGN(const TextReader::Ref ref, reader.Reference());
  const auto [node, result] = ref;
  if (node < 0 || node >= static_cast<int64_t>(graph.nodes().size()) || result < 0 ||
      result >= static_cast<int64_t>(graph.node(static_cast<int>(node)).results.size())) {
    return reader.Expected("an earlier value");
  }
  return Value{static_cast<int>(node), static_cast<int>(result)};
}

Status ReadNode(TextReader& reader, Graph& graph, int nesting) {
  QUERN_ASSIGN(const int64_t index, reader.Integer());
  if (index != static_cast<int64_t>(graph.nodes().size()))
    return reader.Expected(absl::StrCat("node %", graph.nodes().size(), " before here"));
  QUERN_ASSIGN(const int64_t count, reader.ResultCount());
  QUERN_RETURN_IF_ERROR(reader.Need("="));
  QUERN_ASSIGN(const std::string op_name, reader.Word("an op"));
  const OpDef* op = FindOp(op_name);
  if (op == nullptr) return reader.Here(UnknownOp(op_name));
  QUERN_RETURN_IF_ERROR(reader.Need("("));
  std::vector<Value> inputs;
  while (!reader.Accept(")")) {
    if (!inputs.empty()) QUERN_RETURN_IF_ERROR(reader.Need(","));
    QUERN_ASSIGN(const Value input, ReadValue(reader, graph));
    inputs.push_back(input);
  }
  QUERN_ASSIGN(Attributes attributes, reader.AttributeList());
  QUERN_ASSIGN(std::optional<std::vector<uint8_t>> data, reader.Data());
  QUERN_ASSIGN(std::vector<TensorType> types, reader.Types(count));
  int origin = -1;
  if (reader.Accept("@")) {
    Origin where;
    QUERN_ASSIGN(where.label, reader.String());
    if (reader.Accept("by")) {
      QUERN_ASSIGN(where.pass, reader.String());
    }
    origin = graph.AddOrigin(std::move(where));
  }
  std::vector<std::shared_ptr<const Graph>> bodies;
  for (size_t b = 0; b < op->bodies.size(); ++b) {
    const bool optional = b + OptionalBodies(*op) >= op->bodies.size();
    if (optional && !reader.Accept(op->bodies[b])) break;
    if (!optional) QUERN_RETURN_IF_ERROR(reader.Need(op->bodies[b]));
    QUERN_ASSIGN(Graph parsed, ReadGraph(reader, nesting + 1));
    bodies.push_back(std::make_shared<const Graph>(std::move(parsed)));
  }
  return reader.At(AddWritten(graph, {op, std::move(inputs), std::move(attributes), std::move(data), std::move(types),
                                      origin, std::move(bodies)}));
}

}  // namespace

StatusOr<Graph> ReadGraph(TextReader& reader, int nesting) {
  if (nesting > kMaxNesting) return reader.Expected("less deeply nested graphs");
  Graph graph;
  QUERN_RETURN_IF_ERROR(reader.Need("graph"));
  QUERN_ASSIGN(graph.name, reader.Name("a graph name"));
  QUERN_ASSIGN(graph.symbols, reader.Symbols());
  QUERN_RETURN_IF_ERROR(reader.Need("{"));
  while (true) {
    if (reader.Accept("%")) {
      QUERN_RETURN_IF_ERROR(ReadNode(reader, graph, nesting));
    } else if (reader.Accept("require")) {
      QUERN_ASSIGN(const ExtentConstraint constraint, reader.Constraint());
      AddConstraints(graph.constraints, {constraint});
    } else {
      break;
    }
  }
  QUERN_RETURN_IF_ERROR(reader.Need("return"));
  while (reader.Next('%')) {
    QUERN_ASSIGN(const Value output, ReadValue(reader, graph));
    graph.outputs.push_back(output);
    if (nesting == 0) QUERN_RETURN_IF_ERROR(reader.ReadOutputName(graph.output_names));
    if (!reader.Accept(",")) break;
  }
  while (reader.Accept("donate")) {
    QUERN_ASSIGN(Donation donation, reader.ReadDonation(graph.outputs.size()));
    graph.donations.push_back(std::move(donation));
  }
  if (nesting == 0) {
    QUERN_ASSIGN(graph.quantisation, reader.ReadQuantisation());
  }
  QUERN_RETURN_IF_ERROR(reader.Need("}"));
  const Status verified = Verify(graph);
  if (!verified.ok()) return reader.At(verified);
  return graph;
}

StatusOr<Graph> Parse(std::string_view text) {
  TextReader reader(text);
  QUERN_ASSIGN(Graph graph, ReadGraph(reader, 0));
  if (!reader.AtEnd()) return reader.Expected("the end of the text");
  return graph;
}

std::string OutputName(const std::vector<std::string>& names, size_t output) {
  return output < names.size() ? names[output] : absl::StrCat(output);
}

bool HasNames(const std::vector<std::string>& names) {
  for (size_t o = 0; o < names.size(); ++o) {
    if (names[o] != absl::StrCat(o)) return true;
  }
  return false;
}

bool SameGraph(const Graph& a, const Graph& b) {
  for (size_t o = 0; o < std::max(a.outputs.size(), b.outputs.size()); ++o) {
    if (OutputName(a.output_names, o) != OutputName(b.output_names, o)) return false;
  }
  if (a.name != b.name || a.symbols != b.symbols || a.outputs != b.outputs || a.donations != b.donations ||
      a.constraints != b.constraints || a.nodes().size() != b.nodes().size() ||
      a.quantisation.size() != b.quantisation.size() || SchemesOf(a) != SchemesOf(b)) {
    return false;
  }
  for (size_t n = 0; n < a.nodes().size(); ++n) {
    const Node &x = a.nodes()[n], &y = b.nodes()[n];
    if (x.op != y.op || x.inputs != y.inputs || x.attributes != y.attributes || x.results != y.results) return false;
    if ((x.data == nullptr) != (y.data == nullptr) || (x.data != nullptr && *x.data != *y.data)) return false;
    if (x.bodies.size() != y.bodies.size()) return false;
    for (size_t b = 0; b < x.bodies.size(); ++b) {
      if (x.bodies[b] != y.bodies[b] && !SameGraph(*x.bodies[b], *y.bodies[b])) return false;
    }
  }
  return true;
}

}  // namespace quern::ir
