// Which op of a graph is the first to make a NaN or an infinity, in the double interpreter.
//
// What counts as made: an element that is NaN where no operand has a NaN, or infinite where no operand is infinite. For
// elementwise ops that is the elements of the operands that meet in it; for others, all of an operand. So an infinity
// that comes with an operand (a mask, a constant) or with an attribute (what a Pad fills in) is taken for intended, and
// so is what becomes of it: exp(-inf) = 0, max(-inf, x) = x. A NaN is never intended: inf - inf and 0 * inf are
// reported.
#pragma once

#include <optional>

#include "check/evaluate.h"

namespace quern::check {

struct MadeSpecial {
  ir::Value value;
  int64_t element = 0;
};

// Among the nodes that `value` depends on, itself included, in order. `values`: of all nodes.
std::optional<MadeSpecial> FirstMade(const ir::Graph& graph, const Evaluation& values, ir::Value value);
// The first op (no leaf) in order that reads a leaf called `name`: its result 0. Null: none does.
std::optional<ir::Value> FirstReader(const ir::Graph& graph, std::string_view name);

}  // namespace quern::check
