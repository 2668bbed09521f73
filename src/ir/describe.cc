#include "ir/describe.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/binary.h"
#include "ir/op.h"

namespace quern::ir {
namespace {

// "13.4 MB"
std::string BytesText(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, bytes, kUnits[unit]);
}

// Rows of blocks are as long as in a file.
double BytesOf(const TensorType& type) {
  const Extent elements = type.elements();
  if (!elements.is_constant() || type.rank() == 0) return elements.is_constant() ? ScalarBytes(type.dtype) : 0;
  const int64_t row = std::max<int64_t>(type.dims.back().constant(), 1);
  return static_cast<double>(RowBytes(type.dtype, row)) * (static_cast<double>(elements.constant()) / row);
}

struct Counts {
  std::map<std::string, int> ops;
  int nodes = 0, constants = 0;
  double constant_bytes = 0;

  void Add(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      if (node.data != nullptr) ++constants, constant_bytes += static_cast<double>(node.data->size());
      if (!IsLeaf(node)) ++nodes, ++ops[node.op->name];
      for (const auto& body : node.bodies) Add(*body);
    }
  }
};

}  // namespace

std::string Describe(const Graph& graph) {
  std::string text = absl::StrCat("graph       ", graph.name, "\nfingerprint ", Fingerprint(graph).ToHex(), "\n");
  for (const auto& [name, range] : graph.symbols) {
    const std::string high = range.high == INT64_MAX ? "" : absl::StrCat(range.high);
    absl::StrAppend(&text, "size        ", name, " in ", range.low, "..", high, "\n");
  }
  for (const int n : graph.Inputs()) {
    const std::string& name = graph.node(n).attributes.String("name");
    const bool state = std::any_of(graph.donations.begin(), graph.donations.end(),
                                   [&](const Donation& donation) { return donation.input == name; });
    absl::StrAppend(&text, state ? "state       " : "input       ", name, "  ", graph.node(n).results[0].ToString(),
                    "\n");
  }
  for (size_t o = 0; o < graph.outputs.size(); ++o)
    absl::StrAppend(&text, "output      ", OutputName(graph.output_names, o), "  ",
                    graph.type(graph.outputs[o]).ToString(), "\n");
  const std::vector<const Node*> params = AllParams(graph);
  double bytes = 0, elements = 0;
  for (const Node* param : params) {
    bytes += BytesOf(param->results[0]);
    if (const Extent count = param->results[0].elements(); count.is_constant())
      elements += static_cast<double>(count.constant());
  }
  Counts counts;
  counts.Add(graph);
  absl::StrAppend(&text,
                  absl::StrFormat("parameters  %u, %.0f elements, %s\n", params.size(), elements, BytesText(bytes)));
  absl::StrAppend(&text, absl::StrFormat("constants   %d, %s\n", counts.constants, BytesText(counts.constant_bytes)));
  absl::StrAppend(&text, absl::StrFormat("ops         %d\n", counts.nodes));
  if (!graph.quantisation.empty())
    absl::StrAppend(&text, absl::StrFormat("quantised   %u values\n", graph.quantisation.size()));
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [op, count] : counts.ops) sorted.emplace_back(-count, op);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [count, op] : sorted) absl::StrAppend(&text, absl::StrFormat("%12d  %s\n", -count, op));
  return text;
}

}  // namespace quern::ir
