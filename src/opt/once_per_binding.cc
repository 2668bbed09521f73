// Which values depend on Params and Constants alone: LIR computes them once per binding, and fusion keeps them out of
// the regions that run every time.

#include <algorithm>

#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

bool HasSymbols(const std::vector<Extent>& extents) {
  return std::any_of(extents.begin(), extents.end(), [](const Extent& e) { return !e.is_constant(); });
}

bool HasSymbols(const ir::Node& node) {
  for (const ir::TensorType& type : node.results) {
    if (HasSymbols(type.dims)) return true;
  }
  for (const auto& [name, value] : node.attributes.values()) {
    if (const auto* extents = std::get_if<std::vector<Extent>>(&value); extents != nullptr && HasSymbols(*extents))
      return true;
  }
  return std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) {
    return std::any_of(body->nodes().begin(), body->nodes().end(),
                       [](const ir::Node& inner) { return HasSymbols(inner); });
  });
}

}  // namespace

std::vector<bool> OncePerBinding(const ir::Graph& graph) {
  std::vector<bool> once(graph.nodes().size());
  for (size_t n = 0; n < once.size(); ++n) {
    const ir::Node& node = graph.nodes()[n];
    if (ir::IsLeaf(node)) {
      once[n] = !ir::IsInput(node);
    } else if (ir::IsControl(node)) {
      once[n] = false;  // steps of a run, whatever they depend on
    } else {
      once[n] = !HasSymbols(node) &&
                std::all_of(node.inputs.begin(), node.inputs.end(), [&](const ir::Value& v) { return once[v.node]; });
    }
  }
  return once;
}

}  // namespace quern::opt
