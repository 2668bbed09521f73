// A bundle of lines, where memory runs across them: one element of each line in a vector loop, states in scratch.
//
//   vec c in first..min(first + 64, 100) { r1[c - first] = -inf }
//   for k in 0..64 { vec c in first..min(first + 64, 100) { r1[c - first] = max(r1[c - first], x0[i0, k, c]) } }
//   ...

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/line_program.h"
#include "codegen/loops.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::Value;
using State = ir::LineDef::State;

constexpr int64_t kPartOfSum =
    128;  // elements of a line that are added up before they join its sum: rounding grows with the
          // square root of either number, not with their product's

constexpr int64_t kOneVector = 16;  // lines whose states stay in registers: in memory each row's would wait for the
                                    // store of the row before, and one vector has nothing to do meanwhile

class Across : public LineProgram {
 public:
  Across(const RegionView& view, const LinesPlan& plan, KernelWriter& writer, PointExpr& expr, kir::ExprRef first,
         int64_t width, LineSegment segment)
      : LineProgram(view, plan, writer, expr, std::move(segment)), first_(std::move(first)), width_(width) {}

 private:
  int64_t LinesAtOnce() const override { return width_; }

  kir::ExprRef Lane() const { return kb::Ref("c") - first_; }
  kir::StmtRef Lanes(kir::Block body) const {
    const kir::ExprRef end = kb::FromExtent(plan_.space.extents()[plan_.kept.back()]);
    return kb::Vec("c", first_, kb::Min(first_ + static_cast<double>(width_), end), std::move(body));
  }
  PointExpr::Point PointOfLanes() const {
    PointExpr::Point point = base_;
    point[plan_.kept.back()] = kb::Ref("c");
    return point;
  }
  // The same on the line: axes are called `name` and its numbers.
  PointExpr::Point PointAt(const std::string& name) const {
    PointExpr::Point point = PointOfLanes();
    for (size_t i = 0; i < plan_.line.size(); ++i) point[plan_.line[i]] = kb::Ref(IndexName(name, i));
    return point;
  }
  std::string IndexName(const std::string& name, size_t i) const {
    return i + 1 == plan_.line.size() ? name : absl::StrCat(name, "_", i);
  }
  // Loops over the line around a block.
  kir::Block OnLine(const std::string& name, kir::Block block) const {
    for (size_t i = plan_.line.size(); i-- > 0;)
      block = {kb::For(IndexName(name, i), Low(i), High(i), std::move(block))};
    return block;
  }

  kir::ExprRef LaneOf(const std::string& name, DType dtype) const { return kb::At(name, dtype, {Lane()}); }
  State Load(const std::string& name, const std::vector<DType>& types) const {
    State state;
    for (size_t s = 0; s < types.size(); ++s) state.push_back(LaneOf(absl::StrCat(name, "_", s), types[s]));
    return state;
  }
  using Setter = std::function<kir::StmtRef(const std::string& name, kir::ExprRef value)>;
  static kir::Block SetEach(const std::string& name, const State& state, const Setter& set) {
    kir::Block body;
    for (size_t s = 0; s < state.size(); ++s) body.push_back(set(absl::StrCat(name, "_", s), state[s]));
    return body;
  }
  // All are computed before the first is set.
  static kir::Block SetAll(const std::string& name, const State& state, const Setter& set) {
    if (state.size() == 1) return SetEach(name, state, set);
    State computed;
    for (size_t s = 0; s < state.size(); ++s) computed.push_back(kb::Ref(absl::StrCat("n", s), state[s]->dtype));
    kir::Block body;
    for (size_t s = 0; s < state.size(); ++s) body.push_back(kb::Let(absl::StrCat("n", s), state[s]));
    const kir::Block sets = SetEach(name, computed, set);
    body.insert(body.end(), sets.begin(), sets.end());
    return body;
  }
  Setter StoreLane() const {
    return [this](const std::string& to, kir::ExprRef value) { return kb::Store(to, {Lane()}, std::move(value)); };
  }
  // Values of one element a lane by name, in scratch.
  kir::Block Put(const std::string& name, const State& state) const { return SetAll(name, state, StoreLane()); }
  // Those of registers, within a loop over the lanes.
  static State Held(const std::string& name, const std::vector<DType>& types) {
    State state;
    for (size_t s = 0; s < types.size(); ++s) state.push_back(kb::Ref(absl::StrCat(name, "_", s), types[s]));
    return state;
  }
  void Allocate(const std::string& name, const std::vector<DType>& types, kir::Block& block) const {
    for (size_t s = 0; s < types.size(); ++s)
      block.push_back(kb::Alloc(absl::StrCat(name, "_", s), {types[s], {Extent(width_)}, kir::Layout::kRow}));
  }

  // Leaves the states of the fold over the segment in scratch; returns their name.
  std::string Folded(int n, kir::Block& block) {
    const std::string name = absl::StrCat("r", n), k = absl::StrCat("k", n);
    const std::vector<DType> types = StateTypes(n);
    Allocate(name, types, block);
    const bool sums = Node(n).op->line->take == nullptr && Node(n).op->line->reduce(Node(n)) == kir::ReduceOp::kSum &&
                      IsFloat(types[0]);
    if (!sums || plan_.line.size() != 1 || view_.UpperBound(plan_.LineElements()) <= 2 * kPartOfSum) {
      Append(block, FoldInto(name, n, types, k, [&](kir::Block take) { return OnLine(k, std::move(take)); }));
      return name;
    }
    const std::string p = absl::StrCat("p", n), of_part = absl::StrCat("part", n);
    Allocate(of_part, types, block);
    const kir::ExprRef low = kb::Ref(p), high = kb::Min(low + static_cast<double>(kPartOfSum), High(0));
    kir::Block part = FoldInto(of_part, n, types, k,
                               [&](kir::Block take) { return kir::Block{kb::For(k, low, high, std::move(take))}; });
    part.push_back(Lanes(Put(name, {LaneOf(name + "_0", types[0]) + LaneOf(of_part + "_0", types[0])})));
    block.push_back(Lanes(Put(name, Start(n))));
    block.push_back(kb::For(p, Low(0), High(0), std::move(part), kPartOfSum));
    return name;
  }

  // Leaves the states of the fold over `loops`, in which k is the place on the line, in scratch.
  kir::Block FoldInto(const std::string& name, int n, const std::vector<DType>& types, const std::string& k,
                      const std::function<kir::Block(kir::Block take)>& loops) {
    const bool registers = width_ <= kOneVector;
    const std::string held = absl::StrCat("fold", n);
    const PointExpr::Point point = PointAt(k);
    expr_.MoveTo(point);
    const State next = Take(n, registers ? Held(held, types) : Load(name, types), ElementOf(n), Position(point));
    if (!registers) {
      kir::Block block = {Lanes(Put(name, Start(n)))};
      Append(block, loops({kb::WithOrigin(Lanes(Put(name, next)), writer_.Origin(n))}));
      return block;
    }
    kir::Block lane = SetEach(held, Start(n), kb::Var), take = SetAll(held, next, kb::Assign);
    for (kir::StmtRef& statement : take) statement = kb::WithOrigin(statement, writer_.Origin(n));
    Append(lane, loops(std::move(take)));
    Append(lane, SetEach(name, Held(held, types), StoreLane()));
    return {Lanes(std::move(lane))};
  }

  void Fold(int n, kir::Block& block) override {
    const std::string name = Folded(n, block);
    const State results = ResultsOf(n, Load(name, StateTypes(n)));
    for (size_t r = 0; r < results.size(); ++r) {
      expr_.Provide({n, static_cast<int>(r)}, [result = results[r]](const PointExpr::Point&) { return result; });
    }
  }

  void States(int n, const Store& store, kir::Block& block) override {
    const State state = Load(Folded(n, block), StateTypes(n));
    kir::Block body;
    for (size_t s = 0; s < state.size(); ++s)
      body.push_back(kb::WithOrigin(store(n, s, state[s], PointOfLanes()), writer_.Origin(n)));
    block.push_back(Lanes(std::move(body)));
  }

  void Keep(int n, kir::Block& block) override {
    expr_.MoveTo(PointOfLanes());
    const kir::ExprRef value = expr_.At({n, 0});
    const std::string name = absl::StrCat("s", n);
    Allocate(name, {value->dtype}, block);
    block.push_back(kb::WithOrigin(Lanes(Put(name, {value})), writer_.Origin(n)));
    const kir::ExprRef kept = LaneOf(name + "_0", value->dtype);
    expr_.Provide({n, 0}, [kept](const PointExpr::Point&) { return kept; });
  }

  void KeepLine(int n, kir::Block& block) override {
    const DType dtype = view_.type({n, 0}).dtype;
    const std::string name = absl::StrCat("row", n), k = absl::StrCat("k", n);
    std::vector<Extent> dims = plan_.ExtentsOf(plan_.line);
    dims.push_back(Extent(width_));
    block.push_back(kb::Alloc(name, {dtype, std::move(dims), kir::Layout::kRow}));
    auto place = [this](const PointExpr::Point& point) {
      kir::Index at;
      for (const int axis : plan_.line) at.push_back(point[axis]);
      at.push_back(Lane());
      return at;
    };
    const PointExpr::Point point = PointAt(k);
    expr_.MoveTo(point);
    Append(block,
           OnLine(k, {kb::WithOrigin(Lanes({kb::Store(name, place(point), expr_.At({n, 0}))}), writer_.Origin(n))}));
    expr_.Provide({n, 0}, [name, dtype, place](const PointExpr::Point& at) { return kb::At(name, dtype, place(at)); });
  }

  void StoreKept(kir::Block& block) override {
    expr_.MoveTo(PointOfLanes());
    kir::Block body = Stores([this](Value result) { return plan_.IsKept(result); });
    if (!body.empty()) block.push_back(Lanes(std::move(body)));
  }

  kir::Block Stores(const std::function<bool(Value)>& wanted) {
    kir::Block body;
    for (size_t o = 0; o < view_.results().size(); ++o) {
      const Value result = view_.results()[o];
      if (!wanted(result)) continue;
      body.push_back(expr_.StoreResult(static_cast<int>(o)));
    }
    return body;
  }

  // One pass along the lines for all results that are lines; scans go along.
  void StoreLines(kir::Block& block) override {
    PointExpr::Point point = PointAt("k");
    kir::Block body;
    for (const int n : view_.nodes()) {
      if (!IsLineOp(Node(n)) || Node(n).op->line->scan == nullptr) continue;
      const ir::LineDef::Scan scan = Node(n).op->line->scan(Node(n));
      if (scan.reverse && !plan_.line.empty()) point[plan_.line.back()] = High(0) - 1.0 - kb::Ref("k");
      EmitScan(n, scan, point, block, body);
    }
    expr_.MoveTo(point);
    const kir::Block stores = Stores([this](Value result) { return plan_.IsLine(result); });
    if (stores.empty()) return;
    Append(body, stores);
    Append(block, OnLine("k", {Lanes(std::move(body))}));
  }

  void EmitScan(int n, const ir::LineDef::Scan& scan, const PointExpr::Point& point, kir::Block& before,
                kir::Block& body) {
    const std::string sum = absl::StrCat("sum", n);
    const std::vector<DType> types = StateTypes(n);
    Allocate(sum, types, before);
    before.push_back(Lanes(Put(sum, Start(n))));
    expr_.MoveTo(point);
    const State so_far = Load(sum, types), taken = Take(n, so_far, ElementOf(n), Position(point));
    State next;
    for (size_t s = 0; s < types.size(); ++s) {
      const std::string name = s == 0 ? absl::StrCat("next", n) : absl::StrCat("next", n, "_", s);
      body.push_back(kb::WithOrigin(kb::Let(name, taken[s]), writer_.Origin(n)));
      next.push_back(kb::Ref(name, types[s]));
    }
    const State made = ScannedOf(n, scan, so_far, next);
    for (size_t r = 0; r < made.size(); ++r) {
      const std::string value = r == 0 ? absl::StrCat("v", n, "x") : absl::StrCat("v", n, "x", r);
      body.push_back(kb::Let(value, made[r]));
      expr_.Provide({n, static_cast<int>(r)},
                    [value, dtype = made[r]->dtype](const PointExpr::Point&) { return kb::Ref(value, dtype); });
    }
    for (size_t s = 0; s < types.size(); ++s) body.push_back(kb::Store(absl::StrCat(sum, "_", s), {Lane()}, next[s]));
  }

  const kir::ExprRef first_;
  const int64_t width_;
};

}  // namespace

std::unique_ptr<LineProgram> AcrossLines(const RegionView& view, const LinesPlan& plan, KernelWriter& writer,
                                         PointExpr& expr, kir::ExprRef first, int64_t width, LineSegment segment) {
  return std::make_unique<Across>(view, plan, writer, expr, std::move(first), width, std::move(segment));
}

}  // namespace quern::codegen
