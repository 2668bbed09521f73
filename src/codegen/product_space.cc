#include "codegen/product_space.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/loops.h"
#include "ir/shape.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kShortProducts = 1 << 17;  // multiplications that are not worth sharing among threads

bool IsOne(const Extent& dim) { return dim == Extent(1); }
bool IsShortFloat(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }

int RootOf(const RegionView& view) {
  return *std::find_if(view.nodes().begin(), view.nodes().end(),
                       [&](int n) { return ir::IsRoot(view.node(n), "matmul"); });
}

}  // namespace

ProductSpace::ProductSpace(const RegionView& view)
    : view_(view),
      root_(RootOf(view)),
      node_(view.node(root_)),
      transposed_(node_.attributes.Bool("transpose_b")),
      dims_(node_.results[0].dims),
      rows_(dims_[dims_.size() - 2]),
      columns_(dims_.back()),
      k_(type(0).dims.back()) {
  joined_ = RowsJoin();
  if (!joined_) return;
  rows_ = Extent(1);
  for (size_t d = 0; d + 1 < dims_.size(); ++d) rows_ = rows_ * std::exchange(dims_[d], Extent(1));
  dims_[dims_.size() - 2] = rows_;
}

// An element of its own for every row of every batch.
bool ProductSpace::HasRows(const std::vector<Extent>& dims) const {
  const std::vector<Extent>& all = node_.results[0].dims;
  return dims.size() == all.size() && std::equal(dims.begin(), dims.end() - 1, all.begin());
}

// A right side that all batches share makes their rows one matrix's, where whatever else is read has an element for
// every row or the same for all.
bool ProductSpace::RowsJoin() const {
  const std::vector<Extent>& b = type(1).dims;
  if (!std::all_of(b.begin(), b.end() - 2, IsOne)) return false;
  for (const int n : view_.nodes()) {
    if (n != root_ && view_.node(n).op->kind != ir::OpKind::kElementwise) return false;
  }
  return std::all_of(view_.inputs().begin(), view_.inputs().end(), [&](int leaf) {
    const std::vector<Extent>& dims = view_.node(leaf).results[0].dims;
    return leaf == node_.inputs[1].node || dims.empty() || HasRows(dims) ||
           std::all_of(dims.begin(), dims.end() - 1, IsOne);
  });
}

bool ProductSpace::IsOfShortFloats() const {
  return IsShortFloat(dtype(0)) && IsShortFloat(dtype(1)) && IsShortFloat(node_.results[0].dtype);
}

void ProductSpace::Declare(KernelWriter& writer) const {
  if (!joined_) return;
  for (size_t i = 0; i < view_.inputs().size(); ++i) {
    const std::vector<Extent>& own = view_.node(view_.inputs()[i]).results[0].dims;
    if (view_.inputs()[i] == node_.inputs[1].node || !HasRows(own)) continue;
    std::vector<Extent> joined = dims_;
    joined.back() = own.back();
    writer.DeclareAs(static_cast<int>(i), std::move(joined));
  }
}

std::string ProductSpace::Operand(KernelWriter& writer, int operand) const {
  return writer.Input(view_.InputIndex(node_.inputs[operand]));
}

std::string ProductSpace::Result(KernelWriter& writer, int output) const {
  const std::string name = writer.Result(output);
  writer.Redeclare(name, dims_);
  return name;
}

// Lines up with the result from the right.
kir::Index ProductSpace::BatchOf(const std::vector<Extent>& dims) const {
  kir::Index index;
  const size_t leading = dims.size() - 2, before = dims_.size() - dims.size();
  for (size_t d = 0; d < leading; ++d) {
    const bool one = IsOne(dims[d]) || IsOne(dims_[before + d]);
    index.push_back(one ? kb::Int(0) : kb::Ref(absl::StrCat("i", before + d)));
  }
  return index;
}

kir::Slice ProductSpace::Rectangle(std::string buffer, const kir::Index& batch, kir::SliceDim first,
                                   kir::SliceDim second) {
  std::vector<kir::SliceDim> dims;
  for (const kir::ExprRef& at : batch) dims.push_back(kb::Point(at));
  dims.push_back(std::move(first));
  dims.push_back(std::move(second));
  return kb::SliceOf(std::move(buffer), std::move(dims));
}

kir::ExprRef ProductSpace::Left(FusedExpr& expr, const kir::ExprRef& row, const kir::ExprRef& k) const {
  kir::Index at = BatchOf(0);
  at.push_back(row);
  at.push_back(k);
  return ir::Widened(expr.Element(node_.inputs[0], at));
}

kir::ExprRef ProductSpace::Right(FusedExpr& expr, const kir::ExprRef& k, const kir::ExprRef& column) const {
  kir::Index at = BatchOf(1);
  at.push_back(transposed_ ? column : k);
  at.push_back(transposed_ ? k : column);
  return ir::Widened(expr.Element(node_.inputs[1], at));
}

kir::Block ProductSpace::Results(KernelWriter& writer, FusedExpr& expr, const kir::ExprRef& row,
                                 const kir::ExprRef& column, const kir::ExprRef& sum) const {
  kir::Index at = BatchOfResult();
  at.push_back(row);
  at.push_back(column);
  const kir::ExprRef product = kb::CastTo(node_.results[0].dtype, sum);
  expr.Provide({root_, 0}, [product](const kir::Index&, const kir::ExprRef&) { return product; });
  kir::Block block;
  for (size_t o = 0; o < view_.results().size(); ++o) {
    const ir::Value result = view_.results()[o];
    block.push_back(kb::WithOrigin(kb::Store(Result(writer, static_cast<int>(o)), at, expr.Element(result, at)),
                                   writer.Origin(result.node)));
  }
  return block;
}

void ProductSpace::EmitGrid(kir::Kernel& kernel, std::vector<kir::GridDim> inner, kir::Block chunk) const {
  const auto first = std::find_if_not(dims_.begin(), dims_.end() - 2, IsOne);
  const size_t outer = first - dims_.begin();
  for (size_t d = dims_.size() - 2; d-- > outer + 1;) {
    if (!IsOne(dims_[d]))
      chunk = {kb::For(absl::StrCat("i", d), kb::Int(0), kb::FromExtent(dims_[d]), std::move(chunk))};
  }
  if (outer < dims_.size() - 2)
    kernel.grid.push_back({absl::StrCat("i", outer), kb::Int(0), kb::FromExtent(dims_[outer]), 1});
  kernel.grid.insert(kernel.grid.end(), std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
  kernel.body = std::move(chunk);
  std::vector<Extent> all = dims_;
  all.push_back(k_);
  kernel.sequential = BoundedElements(all, view_.ranges) <= kShortProducts;
}

}  // namespace quern::codegen
