#include "codegen/line_program.h"

#include <algorithm>
#include <climits>
#include <set>

#include "base/check.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::OpKind;
using ir::Value;

// Whether computing the value again costs more than reading it from scratch: a math function lies behind it.
bool IsCostly(const kir::ExprRef& value) {
  struct Finder : kir::Visitor {
    bool found = false;
    bool Enter(const kir::ExprRef& expr) override {
      const auto* apply = std::get_if<kir::Apply>(&expr->node);
      found = found || (apply != nullptr && (kir::Row(apply->op).math || apply->op == kir::Op::kDiv)) ||
              std::holds_alternative<kir::Decode>(expr->node) || std::holds_alternative<kir::Reduce>(expr->node);
      return !found && !std::holds_alternative<kir::Load>(expr->node);
    }
  } finder;
  finder.Visit(value);
  return finder.found;
}

}  // namespace

LineProgram::LineProgram(const RegionView& view, const LinesPlan& plan, KernelWriter& writer, PointExpr& expr,
                         LineSegment segment)
    : view_(view),
      plan_(plan),
      writer_(writer),
      expr_(expr),
      segment_(std::move(segment)),
      scratch_left_(view.facts.scratch()) {}

std::vector<DType> LineProgram::StateTypes(int n) const {
  std::vector<DType> types;
  for (const kir::ExprRef& value : Start(n)) types.push_back(value->dtype);
  return types;
}

ir::LineDef::State LineProgram::Start(int n) const {
  const ir::LineDef& line = *Node(n).op->line;
  const DType dtype = FoldedType(view_.type(Node(n).inputs[0]).dtype);
  if (line.start != nullptr) return line.start(Node(n), dtype);
  return {kb::IdentityOf(line.reduce(Node(n)), dtype)};
}

ir::LineDef::State LineProgram::Take(int n, const ir::LineDef::State& state, const kir::ExprRef& x,
                                     const kir::ExprRef& at) const {
  const ir::LineDef& line = *Node(n).op->line;
  if (line.take != nullptr) return line.take(Node(n), state, x, at);
  return {kir::MakeApply(kir::CombineOp(line.reduce(Node(n))), {state[0], x}, IsFloat(x->dtype))};
}

ir::LineDef::State LineProgram::ResultsOf(int n, const ir::LineDef::State& state) const {
  const ir::LineDef& line = *Node(n).op->line;
  if (line.results != nullptr) return line.results(Node(n), state);
  const kir::ExprRef value = line.finish == nullptr ? state[0] : line.finish(Node(n), state[0], plan_.LineElements());
  return {kb::CastTo(Node(n).results[0].dtype, value)};
}

ir::LineDef::State LineProgram::ScannedOf(int n, const ir::LineDef::Scan& scan, const ir::LineDef::State& before,
                                          const ir::LineDef::State& after) const {
  const ir::LineDef::State& state = scan.exclusive ? before : after;
  if (Node(n).op->line->results != nullptr) return Node(n).op->line->results(Node(n), state);
  return {kb::CastTo(Node(n).results[0].dtype, state[0])};
}

kir::ExprRef LineProgram::ElementOf(int n) {
  kir::ExprRef element = expr_.At(Node(n).inputs[0]);
  element = kb::CastTo(FoldedType(element->dtype), element);
  // Sums round anyway; a least or greatest value is one of the elements, bit for bit.
  const ir::LineDef& line = *Node(n).op->line;
  const bool sums = line.reduce != nullptr && line.reduce(Node(n)) == kir::ReduceOp::kSum;
  return sums ? kb::Term(element) : element;
}

kir::ExprRef LineProgram::Position(const PointExpr::Point& point) const {
  kir::ExprRef position;
  for (const int axis : plan_.line) {
    position = position == nullptr ? point[axis] : position * kb::FromExtent(plan_.space.extents()[axis]) + point[axis];
  }
  return position == nullptr ? kb::Int(0) : position;
}

kir::ExprRef LineProgram::Low(size_t axis) const {
  return axis == 0 && segment_.low != nullptr ? segment_.low : kb::Int(0);
}
kir::ExprRef LineProgram::High(size_t axis) const {
  if (axis == 0 && segment_.high != nullptr) return segment_.high;
  return kb::FromExtent(plan_.space.extents()[plan_.line[axis]]);
}

bool LineProgram::Reserve(DType dtype, int64_t lines) {
  int64_t bytes = 0;
  const int64_t length = view_.UpperBound(plan_.LineElements());
  if (segment_.low != nullptr || __builtin_mul_overflow(length, lines * ScalarBytes(dtype), &bytes) ||
      bytes > scratch_left_) {
    return false;
  }
  scratch_left_ -= bytes;
  return true;
}

bool LineProgram::HasScans() const {
  return std::any_of(view_.nodes().begin(), view_.nodes().end(),
                     [&](int n) { return IsLineOp(Node(n)) && Node(n).op->line->scan; });
}

std::vector<int> LineProgram::Packs() const {
  std::vector<int> packs;
  for (size_t o = 0; o < view_.results().size(); ++o) {
    if (Node(view_.results()[o].node).op->kind == OpKind::kPack) packs.push_back(static_cast<int>(o));
  }
  return packs;
}

// How many passes over the line read node n: folds behind it, and the one that makes results.
int LineProgram::PassesThatRead(int n) const {
  std::set<int> passes, seen;
  std::vector<int> open = {n};
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    if (view_.IsReadOutside(at)) passes.insert(-1);
    for (const auto& [user, operand] : view_.users(at)) {
      if (!view_.Has(user)) continue;
      const ir::Node& reader = Node(user);
      if (IsLineOp(reader) && !reader.op->line->scan) {
        passes.insert(user);
      } else if (IsLineOp(reader) || reader.op->kind == OpKind::kPack) {
        passes.insert(-1);
      } else if (seen.insert(user).second) {
        open.push_back(user);
      }
    }
  }
  return static_cast<int>(passes.size());
}

// In topological order: folds become names, values of one element a line that depend on them too; lines that are costly
// and used by more than one pass go to scratch, where they fit.
void LineProgram::NameValues(kir::Block& block) {
  for (const int n : view_.nodes()) {
    const ir::Node& node = Node(n);
    if (IsLineOp(node)) {
      if (!node.op->line->scan) Fold(n, block);
    } else if (node.op->kind == OpKind::kElementwise && DependsOnFold(n) && plan_.IsKept({n, 0})) {
      Keep(n, block);
    } else if (!plan_.line.empty() && node.op->kind != OpKind::kPack && plan_.IsLine({n, 0}) &&
               plan_.space.Relates(n) && PassesThatRead(n) > 1) {
      expr_.MoveTo(PointExpr::Point(plan_.space.extents().size(), kb::Ref("c")));
      if (IsCostly(expr_.At({n, 0})) && Reserve(node.results[0].dtype, LinesAtOnce())) KeepLine(n, block);
    }
  }
}

// Of values of one element a line, those that depend on folds of the first `levels` levels alone.
void LineProgram::NameKept(int levels, kir::Block& block) {
  for (const int n : view_.nodes()) {
    const bool kept = Node(n).op->kind == OpKind::kElementwise && DependsOnFold(n) && plan_.IsKept({n, 0});
    if (kept && plan_.level[n] <= levels) Keep(n, block);
  }
}

kir::Block LineProgram::Whole(PointExpr::Point point) {
  base_ = std::move(point);
  kir::Block block;
  NameValues(block);
  StoreKept(block);
  StoreLines(block);
  return block;
}

kir::Block LineProgram::Parts(PointExpr::Point point, int level, const Store& store) {
  base_ = std::move(point);
  kir::Block block;
  NameKept(level - 1, block);
  for (const int n : view_.nodes()) {
    if (IsLineOp(Node(n)) && plan_.level[n] == level) States(n, store, block);
  }
  return block;
}

kir::Block LineProgram::KeptResults(PointExpr::Point point) {
  base_ = std::move(point);
  kir::Block block;
  StoreKept(block);
  return block;
}

kir::Block LineProgram::LineResults(PointExpr::Point point) {
  base_ = std::move(point);
  kir::Block block;
  NameKept(INT_MAX, block);
  StoreLines(block);
  return block;
}

}  // namespace quern::codegen
