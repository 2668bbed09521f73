// The kernels of one planned matmul region; internal to the matmul family.
//
//   matmul.cc          the choice between the forms, the grid, what is computed before and after the products
//   matmul_few.cc      few rows: chunks of weight rows stream by once
//   matmul_many.cc     many rows: panels of weights in scratch
//   matmul_windows.cc  the same where the left side is gathered: rows of windows in scratch
//   matmul_lines.cc    the same where windows share lines of an image: lines in scratch
//   matmul_parts.cc    the same where f32 and halves are sums of bf16
//   matmul_picks.cc    rows that pick one of several matrices, few or many
//   matmul_squares.cc  many rows on blocks of threads: squares in shared memory
//   matmul_panels.cc   many rows and columns of operands that lie in any order: panels filled by loops
//   matmul_narrow.cc   few rows or few columns of them
//   matmul_direct.cc   a computed right side and few rows, other types or blocks of threads
//   matmul_plain.cc    the sum inside loops over the result
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/divide.h"
#include "codegen/block_product.h"
#include "codegen/depth_blocks.h"
#include "codegen/matmul_plan.h"
#include "codegen/window_lines.h"

namespace quern::codegen {

// Rows of a tile, up to `most`, by which `rows` take the least: a last tile of few rows costs nearly what a whole one
// does, and each as much as some of a row besides.
int64_t EvenTile(int64_t rows, int64_t most);

class MatmulKernels {
 public:
  MatmulKernels(const RegionView& view, const MatmulPlan::Tiles& plan);
  StatusOr<LoweredRegion> Lower();

 private:
  // ---- matmul.cc
  Status LowerPrologue();
  int64_t Unit() const;    // columns that must stay together
  bool Quantises() const;  // some results, in whole chunks of columns
  int64_t Chunk();
  Status EmitKernel(const std::vector<const MatmulSegment*>& segments, int64_t chunk);
  // The activations as a slice of rows [from, from + count), or all of them, and of columns [k, k + depth), or all.
  kir::Slice Rows(KernelWriter& writer, const kir::ExprRef& from, const kir::ExprRef& count, bool scratch,
                  const kir::ExprRef& k = nullptr, int64_t depth = 0);
  // The same of a root's weights, of matrix "e" where rows pick some.
  kir::Slice Weights(KernelWriter& writer, int root, const kir::ExprRef& n, const kir::ExprRef& count,
                     const kir::ExprRef& k = nullptr, const kir::ExprRef& depth = nullptr) const;
  const MatmulRow& RowOf(int root) const { return *TileRow(view_, root); }
  // Writes a kernel in which inputs that have all rows have them in one dimension.
  KernelWriter Writer(const char* name) const;
  // Of its panel `part` of those that are read together.
  static std::string TileName(int root, int64_t part = 0);
  // Rows of a chunk, or of a run of it: [FirstRow(), EndRow()), at most ChunkRows() of them.
  void ChooseRows(int64_t chunk);
  void CutPanelRows(int64_t chunk, int64_t most);
  int64_t ChunkRows() const { return row_block_ == 0 ? view_.UpperBound(plan_.rows) : row_block_; }
  kir::ExprRef FirstRow() const;
  kir::ExprRef EndRow() const;
  // Columns of a tile of `count` from n that exist: all of them, unless the last chunk is cut short.
  kir::ExprRef LiveColumns(const MatmulSegment& segment, const kir::ExprRef& n, int64_t count) const;
  // Whether the last panel of a segment has vectors of no column; the columns that a panel is multiplied by.
  bool LacksVectors(const MatmulSegment& segment) const;
  kir::SliceDim PanelColumns(const MatmulSegment& segment, const kir::ExprRef& n) const;
  // The sum of a root at `column` of the row that is being finished.
  using Sum = std::function<kir::ExprRef(int root, const kir::ExprRef& column)>;
  // Stores the element (row, column) of every result of the segment. What is quantised goes to hidden rows, at
  // `hidden`.
  kir::Block Results(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& row,
                     const kir::ExprRef& column, const kir::ExprRef& hidden, const Sum& sum);
  // Results of tiles called TileName(root, part), `columns` wide, whose first element is (m, n).
  static kir::ExprRef InChunk(const kir::ExprRef& at, const kir::ExprRef& column, const kir::ExprRef& place,
                              int64_t width);
  kir::StmtRef Epilogue(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& m,
                        const kir::ExprRef& rows, const kir::ExprRef& n, const kir::ExprRef& columns, int64_t width,
                        const kir::ExprRef& hidden, int64_t part = 0);
  std::string StoreName(KernelWriter& writer, const MatmulResult& result);
  std::string WrittenName(KernelWriter& writer, const MatmulResult& result);
  // Scratch rows that a quantised result is gathered in before it is packed.
  static std::string HiddenName(const MatmulResult& result);
  void EmitHidden(const MatmulSegment& segment, int64_t chunk, kir::Block& block) const;
  void EmitPacks(KernelWriter& writer, const MatmulSegment& segment, const kir::ExprRef& n0, int64_t chunk,
                 kir::Block& block);

  // ---- matmul_few.cc
  int64_t FewChunk() const;
  void EmitFew(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0,
               int64_t chunk, kir::Block& block);
  kir::Block ScratchPrologue(FusedExpr& expr);

  // ---- matmul_many.cc
  int64_t ManyChunk() const;
  // Panels that a tile op reads together: two where chunks and segments have as many, and a processor the registers.
  int64_t PanelsTogether(int64_t chunk) const;
  // Of so many panels of weights.
  int64_t PanelBytes(int64_t together) const;
  int64_t PanelWords() const { return CeilDiv(plan_.k, plan_.row->word); }  // along k
  // Rows of a block of the tile op.
  int64_t PanelTileRows() const {
    return InParts() || plan_.row->in_words() ? view_.facts.word_rows : view_.facts.gemm_rows;
  }
  // What products ask memory for beside their work: the attributes of the tile op, null where it has none.
  struct Asked {
    kir::ExprRef ahead, next, after;
  };
  // Of one of the tiles of rows that read `depth` elements of k of the same panels: the first brings them, the others
  // ask for as much behind them, a share each, where the second cache keeps both. `k` and `count`: what of those
  // elements the tile op reads; null and 0: all.
  Asked AskFor(int64_t together, int64_t depth, const kir::ExprRef& tile, const kir::ExprRef& tiles,
               const kir::ExprRef& k = nullptr, int64_t count = 0) const;
  // The products of rows `x` and those panels, each to a tile of its own. `panel`: what is read of each; `runs`: rows
  // of floats run on into each other.
  kir::StmtRef MultiplyPanels(int root, int64_t together, kir::Slice x,
                              const std::function<kir::Slice(int64_t part)>& panel, const Asked& asked,
                              KernelWriter& writer, bool runs = false) const;
  // At most so many rows are dotted: kFewRows, or more where what a row gets may depend on how many there are.
  int64_t FewRows() const;
  bool InIntegers() const { return plan_.row->panel == kir::Layout::kPanel16; }
  bool InParts() const { return form_ == Form::kMany && may_take_parts_; }
  bool PanelsFit() const;
  // The blocks of k, where it is cut at all.
  std::optional<DepthBlocks> CutDepth() const;
  kir::Slice Panel(KernelWriter& writer, int root, const MatmulSegment& segment, const kir::ExprRef& n);
  kir::StmtRef PrefetchNextPanel(KernelWriter& writer, int root, const kir::ExprRef& n, const kir::ExprRef& m,
                                 int64_t step);
  std::vector<kir::Slice> ResultRectangles(KernelWriter& writer, const MatmulSegment& segment, const kir::ExprRef& m,
                                           int64_t step, const kir::ExprRef& n, int64_t width);
  void EmitMany(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0,
                int64_t chunk, kir::Block& block);

  // ---- matmul_picks.cc
  // What is done for the rows of matrix "e": a chunk's one row, or the run [from, to) of each.
  kir::Block WithMatrix(KernelWriter& writer, kir::Block body);

  // ---- matmul_windows.cc
  // How the elements of a window are cut into blocks of k.
  static DepthBlocks CutWindows(const MatmulPlan::Tiles& plan);
  int64_t WindowRows() const;
  int64_t WindowsChunk() const;
  bool InDepthBlocks() const { return form_ == Form::kMany && depth_ && !depth_->whole(); }
  // Of the block of k, or of all of it.
  kir::ExprRef FirstOfK() const { return InDepthBlocks() ? depth_->First() : kir::build::Int(0); }
  kir::ExprRef CountOfK() const { return InDepthBlocks() ? depth_->Count() : kir::build::Int(plan_.k); }
  kir::Block FillWindows(KernelWriter& writer);
  kir::Block OverDepth(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0,
                       int64_t chunk, kir::Block products);
  // Sums of a segment in scratch: declared, with zeros that `each` stores at r and c of all that are; and those of a
  // row of scratch, where `column` is at `place` of `width` columns.
  kir::Block SumsFromZero(const MatmulSegment& segment, int64_t rows, int64_t columns,
                          const std::function<kir::StmtRef(kir::Block)>& each) const;
  Sum SumsAt(kir::ExprRef row, kir::ExprRef column, kir::ExprRef place, int64_t width) const;
  static std::string SumName(int root);
  kir::StmtRef AddToSums(const MatmulSegment& segment, const kir::ExprRef& row, const kir::ExprRef& rows,
                         const kir::ExprRef& f, const kir::ExprRef& columns, int64_t part);

  // ---- matmul_lines.cc
  int64_t LinesChunk();
  kir::Block FillLines(KernelWriter& writer);
  kir::Block LineTiles(const MatmulSegment& segment, int64_t together) const;
  kir::StmtRef LineProduct(KernelWriter& writer, const MatmulSegment& segment, int root, int64_t together,
                           const kir::ExprRef& n, bool by_runs) const;
  kir::Block LinesByPanel(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0,
                          int64_t together);
  kir::Block LinesByRuns(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0);
  void EmitLines(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const kir::ExprRef& n0,
                 int64_t chunk, kir::Block& block);

  // ---- matmul_parts.cc
  // Whether the roots may be added up as products of bf16, on a target that gains by it.
  bool MayTakeParts() const;
  int64_t PartsOfWeights(int root) const;
  DepthBlocks CutPartsDepth() const;
  int64_t MostPartRows() const;
  Status LowerParts();
  kir::Block AllocParts(const MatmulSegment& segment) const;
  kir::Slice PanelOfPart(int root, int part) const;
  kir::Block PackParts(KernelWriter& writer, int root, const kir::ExprRef& n) const;
  kir::StmtRef SplitHalves(int root, const kir::ExprRef& words) const;
  kir::StmtRef MultiplyParts(KernelWriter& writer, int root, const kir::ExprRef& m, const kir::ExprRef& rows);

  // ---- matmul_squares.cc
  int64_t SquareChunk() const;
  DType SquareType() const;
  void EmitSquares(KernelWriter& writer, FusedExpr& expr, const MatmulSegment& segment, const SquareProduct& square,
                   const kir::ExprRef& n0, int64_t chunk, kir::Block& block);
  bool Rotates(const MatmulSegment& segment) const;
  // Shared memory for squares of sums, one for each root of the segment that rotates and has most of them.
  kir::Block Staging(const std::vector<const MatmulSegment*>& segments, int64_t chunk) const;

  using Picks = MatmulPlan::Tiles::Picks;
  enum class Form : uint8_t { kFew, kMany, kLines, kSquares };
  const RegionView& view_;
  const MatmulPlan::Tiles& plan_;
  const bool may_take_parts_;
  const std::optional<DepthBlocks> depth_;  // of windows, and where panels of all of k do not fit
  std::optional<WindowLines> lines_;        // of Form::kLines
  LoweredRegion lowered_;
  Form form_ = Form::kFew;
  int lhs_input_ = -1;
  bool prologue_in_chunk_ = false;
  int64_t row_block_ = 0;     // rows of a chunk, where the grid counts blocks of them; 0: a chunk has all rows
  int64_t tile_rows_ = 0;     // rows that one call of a tile takes
  bool rows_inside_ = false;  // chunks that follow one another have the same columns, so the same panels
};

// Operands that lie in any order, by MatmulPlan::Form.
StatusOr<LoweredRegion> LowerPanels(const ProductSpace& space);
StatusOr<LoweredRegion> LowerFewRows(const ProductSpace& space);
StatusOr<LoweredRegion> LowerStreams(const ProductSpace& space);
StatusOr<LoweredRegion> LowerDirect(const ProductSpace& space);

// A form with plain loops for any region of products.
StatusOr<LoweredRegion> LowerPlainMatmul(const RegionView& view);

}  // namespace quern::codegen
