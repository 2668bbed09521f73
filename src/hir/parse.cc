// Reads the text that print.cc writes, in the manner of graph text. It is not trusted: nodes are added through the
// checks of Module, and a result type that differs from the inferred one is an error.

#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "hir/block.h"
#include "ir/control.h"
#include "ir/text_reader.h"
#include "ir/written.h"

namespace quern::hir {
namespace {

using ir::TextReader;

StatusOr<Value> ReadValue(TextReader& reader, const Module& module) {
  if (reader.Accept("-")) return Value{};
  QUERN_ASSIGN(const TextReader::Ref ref, reader.Reference());
  const auto [node, result] = ref;
  if (node < 0 || node >= static_cast<int64_t>(module.nodes().size()) || result < 0 ||
      result >= static_cast<int64_t>(module.nodes()[node].results.size())) {
    return reader.Expected("an earlier value");
  }
  return Value{static_cast<int>(node), static_cast<int>(result)};
}

// "Linear", "Mir.Add".
Status ReadBlock(TextReader& reader, Node& node) {
  QUERN_ASSIGN(const std::string name, reader.Word("a block"));
  const size_t dot = name.find('.');
  node.block = FindBlock(name.substr(0, dot));
  if (node.block == nullptr) {
    std::vector<std::string_view> names;
    for (const BlockDef* block : Blocks()) names.emplace_back(block->name);
    const std::string meant = ir::FindOp(name) != nullptr ? absl::StrCat("Mir.", name) : Nearest(name, names);
    return reader.Here(ToStatus({DiagnosticCode::kUnknownOp, name, "", "", "", "", meant}));
  }
  const bool mir = node.block == FindBlock("Mir");
  if (mir != (dot != std::string::npos)) return reader.Expected("Mir.OP, and of Mir alone, before here");
  if (!mir) return absl::OkStatus();
  node.op = ir::FindOp(name.substr(dot + 1));
  return node.op == nullptr ? reader.Here(ir::UnknownOp(name.substr(dot + 1))) : absl::OkStatus();
}

Status ReadNode(TextReader& reader, Module& module) {
  QUERN_ASSIGN(const int64_t index, reader.Integer());
  if (index != static_cast<int64_t>(module.nodes().size()))
    return reader.Expected(absl::StrCat("node %", module.nodes().size(), " before here"));
  QUERN_ASSIGN(const int64_t count, reader.ResultCount());
  QUERN_RETURN_IF_ERROR(reader.Need("="));
  Node node;
  QUERN_RETURN_IF_ERROR(ReadBlock(reader, node));
  QUERN_RETURN_IF_ERROR(reader.Need("("));
  while (!reader.Accept(")")) {
    if (!node.inputs.empty()) QUERN_RETURN_IF_ERROR(reader.Need(","));
    QUERN_ASSIGN(const Value input, ReadValue(reader, module));
    node.inputs.push_back(input);
  }
  QUERN_ASSIGN(node.attributes, reader.AttributeList());
  QUERN_ASSIGN(std::optional<std::vector<uint8_t>> data, reader.Data());
  if (data) node.data = std::make_shared<const std::vector<uint8_t>>(*std::move(data));
  QUERN_ASSIGN(node.results, reader.Types(count));
  if (reader.Accept("@")) {
    QUERN_ASSIGN(node.label, reader.String());
  }
  for (size_t b = 0; node.op != nullptr && b < node.op->bodies.size(); ++b) {
    const bool optional = b + ir::OptionalBodies(*node.op) >= node.op->bodies.size();
    if (optional && !reader.Accept(node.op->bodies[b])) break;
    if (!optional) QUERN_RETURN_IF_ERROR(reader.Need(node.op->bodies[b]));
    QUERN_ASSIGN(ir::Graph parsed, ir::ReadGraph(reader, 1));
    node.bodies.push_back(std::make_shared<const ir::Graph>(std::move(parsed)));
  }
  return reader.At(module.AddWritten(std::move(node)));
}

}  // namespace

bool IsModuleText(std::string_view text) { return TextReader(text).Accept("module"); }

StatusOr<Module> Parse(std::string_view text) {
  TextReader reader(text);
  Module module;
  QUERN_RETURN_IF_ERROR(reader.Need("module"));
  QUERN_ASSIGN(module.name, reader.Name("a module name"));
  QUERN_ASSIGN(module.symbols, reader.Symbols());
  if (reader.Accept("fusion")) {
    if (reader.Accept("fusable"))
      module.policy = FusionPolicy::kFusable;
    else if (!reader.Accept("direct"))
      return reader.Expected("direct or fusable");
  }
  QUERN_RETURN_IF_ERROR(reader.Need("{"));
  while (reader.Accept("%")) QUERN_RETURN_IF_ERROR(ReadNode(reader, module));
  QUERN_RETURN_IF_ERROR(reader.Need("return"));
  while (reader.Next('%')) {
    QUERN_ASSIGN(const Value output, ReadValue(reader, module));
    module.outputs.push_back(output);
    QUERN_RETURN_IF_ERROR(reader.ReadOutputName(module.output_names));
    if (!reader.Accept(",")) break;
  }
  while (reader.Accept("donate")) {
    QUERN_ASSIGN(ir::Donation donation, reader.ReadDonation(module.outputs.size()));
    module.donations.push_back(std::move(donation));
  }
  QUERN_ASSIGN(module.quantisation, reader.ReadQuantisation());
  QUERN_RETURN_IF_ERROR(reader.Need("}"));
  if (const Status named = ir::CheckOutputNames(module.output_names, module.donations); !named.ok())
    return reader.At(named);
  // Its values are those of the graph in ops.
  if (!module.quantisation.empty()) QUERN_RETURN_IF_ERROR(reader.At(Lower(module).status()));
  if (!reader.AtEnd()) return reader.Expected("the end of the text");
  return module;
}

}  // namespace quern::hir
