// The matmul and attention families: roots whose results are finished tile by tile, in place.
//
// The rules follow src/codegen/matmul_plan.cc and src/codegen/attention.cc. A product that tile ops can write (weights
// [N, K] with transpose_b, one dimension of rows) may share its grid with others of the same left side and end in a
// rotation, a cache update or a quantised row; any other product takes elementwise ops alone.

#include <algorithm>
#include <set>

#include "ir/attention.h"
#include "opt/fusion_rules.h"

namespace quern::opt {
namespace {

constexpr int64_t kMaxRows = 4096;  // of a product with tile ops
constexpr int64_t kFewRows = 8;     // products of at most this many rows keep whole chunks of columns at hand

struct TypesRow {
  DType weight, activation;
  bool integer;  // panels of integer tile ops; all roots of a region agree
};
constexpr TypesRow kTypes[] = {
    {DType::kF32, DType::kF32, false},  {DType::kF16, DType::kF32, false},  {DType::kQ8_0, DType::kQ8_0, true},
    {DType::kQ4_0, DType::kQ8_0, true}, {DType::kQ4_K, DType::kQ8_K, true}, {DType::kQ5_K, DType::kQ8_K, true},
    {DType::kQ6_K, DType::kQ8_K, true}, {DType::kQ8_0, DType::kF32, false}, {DType::kQ4_0, DType::kF32, false},
    {DType::kQ4_K, DType::kF32, false}, {DType::kQ5_K, DType::kF32, false}, {DType::kQ6_K, DType::kF32, false},
};

const TypesRow* FindTypes(DType weight, DType activation) {
  for (const TypesRow& row : kTypes) {
    if (row.weight == weight && row.activation == activation) return &row;
  }
  return nullptr;
}

bool IsWeight(const FusionContext& context, int n) {
  return Is(context.node(n), "Param") ||
         (context.options.computed_weights && context.once[n] && !Is(context.node(n), "Constant"));
}

// The extent of rows of [1.., M, 1..], or nullopt when two dimensions are not 1.
std::optional<Extent> Rows(const std::vector<Extent>& dims) {
  Extent rows(1);
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (dims[d] == Extent(1)) continue;
    if (rows != Extent(1)) return std::nullopt;
    rows = dims[d];
  }
  return rows;
}

// Everything a root's results pass through must keep its place: `dims` are the root's.
Status EpilogueRule(const FusionContext& context, int n, const std::vector<Extent>& dims) {
  if (context.type(n).dims == dims) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("%s has other extents than the product", context.Describe(n)));
}

// The rotation partner of a column must lie in the same tile.
Status RopeRule(const FusionContext& context, const NodeSet& set, const std::vector<bool>& depends, int n,
                const Extent& rows) {
  const ir::Node& node = context.node(n);
  for (int operand = 1; operand <= 2; ++operand) {
    const auto at = std::lower_bound(set.nodes().begin(), set.nodes().end(), node.inputs[operand].node);
    if (at != set.nodes().end() && *at == node.inputs[operand].node && depends[at - set.nodes().begin()]) {
      return absl::FailedPreconditionError("the angles depend on the product");
    }
  }
  const ir::Node& x = context.node(node.inputs[0].node);
  if (!IsMatmul(x) && !IsElementwise(x))
    return absl::FailedPreconditionError(absl::StrFormat("%s follows %s", context.Describe(n), x.op->name));
  if (!node.attributes.Bool("packed"))
    return absl::FailedPreconditionError(absl::StrFormat("%s is not over packed rows", context.Describe(n)));
  if (node.attributes.String("style") == "gptj") return absl::OkStatus();
  const int64_t head_dim = node.attributes.Int("head_dim");
  if (rows.UpperBound(context.graph.symbols).value_or(kMaxRows) > kFewRows) {
    return absl::FailedPreconditionError(absl::StrFormat("%s pairs columns of different panels", context.Describe(n)));
  }
  for (const int m : set.nodes()) {
    const bool other = Is(context.node(m), "Rope") && context.node(m).attributes.Int("head_dim") != head_dim;
    if (head_dim % 32 != 0 || other || (IsQuantize(context.node(m)) && 256 % head_dim != 0)) {
      return absl::FailedPreconditionError(absl::StrFormat("heads of %d do not fill chunks of columns", head_dim));
    }
  }
  return absl::OkStatus();
}

// The left side computed in the region: elementwise, and for nothing else.
Status PrologueRule(const FusionContext& context, const NodeSet& set, int lhs) {
  if (context.type(lhs).dtype != DType::kF32)
    return absl::FailedPreconditionError("only f32 activations are computed on the way in");
  std::vector<int> open = {lhs};
  std::set<int> prologue;
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    if (!set.Has(n) || !prologue.insert(n).second) continue;
    if (!IsElementwise(context.node(n)) || context.type(n).dims != context.type(lhs).dims) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s is not elementwise over the left side", context.Describe(n)));
    }
    for (const ir::Value& input : context.node(n).inputs) open.push_back(input.node);
  }
  for (const int n : prologue) {
    for (const auto& [user, operand] : context.users[n]) {
      const bool root = IsMatmul(context.node(user)) && operand == 0;
      if (!set.Has(user) || !(root || prologue.contains(user))) {
        return absl::FailedPreconditionError(
            absl::StrFormat("%s is also used by %s", context.Describe(n), context.Describe(user)));
      }
    }
  }
  return absl::OkStatus();
}

Status TileRule(const FusionContext& context, const NodeSet& set, const std::vector<int>& roots) {
  const std::vector<int>& nodes = set.nodes();
  const ir::Value lhs = context.node(roots[0]).inputs[0];
  const std::vector<bool> depends = DependsOn(context, set, IsMatmul);
  const Extent rows = *Rows(context.graph.type(lhs).dims);
  const bool integer =
      FindTypes(context.graph.type(context.node(roots[0]).inputs[1]).dtype, context.graph.type(lhs).dtype)->integer;
  for (const int root : roots) {
    if (context.node(root).inputs[0] != lhs)
      return absl::FailedPreconditionError("the products have different left sides");
    if (set.Has(context.node(root).inputs[1].node)) return absl::FailedPreconditionError("weights lie in memory");
    if (FindTypes(context.graph.type(context.node(root).inputs[1]).dtype, context.graph.type(lhs).dtype)->integer !=
        integer) {
      return absl::FailedPreconditionError("the weights are packed in different ways");
    }
  }
  if (set.Has(lhs.node)) QUERN_RETURN_IF_ERROR(PrologueRule(context, set, lhs.node));

  // Extents of the root behind each node; roots that meet must have the same.
  std::vector<const std::vector<Extent>*> dims(nodes.size());
  std::vector<bool> named(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int n = nodes[i];
    const ir::Node& node = context.node(n);
    if (!depends[i]) {
      if (!IsElementwise(node) && !IsIndex(node))
        return absl::FailedPreconditionError(absl::StrFormat("%s is not elementwise", context.Describe(n)));
      continue;
    }
    if (IsMatmul(node)) {
      dims[i] = &context.type(n).dims;
      continue;
    }
    for (const ir::Value& input : node.inputs) {
      const auto at = std::lower_bound(nodes.begin(), nodes.end(), input.node);
      if (at == nodes.end() || *at != input.node || !depends[at - nodes.begin()]) continue;
      const std::vector<Extent>* behind = dims[at - nodes.begin()];
      if (dims[i] != nullptr && *dims[i] != *behind)
        return absl::FailedPreconditionError(
            absl::StrFormat("%s joins products of different extents", context.Describe(n)));
      dims[i] = behind;
    }
    const bool last = std::none_of(context.users[n].begin(), context.users[n].end(),
                                   [&](const auto& use) { return set.Has(use.first); });
    if (IsElementwise(node)) {
      QUERN_RETURN_IF_ERROR(EpilogueRule(context, n, *dims[i]));
      for (const ir::Value& input : node.inputs) {
        if (set.Has(input.node) && Is(context.node(input.node), "Reshape") &&
            depends[std::lower_bound(nodes.begin(), nodes.end(), input.node) - nodes.begin()]) {
          return absl::FailedPreconditionError(absl::StrFormat("%s follows a Reshape", context.Describe(n)));
        }
      }
      named[i] = true;  // one tile element at a time, whoever reads it
    } else if (Is(node, "Rope")) {
      QUERN_RETURN_IF_ERROR(EpilogueRule(context, n, *dims[i]));
      QUERN_RETURN_IF_ERROR(RopeRule(context, set, depends, n, rows));
      named[i] = true;
    } else if (IsQuantize(node)) {
      if (!last || context.type(n).dims != *dims[i] || Is(context.node(node.inputs[0].node), "Reshape")) {
        return absl::FailedPreconditionError(
            absl::StrFormat("%s is not over the rows of the product", context.Describe(n)));
      }
    } else if (IsUpdate(node)) {
      const ir::TensorType &cache = context.type(n), &update = context.graph.type(node.inputs[1]);
      Extent row_elements(1);
      for (int d = 1; d < cache.rank(); ++d) row_elements = row_elements * cache.dims[d];
      if (!last || !context.in_place[n] || node.attributes.Int("axis") != 0 || !set.Has(node.inputs[1].node)) {
        return absl::FailedPreconditionError(
            absl::StrFormat("%s does not write rows of a donated input", context.Describe(n)));
      }
      if (context.type(BeforeReshapes(context, set, node.inputs[1].node)).dims.back() != row_elements ||
          update.dims[0] != rows) {
        return absl::FailedPreconditionError(
            absl::StrFormat("rows of %s are not rows of the product", context.Describe(n)));
      }
    } else if (Is(node, "Reshape")) {
      for (const auto& [user, operand] : context.users[n]) {
        if (!set.Has(user) || Is(context.node(user), "Reshape") || IsUpdate(context.node(user))) continue;
        return absl::FailedPreconditionError(absl::StrFormat("%s follows a Reshape", context.Describe(user)));
      }
    } else {
      return absl::FailedPreconditionError(absl::StrFormat("%s moves elements of the product", context.Describe(n)));
    }
  }
  for (const int n : OutputsOf(context, set)) {
    const size_t i = std::lower_bound(nodes.begin(), nodes.end(), n) - nodes.begin();
    if (!depends[i])
      return absl::FailedPreconditionError(
          absl::StrFormat("%s is used outside and is no result of the product", context.Describe(n)));
    const int before = BeforeReshapes(context, set, n);
    if (before != n && std::any_of(context.users[before].begin(), context.users[before].end(),
                                   [&](const auto& use) { return !set.Has(use.first); })) {
      return absl::FailedPreconditionError(absl::StrFormat("%s is a view of a result", context.Describe(n)));
    }
  }
  return NoWorkTwice(context, set, named);
}

// Loops over the result with the sum inside: one root, elementwise ops of its extents.
Status PlainRule(const FusionContext& context, const NodeSet& set, const std::vector<int>& roots) {
  if (roots.size() != 1) return absl::FailedPreconditionError("only products with tile ops share a region");
  const std::vector<Extent>& dims = context.type(roots[0]).dims;
  for (const ir::Value& input : context.node(roots[0]).inputs) {
    if (set.Has(input.node)) return absl::FailedPreconditionError("operands of a plain product lie in memory");
  }
  const std::vector<bool> depends = DependsOn(context, set, IsMatmul);
  std::vector<bool> named(set.nodes().size());
  for (size_t i = 0; i < set.nodes().size(); ++i) {
    const int n = set.nodes()[i];
    if (n == roots[0]) continue;
    named[i] = depends[i];
    if (!IsElementwise(context.node(n)) && (depends[i] || !IsIndex(context.node(n)))) {
      return absl::FailedPreconditionError(absl::StrFormat("%s is not elementwise, and %s has no tile ops",
                                                           context.Describe(n), context.Describe(roots[0])));
    }
    if (depends[i]) QUERN_RETURN_IF_ERROR(EpilogueRule(context, n, dims));
  }
  for (const int n : OutputsOf(context, set)) {
    if (!depends[std::lower_bound(set.nodes().begin(), set.nodes().end(), n) - set.nodes().begin()]) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s is used outside and is no result of the product", context.Describe(n)));
    }
  }
  return NoWorkTwice(context, set, named);
}

}  // namespace

bool IsTileMatmul(const FusionContext& context, int n) {
  const ir::Node& node = context.node(n);
  if (!IsMatmul(node)) return false;
  const ir::TensorType &x = context.graph.type(node.inputs[0]), &w = context.graph.type(node.inputs[1]);
  const std::optional<Extent> rows = Rows(x.dims);
  return rows && rows->UpperBound(context.graph.symbols).value_or(INT64_MAX) <= kMaxRows &&
         x.dims.back().is_constant() && w.rank() == 2 && IsWeight(context, node.inputs[1].node) &&
         node.attributes.Bool("transpose_b") && FindTypes(w.dtype, x.dtype) != nullptr &&
         context.type(n).dtype == DType::kF32;
}

Status MatmulRule(const FusionContext& context, const NodeSet& set) {
  std::vector<int> roots;
  bool tiles = true;
  for (const int n : set.nodes()) {
    if (!IsMatmul(context.node(n))) continue;
    roots.push_back(n);
    tiles &= IsTileMatmul(context, n);
  }
  return tiles ? TileRule(context, set, roots) : PlainRule(context, set, roots);
}

Status AttentionRule(const FusionContext& context, const NodeSet& set) {
  const std::vector<int>& nodes = set.nodes();
  const std::vector<bool> depends = DependsOn(context, set, IsAttention);
  std::vector<bool> named(nodes.size());
  int root = -1;
  for (const int n : nodes) {
    if (!IsAttention(context.node(n))) continue;
    if (root >= 0) return absl::FailedPreconditionError("a region has one attention");
    root = n;
  }
  const ir::AttentionShape shape(context.node(root).attributes);
  const std::vector<Extent>& dims = context.type(root).dims;
  for (const ir::Value& input : context.node(root).inputs) {
    if (set.Has(input.node)) return absl::FailedPreconditionError("operands of an attention lie in memory");
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int n = nodes[i];
    const ir::Node& node = context.node(n);
    if (n == root) continue;
    if (!depends[i]) {
      if (!IsElementwise(node) && !IsIndex(node))
        return absl::FailedPreconditionError(absl::StrFormat("%s is not elementwise", context.Describe(n)));
      continue;
    }
    if (IsElementwise(node)) {
      QUERN_RETURN_IF_ERROR(EpilogueRule(context, n, dims));
      named[i] = true;
    } else if (IsQuantize(node)) {
      const bool rows = shape.layout != ir::AttentionShape::Layout::kBhsd &&
                        context.type(n).dims.back() == Extent(shape.heads * shape.head_dim);
      const bool last = std::none_of(context.users[n].begin(), context.users[n].end(),
                                     [&](const auto& use) { return set.Has(use.first); });
      if (!rows || !last)
        return absl::FailedPreconditionError(absl::StrFormat("%s is not over rows of all heads", context.Describe(n)));
    } else if (Is(node, "Reshape")) {
      for (const auto& [user, operand] : context.users[n]) {
        if (!set.Has(user) || Is(context.node(user), "Reshape") || IsQuantize(context.node(user))) continue;
        return absl::FailedPreconditionError(absl::StrFormat("%s follows a Reshape", context.Describe(user)));
      }
    } else {
      return absl::FailedPreconditionError(absl::StrFormat("%s is not elementwise", context.Describe(n)));
    }
  }
  for (const int n : OutputsOf(context, set)) {
    if (!depends[std::lower_bound(nodes.begin(), nodes.end(), n) - nodes.begin()]) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s is used outside and is no result of the attention", context.Describe(n)));
    }
    const int before = BeforeReshapes(context, set, n);
    if (before != n && std::any_of(context.users[before].begin(), context.users[before].end(),
                                   [&](const auto& use) { return !set.Has(use.first); })) {
      return absl::FailedPreconditionError(absl::StrFormat("%s is a view of a result", context.Describe(n)));
    }
  }
  return NoWorkTwice(context, set, named);
}

}  // namespace quern::opt
