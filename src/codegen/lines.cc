// The family of lines: reductions, norms, softmax, scans: what runs along some axes of a tensor, and what is computed
// element by element from a line and what was found along it.
//
//   grid i0 in 0..SEQ {
//     let r0 = sum accs 4 vec c in 0..256 { x0[i0, c] * x0[i0, c] } / 256
//     let s0 = rsqrt(r0 + 1e-5)
//     vec c in 0..256 { y0[i0, c] = x0[i0, c] * s0 * w1[c] }
//   }
// A chunk is one line or more, or a bundle of lines that lie side by side. Where lines are few and long they are split:
// a kernel folds each part, a second joins the parts in order, and so on for every fold that needs another; the parts
// depend on the sizes alone. Bundles that are read once are as wide as memory likes it, and get their chunks by parts:
// a narrow bundle touches a page for every few cache lines.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/families.h"
#include "codegen/line_groups.h"
#include "codegen/line_program.h"
#include "codegen/loops.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::Value;

constexpr int64_t kFewLines = 8;             // at most this many lines, or bundles of them, are split
constexpr int64_t kSplitElements = 1 << 16;  // when they may be longer than this
constexpr int64_t kPartElements = 1 << 15;   // into parts of this many
constexpr int64_t kWidest = 1024;            // lines of a bundle
constexpr int64_t kPartOfBundle = 1 << 17;   // elements of a part of one that is read once
constexpr int64_t kLongestWide = 1 << 19;    // lines that may be longer stay narrow: their parts would fill memory

class LineKernels {
 public:
  LineKernels(const RegionView& view, const LinesPlan& plan) : view_(view), plan_(plan) {
    length_ = view.UpperBound(plan.LineElements());
    if (plan.across()) ChooseWidth();
  }

  StatusOr<LoweredRegion> Lower() {
    QUERN_RETURN_IF_ERROR(MustSplit() ? EmitSplit() : AreShortLines(view_, plan_) ? EmitShort() : EmitWhole());
    return std::move(lowered_);
  }

 private:
  // Axes that the grid counts one by one: kept ones, but for the one that lies along vectors.
  std::vector<int> Outer() const {
    std::vector<int> outer = plan_.kept;
    if (plan_.across()) outer.pop_back();
    return outer;
  }

  // Lines of a bundle: a few cache lines of each row at least, more where a scan reads and writes each once, which
  // streams through caches that would keep the others; and enough bundles for every core. A whole row where splitting
  // makes the chunks.
  void ChooseWidth() {
    const int64_t lines = Across();
    const int64_t outer = std::max<int64_t>(1, BoundedElements(plan_.ExtentsOf(Outer()), view_.ranges));
    const bool wide = IsReadOnce() && CanSplit() && length_ <= kLongestWide;
    const int64_t bundles = wide ? 1 : std::max<int64_t>(1, 32 / outer);
    width_ =
        std::clamp<int64_t>((lines / bundles + 15) / 16 * 16, HasLineResults() && HasOneLevel() ? 256 : 64, kWidest);
    width_ = std::min(width_, std::max<int64_t>(16, (std::min(lines, kWidest) + 15) / 16 * 16));
  }

  // What is read again, for another fold or for what is computed from one, is best in bundles that a cache holds.
  bool IsReadOnce() const { return !HasLineResults() && HasOneLevel(); }
  bool HasOneLevel() const {
    return std::all_of(view_.nodes().begin(), view_.nodes().end(), [&](int n) { return plan_.level[n] <= 1; });
  }

  // Whether lines are long enough, and such, that parts of them can be folded by themselves. Of lines of any length
  // there may be any number of parts, for which no plan has room.
  bool CanSplit() const {
    // The grid has room for one dimension more.
    const size_t most = plan_.across() ? 1 : 2;
    if (plan_.line.empty() || view_.facts.blocks || !IsLong() || Outer().size() > most) return false;
    if (!plan_.LineElements().UpperBound(view_.ranges)) return false;
    return std::none_of(view_.nodes().begin(), view_.nodes().end(), [&](int n) {
      const ir::Node& node = view_.node(n);
      return node.op->kind == ir::OpKind::kPack || (IsLineOp(node) && node.op->line->scan != nullptr);
    });
  }
  bool IsLong() const {
    if (length_ > kSplitElements) return true;
    return plan_.across() && IsReadOnce() && length_ * std::min(Across(), kWidest) > 2 * kPartOfBundle;
  }
  // Lines side by side.
  int64_t Across() const { return view_.UpperBound(plan_.space.extents()[plan_.kept.back()]); }
  bool MustSplit() const {
    if (!CanSplit()) return false;
    int64_t lines = BoundedElements(plan_.ExtentsOf(Outer()), view_.ranges);
    if (plan_.across()) {
      if (__builtin_mul_overflow(lines, (Across() + width_ - 1) / width_, &lines)) return false;
    }
    return lines <= kFewLines;
  }

  // Fills the kernel's grid and body: `body` is called once, with a point of the kept axes and the first line of a
  // bundle.
  void EmitLines(KernelWriter& writer, int64_t elements,
                 const std::function<kir::Block(PointExpr::Point point, const kir::ExprRef& first)>& body) const {
    const std::vector<int> outer = Outer();
    const int64_t lines = plan_.across() ? width_ : 1;
    EmitGrid(view_, writer.kernel, plan_.ExtentsOf(outer), std::min<int64_t>(elements, kChunkElements) * lines,
             [&](const kir::Index& index, kir::Block& block) {
               PointExpr::Point point(plan_.space.extents().size(), kb::Int(0));
               for (size_t i = 0; i < outer.size(); ++i) point[outer[i]] = index[i];
               block = body(std::move(point), kb::Ref("first"));
             });
    if (!plan_.across()) return;
    const Extent last = plan_.space.extents()[plan_.kept.back()];
    const kir::GridDim bundles = {"first", kb::Int(0), kb::FromExtent(last), width_};
    if (outer.empty())
      writer.kernel.grid = {bundles};
    else
      writer.kernel.grid.push_back(bundles);
    writer.kernel.sequential =
        BoundedElements({last, Extent(elements)}, view_.ranges) <= kSequentialElements && writer.kernel.sequential;
  }

  std::unique_ptr<LineProgram> Program(KernelWriter& writer, PointExpr& expr, const kir::ExprRef& first,
                                       LineSegment segment = {}) const {
    if (plan_.across()) return AcrossLines(view_, plan_, writer, expr, first, width_, std::move(segment));
    return AlongLines(view_, plan_, writer, expr, std::move(segment));
  }

  Status Finish(KernelWriter& writer) {
    QUERN_ASSIGN(KernelUse use, writer.Finish());
    lowered_.kernels.push_back(std::move(use));
    return absl::OkStatus();
  }

  Status EmitWhole() {
    KernelWriter writer(view_, "lines");
    PointExpr expr(view_, plan_.space, writer);
    EmitLines(writer, length_, [&](PointExpr::Point point, const kir::ExprRef& first) {
      return Program(writer, expr, first)->Whole(std::move(point));
    });
    if (!plan_.across() && !view_.facts.blocks && length_ <= kShortLine)
      writer.kernel.body = InGroups(std::move(writer.kernel.body));
    return Finish(writer);
  }

  Status EmitShort() {
    KernelWriter writer(view_, "lines");
    PointExpr expr(view_, plan_.space, writer);
    EmitElements(view_, writer.kernel, KeptExtents(), {{}}, [&](size_t, const kir::Index& index, kir::Block& block) {
      block = ShortLines(view_, plan_, writer, expr)->Whole(PointOfKept(index));
    });
    return Finish(writer);
  }
  PointExpr::Point PointOfKept(const kir::Index& index) const {
    PointExpr::Point point(plan_.space.extents().size(), kb::Int(0));
    for (size_t i = 0; i < plan_.kept.size(); ++i) point[plan_.kept[i]] = index[i];
    return point;
  }

  // ---- Lines that are split. A fold's states lie in memory by part, then joined; the kept axes come first in both.

  struct Folded {
    int node;
    std::vector<int> parts, joined;  // temporaries, one a state
  };

  Status EmitSplit() {
    int levels = 0;
    for (const int n : view_.nodes()) levels = std::max(levels, plan_.level[n]);
    for (int level = 1; level <= levels; ++level) {
      QUERN_RETURN_IF_ERROR(EmitParts(level));
      QUERN_RETURN_IF_ERROR(EmitJoin(level, /*last=*/level == levels));
    }
    if (!HasLineResults()) return absl::OkStatus();
    KernelWriter writer(view_, "lines");
    PointExpr expr(view_, plan_.space, writer);
    const Extent parts = Parts(writer);
    ProvideJoined(writer, expr);
    EmitLines(writer, kPartElements, [&](PointExpr::Point point, const kir::ExprRef& first) {
      return Program(writer, expr, first, Segment())->LineResults(std::move(point));
    });
    AddPartsToGrid(writer, parts);
    return Finish(writer);
  }

  bool HasLineResults() const {
    return std::any_of(view_.results().begin(), view_.results().end(),
                       [&](Value result) { return plan_.IsLine(result); });
  }

  // Elements of the first axis of the line in a part.
  int64_t Step() const {
    const int64_t part = plan_.across() && IsReadOnce() ? kPartOfBundle : kPartElements;
    int64_t rest = plan_.across() ? width_ : 1;
    for (size_t i = 1; i < plan_.line.size(); ++i)
      rest *= std::min<int64_t>(view_.UpperBound(plan_.space.extents()[plan_.line[i]]), part);
    return std::max<int64_t>(1, part / rest);
  }
  LineSegment Segment() const {
    const kir::ExprRef low = kb::Ref("part") * static_cast<double>(Step());
    return {low, kb::Min(low + static_cast<double>(Step()), kb::FromExtent(plan_.space.extents()[plan_.line[0]]))};
  }
  // Of the first axis of a line.
  Extent Parts(KernelWriter& writer) const {
    return PartsOf(view_, writer.kernel, plan_.space.extents()[plan_.line[0]], Step());
  }
  static void AddPartsToGrid(KernelWriter& writer, const Extent& parts) {
    writer.kernel.grid.push_back({"part", kb::Int(0), kb::FromExtent(parts), 1});
    writer.kernel.sequential = false;
  }

  std::vector<Extent> KeptExtents() const { return plan_.ExtentsOf(plan_.kept); }
  kir::Index KeptAt(const PointExpr::Point& point) const {
    kir::Index at;
    for (const int axis : plan_.kept) at.push_back(point[axis]);
    return at;
  }
  // Where the state of a part lies: parts of a line follow each other where memory runs along lines.
  kir::Index PartAt(const kir::ExprRef& part, const PointExpr::Point& point) const {
    kir::Index at = KeptAt(point);
    at.insert(plan_.across() ? at.begin() : at.end(), part);
    return at;
  }
  int AddTemporary(DType dtype, std::vector<Extent> dims) {
    lowered_.temporaries.push_back({dtype, std::move(dims), kir::Layout::kRow});
    return static_cast<int>(lowered_.temporaries.size()) - 1;
  }
  std::string Temporary(KernelWriter& writer, int index, bool written) const {
    return writer.Temporary(index, lowered_.temporaries[index], written);
  }
  // Folds that are done: one element a line in memory.
  void ProvideJoined(KernelWriter& writer, PointExpr& expr) {
    for (const Folded& fold : folded_) {
      for (size_t r = 0; r < fold.joined.size(); ++r) {
        expr.Provide({fold.node, static_cast<int>(r)},
                     [this, &writer, index = fold.joined[r]](const PointExpr::Point& at) {
                       return kb::At(Temporary(writer, index, false), lowered_.temporaries[index].dtype, KeptAt(at));
                     });
      }
    }
  }

  Status EmitParts(int level) {
    KernelWriter writer(view_, "line_parts");
    PointExpr expr(view_, plan_.space, writer);
    const Extent parts = Parts(writer);
    ProvideJoined(writer, expr);
    std::vector<Folded> made;
    EmitLines(writer, kPartElements, [&](PointExpr::Point point, const kir::ExprRef& first) {
      const std::unique_ptr<LineProgram> program = Program(writer, expr, first, Segment());
      return program->Parts(
          std::move(point), level, [&](int n, size_t s, const kir::ExprRef& value, const PointExpr::Point& at) {
            if (made.empty() || made.back().node != n) made.push_back({n, {}, {}});
            std::vector<Extent> dims = KeptExtents();
            dims.insert(plan_.across() ? dims.begin() : dims.end(), parts);
            made.back().parts.push_back(AddTemporary(value->dtype, std::move(dims)));
            return kb::Store(Temporary(writer, made.back().parts[s], true), PartAt(kb::Ref("part"), at), value);
          });
    });
    AddPartsToGrid(writer, parts);
    folded_.insert(folded_.end(), made.begin(), made.end());
    return Finish(writer);
  }

  // The parts of each fold of the level joined in order, line by line; with the last level, results of one element a
  // line.
  Status EmitJoin(int level, bool last) {
    KernelWriter writer(view_, "line_join");
    PointExpr expr(view_, plan_.space, writer);
    const Extent parts = Parts(writer);
    ProvideJoined(writer, expr);
    EmitElements(view_, writer.kernel, KeptExtents(), {{}}, [&](size_t, const kir::Index& index, kir::Block& block) {
      expr.MoveTo(PointOfKept(index));
      for (Folded& fold : folded_) {
        if (plan_.level[fold.node] == level)
          JoinParts(writer, expr, fold, parts, /*keep=*/!last || HasLineResults(), block);
      }
      for (size_t o = 0; last && o < view_.results().size(); ++o) {
        const Value result = view_.results()[o];
        if (!plan_.IsKept(result)) continue;
        block.push_back(expr.StoreResult(static_cast<int>(o)));
      }
    });
    return Finish(writer);
  }

  // The results of a fold at the point, by name, and in memory where other kernels read them.
  void JoinParts(KernelWriter& writer, PointExpr& expr, Folded& fold, const Extent& count, bool keep,
                 kir::Block& block) {
    const ir::Node& node = view_.node(fold.node);
    const ir::LineDef& line = *node.op->line;
    const kir::ExprRef s = kb::Ref("s"), parts = kb::FromExtent(count);
    ir::LineDef::State part;
    for (const int index : fold.parts) {
      part.push_back(
          kb::At(Temporary(writer, index, false), lowered_.temporaries[index].dtype, PartAt(s, expr.point())));
    }
    ir::LineDef::State state;
    if (line.join == nullptr) {
      const kir::ExprRef all = kb::ReduceFor(line.reduce(node), "s", kb::Int(0), parts, part[0]);
      const kir::ExprRef value = line.finish == nullptr ? all : line.finish(node, all, plan_.LineElements());
      state = {kb::CastTo(node.results[0].dtype, value)};
    } else {
      state = line.results(node, Joined(node, fold.node, part, parts, block));
    }
    for (size_t r = 0; r < state.size(); ++r) {
      const std::string name = absl::StrCat("r", fold.node, "_", r);
      block.push_back(kb::WithOrigin(kb::Let(name, state[r]), writer.Origin(fold.node)));
      expr.Provide({fold.node, static_cast<int>(r)},
                   [name, dtype = state[r]->dtype](const PointExpr::Point&) { return kb::Ref(name, dtype); });
      if (!keep) continue;
      fold.joined.push_back(AddTemporary(state[r]->dtype, KeptExtents()));
      block.push_back(
          kb::Store(Temporary(writer, fold.joined.back(), true), KeptAt(expr.point()), kb::Ref(name, state[r]->dtype)));
    }
  }

  // The state of all parts, from that of the first on.
  ir::LineDef::State Joined(const ir::Node& node, int n, const ir::LineDef::State& part, const kir::ExprRef& parts,
                            kir::Block& block) const {
    ir::LineDef::State all;
    const ir::LineDef::State start = node.op->line->start(node, FoldedType(view_.type(node.inputs[0]).dtype));
    for (size_t s = 0; s < part.size(); ++s) {
      const std::string name = absl::StrCat("j", n, "_", s);
      block.push_back(kb::Var(name, start[s]));
      all.push_back(kb::Ref(name, part[s]->dtype));
    }
    const ir::LineDef::State next = node.op->line->join(node, all, part);
    kir::Block body;
    for (size_t s = 0; s < part.size(); ++s) body.push_back(kb::Let(absl::StrCat("n", n, "_", s), next[s]));
    for (size_t s = 0; s < part.size(); ++s)
      body.push_back(kb::Assign(absl::StrCat("j", n, "_", s), kb::Ref(absl::StrCat("n", n, "_", s), part[s]->dtype)));
    block.push_back(kb::For("s", kb::Int(0), parts, std::move(body)));
    return all;
  }

  const RegionView& view_;
  const LinesPlan& plan_;
  int64_t length_ = 0, width_ = 1;
  std::vector<Folded> folded_;
  LoweredRegion lowered_;
};

}  // namespace

StatusOr<LoweredRegion> LowerLines(const RegionView& view, const RegionPlan& plan) {
  return LineKernels(view, static_cast<const LinesPlan&>(plan)).Lower();
}

}  // namespace quern::codegen
