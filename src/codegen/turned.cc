#include "codegen/turned.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/loops.h"
#include "kir/canonical.h"
#include "kir/rewrite.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

// The most runs of the result that one pack fills, and their elements. In place, where rows of the result that are not
// long are written whole: threads that write parts of a row would share lines. In scratch, which the first cache keeps.
constexpr int64_t kDepth = 256, kWidth = 256;
constexpr int64_t kScratchDepth = 32, kScratchWidth = 128;
// Where one side has fewer than kFew elements, the other is as long as these say.
constexpr int64_t kFew = 16, kLong = 4096, kScratchElements = 2048, kUnit = 64;
constexpr int64_t kFewest = 4;  // a vector for each short row is less work than turning more than these twice
constexpr int64_t kLeast = 8;   // along either side, where none is long: below that a gather reads few lines anyway

const char kColumn[] = "c";

bool Names(const kir::ExprRef& expr, const std::string& name) {
  return kir::AnyExpr(expr, [&](const kir::ExprRef& node) { return kir::IsName(node, name); });
}

// What is added to the name in `expr`: 0 where it is the name itself; null for any other form.
kir::ExprRef Beside(const kir::ExprRef& expr, const std::string& name) {
  if (kir::IsName(expr, name)) return kb::Int(0);
  const auto* apply = std::get_if<kir::Apply>(&expr->node);
  if (apply == nullptr || apply->op != kir::Op::kAdd) return nullptr;
  for (const int side : {0, 1}) {
    if (kir::IsName(apply->args[side], name) && !Names(apply->args[1 - side], name)) return apply->args[1 - side];
  }
  return nullptr;
}

// The only dimension but the last that runs along `down`, by one element a step, where the last one runs so along
// `along`; -1 for other elements.
int TurnedDim(const kir::Index& index, const std::string& along, const std::string& down) {
  if (index.size() < 2) return -1;
  const kir::ExprRef beside = Beside(index.back(), along);
  if (beside == nullptr || Names(beside, down)) return -1;
  int dim = -1;
  for (size_t d = 0; d + 1 < index.size(); ++d) {
    if (Names(index[d], along)) return -1;
    if (!Names(index[d], down)) continue;
    if (dim >= 0 || Beside(index[d], down) == nullptr) return -1;
    dim = static_cast<int>(d);
  }
  return dim;
}

// A rectangle of the nest: from u0 along `outer`, from l0 along `inner`.
struct Rectangle {
  std::string outer, inner;
  kir::ExprRef u0, runs, l0, width;

  bool Turns(const kir::Index& index) const { return TurnedDim(index, outer, inner) >= 0; }
  // What of a buffer that runs along `from` in its last dimension, and along `down` in another, lies in it.
  kir::Slice Part(const std::string& buffer, const kir::Index& index, bool turned) const {
    const std::string &from = turned ? outer : inner, &down = turned ? inner : outer;
    const auto along = [&](const kir::ExprRef& at, const std::string& name) {
      return name == outer ? kb::Range(u0 + Beside(at, name), runs) : kb::Range(l0 + Beside(at, name), width);
    };
    const int dim = TurnedDim(index, from, down);
    std::vector<kir::SliceDim> dims;
    for (int d = 0; d + 1 < static_cast<int>(index.size()); ++d)
      dims.push_back(d == dim ? along(index[d], down) : kb::Point(index[d]));
    dims.push_back(along(index.back(), from));
    return kb::SliceOf(buffer, std::move(dims));
  }
};

// Loads that are turned by packs, each once.
std::vector<kir::ExprRef> TurnedLoads(const kir::Block& body, const Rectangle& at) {
  std::vector<kir::ExprRef> found;
  kir::ForEachExpr(body, [&](const kir::ExprRef& node) {
    const auto* load = std::get_if<kir::Load>(&node->node);
    if (load == nullptr || load->otherwise != nullptr || !at.Turns(load->index)) return;
    if (std::none_of(found.begin(), found.end(), [&](const kir::ExprRef& other) { return kir::Same(node, other); }))
      found.push_back(node);
  });
  return found;
}

// The pack that is all the rectangle does, if there is one: of a load that is turned, or whose result is.
std::optional<kir::StmtRef> Copies(const Rectangle& at, const kir::Block& body) {
  const auto* store = body.size() == 1 ? std::get_if<kir::Store>(&body[0]->node) : nullptr;
  const auto* load = store == nullptr ? nullptr : std::get_if<kir::Load>(&store->value->node);
  if (load == nullptr || load->otherwise != nullptr) return std::nullopt;
  const bool turned = at.Turns(load->index);
  const Rectangle other = {at.inner, at.outer, at.l0, at.width, at.u0, at.runs};
  if (!(turned ? other : at).Turns(store->index) || !(turned ? at : other).Turns(load->index)) return std::nullopt;
  return kb::WithOrigin(
      kb::Pack(at.Part(store->buffer, store->index, !turned), at.Part(load->buffer, load->index, turned)),
      body[0]->origin);
}

// The rectangle's statements by way of scratch.
kir::Block ByScratch(const Rectangle& at, int64_t depth, int64_t width, const kir::Block& body) {
  const kir::ExprRef zero = kb::Int(0);
  const kir::Index inside = {kb::Ref(at.outer) - at.u0, kb::Ref(at.inner) - at.l0};
  kir::Block block, after;
  int made = 0;
  const auto alloc = [&](DType dtype) {
    const std::string name = absl::StrCat("q", made++);
    block.push_back(kb::Alloc(name, {dtype, {Extent(depth), Extent(width)}}));
    return name;
  };
  const auto filled = [&](const std::string& name) {
    return kb::SliceOf(name, {kb::Range(zero, at.runs), kb::Range(zero, at.width)});
  };
  const std::vector<kir::ExprRef> loads = TurnedLoads(body, at);
  std::vector<std::string> names;
  for (const kir::ExprRef& node : loads) {
    const auto& load = std::get<kir::Load>(node->node);
    names.push_back(alloc(node->dtype));
    block.push_back(kb::Pack(filled(names.back()), at.Part(load.buffer, load.index, true)));
  }
  kir::Block inner = kir::Rewrite(body, [&](const kir::ExprRef& node) -> kir::ExprRef {
    if (!std::holds_alternative<kir::Load>(node->node)) return nullptr;
    for (size_t n = 0; n < loads.size(); ++n) {
      if (kir::Same(node, loads[n])) return kb::At(names[n], node->dtype, inside);
    }
    return nullptr;
  });
  for (kir::StmtRef& stmt : inner) {
    const auto* store = std::get_if<kir::Store>(&stmt->node);
    if (store == nullptr || !at.Turns(store->index)) continue;
    const std::string name = alloc(store->value->dtype);
    after.push_back(kb::Pack(at.Part(store->buffer, store->index, true), filled(name)));
    stmt = kb::WithOrigin(kb::Store(name, inside, store->value), stmt->origin);
  }
  kir::Block row = {kb::Vec(at.inner, at.l0, at.l0 + at.width, std::move(inner))};
  block.push_back(kb::For(at.outer, at.u0, at.u0 + at.runs, std::move(row)));
  block.insert(block.end(), after.begin(), after.end());
  return block;
}

// Whether vectors may run along `axis` and the results be turned: every load lies in order along it, or the other way
// around, or stays the same along one of the two.
bool TurnsResults(const kir::Block& body, const std::string& axis) {
  bool turns = true;
  for (const kir::StmtRef& stmt : body) {
    const auto* store = std::get_if<kir::Store>(&stmt->node);
    turns = turns && store != nullptr && TurnedDim(store->index, kColumn, axis) >= 0;
  }
  kir::ForEachExpr(body, [&](const kir::ExprRef& node) {
    turns = turns && !std::holds_alternative<kir::Decode>(node->node);
    const auto* load = std::get_if<kir::Load>(&node->node);
    if (load == nullptr || load->index.empty() || !Names(load->index.back(), kColumn)) return;
    const bool down =
        std::any_of(load->index.begin(), load->index.end(), [&](const kir::ExprRef& at) { return Names(at, axis); });
    turns = turns && (!down || (load->otherwise == nullptr && TurnedDim(load->index, kColumn, axis) >= 0));
  });
  return turns;
}

// Of sides of much the same length, which registers fill.
int64_t EvenSide(int64_t all, int64_t most) {
  constexpr int64_t kSquare = 16;
  if (all <= most) return all;
  return CeilDiv(EvenPart(all, most), kSquare) * kSquare;
}

std::string NameOf(const std::vector<Extent>& dims, int axis) {
  return axis + 1 == static_cast<int>(dims.size()) ? kColumn : absl::StrCat("i", axis);
}

}  // namespace

std::optional<TurnedAxes> FindTurnedAxes(const RegionView& view, const std::vector<Extent>& dims,
                                         const kir::Block& body) {
  const int last = static_cast<int>(dims.size()) - 1;
  if (last < 1 || view.facts.blocks) return std::nullopt;
  const int64_t columns = view.UpperBound(dims[last]);
  // The first dimension along whose elements a load lies in memory, which runs down `c` in another.
  std::optional<int> axis;
  kir::ForEachExpr(body, [&](const kir::ExprRef& node) {
    const auto* load = std::get_if<kir::Load>(&node->node);
    for (int d = 0; load != nullptr && load->otherwise == nullptr && !axis && d < last; ++d) {
      const int64_t runs = view.UpperBound(dims[d]);
      const bool many =
          std::max(runs, columns) >= kFew ? std::min(runs, columns) >= 2 : std::min(runs, columns) >= kLeast;
      if (many && TurnedDim(load->index, NameOf(dims, d), kColumn) >= 0) axis = d;
    }
  });
  if (dims[last].is_constant() && columns >= 2 && columns < kFew) {
    const int along = axis.value_or(last - 1);
    const bool worth = (axis || columns <= kFewest) && view.UpperBound(dims[along]) >= kFew;
    if (worth && TurnsResults(body, NameOf(dims, along))) return TurnedAxes{last, along};
  }
  if (axis) return TurnedAxes{*axis, last};
  return std::nullopt;
}

void EmitTurned(const RegionView& view, kir::Kernel& kernel, const std::vector<Extent>& dims, TurnedAxes axes,
                const kir::Block& body) {
  const auto [outer, inner] = axes;
  const kir::ExprRef u0 = kb::Ref("u0"), l0 = kb::Ref("l0"), zero = kb::Int(0);
  const auto rectangle = [&](int64_t depth, int64_t width) {
    return Rectangle{NameOf(dims, outer),         NameOf(dims, inner), u0, Live(dims[outer], u0, depth), l0,
                     Live(dims[inner], l0, width)};
  };
  const int64_t runs = view.UpperBound(dims[outer]), elements = view.UpperBound(dims[inner]);
  int64_t depth = elements < kFew ? kLong : std::min(runs, kDepth), width = std::min(elements, kLong);
  if (runs >= kFew && elements >= kFew) {
    depth = EvenSide(runs, kDepth), width = EvenSide(elements, kWidth);
  }
  kir::Block block;
  if (std::optional<kir::StmtRef> copies = Copies(rectangle(depth, width), body)) {
    block = {*std::move(copies)};
  } else {
    depth = runs < kFew ? runs : kScratchDepth;
    width = runs < kFew ? kScratchElements / runs / kUnit * kUnit : kScratchWidth;
    block = ByScratch(rectangle(depth, width), depth, width, body);
  }
  int in_grid = -1;
  for (int d = static_cast<int>(dims.size()); d-- > 0;) {
    if (d == outer || d == inner) continue;
    const int first = std::min(outer, inner) > 0 ? 0 : std::max(outer, inner) > 1 ? 1 : 2;
    if (d == first)
      in_grid = d;
    else
      block = {kb::For(NameOf(dims, d), zero, kb::FromExtent(dims[d]), std::move(block))};
  }
  if (in_grid >= 0) kernel.grid.push_back({NameOf(dims, in_grid), zero, kb::FromExtent(dims[in_grid]), 1});
  kernel.grid.push_back({"u0", zero, kb::FromExtent(dims[outer]), depth});
  kernel.grid.push_back({"l0", zero, kb::FromExtent(dims[inner]), width});
  kernel.body = std::move(block);
  kernel.sequential = BoundedElements(dims, view.ranges) <= kSequentialElements;
}

}  // namespace quern::codegen
