#include "lir/signature.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/region.h"

namespace quern {

Signature SignatureOf(const ir::Graph& graph) {
  Signature signature;
  signature.name = graph.name;
  signature.symbols = ir::GivenSymbols(graph);
  signature.counted = ir::CountedSizesOf(graph);
  for (const auto& [symbol, most] : ir::AllCountedSizes(graph)) {
    if (!signature.counted.contains(symbol)) signature.counted_in_bodies.push_back(symbol);
  }
  for (const int n : graph.Inputs()) {
    const std::string& name = graph.node(n).attributes.String("name");
    const bool donated = std::any_of(graph.donations.begin(), graph.donations.end(),
                                     [&](const ir::Donation& d) { return d.input == name; });
    (donated ? signature.states : signature.inputs).push_back({name, graph.node(n).results[0]});
  }
  for (const ir::Node* param : ir::AllParams(graph))
    signature.params.push_back({param->attributes.String("name"), param->results[0]});
  for (int o = 0; o < static_cast<int>(graph.outputs.size()); ++o) {
    const bool donated = std::any_of(graph.donations.begin(), graph.donations.end(),
                                     [&](const ir::Donation& d) { return d.output == o; });
    if (!donated) signature.outputs.push_back({ir::OutputName(graph.output_names, o), graph.type(graph.outputs[o]), o});
  }
  return signature;
}

SymbolRanges AllSymbols(const Signature& signature) {
  SymbolRanges all = signature.symbols;
  for (const auto& [symbol, most] : signature.counted) all[symbol] = {0, INT64_MAX};
  for (const std::string& symbol : signature.counted_in_bodies) all[symbol] = {0, INT64_MAX};
  return all;
}

Port RoomFor(const Signature& signature, Port output) {
  for (Extent& dim : output.type.dims) dim = ir::AtMost(dim, signature.counted);
  return output;
}

Extent BytesOf(const Port& port, bool parameter) {
  const kir::BufferType type = codegen::BufferTypeOf(port.type, parameter);
  return kir::LayoutBytes(type.layout, type.dtype, type.dims);
}

}  // namespace quern
