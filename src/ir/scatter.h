// ScatterDef: which elements of a tensor an op writes whose places are data, for the ops of the family "update" that
// have an operand of indices: x, indices, update. Elements of the update that have indices of their own follow each
// other in row-major order, whatever runs beside them; what the others index (whole rows, say) is independent.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "kir/kir.h"

namespace quern::ir {

struct RefContext;

struct ScatterPlaces {
  // Dimensions of the update that are walked in order; and the others, each with the dimension of x that it is.
  std::vector<int> walked;
  std::vector<std::pair<int, int>> free;
  // Dimensions of x that indices name, in the order of the last dimension of `indices`, which an op of one such
  // dimension may lack: then there is one index an element of the update.
  std::vector<int> named;
  bool by_element = false;
};

struct ScatterDef {
  // Of operands of these ranks.
  ScatterPlaces (*places)(const Node& node, int x, int indices, int update);
};

// How an element that is written joins the one that lies there; nothing where it takes its place.
std::optional<kir::ReduceOp> ScatterReduction(const Node& node);

// Whether elements may be rounded on the way: in sums and products of floats.
bool ScatterRounds(const Node& node);

// What both ops have in common. An index of x that is negative counts from the end, and what lies outside is dropped.
Status ReferenceScatter(RefContext& context);
// Of sums and products that of their terms.
Status MagnitudeOfScatter(RefContext& context);
// Halves are joined in f32, where there is anything to round: x and the update are widened.
bool ScatterIsWidened(const Node& node);
StatusOr<std::vector<Value>> WidenedScatter(Graph& graph, const Node& node, std::span<const Value> inputs, int origin);

}  // namespace quern::ir
