// What ops make of elements that are sizes divided by numbers: the arithmetic behind known.h.
#pragma once

#include <optional>
#include <vector>

#include "ir/interpret.h"
#include "onnx/scope.h"

namespace quern::onnx {

using Ratios = std::vector<Ratio>;

inline constexpr int64_t kMostRatios = 1024;  // elements of a tensor that are followed as extents

// How many there are; nothing where that is no number, or more than `most`.
std::optional<int64_t> ElementsOf(const ir::TensorType& type, int64_t most);
// The elements of a tensor that is known; nothing where they are no such numbers.
std::optional<Ratios> FromTensor(const ir::RefTensor& tensor);

// A node with what is known of its operands.
struct Step {
  const ir::Graph& graph;
  const ir::Node& node;
  const ir::TensorType& type;  // of the result
  std::vector<Ratios> x;

  const SymbolRanges& ranges() const { return graph.symbols; }
  bool floats() const { return IsFloat(graph.type(node.inputs[0]).dtype); }
  bool AtLeast(const Ratio& a, const Ratio& b) const {
    return (a.extent * Extent(b.divisor)).ProvablyAtLeast(b.extent * Extent(a.divisor), ranges());
  }
};

// The elements of the result; nothing where they are no such numbers, or the op is none that is followed.
std::optional<Ratios> StepRatios(const Step& step);

}  // namespace quern::onnx
