// Writes to places that are data. Elements of the update that may meet in one place are walked in row-major order by
// one chunk, so that any number of threads gives the same bits. What is shared out is, as far as it goes:
//
//   dimensions that indices do not name, which can not meet: rows of the grid, and blocks of columns
//   where these are few, ranges of the first dimension that is named: each chunk walks all indices, which are read in
//   order, and takes those of its range. A range is also what its core's cache has to hold.
//
//   grid part in 0..100000 by 25000 {
//     for p0 in 0..U {
//       let raw0 = cast<i64>(x1[p0, 0])
//       let at0 = select(raw0 < 0, raw0 + 100000, raw0)
//       if 0 <= at0 - part & at0 - part < 25000 & at0 < 100000 {
//         vec c in 0..8 { y0[at0, c] = y0[at0, c] + x2[p0, c] }
//       }
//     }
//   }

#include "codegen/scatter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/loops.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using kir::ExprRef;
using kir::Op;

constexpr int64_t kColumns = 64;  // of a chunk, where columns are shared out
constexpr int64_t kParts = 4;     // chunks that are enough: of ranges each walks all indices
constexpr int64_t kUnknownRange = 1 << 16;

ExprRef Both(ExprRef a, ExprRef b) { return kb::Call(Op::kAnd, {std::move(a), std::move(b)}); }

class ScatterKernel {
 public:
  ScatterKernel(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const ir::Node& node,
                const std::string& buffer)
      : view_(view),
        writer_(writer),
        expr_(expr),
        node_(node),
        buffer_(buffer),
        x_(view.type(node.inputs[0])),
        update_(view.type(ir::Written(node))),
        places_(node.op->scatter->places(node, x_.rank(), view.type(node.inputs[1]).rank(),
                                         view.type(node.inputs[2]).rank())) {
    for (const auto& [own, to] : places_.free) free_.push_back(update_.dims[own]);
    ChooseParts();
  }

  void Emit() {
    const std::vector<Extent> outer(free_.begin(), free_.empty() ? free_.end() : free_.end() - 1);
    EmitGrid(view_, writer_.kernel, outer, Elements(0),
             [&](const kir::Index& index, kir::Block& block) { block = Walk(index); });
    kir::Kernel& kernel = writer_.kernel;
    if (by_columns_ || range_ > 0) {
      const Extent end = by_columns_ ? free_.back() : x_.dims[places_.named[0]];
      if (outer.empty()) kernel.grid.clear();
      kernel.grid.push_back({"part", kb::Int(0), kb::FromExtent(end), by_columns_ ? kColumns : range_});
    }
    kernel.sequential = BoundedElements(update_.dims, view_.ranges) <= kSequentialElements;
  }

 private:
  // Elements of the update for one step of the outer dimensions.
  int64_t Elements(int64_t least) const {
    std::vector<Extent> dims;
    for (const int d : places_.walked) dims.push_back(update_.dims[d]);
    if (!free_.empty()) dims.push_back(free_.back());
    return std::clamp<int64_t>(BoundedElements(dims, view_.ranges), least, kChunkElements);
  }

  void ChooseParts() {
    std::vector<Extent> outer = free_;
    const int64_t columns = free_.empty() ? 1 : view_.UpperBound(free_.back());
    if (!outer.empty()) outer.pop_back();
    const int64_t lines = BoundedElements(outer, view_.ranges);
    if (lines >= kParts || BoundedElements(update_.dims, view_.ranges) <= kSequentialElements) return;
    by_columns_ = columns / kColumns >= kParts / std::max<int64_t>(1, lines);
    if (by_columns_) return;
    const int64_t rows = view_.UpperBound(x_.dims[places_.named[0]]);
    range_ = rows == INT64_MAX ? kUnknownRange : std::max<int64_t>(1, (rows + kParts - 1) / kParts);
  }

  // All elements of the update, in order, at an index of the outer dimensions.
  kir::Block Walk(const kir::Index& outer) {
    kir::Index from(update_.dims.size()), to(x_.dims.size());
    for (const int d : places_.walked) from[d] = kb::Ref(absl::StrCat("p", d));
    for (size_t f = 0; f < free_.size(); ++f) {
      const auto& [own, target] = places_.free[f];
      from[own] = to[target] = f + 1 == free_.size() ? kb::Ref("c") : outer[f];
    }
    kir::Block lets;
    const ExprRef inside = Find(from, to, lets);
    kir::Block store = {kb::WithOrigin(kb::Store(buffer_, to, Joined(from, to)), writer_.Origin(OwnNode()))};
    if (!places_.by_element) store = Columns(std::move(store), /*vector=*/true);
    lets.push_back(kb::If(inside, std::move(store)));
    if (places_.by_element) lets = Columns(std::move(lets), /*vector=*/false);
    for (size_t w = places_.walked.size(); w-- > 0;) {
      const int d = places_.walked[w];
      lets = {kb::For(absl::StrCat("p", d), kb::Int(0), kb::FromExtent(update_.dims[d]), std::move(lets))};
    }
    return lets;
  }

  // Fills in the dimensions of `to` that indices name; whether all of them lie inside, and in the chunk's range.
  ExprRef Find(const kir::Index& from, kir::Index& to, kir::Block& lets) {
    ExprRef inside;
    for (size_t n = 0; n < places_.named.size(); ++n) {
      kir::Index which;
      if (places_.by_element) {
        which = from;
      } else {
        for (const int d : places_.walked) which.push_back(from[d]);
        which.push_back(kb::Int(static_cast<int64_t>(n)));
      }
      const ExprRef size = kb::FromExtent(x_.dims[places_.named[n]]);
      const std::string raw = absl::StrCat("raw", n), at = absl::StrCat("at", n);
      lets.push_back(kb::Let(raw, kb::CastTo(DType::kI64, expr_.Element(node_.inputs[1], which))));
      lets.push_back(
          kb::Let(at, kb::Select(kb::Call(Op::kLt, {kb::Ref(raw), kb::Int(0)}), kb::Ref(raw) + size, kb::Ref(raw))));
      to[places_.named[n]] = kb::Ref(at);
      ExprRef here = Both(kb::Call(Op::kLe, {kb::Int(0), kb::Ref(at)}), kb::Call(Op::kLt, {kb::Ref(at), size}));
      if (n == 0 && range_ > 0) {
        const ExprRef local = kb::Ref(at) - kb::Ref("part");
        here = Both(here, Both(kb::Call(Op::kLe, {kb::Int(0), local}), kb::Call(Op::kLt, {local, kb::Int(range_)})));
      }
      inside = inside == nullptr ? here : Both(inside, here);
    }
    return inside;
  }

  ExprRef Joined(const kir::Index& from, const kir::Index& to) {
    const ExprRef value = expr_.Element(ir::Written(node_), from);
    const std::optional<kir::ReduceOp> reduction = ir::ScatterReduction(node_);
    if (!reduction) return value;
    return kb::Call(kir::CombineOp(*reduction), {kb::At(buffer_, x_.dtype, to), value});
  }

  kir::Block Columns(kir::Block block, bool vector) const {
    if (free_.empty()) return block;
    const ExprRef end = kb::FromExtent(free_.back()), low = by_columns_ ? kb::Ref("part") : kb::Int(0),
                  high = by_columns_ ? kb::Min(low + static_cast<double>(kColumns), end) : end;
    return {vector ? kb::Vec("c", low, high, std::move(block)) : kb::For("c", low, high, std::move(block))};
  }

  int OwnNode() const { return view_.results()[0].node; }

  const RegionView& view_;
  KernelWriter& writer_;
  FusedExpr& expr_;
  const ir::Node& node_;
  const std::string& buffer_;
  const ir::TensorType &x_, &update_;
  const ir::ScatterPlaces places_;
  std::vector<Extent> free_;  // of the update
  bool by_columns_ = false;
  int64_t range_ = 0;  // of the first named dimension, in a chunk; 0: all of it
};

}  // namespace

void EmitScatter(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const ir::Node& node,
                 const std::string& buffer) {
  ScatterKernel(view, writer, expr, node, buffer).Emit();
}

}  // namespace quern::codegen
