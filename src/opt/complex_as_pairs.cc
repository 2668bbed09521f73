// Complex numbers as pairs of floats: every value c64[dims] becomes f32[dims, 2], re and im, and every op over c64 what
// its file makes of them (OpDef::pairs). Inputs, Params, Constants and outputs keep their bytes. Nothing behind this
// pass knows of complex numbers.
//
//   Mul(z c64[3], w c64[3])   ->   Narrow, Reshape, Mul, Sub, Add, Concat over f32[3, 2]

#include <algorithm>

#include "ir/pairs.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

bool IsComplexType(const ir::TensorType& type) { return IsComplex(type.dtype); }

bool HasComplex(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Node& node) {
    return std::any_of(node.results.begin(), node.results.end(), IsComplexType) ||
           std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) { return HasComplex(*body); });
  });
}

Status Replace(Rewriter& rewriter, int n, std::span<const ir::TensorType> types) {
  const ir::Node& node = rewriter.from().node(n);
  if (node.op->pairs == nullptr) return absl::InternalError(absl::StrFormat("%s has no pairs", node.op->name));
  ir::Expansion e(rewriter.to, rewriter.OriginOf(n));
  const std::vector<ir::Value> inputs = rewriter.Now(node.inputs);
  QUERN_ASSIGN(const std::vector<ir::Value> results, node.op->pairs({e, node, types, inputs}));
  for (size_t r = 0; r < node.results.size(); ++r) {
    ir::TensorType expected = node.results[r];
    if (IsComplexType(expected)) {
      expected.dtype = DType::kF32;
      expected.dims.emplace_back(2);
    }
    ir::Value result = results[r];
    if (rewriter.to.type(result) != expected) {
      // Of sizes that the graph requires to be equal, the op took the other.
      QUERN_ASSIGN(const std::vector<ir::Value> one, e.Finish({e.Sized(result, expected.dims)}));
      result = one[0];
    }
    rewriter.Replace({n, static_cast<int>(r)}, result);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<ir::Graph> ComplexAsPairs(const ir::Graph& graph) {
  if (!HasComplex(graph)) return graph;
  Rewriter rewriter(graph, "complex_as_pairs", ComplexAsPairs);
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    std::vector<ir::TensorType> types;
    for (const ir::Value& input : node.inputs) types.push_back(graph.type(input));
    const bool complex = std::any_of(node.results.begin(), node.results.end(), IsComplexType) ||
                         std::any_of(types.begin(), types.end(), IsComplexType);
    if (!complex || ir::IsControl(node)) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
    } else if (ir::IsLeaf(node)) {
      ir::TensorType pairs = node.results[0];
      pairs.dtype = DType::kF32;
      pairs.dims.emplace_back(2);
      QUERN_RETURN_IF_ERROR(rewriter.CopyAs(n, node.attributes, pairs, {}));
    } else {
      QUERN_RETURN_IF_ERROR(Replace(rewriter, n, types));
    }
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
