// What nodes are made of, each kind said once. Walks, rewrites, equality, canonical names and the sharing of values
// follow from it; a kind that is missing here does not compile, nor does a field that its kind leaves out.
//
//   Parts(loop, visit);   // visit.Plain(loop.kind, ..); visit.Expr(loop.low); visit.Expr(loop.high);
//                         // visit.Scope([&] { visit.Declare(loop.index, Role::kIndex); visit.Body(loop.body); });
//
// Parts come in the order in which they are computed and names come into being. A const node gives const parts. Members
// of a visitor that look at nothing are those of NoParts.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <variant>

#include "kir/kir.h"

namespace quern::kir {

// Functions of several kinds as one, for std::visit.
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

// What a name is declared to be: a loop's index, a let, var or shuffle, an alloc, a tile.
enum class Role : uint8_t { kIndex, kScalar, kBuffer, kTile };

struct NoParts {
  void Expr(const ExprRef&) {}               // null where an optional one is absent
  void Body(const Block&) {}                 // a scope of its own
  void Type(const BufferType&) {}            // of what is declared
  void Use(const std::string&) {}            // a name that is read, or stands for the memory that a slice is cut from
  void Write(const std::string&) {}          // a buffer, tile or var that is changed
  void Declare(const std::string&, Role) {}  // visible from here to the end of the scope
  template <typename Inner>
  void Scope(const Inner& inner) {
    inner();
  }
  template <typename... Value>
  void Plain(const Value&...) {}  // what is neither: operators, kinds, steps, literals
};

template <typename T, typename Node>
concept Is = std::same_as<std::remove_const_t<T>, Node>;

// Expressions, without their dtype.

inline void ExprParts(auto& exprs, auto& visit) {
  visit.Plain(exprs.size());
  for (auto& expr : exprs) visit.Expr(expr);
}

template <Is<Const> Node>
void Parts(Node& node, auto& visit) {
  auto& [real, integer] = node;
  visit.Plain(real, integer);
}
template <Is<NameRef> Node>
void Parts(Node& node, auto& visit) {
  auto& [name] = node;
  visit.Use(name);
}
template <Is<Load> Node>
void Parts(Node& node, auto& visit) {
  auto& [buffer, index, otherwise] = node;
  visit.Use(buffer), ExprParts(index, visit), visit.Expr(otherwise);
}
template <Is<Apply> Node>
void Parts(Node& node, auto& visit) {
  auto& [op, args, contract] = node;
  visit.Plain(op, contract), ExprParts(args, visit);
}
template <Is<Cast> Node>
void Parts(Node& node, auto& visit) {
  auto& [value] = node;
  visit.Expr(value);
}
template <Is<Bits> Node>
void Parts(Node& node, auto& visit) {
  auto& [value] = node;
  visit.Expr(value);
}
template <Is<Reduce> Node>
void Parts(Node& node, auto& visit) {
  auto& [op, vec, accs, index, low, high, lets, body] = node;
  visit.Plain(op, vec, accs, lets.size()), visit.Expr(low), visit.Expr(high);
  visit.Scope([&] {
    visit.Declare(index, Role::kIndex);
    for (auto& [name, value] : lets) visit.Expr(value), visit.Declare(name, Role::kScalar);
    visit.Expr(body);
  });
}
template <Is<Decode> Node>
void Parts(Node& node, auto& visit) {
  auto& [buffer, index] = node;
  visit.Use(buffer), ExprParts(index, visit);
}

// Statements, without their origin.

inline void DimParts(auto& dims, auto& visit) {
  visit.Plain(dims.size());
  for (auto& [start, extent] : dims) visit.Expr(start), visit.Expr(extent);
}
// Of a slice whose elements are read, and of one whose elements are changed.
inline void SourceParts(auto& slice, auto& visit) {
  auto& [buffer, dims] = slice;
  visit.Use(buffer), DimParts(dims, visit);
}
inline void TargetParts(auto& slice, auto& visit) {
  auto& [buffer, dims] = slice;
  visit.Write(buffer), DimParts(dims, visit);
}

template <Is<Loop> Node>
void Parts(Node& node, auto& visit) {
  auto& [kind, index, low, high, step, tail, body, level] = node;
  visit.Plain(kind, step, tail, level), visit.Expr(low), visit.Expr(high);
  visit.Scope([&] { visit.Declare(index, Role::kIndex), visit.Body(body); });
}
template <Is<If> Node>
void Parts(Node& node, auto& visit) {
  auto& [condition, then_body, else_body] = node;
  visit.Expr(condition), visit.Body(then_body), visit.Body(else_body);
}
template <Is<Let> Node>
void Parts(Node& node, auto& visit) {
  auto& [name, value] = node;
  visit.Expr(value), visit.Declare(name, Role::kScalar);
}
template <Is<Var> Node>
void Parts(Node& node, auto& visit) {
  auto& [name, value] = node;
  visit.Expr(value), visit.Declare(name, Role::kScalar);
}
template <Is<Assign> Node>
void Parts(Node& node, auto& visit) {
  auto& [name, value] = node;
  visit.Write(name), visit.Expr(value);
}
template <Is<Store> Node>
void Parts(Node& node, auto& visit) {
  auto& [buffer, index, value] = node;
  visit.Write(buffer), ExprParts(index, visit), visit.Expr(value);
}
template <Is<Alloc> Node>
void Parts(Node& node, auto& visit) {
  auto& [name, type, space] = node;
  visit.Plain(space), visit.Type(type), visit.Declare(name, Role::kBuffer);
}
template <Is<Tile> Node>
void Parts(Node& node, auto& visit) {
  auto& [name, type, init] = node;
  visit.Type(type), visit.Expr(init), visit.Declare(name, Role::kTile);
}
template <Is<TileCall> Node>
void Parts(Node& node, auto& visit) {
  auto& [op, tiles, operands, attributes] = node;
  visit.Plain(op, tiles.size(), operands.size(), attributes.size());
  for (auto& tile : tiles) visit.Write(tile);
  for (auto& slice : operands) SourceParts(slice, visit);
  for (auto& [name, value] : attributes) visit.Plain(name), visit.Expr(value);
}
template <Is<Map> Node>
void Parts(Node& node, auto& visit) {
  auto& [indices, tiles, extents, body] = node;
  visit.Plain(indices.size(), tiles.size());
  for (auto& tile : tiles) visit.Use(tile);
  ExprParts(extents, visit);
  visit.Scope([&] {
    for (auto& index : indices) visit.Declare(index, Role::kIndex);
    visit.Body(body);
  });
}
template <Is<Pack> Node>
void Parts(Node& node, auto& visit) {
  auto& [dst, src] = node;
  TargetParts(dst, visit), SourceParts(src, visit);
}
template <Is<Prefetch> Node>
void Parts(Node& node, auto& visit) {
  auto& [slice] = node;
  SourceParts(slice, visit);
}
template <Is<Barrier> Node>
void Parts(Node&, auto&) {}
template <Is<Copy> Node>
void Parts(Node& node, auto& visit) {
  auto& [dst, src] = node;
  TargetParts(dst, visit), SourceParts(src, visit);
}
template <Is<Pipeline> Node>
void Parts(Node& node, auto& visit) {
  auto& [index, low, high, step, stages, fetch, use] = node;
  visit.Plain(step, stages), visit.Expr(low), visit.Expr(high);
  visit.Scope([&] { visit.Declare(index, Role::kIndex), visit.Body(fetch), visit.Body(use); });
}
template <Is<Shuffle> Node>
void Parts(Node& node, auto& visit) {
  auto& [name, kind, value, lane] = node;
  visit.Plain(kind), visit.Expr(value), visit.Expr(lane), visit.Declare(name, Role::kScalar);
}

// Of a node of any kind.
template <typename Node>
  requires Is<Node, Expr> || Is<Node, Stmt>
void Parts(Node& node, auto& visit) {
  std::visit([&](auto& kind) { Parts(kind, visit); }, node.node);
}

}  // namespace quern::kir
