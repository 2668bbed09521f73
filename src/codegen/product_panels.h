// The panels of a product's right side, 32 columns each, as a chunk of its kernel has them in scratch: p0, p1, .. for
// the columns from n0 on, filled by loops whatever the order, batch, dtype or computation of that side.
//
//   alloc p0 : f32[32, 64] @kn32
//   for pk in 0..64 { vec pj in 0..32 { p0[pj, pk] = x1[i0, pk, n0 + pj] } }
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "codegen/computed_side.h"
#include "codegen/depth_blocks.h"
#include "codegen/loops.h"
#include "codegen/product_kernel.h"

namespace quern::codegen {

class ProductPanels {
 public:
  static constexpr int64_t kWidth = 32;  // columns of a panel

  // Of the product that `kernel`, which outlives this, is written for.
  explicit ProductPanels(ProductKernel& kernel);

  // Panels have words of two or four neighbours along k, and the left side is multiplied as it lies.
  bool InWords() const { return together_ > 1; }
  // The tile op of rows of the left side by a panel, whose sums are of this dtype.
  DType SumType() const { return space_.SumType(); }
  kir::StmtRef Multiply(std::string tile, kir::Slice rows, int64_t f);
  // The right side is computed on the way.
  bool computed() const { return computed_.has_value(); }
  const DepthBlocks& depth() const { return depth_; }

  // Columns of a chunk in panels. Those behind the last whole vector of all columns may be a rest, which rows are
  // dotted with instead; the columns before it.
  int64_t columns() const { return columns_; }
  int64_t rest() const { return rest_; }
  int64_t Covered() const { return space_.columns().constant() - rest_; }

  // Of columns f.. of the chunk: their panel, the first of them, and how many there are.
  static std::string Name(int64_t f) { return absl::StrCat("p", f / kWidth); }
  kir::ExprRef First(int64_t f) const;
  kir::ExprRef Live(int64_t f) const;
  // The last chunk may have no columns for its second panel: less than none, to loops that fill it.
  bool AlwaysLive(int64_t f) const { return f == 0 || rest_ > 0 || IsMultiple(space_.columns(), columns_); }

  // The panels of a chunk, declared and filled with the block of k that the loops around are at; nothing where the
  // right side lies in panels.
  kir::Block Fill();
  // The rest, as rows of k: pr.
  kir::Block FillRest();

 private:
  void ChooseColumns();
  DType ElementType() const { return InWords() ? space_.dtype(1) : SumType(); }  // of what panels are made of
  DType PanelType() const { return InWords() ? DType::kU32 : SumType(); }
  // Bytes of panels have another sign than those of the right side, by the top bit of each.
  bool Turned() const {
    return space_.IsOfBytes() && space_.dtype(0) == space_.dtype(1) && !kernel_.view().facts.any_signs;
  }
  kir::ExprRef TopBits() const { return kir::build::Int(0x80808080, DType::kU32); }
  kir::ExprRef Words() const;  // along k, of a panel or of the block of k of one
  kir::Slice Panel(int64_t f) const;
  kir::StmtRef Alloc(int64_t f) const;
  kir::StmtRef AllocRows() const;  // pw, of as many columns as a panel
  // Rows of columns to a panel.
  kir::Block Pack(int64_t f, kir::Slice rows);
  kir::Block FillFromMemory();
  kir::Block FillComputed();
  kir::Block FillAlongColumns(int64_t f);
  kir::Block FillAlongK(int64_t f);
  // Panels of words, of all columns of a chunk together: `element` is k of the block in a column from n0 on, a factor.
  using Element = std::function<kir::ExprRef(const kir::ExprRef& k, const kir::ExprRef& column)>;
  kir::Block FillWords(const Element& element) const;
  kir::ExprRef Piece(const kir::ExprRef& element) const;  // what a factor is in the low bits of a word

  ProductKernel& kernel_;
  const ProductSpace& space_;
  const int64_t together_;  // elements of k in a word of a panel
  std::optional<ComputedSide> computed_;
  const DepthBlocks depth_;
  const bool runs_along_k_;  // neighbours of the right side in memory do
  int64_t columns_, rest_ = 0;
};

}  // namespace quern::codegen
