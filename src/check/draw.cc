#include "check/draw.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "check/value.h"
#include "ir/op.h"

namespace quern::check {
namespace {

constexpr double kMostOfBlock = 4;

// Blocks of random bytes, of which those are kept whose elements are small: whatever in a format is a scale.
StatusOr<std::vector<uint8_t>> DrawBlocks(DType dtype, int64_t blocks, std::mt19937_64& random) {
  const DTypeRow& row = Row(dtype);
  const ir::TensorType type = {dtype, {Extent(row.block_elements)}};
  const auto small = [](double value) { return std::fabs(value) <= kMostOfBlock; };
  std::vector<uint8_t> bytes, block(row.block_bytes);
  for (int64_t b = 0; b < blocks; ++b) {
    while (true) {
      for (uint8_t& byte : block) byte = static_cast<uint8_t>(random());
      QUERN_ASSIGN(const ir::RefTensor decoded, Decode(type, true, {}, block));
      if (std::all_of(decoded.data.begin(), decoded.data.end(), small)) break;
    }
    bytes.insert(bytes.end(), block.begin(), block.end());
  }
  return bytes;
}

// `left`: how many elements all leaves may have yet.
StatusOr<std::vector<uint8_t>> Draw(const ir::Node& leaf, const Binding& sizes, std::mt19937_64& random,
                                    int64_t& left) {
  const ir::TensorType& type = leaf.results[0];
  ir::RefTensor tensor{type.dtype, {}, {}};
  QUERN_ASSIGN(tensor.dims, SizesOf(type, sizes));
  left -= tensor.elements();
  if (left < 0)
    return absl::InvalidArgumentError(
        absl::StrFormat("the graph's inputs have more than the %d elements that are drawn", kMostElements));
  if (IsBlock(type.dtype) && ir::IsParam(leaf))
    return DrawBlocks(type.dtype, tensor.elements() / Row(type.dtype).block_elements, random);
  if (IsBlock(type.dtype)) {
    return absl::UnimplementedError(absl::StrCat("no values can be drawn for the input ",
                                                 leaf.attributes.String("name"), ": it is ", type.ToString()));
  }
  tensor.Allocate();
  for (double& value : tensor.data) {
    const uint64_t bits = random();
    value = type.dtype == DType::kBool ? static_cast<double>(bits % 2) : static_cast<double>(bits >> 40) * 0x1p-23 - 1;
  }
  for (int64_t& value : tensor.integers) value = static_cast<int64_t>(random() % 8);
  return Encode(tensor);
}

}  // namespace

StatusOr<Bytes> DrawBytes(const ir::Graph& graph, const Binding& sizes, uint64_t seed, bool params) {
  std::mt19937_64 random(seed);
  Bytes all;
  int64_t left = kMostElements;
  std::vector<const ir::Node*> leaves;
  if (params) leaves = ir::AllParams(graph);
  for (const int input : graph.Inputs()) leaves.push_back(&graph.node(input));
  for (const ir::Node* leaf : leaves) {
    QUERN_ASSIGN(all[leaf->attributes.String("name")], Draw(*leaf, sizes, random, left));
  }
  return all;
}

}  // namespace quern::check
