// One line at a time, where memory runs along it:
//
//   let r2 = sum accs 4 vec c2 in 0..256 { x0[i0, c2] * x0[i0, c2] } / 256
//   let s4 = rsqrt(r2 + 1e-5)
//   vec c in 0..256 { y0[i0, c] = x0[i0, c] * s4 * w1[c] }

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/line_program.h"
#include "codegen/loops.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::OpKind;
using ir::Value;
using State = ir::LineDef::State;

constexpr int kAccumulators = 4;
constexpr int64_t kLanes = 64, kFewestLanes = 16;  // states that a fold of several values has side by side
constexpr int64_t kLongLine = 16384;  // elements of a line that scans and packs have in scratch at a time, at most
constexpr int64_t kPart = 256;        // of which these are a multiple: blocks of all formats divide it

class Along : public LineProgram {
 public:
  using LineProgram::LineProgram;

 private:
  int64_t LinesAtOnce() const override { return 1; }

  // The point with names for the axes of the line: `inner` for the last, others derived from it.
  PointExpr::Point PointAt(const std::string& inner) {
    PointExpr::Point point = base_;
    for (size_t i = 0; i < plan_.line.size(); ++i) {
      point[plan_.line[i]] = kb::Ref(i + 1 == plan_.line.size() ? inner : absl::StrCat(inner, "_", i));
    }
    return point;
  }
  // Loops over all axes of the line but the last around a block.
  kir::Block Outer(const std::string& inner, kir::Block block) {
    for (size_t i = plan_.line.size(); i-- > 1;) {
      block = {kb::For(absl::StrCat(inner, "_", i - 1), Low(i - 1), High(i - 1), std::move(block))};
    }
    return block;
  }
  size_t Last() const { return plan_.line.size() - 1; }

  void Fold(int n, kir::Block& block) override {
    const State state = Node(n).op->line->take == nullptr ? State{Reduced(n)} : Lanes(n, block);
    const State results = ResultsOf(n, state);
    for (size_t r = 0; r < results.size(); ++r) {
      const std::string name = r == 0 ? absl::StrCat("r", n) : absl::StrCat("r", n, "_", r);
      block.push_back(kb::WithOrigin(kb::Let(name, results[r]), writer_.Origin(n)));
      Name({n, static_cast<int>(r)}, name, results[r]->dtype);
    }
  }

  void States(int n, const Store& store, kir::Block& block) override {
    const State state = Node(n).op->line->take == nullptr ? State{Reduced(n)} : Lanes(n, block);
    for (size_t s = 0; s < state.size(); ++s)
      block.push_back(kb::WithOrigin(store(n, s, state[s], base_), writer_.Origin(n)));
  }

  // The value of a reduction that KIR has.
  kir::ExprRef Reduced(int n) {
    const kir::ReduceOp op = Node(n).op->line->reduce(Node(n));
    const std::string c = absl::StrCat("c", n);
    expr_.MoveTo(PointAt(c));
    kir::ExprRef value = ElementOf(n);
    if (plan_.line.empty()) return value;
    value = kb::ReduceVec(op, kAccumulators, c, Low(Last()), High(Last()), value);
    for (size_t i = Last(); i-- > 0;) value = kb::ReduceFor(op, absl::StrCat(c, "_", i), Low(i), High(i), value);
    return value;
  }

  // States side by side: no more than the line may have elements.
  int64_t LanesOfFold() const {
    const int64_t most = plan_.line.empty() ? 1 : view_.UpperBound(plan_.space.extents()[plan_.line.back()]);
    int64_t lanes = kLanes;
    while (lanes > kFewestLanes && lanes / 2 >= most) lanes /= 2;
    return lanes;
  }

  // The state of a fold of several values: of every so manieth element first, then of those, half by half.
  State Lanes(int n, kir::Block& block) {
    const int64_t lanes = LanesOfFold();
    const State start = Start(n);
    auto lane = [&](size_t s) { return absl::StrCat("f", n, "_", s); };
    const std::string l = absl::StrCat("l", n), c = absl::StrCat("c", n);
    const kir::ExprRef at = kb::Ref(l);
    kir::Block clear;
    for (size_t s = 0; s < start.size(); ++s) {
      block.push_back(kb::Alloc(lane(s), {start[s]->dtype, {Extent(lanes)}, kir::Layout::kRow}));
      clear.push_back(kb::Store(lane(s), {at}, start[s]));
    }
    block.push_back(kb::Vec(l, kb::Int(0), kb::Int(lanes), std::move(clear)));
    auto load = [&](const kir::ExprRef& index) {
      State state;
      for (size_t s = 0; s < start.size(); ++s) state.push_back(kb::At(lane(s), start[s]->dtype, {index}));
      return state;
    };
    // Both names stand for the values before: what is stored may not be read again.
    PointExpr::Point point = PointAt(c);
    kir::Block take;
    auto step = [&](const char* name, const State& state, const kir::ExprRef& index) {
      kir::Block body;
      for (size_t s = 0; s < state.size(); ++s) body.push_back(kb::Let(absl::StrCat(name, n, "_", s), state[s]));
      for (size_t s = 0; s < state.size(); ++s)
        body.push_back(kb::Store(lane(s), {index}, kb::Ref(absl::StrCat(name, n, "_", s), state[s]->dtype)));
      return body;
    };
    if (plan_.line.empty()) {
      expr_.MoveTo(point);
      take = step("n", Take(n, load(kb::Int(0)), ElementOf(n), kb::Int(0)), kb::Int(0));
      block.insert(block.end(), take.begin(), take.end());
    } else {
      point[plan_.line.back()] = kb::Ref(c) + at;
      expr_.MoveTo(point);
      take = {kb::Vec(l, kb::Int(0), kb::Min(kb::Int(lanes), High(Last()) - kb::Ref(c)),
                      step("n", Take(n, load(at), ElementOf(n), Position(point)), at))};
      take = {kb::WithOrigin(kb::For(c, Low(Last()), High(Last()), std::move(take), lanes), writer_.Origin(n))};
      take = Outer(c, std::move(take));
      block.insert(block.end(), take.begin(), take.end());
    }
    for (int64_t half = lanes / 2; half >= 1; half /= 2) {
      const State joined = Node(n).op->line->join(Node(n), load(at), load(at + static_cast<double>(half)));
      block.push_back(kb::Vec(l, kb::Int(0), kb::Int(half), step("j", joined, at)));
    }
    return load(kb::Int(0));
  }

  void Keep(int n, kir::Block& block) override {
    expr_.MoveTo(base_);
    const std::string name = absl::StrCat("s", n);
    const kir::ExprRef value = expr_.At({n, 0});
    block.push_back(kb::WithOrigin(kb::Let(name, value), writer_.Origin(n)));
    Name({n, 0}, name, value->dtype);
  }

  void Name(Value value, const std::string& name, DType dtype) {
    expr_.Provide(value, [name, dtype](const PointExpr::Point&) { return kb::Ref(name, dtype); });
  }

  void KeepLine(int n, kir::Block& block) override {
    const DType dtype = view_.type({n, 0}).dtype;
    const std::string name = absl::StrCat("row", n), c = absl::StrCat("c", n);
    block.push_back(kb::Alloc(name, {dtype, plan_.ExtentsOf(plan_.line), kir::Layout::kRow}));
    const PointExpr::Point point = PointAt(c);
    expr_.MoveTo(point);
    kir::Block body = {kb::Store(name, OnLine(point), expr_.At({n, 0}))};
    body = Outer(c, {kb::WithOrigin(kb::Vec(c, Low(Last()), High(Last()), std::move(body)), writer_.Origin(n))});
    block.insert(block.end(), body.begin(), body.end());
    expr_.Provide({n, 0}, [this, name, dtype](const PointExpr::Point& at) { return kb::At(name, dtype, OnLine(at)); });
  }
  kir::Index OnLine(const PointExpr::Point& point) const {
    kir::Index at;
    for (const int axis : plan_.line) at.push_back(point[axis]);
    return at;
  }

  void StoreKept(kir::Block& block) override {
    expr_.MoveTo(base_);
    for (size_t o = 0; o < view_.results().size(); ++o) {
      const Value result = view_.results()[o];
      if (!plan_.IsKept(result)) continue;
      block.push_back(expr_.StoreResult(static_cast<int>(o)));
    }
  }

  // One pass over the line for all results that are lines, in which scans run that can. What others and packs need lies
  // in scratch, a part of the line at a time where it is long.
  void StoreLines(kir::Block& block) override {
    const std::vector<int> packs = Packs();
    const bool runs = ScansRun(), parts = !packs.empty() || (HasScans() && !runs);
    const int64_t most = PartElements(packs.size());
    const bool cut = parts && view_.UpperBound(plan_.LineElements()) > most;
    const Extent length = cut ? Extent(most) : plan_.LineElements();
    kir::ExprRef low = plan_.line.empty() ? kb::Int(0) : Low(Last()),
                 high = plan_.line.empty() ? kb::Int(1) : High(Last());
    // Parts are the same whichever way scans run, so that threads meet the same elements of each.
    const bool backwards = cut && RunsBackwards();
    kir::ExprRef count;
    if (backwards)
      count = kb::FromExtent(PartsOf(view_, writer_.kernel, plan_.space.extents()[plan_.line.back()], most));
    if (cut) {
      const kir::ExprRef p = kb::Ref("p");
      low = backwards ? (count - 1.0 - p) * static_cast<double>(most) : p;
      high = kb::Min(low + static_cast<double>(most), high);
    }
    kir::Block allocs, part;
    if (!runs) EmitScans(low, high, length, allocs, part);
    PointExpr::Point point = PointAt("c");
    kir::ExprRef place = kb::Ref("c");
    if (runs && RunsBackwards()) point[plan_.line.back()] = place = high - 1.0 - (place - low);
    expr_.MoveTo(point);
    kir::Block body, packed;
    if (runs) EmitRunningScans(allocs, body);
    for (size_t o = 0; o < view_.results().size(); ++o) {
      const Value result = view_.results()[o];
      const ir::Node& node = Node(result.node);
      if (!plan_.IsLine(result)) continue;
      if (node.op->kind != OpKind::kPack) {
        body.push_back(expr_.StoreResult(static_cast<int>(o)));
        continue;
      }
      // The encoder reads a dense row of f32.
      const Value x = node.inputs[0];
      const std::string name = absl::StrCat("q", x.node);
      const bool first = std::none_of(allocs.begin(), allocs.end(), [&](const kir::StmtRef& stmt) {
        const auto* alloc = std::get_if<kir::Alloc>(&stmt->node);
        return alloc != nullptr && alloc->name == name;
      });
      if (first) {
        allocs.push_back(kb::Alloc(name, {DType::kF32, {Extent(1), length}, kir::Layout::kRow}));
        const kir::ExprRef at = cut ? place - low : place;
        body.push_back(kb::WithOrigin(kb::Store(name, {kb::Int(0), at}, expr_.At(x)), writer_.Origin(x.node)));
      }
      packed.push_back(kb::WithOrigin(PackRow(static_cast<int>(o), name, low, high, cut), writer_.Origin(result.node)));
    }
    if (plan_.line.empty()) {
      part.insert(part.end(), body.begin(), body.end());
    } else if (!body.empty()) {
      body = Outer("c", {kb::Vec("c", low, high, std::move(body))});
      part.insert(part.end(), body.begin(), body.end());
    }
    part.insert(part.end(), packed.begin(), packed.end());
    block.insert(block.end(), allocs.begin(), allocs.end());
    if (cut) part = {kb::For("p", kb::Int(0), backwards ? count : High(Last()), std::move(part), backwards ? 1 : most)};
    block.insert(block.end(), part.begin(), part.end());
  }

  // Elements of a line that lie in scratch at a time: half of what is left of it, for schedules add their own.
  int64_t PartElements(size_t packs) const {
    int64_t bytes = static_cast<int64_t>(packs * sizeof(float));
    for (const int n : view_.nodes()) {
      if (!IsScan(n) || ScansRun()) continue;
      for (const ir::TensorType& result : Node(n).results) bytes += ScalarBytes(result.dtype);
    }
    if (bytes == 0) return kLongLine;
    return std::clamp(scratch_left() / 2 / bytes / kPart * kPart, kPart, kLongLine);
  }

  bool IsScan(int n) const { return IsLineOp(Node(n)) && Node(n).op->line->scan != nullptr; }

  // Whether each scan of the region is a running value of the loop over the line: reduced by KIR, and not by threads,
  // which share out the loop's iterations.
  bool ScansRun() const {
    return !view_.facts.blocks && !plan_.line.empty() && HasScans() &&
           std::all_of(view_.nodes().begin(), view_.nodes().end(),
                       [&](int n) { return !IsScan(n) || Node(n).op->line->take == nullptr; });
  }

  bool RunsBackwards() const {
    return std::any_of(view_.nodes().begin(), view_.nodes().end(), [&](int n) {
      const ir::LineDef* line = Node(n).op->line;
      return line != nullptr && line->scan != nullptr && line->scan(Node(n)).reverse;
    });
  }

  kir::StmtRef PackRow(int output, const std::string& from, const kir::ExprRef& low, const kir::ExprRef& high,
                       bool cut) {
    const auto [buffer, at] = expr_.ResultAt(output);
    std::vector<kir::SliceDim> to;
    for (size_t d = 0; d + 1 < at.size(); ++d) to.push_back(kb::Point(at[d]));
    // The last of the outer dimensions is a range, so that the slice is [1, C] as its source is.
    kir::Slice source = kb::Whole(from, 2);
    if (to.empty())
      source.dims[0] = kb::Point(kb::Int(0));
    else
      to.back() = kb::Range(at[at.size() - 2], kb::Int(1));
    to.push_back(cut ? kb::Range(low, high - low) : kb::All());
    if (cut) source.dims[1] = kb::Range(kb::Int(0), high - low);
    return kb::Pack(kb::SliceOf(buffer, std::move(to)), std::move(source));
  }

  // Running values of the loop over the line, at its point.
  void EmitRunningScans(kir::Block& allocs, kir::Block& body) {
    for (const int n : view_.nodes()) {
      if (!IsScan(n)) continue;
      const std::string sum = absl::StrCat("sum", n), term = absl::StrCat("term", n),
                        before = absl::StrCat("before", n), name = absl::StrCat("scan", n);
      const kir::ExprRef start = Start(n)[0], state = kb::Ref(sum, start->dtype);
      allocs.push_back(kb::Var(sum, start));
      const auto add = [&](kir::StmtRef stmt) { body.push_back(kb::WithOrigin(std::move(stmt), writer_.Origin(n))); };
      const ir::LineDef::Scan scan = Node(n).op->line->scan(Node(n));
      add(kb::Let(term, ElementOf(n)));
      if (scan.exclusive) add(kb::Let(before, state));
      add(kb::Assign(sum, Take(n, {state}, kb::Ref(term, start->dtype), Position(expr_.point()))[0]));
      const kir::ExprRef made = ScannedOf(n, scan, {kb::Ref(before, start->dtype)}, {state})[0];
      add(kb::Let(name, made));
      Name({n, 0}, name, made->dtype);
    }
  }

  // Other scans run element by element; what they make lies in scratch for the vector loop that follows. The sum so far
  // is carried from part to part.
  void EmitScans(const kir::ExprRef& low, const kir::ExprRef& high, const Extent& length, kir::Block& allocs,
                 kir::Block& part) {
    for (const int n : view_.nodes()) {
      if (!IsScan(n)) continue;
      const ir::LineDef::Scan scan = Node(n).op->line->scan(Node(n));
      const State start = Start(n);
      const auto name_of = [n](const char* what, size_t s) {
        return s == 0 ? absl::StrCat(what, n) : absl::StrCat(what, n, "_", s);
      };
      State before, after;
      for (size_t s = 0; s < start.size(); ++s) {
        allocs.push_back(kb::Var(name_of("sum", s), start[s]));
        before.push_back(kb::Ref(name_of("sum", s), start[s]->dtype));
        after.push_back(kb::Ref(name_of("next", s), start[s]->dtype));
      }
      PointExpr::Point point = base_;
      const std::string i = absl::StrCat("e", n);
      const kir::ExprRef element = kb::Ref(i);
      if (!plan_.line.empty()) point[plan_.line.back()] = scan.reverse ? high - 1.0 - (element - low) : element;
      expr_.MoveTo(point);
      const State taken = Take(n, before, ElementOf(n), Position(point)), made = ScannedOf(n, scan, before, after);
      const kir::ExprRef place = plan_.line.empty() ? kb::Int(0) : point[plan_.line.back()] - low;
      kir::Block body;
      for (size_t s = 0; s < start.size(); ++s) body.push_back(kb::Let(name_of("next", s), taken[s]));
      for (size_t r = 0; r < made.size(); ++r) {
        const std::string name = name_of("scan", r);
        const DType dtype = made[r]->dtype;
        allocs.push_back(kb::Alloc(name, {dtype, {length}, kir::Layout::kRow}));
        body.push_back(kb::Store(name, {place}, made[r]));
        expr_.Provide({n, static_cast<int>(r)}, [this, name, dtype, low](const PointExpr::Point& at) {
          return kb::At(name, dtype, {plan_.line.empty() ? kb::Int(0) : at[plan_.line.back()] - low});
        });
      }
      for (size_t s = 0; s < start.size(); ++s) body.push_back(kb::Assign(name_of("sum", s), after[s]));
      part.push_back(kb::WithOrigin(kb::For(i, low, high, std::move(body)), writer_.Origin(n)));
    }
  }
};

}  // namespace

std::unique_ptr<LineProgram> AlongLines(const RegionView& view, const LinesPlan& plan, KernelWriter& writer,
                                        PointExpr& expr, LineSegment segment) {
  return std::make_unique<Along>(view, plan, writer, expr, std::move(segment));
}

}  // namespace quern::codegen
