// Graphs of floats whose products are over bytes: a quantisation map for them, from ranges that their values were seen
// to have, and pairs of QuantizeLinear and DequantizeLinear by such a map.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/quantisation.h"

namespace quern::opt {

struct QdqOptions {
  DType activations = DType::kU8;      // or i8
  bool symmetric = false;              // of activations; weights always are
  bool per_channel = true;             // weights have a scale for each output channel
  std::vector<std::string> ops = {};   // operands of these alone; none: of all products
  std::vector<std::string> keep = {};  // what has a label that begins so stays as it is
};

// Whether the node is a product of which operands may be bytes: a MatMul or Conv of f32.
bool ReadsBytes(const ir::Graph& graph, const ir::Node& node);

// Of each product of f32 (MatMul, Conv) both operands, or none: weights are i8, symmetric, by their own numbers;
// activations are bytes of their range, where `ranges` has one. Errors: kUnknownName, a range of no value; a range that
// is none (low above high, or no number).
StatusOr<ir::QuantisationMap> QuantisationMapOf(const ir::Graph& graph, const ir::ValueRanges& ranges,
                                                const QdqOptions& options = {});

using ParamBytes = std::map<std::string, std::span<const uint8_t>, std::less<>>;

// Whether the graph's quantisation map is one of its values, as ir::CheckQuantisation says, and each activation has a
// range.
Status CheckSchemes(const ir::Graph& graph);

// QuantizeLinear and DequantizeLinear between each product and those of its operands that the graph's quantisation map
// has; the graph made has no map. Weights of which `params` and Constants are all become bytes at once, others once per
// binding. Values that no product reads stay as they are. Bodies are left alone: nothing of them is known by name.
// Errors: those of CheckSchemes; weights that are no finite numbers.
StatusOr<ir::Graph> InsertQdq(const ir::Graph& graph, const ParamBytes& params = {});

// Params with these bytes, of scalar dtypes, become Constants, in bodies too; schemes stay with their values.
StatusOr<ir::Graph> EmbedParams(const ir::Graph& graph, const ParamBytes& params);

}  // namespace quern::opt
