// The statements of a program over lines, for one line or for a bundle of lines side by side; internal to the family of
// lines.
//
//   lines.cc         the loops around it, and lines that are split over threads
//   line_along.cc    memory runs along the line: a line at a time, its elements in vectors
//   line_across.cc   memory runs across the lines: a bundle of them at a time, one element of each in a vector
//   line_short.cc    the same where lines have few elements: written out
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/lines_plan.h"
#include "codegen/point_expr.h"

namespace quern::codegen {

// A part of every line: [low, high) of the first axis of LinesPlan::line; null: all of it.
struct LineSegment {
  kir::ExprRef low, high;
};

class LineProgram {
 public:
  LineProgram(const RegionView& view, const LinesPlan& plan, KernelWriter& writer, PointExpr& expr,
              LineSegment segment);
  virtual ~LineProgram() = default;

  // The whole program: folds, what is computed from them, results. `point`: indices of the kept axes; the program adds
  // its own.
  kir::Block Whole(PointExpr::Point point);

  // For lines that are split: folds that are finished are provided to `expr`.
  // The states of the folds of one level over the segment. Store gives the statement that keeps state number `s` of
  // fold n, at a point of the kept axes.
  using Store = std::function<kir::StmtRef(int n, size_t s, const kir::ExprRef& value, const PointExpr::Point& point)>;
  kir::Block Parts(PointExpr::Point point, int level, const Store& store);
  // Results of one element a line; and those that are lines, over the segment.
  kir::Block KeptResults(PointExpr::Point point);
  kir::Block LineResults(PointExpr::Point point);

 protected:
  const ir::Node& Node(int n) const { return view_.node(n); }
  bool DependsOnFold(int n) const { return plan_.level[n] > 0; }
  // How many values the state of a fold has, of these dtypes.
  std::vector<DType> StateTypes(int n) const;
  ir::LineDef::State Start(int n) const;
  ir::LineDef::State Take(int n, const ir::LineDef::State& state, const kir::ExprRef& x, const kir::ExprRef& at) const;
  ir::LineDef::State ResultsOf(int n, const ir::LineDef::State& state) const;
  // What a scan gives an element whose states without and with it are these: a value for each result.
  ir::LineDef::State ScannedOf(int n, const ir::LineDef::Scan& scan, const ir::LineDef::State& before,
                               const ir::LineDef::State& after) const;
  // The element of the fold's operand at the point, in the dtype that it is reduced in.
  kir::ExprRef ElementOf(int n);
  // Where the point is on its line.
  kir::ExprRef Position(const PointExpr::Point& point) const;
  kir::ExprRef Low(size_t axis) const;
  kir::ExprRef High(size_t axis) const;
  // Reserves scratch for whole lines, `lines` at a time; false when the budget has no room for it.
  bool Reserve(DType dtype, int64_t lines);
  bool HasScans() const;
  std::vector<int> Packs() const;  // results that are packed rows

  // Statements that leave the fold's results, a kept value, or the elements of a line by name.
  virtual void Fold(int n, kir::Block& block) = 0;
  virtual void Keep(int n, kir::Block& block) = 0;
  virtual void KeepLine(int n, kir::Block& block) = 0;
  virtual void States(int n, const Store& store, kir::Block& block) = 0;
  virtual void StoreKept(kir::Block& block) = 0;
  virtual void StoreLines(kir::Block& block) = 0;
  virtual int64_t LinesAtOnce() const = 0;

  const RegionView& view_;
  const LinesPlan& plan_;
  KernelWriter& writer_;
  PointExpr& expr_;
  const LineSegment segment_;
  PointExpr::Point base_;  // kept axes

  // Bytes of scratch that nothing is reserved of.
  int64_t scratch_left() const { return scratch_left_; }

 private:
  int PassesThatRead(int n) const;
  void NameValues(kir::Block& block);
  void NameKept(int levels, kir::Block& block);
  int64_t scratch_left_;
};

std::unique_ptr<LineProgram> AlongLines(const RegionView& view, const LinesPlan& plan, KernelWriter& writer,
                                        PointExpr& expr, LineSegment segment = {});
// `first`: the first of a bundle of at most `width` lines, an index of the last kept axis.
std::unique_ptr<LineProgram> AcrossLines(const RegionView& view, const LinesPlan& plan, KernelWriter& writer,
                                         PointExpr& expr, kir::ExprRef first, int64_t width, LineSegment segment = {});

// Whether all that the region makes is one element for each of many lines of few elements.
bool AreShortLines(const RegionView& view, const LinesPlan& plan);
// Of those, at a point of the kept axes.
std::unique_ptr<LineProgram> ShortLines(const RegionView& view, const LinesPlan& plan, KernelWriter& writer,
                                        PointExpr& expr);

}  // namespace quern::codegen
