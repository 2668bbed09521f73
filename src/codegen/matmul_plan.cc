#include "codegen/matmul_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "family/work.h"
#include "ir/product.h"

namespace quern::codegen {
namespace {

using family::Matched;
using family::No;
using family::RegionView;
using ir::OpKind;
using ir::Value;

// Matches products by tile ops.
class TileMatcher {
 public:
  TileMatcher(const RegionView& view, std::vector<int> roots)
      : view_(view),
        roots_(std::move(roots)),
        depends_(view.DependsOn(IsProduct)),
        dims_(view.nodes().size()),
        group_(roots_.size()) {
    std::iota(group_.begin(), group_.end(), 0);
  }

  StatusOr<MatmulPlan::Tiles> Match() {
    QUERN_RETURN_IF_ERROR(MatchRoots());
    if (view_.Has(tiles_.lhs.node)) QUERN_RETURN_IF_ERROR(MatchPrologue());
    for (size_t i = 0; i < view_.nodes().size(); ++i) QUERN_RETURN_IF_ERROR(MatchNode(i));
    QUERN_RETURN_IF_ERROR(MatchSpans());
    for (size_t r = 0; r < view_.results().size(); ++r) QUERN_RETURN_IF_ERROR(MatchResult(static_cast<int>(r)));
    QUERN_RETURN_IF_ERROR(MakeSegments());
    std::vector<bool> named(depends_.size());
    for (size_t i = 0; i < named.size(); ++i) {
      // One element of a tile at a time, whoever reads it.
      const ir::Node& node = view_.node(view_.nodes()[i]);
      named[i] = depends_[i] && (node.op->kind == OpKind::kElementwise || node.op->row_span != nullptr);
    }
    QUERN_RETURN_IF_ERROR(family::NoWorkTwice(view_, named, /*own_operands=*/true));
    return std::move(tiles_);
  }

 private:
  const ir::Node& Node(int n) const { return view_.node(n); }
  const std::vector<Extent>& DimsOf(int n) const { return Node(n).results[0].dims; }
  bool Depends(int n) const {
    const int at = view_.set().Position(n);
    return at >= 0 && depends_[at];
  }

  Status MatchRoots() {
    tiles_.lhs = Node(roots_[0]).inputs[0];
    const ir::TensorType& x = view_.type(tiles_.lhs);
    tiles_.dims.assign(x.dims.begin(), x.dims.end() - 1);
    tiles_.rows = Extent(1);
    tiles_.row_axis = static_cast<int>(tiles_.dims.size()) - 1;
    for (int d = 0; d < static_cast<int>(tiles_.dims.size()); ++d) {
      if (tiles_.dims[d] == Extent(1)) continue;
      tiles_.rows = tiles_.rows * tiles_.dims[d];
      tiles_.row_axis = d;
      ++row_dims_;
    }
    tiles_.k = x.dims.back().constant();
    tiles_.row = TileRow(view_, roots_[0]);
    for (const int root : roots_) {
      if (Node(root).inputs[0] != tiles_.lhs) return No("the products have different left sides");
      if (view_.Has(Node(root).inputs[1].node)) return No("weights lie in memory");
      QUERN_RETURN_IF_ERROR(MatchPicks(root));
      const MatmulRow& row = *TileRow(view_, root);
      if (row.panel != tiles_.row->panel || row.in_panels() != tiles_.row->in_panels())
        return No("the weights are packed in different ways");
    }
    return absl::OkStatus();
  }

  // Every root picks its matrices alike, or none does.
  Status MatchPicks(int root) {
    const ir::Node &node = Node(root), &first = Node(roots_[0]);
    if (ir::PicksMatrices(node) != ir::PicksMatrices(first)) return No("some products pick matrices, some do not");
    if (!ir::PicksMatrices(node)) return absl::OkStatus();
    tiles_.picks = ir::PicksByRun(node) ? MatmulPlan::Tiles::Picks::kByRun : MatmulPlan::Tiles::Picks::kByRow;
    tiles_.which = node.inputs[2];
    tiles_.matrices = view_.type(node.inputs[1]).dims[0].constant();
    if (view_.Has(tiles_.which.node)) return No("what picks matrices lies in memory");
    if (first.inputs[2] != tiles_.which || ir::PicksByRun(first) != ir::PicksByRun(node) ||
        view_.type(first.inputs[1]).dims[0] != view_.type(node.inputs[1]).dims[0])
      return No("the products pick their matrices in different ways");
    return absl::OkStatus();
  }
  bool Picks() const { return tiles_.picks != MatmulPlan::Tiles::Picks::kNone; }

  // The left side computed in the region: elementwise, and for nothing else.
  Status MatchPrologue() {
    if (Picks()) return No("rows that pick matrices lie in memory");
    const int lhs = tiles_.lhs.node;
    const int under = ir::IsCast(Node(lhs)) ? Node(lhs).inputs[0].node : lhs;
    if (view_.Has(under) && Node(under).op->kind == OpKind::kIndex) return MatchWindows();
    if (Node(lhs).results[0].dtype != DType::kF32) return No("only f32 activations are computed on the way in");
    std::vector<int> open = {lhs};
    std::set<int> prologue;
    while (!open.empty()) {
      const int n = open.back();
      open.pop_back();
      if (!view_.Has(n) || !prologue.insert(n).second) continue;
      if (Node(n).op->kind != OpKind::kElementwise || DimsOf(n) != DimsOf(lhs))
        return No("%s is not elementwise over the left side", view_.Describe(n));
      for (const Value& input : Node(n).inputs) open.push_back(input.node);
    }
    return ForNothingElse(prologue);
  }

  Status ForNothingElse(const std::set<int>& prologue) const {
    for (const int n : prologue) {
      for (const auto& [user, operand] : view_.users(n)) {
        if (view_.Has(user) && ((IsProduct(Node(user)) && operand == 0) || prologue.contains(user))) continue;
        return No("%s is also used by %s", view_.Describe(n), view_.Describe(user));
      }
      if (view_.IsReadOutside(n)) return No("%s is a result", view_.Describe(n));
    }
    return absl::OkStatus();
  }

  Status MatchWindows() {
    QUERN_ASSIGN(gathers_, GatherWindows(view_, tiles_));
    QUERN_RETURN_IF_ERROR(ForNothingElse(gathers_));
    for (const int n : view_.nodes()) {
      for (const Value& input : Node(n).inputs) {
        if (!gathers_.contains(n) && tiles_.images.contains(input))
          return No("%s is read in two ways", view_.Describe(input.node));
      }
    }
    return absl::OkStatus();
  }

  // With several dimensions of rows, a value has all of them or none.
  bool FollowsRows(Value value) const {
    const std::vector<Extent>& dims = view_.type(value).dims;
    if (tiles_.HasRows(dims)) return true;
    const size_t rows = tiles_.dims.size();
    if (row_dims_ <= 1) return true;
    for (size_t d = 0; d < dims.size(); ++d) {
      const bool row = dims.size() - d > 1 && dims.size() - d <= rows + 1;
      if (row && dims[d] != Extent(1)) return false;
    }
    return true;
  }

  // What stands between the roots and the results.
  Status MatchNode(size_t i) {
    const int n = view_.nodes()[i];
    const ir::Node& node = Node(n);
    if (gathers_.contains(n)) return absl::OkStatus();
    if (!depends_[i]) {
      if (node.op->kind == OpKind::kElementwise) return MatchInputs(n);
      if (node.op->kind == OpKind::kIndex && row_dims_ <= 1) return absl::OkStatus();
      return No("%s is not elementwise", view_.Describe(n));
    }
    if (IsProduct(node)) {
      dims_[i] = &DimsOf(n);
      return absl::OkStatus();
    }
    // The extents of the root behind it; roots that meet have the same.
    for (const Value& input : node.inputs) {
      if (!Depends(input.node)) continue;
      const std::vector<Extent>* behind = dims_[view_.set().Position(input.node)];
      if (dims_[i] != nullptr && *dims_[i] != *behind)
        return No("%s joins products of different extents", view_.Describe(n));
      dims_[i] = behind;
    }
    switch (node.op->kind) {
      case OpKind::kElementwise: return MatchElementwise(n, *dims_[i]);
      case OpKind::kPack: return MatchPack(n, *dims_[i]);
      case OpKind::kWrite: return MatchWrite(n);
      case OpKind::kIndex:
        if (ir::IsReshape(view_.graph, node)) return MatchReshape(n);
        return MatchRowMap(n, *dims_[i]);
      case OpKind::kRoot:
      case OpKind::kLeaf:
      case OpKind::kComposite:
      case OpKind::kControl:
      case OpKind::kRegion: return No("%s is not elementwise", view_.Describe(n));
    }
    return absl::OkStatus();
  }

  Status MatchInputs(int n) {
    for (const Value& input : Node(n).inputs) {
      if (!FollowsRows(input)) return No("%s broadcasts over some of the rows", view_.Describe(input.node));
    }
    return absl::OkStatus();
  }

  Status MatchElementwise(int n, const std::vector<Extent>& dims) {
    if (DimsOf(n) != dims) return No("%s has other extents than the product", view_.Describe(n));
    for (const Value& input : Node(n).inputs) {
      if (Depends(input.node) && ir::IsReshape(view_.graph, Node(input.node)))
        return No("%s follows a Reshape", view_.Describe(n));
    }
    return MatchInputs(n);
  }

  // Columns of a row that are combined must lie in one tile.
  Status MatchRowMap(int n, const std::vector<Extent>& dims) {
    const ir::Node& node = Node(n);
    if (node.op->row_span == nullptr || node.op->row_span(node) == 0)
      return No("%s moves elements of the product", view_.Describe(n));
    if (DimsOf(n) != dims) return No("%s has other extents than the product", view_.Describe(n));
    const ir::Node& x = Node(node.inputs[0].node);
    if (!IsProduct(x) && x.op->kind != OpKind::kElementwise) return No("%s follows %s", view_.Describe(n), x.op->name);
    for (size_t o = 1; o < node.inputs.size(); ++o) {
      if (Depends(node.inputs[o].node)) return No("operand %u of %s depends on the product", o, view_.Describe(n));
    }
    // Positions of rows are looked up in tables of their own.
    if (row_dims_ > 1) return No("%s takes rows of one dimension", view_.Describe(n));
    if (node.op->row_span(node) > 2 && view_.UpperBound(tiles_.rows) > kFewRows)
      return No("%s combines columns of different panels", view_.Describe(n));
    return absl::OkStatus();
  }

  // Runs of columns that stay together fill chunks of columns; so do packed blocks.
  Status MatchSpans() {
    int64_t span = 0;
    for (const int n : view_.nodes()) {
      const ir::Node& node = Node(n);
      if (!Depends(n) || node.op->row_span == nullptr || node.op->row_span(node) <= 2) continue;
      const int64_t own = node.op->row_span(node);
      if (own % 32 != 0 || (span != 0 && own != span))
        return No("runs of %d columns do not fill chunks of columns", own);
      span = own;
    }
    for (const int n : view_.nodes()) {
      if (span == 0 || !Depends(n) || Node(n).op->kind != OpKind::kPack) continue;
      if (Row(Node(n).results[0].dtype).block_elements % span != 0 &&
          span % Row(Node(n).results[0].dtype).block_elements != 0)
        return No("runs of %d columns do not fill the blocks of %s", span, view_.Describe(n));
    }
    return absl::OkStatus();
  }

  // Chunks hold whole blocks of what is packed. Where that leaves fewer than threads may want, and reading the weights
  // is what takes the time, packing is another kernel's.
  Status MatchPack(int n, const std::vector<Extent>& dims) {
    constexpr int64_t kWeightBytes = 1 << 20;
    if (Picks()) return No("rows that pick matrices are packed when all are there");
    const ir::TensorType& w = view_.type(Node(roots_[0]).inputs[1]);
    const int64_t columns = dims.back().constant(), block = Row(Node(n).results[0].dtype).block_elements;
    if (!view_.facts.blocks && view_.UpperBound(tiles_.rows) <= kFewRows && block > 32 &&
        columns / block < kChunksWanted && columns * RowBytes(w.dtype, tiles_.k) >= kWeightBytes)
      return No("blocks of %s leave too few chunks of the product", view_.Describe(n));
    if (view_.IsReadInside(n) || DimsOf(n) != dims || ir::IsReshape(view_.graph, Node(Node(n).inputs[0].node)))
      return No("%s is not over the rows of the product", view_.Describe(n));
    return absl::OkStatus();
  }

  // Rows of the written tensor are rows of the root: axis 0, and the rest of the extents make one row.
  Status MatchWrite(int n) {
    const ir::Node& node = Node(n);
    const Value target = node.inputs[0], update = node.inputs[1];
    if (node.inputs.size() > 2) return No("%s writes at places that are data", view_.Describe(n));
    if (view_.IsReadInside(n) || view_.Has(target.node) || !view_.scope.IsWritable(target.node) ||
        node.attributes.Int("axis") != 0 || !Depends(update.node)) {
      return No("%s does not write rows of a donated input", view_.Describe(n));
    }
    Extent row_elements(1);
    for (size_t d = 1; d < DimsOf(n).size(); ++d) row_elements = row_elements * DimsOf(n)[d];
    if (view_.type(view_.BeforeReshapes(update)).dims.back() != row_elements ||
        view_.type(update).dims[0] != tiles_.rows) {
      return No("rows of %s are not rows of the product", view_.Describe(n));
    }
    return absl::OkStatus();
  }

  Status MatchReshape(int n) {
    for (const auto& [user, operand] : view_.users(n)) {
      if (!view_.Has(user) || ir::IsReshape(view_.graph, Node(user)) || Node(user).op->kind == OpKind::kWrite) continue;
      return No("%s follows a Reshape", view_.Describe(user));
    }
    return absl::OkStatus();
  }

  Status MatchResult(int output) {
    const Value result = view_.results()[output];
    if (!Depends(result.node))
      return No("%s is used outside and is no result of the product", view_.Describe(result.node));
    const Value before = view_.BeforeReshapes(result);
    if (before != result && view_.IsReadOutside(before.node))
      return No("%s is a view of a result", view_.Describe(result.node));
    MatmulResult made;
    made.output = output;
    const ir::Node& node = Node(result.node);
    if (node.op->kind == OpKind::kWrite) {
      made.kind = MatmulResult::Kind::kWrite;
      made.target = node.inputs[0];
      made.start = node.attributes.Extents("start")[0];
      made.value = view_.BeforeReshapes(node.inputs[1]);
    } else if (node.op->kind == OpKind::kPack) {
      made.kind = MatmulResult::Kind::kPack;
      made.format = node.results[0].dtype;
      made.value = node.inputs[0];
    } else {
      made.value = before;
    }
    results_.push_back(made);
    // Roots that meet in one result are one segment.
    std::set<int> behind, seen;
    RootsBehind(made.value, behind, seen);
    int first = -1;
    for (const int root : behind) {
      const int r = static_cast<int>(std::find(roots_.begin(), roots_.end(), root) - roots_.begin());
      if (first < 0) first = r;
      const int from = group_[r], to = group_[first];
      std::replace(group_.begin(), group_.end(), from, to);
    }
    root_of_result_.push_back(first);
    return absl::OkStatus();
  }

  void RootsBehind(Value value, std::set<int>& behind, std::set<int>& seen) const {
    if (!Depends(value.node) || !seen.insert(value.node).second) return;
    if (IsProduct(Node(value.node))) {
      behind.insert(value.node);
      return;
    }
    for (const Value& input : Node(value.node).inputs) RootsBehind(input, behind, seen);
  }

  Status MakeSegments() {
    for (size_t g = 0; g < roots_.size(); ++g) {
      MatmulSegment segment;
      for (size_t r = 0; r < roots_.size(); ++r) {
        if (group_[r] == static_cast<int>(g)) segment.roots.push_back(roots_[r]);
      }
      if (segment.roots.empty()) continue;
      segment.columns = DimsOf(segment.roots[0]).back().constant();
      for (size_t r = 0; r < results_.size(); ++r) {
        if (group_[root_of_result_[r]] == static_cast<int>(g)) segment.results.push_back(results_[r]);
      }
      if (segment.results.empty()) return No("%s is no part of a result", view_.Describe(segment.roots[0]));
      tiles_.segments.push_back(std::move(segment));
    }
    return absl::OkStatus();
  }

  const RegionView& view_;
  const std::vector<int> roots_;
  const std::vector<bool> depends_;               // by position
  std::vector<const std::vector<Extent>*> dims_;  // by position: of the root behind it
  std::vector<int> group_;                        // by root: its segment
  std::vector<MatmulResult> results_;
  std::vector<int> root_of_result_;
  int row_dims_ = 0;       // that are not 1
  std::set<int> gathers_;  // of tiles_.windows
  MatmulPlan::Tiles tiles_;
};

}  // namespace

kir::Index MatmulPlan::Tiles::At(const kir::ExprRef& m, const kir::ExprRef& n) const {
  kir::Index at(dims.size(), kir::build::Int(0));
  at[row_axis] = m;
  if (n != nullptr) at.push_back(n);
  return at;
}

std::vector<Extent> MatmulPlan::Tiles::Flat(const Extent& columns) const {
  std::vector<Extent> flat(dims.size(), Extent(1));
  flat[row_axis] = rows;
  flat.push_back(columns);
  return flat;
}

int64_t MatmulPlan::Tiles::Columns() const {
  int64_t columns = 0;
  for (const MatmulSegment& segment : segments) columns += segment.columns;
  return columns;
}

bool MatmulPlan::Tiles::HasRows(const std::vector<Extent>& value) const {
  return value.size() == dims.size() + 1 && std::equal(dims.begin(), dims.end(), value.begin());
}

Matched MatchMatmul(const RegionView& view) {
  std::vector<int> roots;
  bool tiles = true;
  for (const int n : view.nodes()) {
    if (!IsProduct(view.node(n))) continue;
    roots.push_back(n);
    tiles &= TileRow(view, n) != nullptr;
  }
  auto plan = std::make_unique<MatmulPlan>();
  const auto in_panels = [&](int root) {
    return ir::ReadsPanels(view.node(root)) && !ir::ReadsPairs(view.graph, view.node(root));
  };
  if (tiles) {
    QUERN_ASSIGN(plan->tiles, TileMatcher(view, std::move(roots)).Match());
  } else if (std::any_of(roots.begin(), roots.end(), in_panels)) {
    return No("panels of weights are for products with tile ops");
  } else if (std::any_of(roots.begin(), roots.end(), [&](int root) { return ir::PicksMatrices(view.node(root)); })) {
    return No("picked matrices are for products with tile ops");
  } else {
    QUERN_ASSIGN(plan->any_order, MatchAnyOrder(view, roots));
  }
  return Matched(std::move(plan));
}

}  // namespace quern::codegen
