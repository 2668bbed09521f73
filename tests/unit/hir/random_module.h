// Modules with seeded random feeds, run through the graph interpreter under both fusion policies.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "hir/builder.h"
#include "ir/interpret.h"

namespace quern::hir {

inline constexpr uint32_t kSeed = 20263;

inline ir::TensorType F32(std::vector<Extent> dims) { return {DType::kF32, std::move(dims)}; }

// Random values in [-1, 1] for every Input and Param, rounded to their dtype; bool and integers 0 or 1.
inline ir::Feeds RandomFeeds(const ir::Graph& graph, const Binding& binding, uint32_t seed = kSeed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  ir::Feeds feeds;
  for (const ir::Node& node : graph.nodes()) {
    const std::string_view op = node.op->name;
    if (op != "Input" && op != "Param") continue;
    ir::RefTensor tensor{node.results[0].dtype, {}, {}};
    for (const Extent& dim : node.results[0].dims) tensor.dims.push_back(*dim.Evaluate(binding));
    tensor.Allocate();
    for (int64_t& value : tensor.integers) value = uniform(random) > 0 ? 1 : 0;
    for (double& value : tensor.data) {
      value = uniform(random);
      if (tensor.dtype == DType::kBool) value = value > 0;
      value = ir::RoundTo(tensor.dtype, value);
    }
    feeds[node.attributes.String("name")] = std::move(tensor);
  }
  return feeds;
}

inline std::vector<ir::RefTensor> RunModule(const Module& module, const Binding& binding, const ir::Feeds& feeds) {
  const StatusOr<ir::Graph> graph = Lower(module);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  auto outputs = ir::Interpret(*graph, binding, feeds);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs) : std::vector<ir::RefTensor>();
}

inline double LargestDifference(const ir::RefTensor& a, const ir::RefTensor& b) {
  if (a.dims != b.dims || a.dtype != b.dtype) return INFINITY;
  if (a.integers != b.integers) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.data.size(); ++i) {
    if (std::isnan(a.data[i]) || std::isnan(b.data[i])) return INFINITY;
    largest = std::max(largest, std::abs(a.data[i] - b.data[i]));
  }
  return largest;
}

// Runs the module lowered both ways on the same random feeds and expects the same results, which must not be all zero.
inline std::vector<ir::RefTensor> ExpectPoliciesAgree(Module module, const Binding& binding = {}) {
  module.policy = FusionPolicy::kDirect;
  const StatusOr<ir::Graph> graph = Lower(module);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  const ir::Feeds feeds = RandomFeeds(*graph, binding);
  const std::vector<ir::RefTensor> direct = RunModule(module, binding, feeds);
  module.policy = FusionPolicy::kFusable;
  const std::vector<ir::RefTensor> fusable = RunModule(module, binding, feeds);
  EXPECT_EQ(direct.size(), fusable.size());
  for (size_t i = 0; i < std::min(direct.size(), fusable.size()); ++i) {
    // Not closer: an expanded norm holds its eps in f32.
    EXPECT_LT(LargestDifference(direct[i], fusable[i]), 1e-9) << "output " << i << ", seed " << kSeed;
    bool zeros = true;
    for (int64_t e = 0; e < direct[i].elements(); ++e) zeros = zeros && direct[i].Real(e) == 0;
    EXPECT_FALSE(zeros && direct[i].elements() > 0) << "output " << i;
  }
  return direct;
}

// The names of the MIR ops that the module lowers to, in order, without leaves.
inline std::vector<std::string> LoweredOps(const Module& module) {
  std::vector<std::string> names;
  const StatusOr<ir::Graph> graph = Lower(module);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return names;
  for (const ir::Node& node : graph->nodes()) {
    if (node.op->kind != ir::OpKind::kLeaf) names.push_back(node.op->name);
  }
  return names;
}

}  // namespace quern::hir
