#include "codegen/matmul_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace quern::codegen {
namespace {

using ir::Family;
using ir::Value;
using kir::Layout;

constexpr MatmulRow kRows[] = {
    {DType::kF32, DType::kF32, "dot_f32", "mma_f32", Layout::kKn32, 32},
    {DType::kF16, DType::kF32, "dot_f16", "mma_f32", Layout::kKn32, 32},
    {DType::kQ8_0, DType::kQ8_0, "dot_q8_0", "mma_q8_0", Layout::kPanel16, 16},
    {DType::kQ4_0, DType::kQ8_0, "dot_q4_0", "mma_q4_0", Layout::kPanel16, 16},
    {DType::kQ4_K, DType::kQ8_K, "dot_q4_K", "mma_q4_K", Layout::kPanel16, 16},
    {DType::kQ5_K, DType::kQ8_K, "dot_q5_K", "mma_q5_K", Layout::kPanel16, 16},
    {DType::kQ6_K, DType::kQ8_K, "dot_q6_K", "mma_q6_K", Layout::kPanel16, 16},
    {DType::kQ8_0, DType::kF32, "dot_q8_0_x", "mma_f32", Layout::kKn32, 32},
    {DType::kQ4_0, DType::kF32, "dot_q4_0_x", "mma_f32", Layout::kKn32, 32},
    {DType::kQ4_K, DType::kF32, "dot_q4_K_x", "mma_f32", Layout::kKn32, 32},
    {DType::kQ5_K, DType::kF32, "dot_q5_K_x", "mma_f32", Layout::kKn32, 32},
    {DType::kQ6_K, DType::kF32, "dot_q6_K_x", "mma_f32", Layout::kKn32, 32},
};

// The roots that `value` depends on.
void RootsBehind(const ir::Graph& body, Value value, std::set<int>& roots, std::set<int>& seen) {
  if (!seen.insert(value.node).second) return;
  const ir::Node& node = body.node(value.node);
  if (node.op->family == Family::kMatmul) {
    roots.insert(value.node);
    return;
  }
  for (const Value& input : node.inputs) RootsBehind(body, input, roots, seen);
}

bool Is(const ir::Node& node, std::string_view op) { return op == node.op->name; }

// A dense buffer may be declared with the extents before a Reshape: the bytes are the same.
Value BeforeReshapes(const ir::Graph& body, Value value) {
  while (Is(body.node(value.node), "Reshape")) value = body.node(value.node).inputs[0];
  return value;
}

// Whether every op between `value` and the roots keeps (row, column): elementwise, or a rotation within a row.
bool KeepsPlace(const ir::Graph& body, Value value, const std::vector<Extent>& dims) {
  const ir::Node& node = body.node(value.node);
  if (node.op->family == Family::kLeaf || node.op->family == Family::kMatmul) return true;
  std::set<int> roots, seen;
  RootsBehind(body, value, roots, seen);
  if (roots.empty()) return true;  // whatever it is, it does not read a tile
  if (node.op->family != Family::kElementwise && !Is(node, "Rope")) return false;
  if (body.type(value).dims != dims) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](Value input) { return KeepsPlace(body, input, dims); });
}

}  // namespace

const MatmulRow* FindMatmulRow(DType weight, DType activation) {
  for (const MatmulRow& row : kRows) {
    if (row.weight == weight && row.activation == activation) return &row;
  }
  return nullptr;
}

kir::Index MatmulPlan::At(const kir::ExprRef& m, const kir::ExprRef& n) const {
  kir::Index at;
  for (size_t d = 0; d < dims.size(); ++d) at.push_back(static_cast<int>(d) == row_axis ? m : kir::build::Int(0));
  if (n != nullptr) at.push_back(n);
  return at;
}

std::optional<MatmulPlan> PlanMatmul(const RegionView& view) {
  const ir::Graph& body = view.body;
  MatmulPlan plan;
  std::vector<int> roots;
  for (int n = 0; n < static_cast<int>(body.nodes().size()); ++n) {
    if (body.node(n).op->family == Family::kMatmul) roots.push_back(n);
  }
  if (roots.empty()) return std::nullopt;
  plan.lhs = body.node(roots[0]).inputs[0];
  const ir::TensorType& x = body.type(plan.lhs);
  plan.dims.assign(x.dims.begin(), x.dims.end() - 1);
  plan.rows = Extent(1);
  plan.row_axis = static_cast<int>(plan.dims.size()) - 1;
  for (size_t d = 0; d < plan.dims.size(); ++d) {
    if (plan.dims[d] == Extent(1)) continue;
    if (plan.rows != Extent(1)) return std::nullopt;  // two dimensions of rows
    plan.rows = plan.dims[d];
    plan.row_axis = static_cast<int>(d);
  }
  if (!x.dims.back().is_constant() || UpperBound(plan.rows, view.ranges) > 4096) return std::nullopt;
  plan.k = x.dims.back().constant();
  for (const int root : roots) {
    const ir::Node& node = body.node(root);
    const ir::TensorType& w = body.type(node.inputs[1]);
    const int input = view.InputIndex(node.inputs[1]);
    if (node.inputs[0] != plan.lhs || input < 0 || (IsBlock(w.dtype) && !view.IsParam(input)) ||
        !node.attributes.Bool("transpose_b") || w.rank() != 2 || !w.elements().is_constant() ||
        node.results[0].dtype != DType::kF32) {
      return std::nullopt;
    }
    const MatmulRow* row = FindMatmulRow(w.dtype, x.dtype);
    if (row == nullptr) return std::nullopt;
    if (plan.row == nullptr) plan.row = row;
    if (row->panel != plan.row->panel) return std::nullopt;
  }

  // Roots that meet in one result are one segment.
  std::vector<int> group(roots.size());
  std::iota(group.begin(), group.end(), 0);
  std::vector<std::pair<MatmulResult, int>> results;  // with one of its roots
  for (size_t o = 0; o < body.outputs.size(); ++o) {
    MatmulResult result;
    result.output = static_cast<int>(o);
    Value value = body.outputs[o];
    const ir::Node& node = body.node(value.node);
    if (node.op->family == Family::kUpdate) {
      result.kind = MatmulResult::Kind::kUpdate;
      result.updated_input = view.InputIndex(node.inputs[0]);
      result.start = node.attributes.Extents("start")[0];
      // Rows of the updated tensor are rows of the root: axis 0, and the rest of the extents make one row.
      const ir::TensorType& cache = body.type(node.inputs[0]);
      Extent row_elements(1);
      for (size_t d = 1; d < cache.dims.size(); ++d) row_elements = row_elements * cache.dims[d];
      if (result.updated_input < 0 || !view.IsDonated(result.updated_input) || node.attributes.Int("axis") != 0)
        return std::nullopt;
      value = BeforeReshapes(body, node.inputs[1]);
      if (body.type(value).dims.back() != row_elements) return std::nullopt;
    } else if (node.op->family == Family::kQuantize) {
      result.kind = MatmulResult::Kind::kQuantize;
      result.format = node.attributes.Type("format");
      value = node.inputs[0];
    } else {
      value = BeforeReshapes(body, value);
    }
    result.value = value;
    std::set<int> behind, seen;
    RootsBehind(body, value, behind, seen);
    if (behind.empty() || !KeepsPlace(body, value, body.node(*behind.begin()).results[0].dims)) return std::nullopt;
    int first = -1;
    for (const int root : behind) {
      const int r = static_cast<int>(std::find(roots.begin(), roots.end(), root) - roots.begin());
      if (first < 0) first = r;
      const int from = group[r], to = group[first];
      std::replace(group.begin(), group.end(), from, to);
    }
    results.emplace_back(result, first);
  }
  for (size_t g = 0; g < roots.size(); ++g) {
    MatmulSegment segment;
    for (size_t r = 0; r < roots.size(); ++r) {
      if (group[r] == static_cast<int>(g)) segment.roots.push_back(roots[r]);
    }
    if (segment.roots.empty()) continue;
    segment.columns = body.type(body.node(segment.roots[0]).inputs[1]).dims[0].constant();
    for (const int root : segment.roots) {
      if (body.type(body.node(root).inputs[1]).dims[0].constant() != segment.columns) return std::nullopt;
    }
    for (const auto& [result, root] : results) {
      if (group[root] == static_cast<int>(g)) segment.results.push_back(result);
    }
    if (segment.results.empty()) return std::nullopt;
    plan.segments.push_back(std::move(segment));
  }
  return plan;
}

}  // namespace quern::codegen
