// LineDef: what an op does along lines of its operand 0, for the ops of the family "lines". A line is what varies along
// some axes while the others stand still: a row, a column, all elements of a channel.
//
//   fold   results of one element a line, from a state that starts, takes in element by element, and is joined with
//          that of another part of the line:  Reduce, ArgMax
//   scan   results of a line's own extents; each element joins those before it:  CumSum, CumMax
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "kir/kir.h"

namespace quern::ir {

struct LineDef {
  // By dimension of operand 0: whether lines run along it.
  std::vector<bool> (*axes)(const Node& node, int rank);

  // A fold or scan of one value that KIR reduces by itself: the operator. Its state has the dtype that `x` is widened
  // to (f32 for halves).
  kir::ReduceOp (*reduce)(const Node& node) = nullptr;
  // What the reduced value of a line of `count` elements becomes; null: it is the result.
  kir::ExprRef (*finish)(const Node& node, const kir::ExprRef& value, const Extent& count) = nullptr;

  // A scan: the result is a whole line. Exclusive: an element does not join its own; reverse: it joins those after it.
  // Its state is the reduced value, or that of a fold of several values (below), of which `results` are then those of
  // each element.
  struct Scan {
    bool exclusive = false, reverse = false;
  };
  Scan (*scan)(const Node& node) = nullptr;

  // A fold over states of several values. `start`: what an empty part has. `take`: the state with the element x at
  // position `at` (i64) of the line, which lies behind those that the state has. `join`: of two parts, the first of
  // which need not lie before the second. `results`: one element a result of the node.
  using State = std::vector<kir::ExprRef>;
  State (*start)(const Node& node, DType dtype) = nullptr;
  State (*take)(const Node& node, const State& state, const kir::ExprRef& x, const kir::ExprRef& at) = nullptr;
  State (*join)(const Node& node, const State& a, const State& b) = nullptr;
  State (*results)(const Node& node, const State& state) = nullptr;
};

}  // namespace quern::ir
