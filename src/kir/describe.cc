#include "kir/describe.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quern::kir {
namespace {

std::string Exprs(const std::vector<ExprRef>& exprs) {
  return absl::StrJoin(exprs, ", ", [](std::string* out, const ExprRef& expr) { out->append(Print(expr)); });
}

std::string Element(const std::string& buffer, const Index& index) {
  return absl::StrCat(buffer, "[", Exprs(index), "]");
}

std::string Range(std::string_view kind, const std::string& index, const ExprRef& low, const ExprRef& high,
                  int64_t step) {
  std::string text =
      absl::StrCat(absl::string_view(kind.data(), kind.size()), " ", index, " in ", Print(low), "..", Print(high));
  if (step != 1) absl::StrAppend(&text, " by ", step);
  return text;
}

struct Describer {
  std::string operator()(const Loop& loop) const {
    const char* kind = loop.kind == LoopKind::kFor      ? "for"
                       : loop.kind == LoopKind::kUnroll ? "unroll"
                       : loop.kind == LoopKind::kVec    ? "vec"
                                                        : "thread";
    return Range(kind, loop.index, loop.low, loop.high, loop.step);
  }
  std::string operator()(const If& branch) const { return absl::StrCat("if ", Print(branch.condition)); }
  std::string operator()(const Let& let) const { return absl::StrCat("let ", let.name, " = ", Print(let.value)); }
  std::string operator()(const Var& var) const {
    const std::string_view dtype = Name(var.value->dtype);
    return absl::StrCat("var ", var.name, " : ", absl::string_view(dtype.data(), dtype.size()), " = ",
                        Print(var.value));
  }
  std::string operator()(const Assign& assign) const { return absl::StrCat(assign.name, " := ", Print(assign.value)); }
  std::string operator()(const Store& store) const {
    return absl::StrCat(Element(store.buffer, store.index), " = ", Print(store.value));
  }
  std::string operator()(const Alloc& alloc) const {
    return absl::StrCat("alloc ", alloc.name, " : ", Print(alloc.type));
  }
  std::string operator()(const Tile& tile) const {
    return absl::StrCat("tile ", tile.name, " : ", Print(tile.type), " = ", Print(tile.init));
  }
  std::string operator()(const TileCall& call) const {
    std::string text = absl::StrCat(call.op, " ", absl::StrJoin(call.tiles, ", "), " += ");
    absl::StrAppend(&text, absl::StrJoin(call.operands, ", ",
                                         [](std::string* out, const Slice& slice) { out->append(Describe(slice)); }));
    for (const auto& [name, value] : call.attributes) absl::StrAppend(&text, " ", name, " ", Print(value));
    return text;
  }
  std::string operator()(const Map& map) const {
    return absl::StrCat("map (", absl::StrJoin(map.indices, ", "), ") in ", absl::StrJoin(map.tiles, ", "), " [",
                        Exprs(map.extents), "]");
  }
  std::string operator()(const Pack& pack) const {
    return absl::StrCat("pack ", Describe(pack.dst), " = ", Describe(pack.src));
  }
  std::string operator()(const Prefetch& prefetch) const { return absl::StrCat("prefetch ", Describe(prefetch.slice)); }
  std::string operator()(const Barrier&) const { return "barrier"; }
  std::string operator()(const Copy& copy) const {
    return absl::StrCat("copy ", Describe(copy.dst), " = ", Describe(copy.src));
  }
  std::string operator()(const Pipeline& pipeline) const {
    return Range("pipeline", pipeline.index, pipeline.low, pipeline.high, pipeline.step);
  }
  std::string operator()(const Shuffle& shuffle) const {
    return absl::StrCat("let ", shuffle.name, " = shuffle of ", Print(shuffle.value));
  }
};

}  // namespace

std::string Describe(const Stmt& stmt) { return std::visit(Describer{}, stmt.node); }

std::string Describe(const Slice& slice) {
  bool whole = true;
  for (const SliceDim& dim : slice.dims) whole = whole && dim.start == nullptr;
  if (whole) return slice.buffer;
  const std::string dims = absl::StrJoin(slice.dims, ", ", [](std::string* out, const SliceDim& dim) {
    if (dim.start == nullptr)
      out->append(":");
    else if (dim.extent == nullptr)
      out->append(Print(dim.start));
    else
      absl::StrAppend(out, Print(dim.start), " : +", Print(dim.extent));
  });
  return absl::StrCat(slice.buffer, "[", dims, "]");
}

std::string Describe(const GridDim& dim) { return Range("grid", dim.index, dim.low, dim.high, dim.step); }

}  // namespace quern::kir
