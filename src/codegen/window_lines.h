// Windows that share the lines of an image with channels last [N, s.., W C]: a line of results needs `high` lines of
// the image, its neighbours most of the same, and so do the windows along it. So lines are copied to scratch, with the
// padding around them, and a tile of results along a line is the sum of products over lines of the kernel: of rows of
// scratch that run on into each other, for so do windows (mma_f32_runs).
//
//   x [1, 14, 14 * 256], kernel [3, 3 * 256], strides [1, 256]: chunks of 7 lines, 9 of the image, of 16 places each
//   px [9 * 16, 256];  place c of line q is the sum over k0 in 0..3 of the 768 elements from px[(q + k0) * 16 + c, 0]
//   on by the rows k0 * 768.. of the weights
//
// Places are as far apart as windows are, so that strides need no gaps between rows. With very few channels a row has
// the whole of a window's run. Lines and planes of the kernel that lie in the padding are left out: of an image of
// 7 x 7 every eleventh product.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/divide.h"
#include "codegen/computed_side.h"
#include "codegen/matmul_plan.h"

namespace quern::codegen {

class WindowLines {
 public:
  // Of the left side of `plan`; nothing where it is not such windows, its sizes are not known or rows that are copied
  // window by window (matmul_windows.cc) serve as well. `columns`: of the product.
  static std::optional<WindowLines> Of(const RegionView& view, const MatmulPlan::Tiles& plan);

  // Blocks of lines and places, of all images.
  int64_t Blocks() const;
  // Fewer lines a block, where there are several and fewer are worth their copies; false: no.
  bool CutFurther();
  // Elements that all blocks are copied from, about.
  int64_t ImageElements() const;
  // Those blocks as dimensions of a grid, at most two, and a loop over what is left of them in a chunk.
  std::vector<kir::GridDim> Grid() const;
  kir::Block InChunk(kir::Block body) const;

  // Declares "px" and copies the lines of a block.
  kir::Block Fill(ComputedSide& left) const;
  // Goes through the places of a block by tiles: `body` is given the first row of the product and how many there are.
  // Inside OverRuns: of those whose windows meet the image there.
  kir::Block Tiles(const std::function<kir::Block(const kir::ExprRef& row, const kir::ExprRef& rows)>& body,
                   bool in_runs = false) const;
  int64_t TileRows() const;
  // Which tile that is, of those of its block, or `of_all`, that a line of the kernel is for, and how many tiles there
  // are; the first of its rows in the block.
  kir::ExprRef Tile(bool of_all) const;
  kir::ExprRef TileCount(bool of_all) const;
  kir::ExprRef RowInBlock() const;
  int64_t RowsOfBlock() const { return lines_of_block_ * places_of_block_; }
  bool HoldsImage() const { return RowsOfBlock() == lines_ * places_; }  // a block
  // Goes through the lines of the kernel, whose windows are RunElements() each from RunStart() of the weights on.
  // Inside Tiles: of those that meet the image there.
  kir::Block OverRuns(kir::Block body, bool in_tiles = false) const;
  int64_t RunElements() const { return run_; }
  kir::ExprRef RunStart() const;
  // The rows of "px" that the windows of a tile and such a line begin in, and RowsBehind() more, into which the last
  // ones run on.
  kir::Slice RowsOfTile() const;
  int64_t RowsBehind() const { return CeilDiv(run_, row_) - 1; }

 private:
  // The kernel along another axis than that of places, where it reaches into padding.
  struct PaddedAxis {
    int64_t stride, dilation;
    int64_t low, image;  // padding before the image, and its extent

    // Which parts of the kernel meet the image at a place, and at which places a part does: from `first` to `second`,
    // which may be more than there are.
    std::pair<kir::ExprRef, kir::ExprRef> PartsAt(const kir::ExprRef& place) const;
    std::pair<kir::ExprRef, kir::ExprRef> PlacesOf(const kir::ExprRef& part) const;
  };

  bool Measure(const ir::Graph& graph, const ir::Node& window);
  bool Choose(const RegionView& view);
  int64_t LinesHeld(int64_t lines) const { return (lines - 1) * stride_ + (high_ - 1) * dilation_ + 1; }
  int64_t PlacesHeld(int64_t places) const { return row_ == run_ ? places : places + CeilDiv(run_, step_) - 1; }
  int64_t BytesHeld(int64_t lines, int64_t places) const;
  bool LoopsOverPlaces() const;
  int64_t TilesOfLine(int64_t places) const;
  kir::ExprRef LineInBlock() const;
  kir::ExprRef Line() const;
  kir::ExprRef FirstLine() const;
  // The first of all, or of the block, that the line of the kernel there is for.
  kir::ExprRef FirstLineOfRun(bool of_all) const;
  kir::ExprRef FirstPlace() const;
  kir::ExprRef EndPlace() const;
  kir::ExprRef EndLine() const;
  // The plane that the loops over the outer axes of the kernel are at, and the row of "px" there, at a line and place
  // of a block.
  kir::ExprRef Plane() const;
  // Goes through those planes: all of them, or those that meet the image.
  kir::Block OverPlanes(kir::Block body) const;
  // Where the chunk is on the outer axes.
  kir::Index OuterIndex() const;
  kir::ExprRef RowOf(const kir::ExprRef& line, const kir::ExprRef& place) const;

  std::vector<int64_t> outer_;   // extents of results ahead of lines, which have chunks of their own; none is 1
  std::vector<int64_t> planes_;  // of the kernel along those; none is 1
  std::vector<std::optional<PaddedAxis>> padded_planes_;  // each of those
  std::vector<int> plane_places_;  // and which of the outer axes its places are; -1: there is one
  std::optional<PaddedAxis> padded_lines_;
  int64_t lines_ = 1, places_ = 1;
  int64_t high_ = 1, stride_ = 1, dilation_ = 1;  // of the kernel along lines
  int64_t run_ = 0;                               // elements of a window in a line
  int64_t step_ = 0;                              // from those of a window to those of its neighbour
  int64_t row_ = 0;                               // elements of a row in scratch: run_, or step_
  int64_t lines_of_block_ = 1, places_of_block_ = 1;
};

}  // namespace quern::codegen
