#include "support/random_graph.h"

#include <set>

#include "kir/random_buffer.h"
#include "support/random_generator.h"

namespace quern::testing {

RandomGraph MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).Make();
}

namespace {

// Inputs and Params, those of bodies behind the graph's own.
std::vector<const ir::Node*> LeavesOf(const ir::Graph& graph) {
  std::vector<const ir::Node*> leaves;
  std::set<std::string> names;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op->kind != OpKind::kLeaf || node.attributes.Find("name") == nullptr) continue;
    leaves.push_back(&node);
    if (std::string_view(node.op->name) == "Param") names.insert(node.attributes.String("name"));
  }
  for (const ir::Node* param : ir::AllParams(graph)) {
    if (names.insert(param->attributes.String("name")).second) leaves.push_back(param);
  }
  return leaves;
}

}  // namespace

std::map<std::string, std::vector<uint8_t>, std::less<>> RandomBytes(const ir::Graph& graph, const Binding& binding,
                                                                     uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> real(-2, 2);
  std::map<std::string, std::vector<uint8_t>, std::less<>> all;
  for (const ir::Node* node : LeavesOf(graph)) {
    const TensorType& type = node->results[0];
    std::vector<uint8_t>& bytes = all[node->attributes.String("name")];
    if (IsBlock(type.dtype)) {
      bytes = *kir::RandomBuffer({type.dtype, type.dims, kir::Layout::kBlocks}, binding, random);
      continue;
    }
    const int64_t elements = *type.elements().Evaluate(binding);
    for (int64_t i = 0; i < elements; ++i) {
      if (IsComplex(type.dtype)) {
        for (int part = 0; part < 2; ++part) {
          const std::vector<uint8_t> one = ScalarBytesOf(DType::kF32, real(random));
          bytes.insert(bytes.end(), one.begin(), one.end());
        }
        continue;
      }
      const std::vector<uint8_t> one =
          type.dtype == DType::kBool ? ScalarBytesOf(type.dtype, static_cast<int64_t>(random() % 2))
          : IsInteger(type.dtype)    ? ScalarBytesOf(type.dtype, RandomInteger(random, type.dtype))
                                     : ScalarBytesOf(type.dtype, real(random));
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
  }
  return all;
}

ir::Feeds RandomFeeds(const ir::Graph& graph, const Binding& binding, uint64_t seed) {
  const auto all = RandomBytes(graph, binding, seed);
  ir::Feeds feeds;
  for (const ir::Node* node : LeavesOf(graph)) {
    const std::string& name = node->attributes.String("name");
    std::vector<int64_t> dims;
    for (const Extent& dim : node->results[0].dims) dims.push_back(*dim.Evaluate(binding));
    feeds[name] = *ir::RefTensorFromBytes(node->results[0].dtype, std::move(dims), all.find(name)->second);
  }
  return feeds;
}

}  // namespace quern::testing
