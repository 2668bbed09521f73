// Short lines that memory runs across, such as the windows of a pool: folds are written out, so that a vector of
// results is one expression of its elements. Also short lines along memory whose folds have several values: elements of
// several lines are gathered, which costs less than to join the lanes of each line.
//
//   vec c in 0..56 { y0[i0, i1, c] = max(max(x0[i0, i1 * 2, c * 2], x0[i0, i1 * 2, c * 2 + 1]), ..) }

#include <algorithm>
#include <utility>

#include "codegen/line_program.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using ir::LineDef;

constexpr int64_t kWritten = 32;  // elements of a line at most

class Short : public LineProgram {
 public:
  using LineProgram::LineProgram;

 private:
  int64_t LinesAtOnce() const override { return 1; }

  void Fold(int n, kir::Block&) override {
    LineDef::State state = Start(n);
    bool first = Node(n).op->line->take == nullptr;  // whose start is an element that changes nothing
    std::vector<Extent> extents = plan_.ExtentsOf(plan_.line);
    const int64_t count = plan_.LineElements().constant();
    for (int64_t at = 0; at < count; ++at) {
      PointExpr::Point point = base_;
      int64_t rest = at;
      for (size_t i = plan_.line.size(); i-- > 0;) {
        point[plan_.line[i]] = kb::Int(rest % extents[i].constant());
        rest /= extents[i].constant();
      }
      expr_.MoveTo(std::move(point));
      const kir::ExprRef x = ElementOf(n);
      state = std::exchange(first, false) ? LineDef::State{x} : Take(n, state, x, kb::Int(at));
    }
    expr_.MoveTo(base_);
    const LineDef::State results = ResultsOf(n, state);
    for (size_t r = 0; r < results.size(); ++r)
      expr_.Provide({n, static_cast<int>(r)}, [value = results[r]](const PointExpr::Point&) { return value; });
  }
  void Keep(int, kir::Block&) override {}
  void KeepLine(int, kir::Block&) override {}
  void States(int, const Store&, kir::Block&) override {}
  void StoreKept(kir::Block& block) override {
    expr_.MoveTo(base_);
    for (size_t o = 0; o < view_.results().size(); ++o) block.push_back(expr_.StoreResult(static_cast<int>(o)));
  }
  void StoreLines(kir::Block&) override {}
};

}  // namespace

bool AreShortLines(const RegionView& view, const LinesPlan& plan) {
  const Extent elements = plan.LineElements();
  const bool several_values = std::any_of(view.nodes().begin(), view.nodes().end(), [&](int n) {
    return IsLineOp(view.node(n)) && view.node(n).op->line->take != nullptr;
  });
  if (view.facts.blocks || plan.kept.empty() || plan.line.empty() || (!plan.across() && !several_values)) return false;
  if (!elements.is_constant() || elements.constant() < 1 || elements.constant() > kWritten) return false;
  for (const int n : view.nodes()) {
    if (view.node(n).op->kind == ir::OpKind::kPack) return false;
    if (IsLineOp(view.node(n)) && (view.node(n).op->line->scan != nullptr || plan.level[n] > 1)) return false;
  }
  return std::all_of(view.results().begin(), view.results().end(),
                     [&](const ir::Value& result) { return plan.IsKept(result) && !plan.IsLine(result); });
}

std::unique_ptr<LineProgram> ShortLines(const RegionView& view, const LinesPlan& plan, KernelWriter& writer,
                                        PointExpr& expr) {
  return std::make_unique<Short>(view, plan, writer, expr, LineSegment{});
}

}  // namespace quern::codegen
