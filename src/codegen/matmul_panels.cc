// Products of operands that lie in any order, on a CPU: panels of 32 columns of the right side are filled by loops into
// scratch, whatever its layout, batch or float type, and a block of rows of the left side runs past each.
//
//   grid b in 0..12, mb in 0..512 by 192, n0 in 0..512 by 64 {
//     for f in 0..64 by 32 {
//       alloc p : f32[32, 64] @kn32
//       for pk in 0..64 { vec pj in 0..32 { p[pj, pk] = x1[b, pk, n0 + f + pj] } }
//       for m in mb .. min(mb + 192, 512) by 12 {
//         tile t : f32[12, 32] = 0
//         mma_f32 t += x0[b, m : +12, :], p
//         map (i, j) in t [..] { y0[b, m + i, n0 + f + j] = t }
//       }
//     }
//   }
//
// Where k is long, or a symbol, it is cut into blocks of a constant length, whose sums are added in order in scratch.
// What a row gets depends on that row alone.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "ir/shape.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kWidth = 32;               // columns of a panel
constexpr int64_t kColumns = 64;             // of a chunk: what is made of the left side serves two panels
constexpr int64_t kWholeDepth = 1024;        // a panel of so many k stays in the second cache beside the rows
constexpr int64_t kDepth = 512;              // of a block of k otherwise
constexpr int64_t kRows = 192;               // of a chunk, so that filling a panel is little beside using it
constexpr int64_t kFewerRows = 96;           // where chunks are few, or rows are copied to scratch first
constexpr int64_t kShortProducts = 1 << 17;  // multiplications that are not worth sharing among threads

class PanelProduct {
 public:
  explicit PanelProduct(const RegionView& view);
  StatusOr<LoweredRegion> Lower();

 private:
  const ir::TensorType& type(int operand) const { return view_.type(node_.inputs[operand]); }
  bool Blocked() const { return depth_ != k_; }
  void ChooseRows();
  void EmitGrid(kir::Block chunk);
  kir::Block Chunk();
  kir::Block RowsPastPanels(const kir::ExprRef& k0, const kir::ExprRef& depth);
  kir::Block FillPanel(const kir::ExprRef& n, const kir::ExprRef& k0, const kir::ExprRef& depth);
  kir::StmtRef FillRows(const kir::ExprRef& k0, const kir::ExprRef& depth);
  kir::StmtRef Finish(const kir::ExprRef& n);
  kir::Block Results(const kir::ExprRef& row, const kir::ExprRef& column, kir::ExprRef sum);
  kir::StmtRef Of(const kir::StmtRef& stmt) { return kb::WithOrigin(stmt, writer_.Origin(root_)); }

  // The index of an operand's or result's leading dimensions, as points; `type` lines up with the result from the
  // right.
  kir::Index Leading(const ir::TensorType& type) const;
  static std::vector<kir::SliceDim> Points(const kir::Index& index);
  kir::Index At(const kir::ExprRef& row, const kir::ExprRef& column) const;
  kir::ExprRef FirstRow() const { return rows_of_chunk_ == Extent(0) ? kb::Int(0) : kb::Ref("mb"); }
  kir::ExprRef EndRow() const;
  kir::ExprRef LiveColumns(const kir::ExprRef& n) const;

  const RegionView& view_;
  const int root_;
  const ir::Node& node_;
  const bool nk_;                    // the right side is [N, K]
  const std::vector<Extent>& dims_;  // of the product
  const Extent m_, n_, k_;
  Extent depth_;          // of a panel: k_, or a constant
  Extent rows_of_chunk_;  // 0: all
  bool copies_rows_;      // the left side is not f32
  int64_t columns_;
  KernelWriter writer_;
  FusedExpr expr_;
};

int RootOf(const RegionView& view) {
  return *std::find_if(view.nodes().begin(), view.nodes().end(),
                       [&](int n) { return ir::IsRoot(view.node(n), "matmul"); });
}

bool IsMultiple(const Extent& extent, int64_t of) { return extent.is_constant() && extent.constant() % of == 0; }

PanelProduct::PanelProduct(const RegionView& view)
    : view_(view),
      root_(RootOf(view)),
      node_(view.node(root_)),
      nk_(node_.attributes.Bool("transpose_b")),
      dims_(node_.results[0].dims),
      m_(dims_[dims_.size() - 2]),
      n_(dims_.back()),
      k_(type(0).dims.back()),
      depth_(k_.is_constant() && k_.constant() <= kWholeDepth ? k_ : Extent(kDepth)),
      copies_rows_(type(0).dtype != DType::kF32),
      columns_(IsMultiple(n_, kColumns) ? kColumns : kWidth),
      writer_(view, "matmul"),
      expr_(view.graph) {
  writer_.ProvideInputs(expr_);
  ChooseRows();
}

void PanelProduct::ChooseRows() {
  const int64_t rows = view_.UpperBound(m_), step = view_.facts.gemm_rows;
  std::vector<Extent> batch(dims_.begin(), dims_.end() - 2);
  batch.push_back(Extent((view_.UpperBound(n_) + columns_ - 1) / columns_));
  batch.push_back(Extent((rows + kRows - 1) / kRows));
  const bool few = BoundedElements(batch, view_.ranges) < kChunksWanted;
  const int64_t most = (few || copies_rows_ ? kFewerRows : kRows) / step * step;
  rows_of_chunk_ = Extent(rows > most ? most : 0);
}

kir::Index PanelProduct::Leading(const ir::TensorType& type) const {
  kir::Index index;
  const size_t leading = type.dims.size() - 2, before = dims_.size() - type.dims.size();
  for (size_t d = 0; d < leading; ++d)
    index.push_back(type.dims[d] == Extent(1) ? kb::Int(0) : kb::Ref(absl::StrCat("i", before + d)));
  return index;
}

std::vector<kir::SliceDim> PanelProduct::Points(const kir::Index& index) {
  std::vector<kir::SliceDim> dims;
  for (const kir::ExprRef& at : index) dims.push_back(kb::Point(at));
  return dims;
}

kir::Index PanelProduct::At(const kir::ExprRef& row, const kir::ExprRef& column) const {
  kir::Index at = Leading(node_.results[0]);
  at.push_back(row);
  at.push_back(column);
  return at;
}

kir::ExprRef PanelProduct::EndRow() const {
  const kir::ExprRef end = kb::FromExtent(m_);
  if (rows_of_chunk_ == Extent(0)) return end;
  return kb::Min(FirstRow() + static_cast<double>(rows_of_chunk_.constant()), end);
}

kir::ExprRef PanelProduct::LiveColumns(const kir::ExprRef& n) const {
  if (IsMultiple(n_, kWidth)) return kb::Int(kWidth);
  return kb::Min(kb::FromExtent(n_) - n, kb::Int(kWidth));
}

StatusOr<LoweredRegion> PanelProduct::Lower() {
  EmitGrid(Chunk());
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse use, writer_.Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

// The first dimension of a batch, blocks of rows, columns; further dimensions of a batch are loops in the chunk.
void PanelProduct::EmitGrid(kir::Block chunk) {
  kir::Kernel& kernel = writer_.kernel;
  int outer = -1;
  for (size_t d = dims_.size() - 2; d-- > 0;) {
    if (dims_[d] == Extent(1)) continue;
    const std::string name = absl::StrCat("i", d);
    if (std::all_of(dims_.begin(), dims_.begin() + d, [](const Extent& dim) { return dim == Extent(1); })) {
      outer = static_cast<int>(d);
    } else {
      chunk = {kb::For(name, kb::Int(0), kb::FromExtent(dims_[d]), std::move(chunk))};
    }
  }
  if (outer >= 0) kernel.grid.push_back({absl::StrCat("i", outer), kb::Int(0), kb::FromExtent(dims_[outer]), 1});
  if (rows_of_chunk_ != Extent(0))
    kernel.grid.push_back({"mb", kb::Int(0), kb::FromExtent(m_), rows_of_chunk_.constant()});
  kernel.grid.push_back({"n0", kb::Int(0), kb::FromExtent(n_), columns_});
  kernel.body = std::move(chunk);
  std::vector<Extent> all = dims_;
  all.push_back(k_);
  kernel.sequential = BoundedElements(all, view_.ranges) <= kShortProducts;
}

kir::Block PanelProduct::Chunk() {
  kir::Block block;
  const Extent rows = rows_of_chunk_ == Extent(0) ? Extent(view_.UpperBound(m_)) : rows_of_chunk_;
  if (copies_rows_) block.push_back(kb::Alloc("px", {DType::kF32, {rows, depth_}, kir::Layout::kRow}));
  if (!Blocked()) {
    const kir::Block past = RowsPastPanels(kb::Int(0), kb::FromExtent(k_));
    block.insert(block.end(), past.begin(), past.end());
    return block;
  }
  const kir::ExprRef r = kb::Ref("r"), c = kb::Ref("c"), k0 = kb::Ref("k0");
  const kir::ExprRef columns = IsMultiple(n_, columns_) ? kb::Int(columns_) : LiveColumns(kb::Ref("n0"));
  const auto each = [&](kir::Block body) {
    return kb::For("r", kb::Int(0), EndRow() - FirstRow(), {kb::Vec("c", kb::Int(0), columns, std::move(body))});
  };
  block.push_back(kb::Alloc("acc", {DType::kF32, {rows, Extent(columns_)}, kir::Layout::kRow}));
  block.push_back(each({kb::Store("acc", {r, c}, kb::Num(0))}));
  block.push_back(kb::For("k0", kb::Int(0), kb::FromExtent(k_),
                          RowsPastPanels(k0, kb::Min(kb::FromExtent(k_) - k0, kb::FromExtent(depth_))),
                          depth_.constant()));
  block.push_back(each(Results(FirstRow() + r, kb::Ref("n0") + c, kb::At("acc", DType::kF32, {r, c}))));
  return block;
}

kir::Block PanelProduct::RowsPastPanels(const kir::ExprRef& k0, const kir::ExprRef& depth) {
  kir::Block block;
  if (copies_rows_) block.push_back(FillRows(k0, depth));
  const kir::ExprRef m = kb::Ref("m"), step = kb::Int(view_.facts.gemm_rows);
  const kir::ExprRef n = columns_ == kWidth ? kb::Ref("n0") : kb::Ref("n0") + kb::Ref("f");
  kir::Block panel = FillPanel(n, k0, depth);
  std::vector<kir::SliceDim> x = copies_rows_ ? std::vector<kir::SliceDim>{} : Points(Leading(type(0)));
  x.push_back(copies_rows_ ? kb::Range(m - FirstRow(), kb::Min(EndRow() - m, step)) : kb::Range(m, step));
  x.push_back(kb::Range(copies_rows_ ? kb::Int(0) : k0, depth));
  const std::string lhs = copies_rows_ ? "px" : writer_.Input(view_.InputIndex(node_.inputs[0]));
  kir::Block tile;
  if (!Blocked()) {
    // The stores of a tile would wait for their lines, a few of each of many rows, which nothing else foresees.
    for (size_t o = 0; o < view_.results().size(); ++o) {
      std::vector<kir::SliceDim> y = Points(Leading(node_.results[0]));
      y.push_back(kb::Range(m, step));
      y.push_back(kb::Range(n, kb::Int(kWidth)));
      tile.push_back(kb::Prefetch(kb::SliceOf(writer_.Result(static_cast<int>(o)), std::move(y))));
    }
  }
  tile.push_back(kb::Tile("t", {view_.facts.gemm_rows, kWidth}));
  tile.push_back(
      Of(kb::CallTile("mma_f32", {"t"},
                      {kb::SliceOf(lhs, std::move(x)),
                       kb::SliceOf("p", {kb::Range(kb::Int(0), LiveColumns(n)), kb::Range(kb::Int(0), depth)})})));
  tile.push_back(Finish(n));
  panel.push_back(kb::For("m", FirstRow(), EndRow(), std::move(tile), view_.facts.gemm_rows));
  if (columns_ == kWidth) {
    block.insert(block.end(), panel.begin(), panel.end());
  } else {
    block.push_back(kb::For("f", kb::Int(0), kb::Int(columns_), std::move(panel), kWidth));
  }
  return block;
}

// Rows of the left side as f32.
kir::StmtRef PanelProduct::FillRows(const kir::ExprRef& k0, const kir::ExprRef& depth) {
  const kir::ExprRef i = kb::Ref("xi"), k = kb::Ref("xk");
  kir::Index at = Leading(type(0));
  at.push_back(FirstRow() + i);
  at.push_back(k0 + k);
  return kb::For(
      "xi", kb::Int(0), EndRow() - FirstRow(),
      {kb::Vec("xk", kb::Int(0), depth, {kb::Store("px", {i, k}, ir::Widened(expr_.Element(node_.inputs[0], at)))})});
}

// Columns n.. of the right side. Where k is contiguous, rows are transposed by a pack, as f32 or f16.
kir::Block PanelProduct::FillPanel(const kir::ExprRef& n, const kir::ExprRef& k0, const kir::ExprRef& depth) {
  const kir::ExprRef j = kb::Ref("pj"), k = kb::Ref("pk"), live = LiveColumns(n);
  kir::Block block = {kb::Alloc("p", {DType::kF32, {Extent(kWidth), depth_}, kir::Layout::kKn32})};
  kir::Index at = Leading(type(1));
  if (!nk_) {
    at.push_back(k0 + k);
    at.push_back(n + j);
    block.push_back(kb::For(
        "pk", kb::Int(0), depth,
        {kb::Vec("pj", kb::Int(0), live, {kb::Store("p", {j, k}, ir::Widened(expr_.Element(node_.inputs[1], at)))})}));
    return block;
  }
  const kir::Slice panel = kb::SliceOf("p", {kb::Range(kb::Int(0), kb::Int(kWidth)), kb::Range(kb::Int(0), depth)});
  if (const DType dtype = type(1).dtype; dtype == DType::kF32 || dtype == DType::kF16) {
    std::vector<kir::SliceDim> rows = Points(at);
    rows.push_back(kb::Range(n, kb::Int(kWidth)));
    rows.push_back(kb::Range(k0, depth));
    block.push_back(
        Of(kb::Pack(panel, kb::SliceOf(writer_.Input(view_.InputIndex(node_.inputs[1])), std::move(rows)))));
    return block;
  }
  at.push_back(n + j);
  at.push_back(k0 + k);
  block.push_back(kb::Alloc("pw", {DType::kF32, {Extent(kWidth), depth_}, kir::Layout::kRow}));
  block.push_back(kb::For(
      "pj", kb::Int(0), live,
      {kb::Vec("pk", kb::Int(0), depth, {kb::Store("pw", {j, k}, ir::Widened(expr_.Element(node_.inputs[1], at)))})}));
  block.push_back(Of(kb::Pack(panel, kb::SliceOf("pw", {kb::Range(kb::Int(0), live), kb::Range(kb::Int(0), depth)}))));
  return block;
}

// What becomes of a tile: results, or a part of their sums.
kir::StmtRef PanelProduct::Finish(const kir::ExprRef& n) {
  const kir::ExprRef i = kb::Ref("i"), j = kb::Ref("j"), m = kb::Ref("m"), t = kb::Ref("t", DType::kF32);
  const std::vector<kir::ExprRef> live = {kb::Min(EndRow() - m, kb::Int(view_.facts.gemm_rows)), LiveColumns(n)};
  if (!Blocked()) return kb::Map({"i", "j"}, {"t"}, live, Results(m + i, n + j, t));
  const kir::Index at = {m - FirstRow() + i, columns_ == kWidth ? j : kb::Ref("f") + j};
  return kb::Map({"i", "j"}, {"t"}, live, {kb::Store("acc", at, kb::At("acc", DType::kF32, at) + t)});
}

kir::Block PanelProduct::Results(const kir::ExprRef& row, const kir::ExprRef& column, kir::ExprRef sum) {
  const kir::Index at = At(row, column);
  expr_.Provide({root_, 0}, [sum = kb::CastTo(node_.results[0].dtype, sum)](const kir::Index&, const kir::ExprRef&) {
    return sum;
  });
  kir::Block block;
  for (size_t o = 0; o < view_.results().size(); ++o) {
    const ir::Value result = view_.results()[o];
    block.push_back(kb::WithOrigin(kb::Store(writer_.Result(static_cast<int>(o)), at, expr_.Element(result, at)),
                                   writer_.Origin(result.node)));
  }
  return block;
}

bool IsShortFloat(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace

bool PanelsPay(const RegionView& view) {
  constexpr int64_t kLeastColumns = 8;
  const ir::Node& node = view.node(RootOf(view));
  const std::vector<Extent>& dims = node.results[0].dims;
  return !view.facts.blocks && IsShortFloat(node.results[0].dtype) &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ir::Value value) { return IsShortFloat(view.type(value).dtype); }) &&
         view.UpperBound(dims[dims.size() - 2]) > kFewRows && view.UpperBound(dims.back()) >= kLeastColumns &&
         view.UpperBound(view.type(node.inputs[0]).dims.back()) >= 1;
}

StatusOr<LoweredRegion> LowerPanelMatmul(const RegionView& view) { return PanelProduct(view).Lower(); }

}  // namespace quern::codegen
