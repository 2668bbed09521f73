// AxisSpace: the loops that values of a region share. Values that are computed from each other element by element are
// laid out over common axes, whatever extents their dimensions have:
//
//   x [2, 64, 56, 56] -> Reshape [2, 8, 25088] -> Reduce over the last -> Reshape [2, 64, 56, 56] -> * g [64, 1, 1]
//   axes: 2, 8, 8, 3136;  x: 0 | 1 2 | 3;  the reshaped value: 0 | 1 | 2 3;  the sums: 0 | 1;  g: 1 2
//
// A Reshape costs nothing here: where its two sides cut the elements differently, axes are split until both are runs of
// axes, and neighbours that no value needs apart are merged again. What moves elements in other ways (a Gather, a
// Transpose) ends the space: its result has a place in it, its operands have none. Where asked for, a Transpose gives
// its operand the same axes in another order:
//
//   x [1, 14, 14, 1024] -> Transpose [1, 1024, 14, 14]      axes: 1024, 196;  x: | 1 | | 0;  the result: | 0 | 1 |
#pragma once

#include <map>
#include <span>
#include <vector>

#include "family/region_view.h"

namespace quern::family {

class AxisSpace {
 public:
  // The axes of a value: a list for each of its dimensions, outermost first, which multiply to its extent; none for an
  // extent of 1.
  struct Place {
    std::vector<std::vector<int>> dims;
    // Where the value has only a part of an axis: its own extent there. What a piece of a join is made of.
    std::map<int, Extent> part;
    // Whether the value is addressed by its own dimensions: what an index map makes, or reads as well.
    bool pinned = false;

    // All axes in the order of memory.
    std::vector<int> Axes() const;
  };

  // The space that `seed` is in, a value of the region or one that it reads. Node `given`: its results are there at any
  // point, and what it reads is no matter of this space. Without `joins`, what is made of pieces is addressed by its
  // own dimensions, as what an index map makes. With `turns`, a Transpose relates its operand to its result.
  AxisSpace(const RegionView& view, ir::Value seed, int given = -1, bool joins = true)
      : AxisSpace(view, std::span(&seed, 1), given, joins) {}
  // The space of several: those of the first's extents have its axes, also where no value relates the two.
  AxisSpace(const RegionView& view, std::span<const ir::Value> seeds, int given = -1, bool joins = true,
            bool turns = false);

  // Extents by axis.
  const std::vector<Extent>& extents() const { return extents_; }
  // Those of the value's axes, in the order of memory.
  std::vector<Extent> ExtentsOf(const Place& place) const;
  // The place of a value; null when it is in no relation to the seed.
  const Place* Find(ir::Value value) const;
  // The node of the space that is made of pieces (OpDef::pieces), or -1; and those, by axis: from, to.
  struct Box {
    std::map<int, std::pair<Extent, Extent>> ranges;  // axes that the box has only a part of
    int operand = -1;
    kir::ExprRef fill;
  };
  int joined() const { return joined_; }
  const std::vector<Box>& boxes() const { return boxes_; }

  // Whether the node relates its operands to its results element by element: nothing to do with them comes between.
  bool Relates(int n) const;
  // False when a value would have one axis twice, as the sum of rows and columns of a square has.
  bool consistent() const { return consistent_; }

  // Has the value addressed by its own dimensions.
  void PinAt(ir::Value value) { places_.at(value).pinned = true; }

  // Merges neighbours: axes that follow each other in every place that has one of them, inside of one dimension of
  // every pinned place, and are both in `apart` or both not. Axes are numbered anew.
  void Merge(const std::vector<bool>& apart);

 private:
  using Lists = std::vector<std::vector<int>>;
  void Spread();
  void Relate(int n);
  void RelateElementwise(int n);
  void RelateReshape(int n);
  void RelateLine(int n);
  void RelatePieces(int n);
  void RelateTranspose(int n);
  bool Turns(int n) const;  // a Transpose, where those relate
  // Gives the value those axes, or makes the axes that it has equal to them.
  void Assign(ir::Value value, Lists dims, std::map<int, Extent> part = {});
  // Makes two runs of axes over the same elements equal, by splitting and uniting axes. False when they cut across.
  bool Unite(std::vector<int> a, std::vector<int> b);
  // Cuts a run of axes into lists for dimensions of these extents; false when one cuts across an axis.
  bool Cut(std::vector<int> run, const std::vector<Extent>& dims, Lists* lists);
  // Axis becomes (first, rest); returns the rest.
  int Split(int axis, const Extent& first, const Extent& rest);
  void Replace(int axis, int by);
  // Whether pieces have only parts of the axis.
  bool IsCut(int axis) const;
  int Fresh(const Extent& extent);
  void Pin(int given);
  void CheckConsistent();

  const RegionView* view_;
  std::vector<Extent> extents_;
  std::map<ir::Value, Place> places_;
  std::vector<ir::Value> open_;  // assigned, neighbours not looked at
  // By position in the view: a Reshape that cuts across axes, a Transpose of what is read in another order as well.
  std::vector<bool> crossing_;
  bool joins_, turns_;
  int joined_ = -1;
  std::vector<Box> boxes_;
  bool consistent_ = true;
};

}  // namespace quern::family
