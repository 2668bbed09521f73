// Regions lowered to KIR and run by the KIR interpreter, against the graph interpreter in double.
#pragma once

#include "codegen/region.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/half.h"
#include "codegen/block_schedule.h"
#include "ir/interpret.h"
#include "kir/decode.h"
#include "kir/interpret.h"
#include "kir/layout.h"
#include "kir/quantise.h"
#include "opt/passes.h"
#include "support/block_formats.h"

namespace quern::codegen {
constexpr uint32_t kSeed = 5217;

// Bytes of a random tensor as it lies in memory, and what they mean.
struct Tensor {
  std::vector<uint8_t> bytes;
  ir::RefTensor reference;
};

template <typename T>
void Append(std::vector<uint8_t>& bytes, T value) {
  const uint8_t* data = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof(T));
}

inline Tensor RandomTensor(const ir::TensorType& type, const Binding& binding, bool parameter, std::mt19937& random) {
  std::uniform_real_distribution<float> real(-1, 1);
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (const Extent& dim : type.dims) {
    dims.push_back(*dim.Evaluate(binding));
    elements *= dims.back();
  }
  Tensor tensor;
  if (!IsBlock(type.dtype)) {
    for (int64_t i = 0; i < elements; ++i) {
      switch (type.dtype) {
        case DType::kF32: Append(tensor.bytes, real(random)); break;
        case DType::kF16: Append(tensor.bytes, FloatToHalf(real(random))); break;
        case DType::kBF16: Append(tensor.bytes, FloatToBFloat16(real(random))); break;
        case DType::kI8:
        case DType::kU8: Append(tensor.bytes, static_cast<uint8_t>(random())); break;
        case DType::kI32: Append(tensor.bytes, static_cast<int32_t>(random() % 25) - 12); break;
        default: ADD_FAILURE() << "no random tensors of " << Name(type.dtype);
      }
    }
    tensor.reference = *ir::RefTensorFromBytes(type.dtype, dims, tensor.bytes);
    return tensor;
  }
  // Activations are encoded from random values; weights are random bytes with tame scales.
  const int64_t k = dims.back(), rows = elements / k;
  std::vector<uint8_t> blocks;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<uint8_t> row(RowBytes(type.dtype, k));
    if (parameter) {
      for (uint8_t& byte : row) byte = static_cast<uint8_t>(random());
      const int block = Row(type.dtype).block_bytes;
      for (size_t b = 0; b < row.size(); b += block) {
        const float d = 0.01f + 0.01f * std::abs(real(random));
        kir::PutScales(type.dtype, &row[b], d, d);
      }
    } else {
      std::vector<float> values(k);
      for (float& v : values) v = real(random);
      kir::QuantiseToBlocks(type.dtype, values.data(), k, row.data());
    }
    blocks.insert(blocks.end(), row.begin(), row.end());
  }
  tensor.reference = *ir::RefTensorFromBytes(type.dtype, dims, blocks);
  if (parameter) {
    tensor.bytes = std::move(blocks);
    return tensor;
  }
  const int64_t stride = kir::PlanarRowOf(type.dtype, k).row_bytes;
  tensor.bytes.resize(rows * stride);
  for (int64_t r = 0; r < rows; ++r) {
    kir::BlocksToPlanar(type.dtype, &blocks[r * RowBytes(type.dtype, k)], k, &tensor.bytes[r * stride], k, 0);
  }
  return tensor;
}

inline std::vector<uint8_t> Memory(const kir::BufferType& type, const Binding& binding) {
  return std::vector<uint8_t>(*kir::LayoutBytes(type.layout, type.dtype, type.dims).Evaluate(binding));
}

inline bool HasQuantisedActivations(const ir::Graph& graph) {
  const auto has = [](const ir::Graph& in) {
    return std::any_of(in.nodes().begin(), in.nodes().end(), [](const ir::Node& node) {
      return node.op->kind == ir::OpKind::kPack ||
             (std::string_view(node.op->name) == "Input" &&
              (node.results[0].dtype == DType::kQ8_0 || node.results[0].dtype == DType::kQ8_K));
    });
  };
  return has(graph) || std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                   [&](const ir::Node& node) { return !node.bodies.empty() && has(node.body()); });
}

// Values of i32 inputs by name, where they mean something.
using Integers = std::map<std::string, std::vector<int32_t>>;

// Lowers the only Region of `text` and compares every result. `rtol` is relative to the largest reference value. Blocks
// of threads take all that has no quantised activations.
inline void CheckRegionAs(const family::TargetFacts& facts, std::string_view text, const Binding& binding, double rtol,
                          bool print, const Integers& integers = {}) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  int index = -1;
  for (size_t n = 0; n < graph->nodes().size(); ++n) {
    if (!graph->node(static_cast<int>(n)).bodies.empty()) index = static_cast<int>(n);
  }
  ASSERT_GE(index, 0);
  const ir::Node& region = graph->node(index);
  const StatusOr<family::LoweredRegion> lowered = LowerRegion(family::MemoryOf(*graph), region, graph->symbols, facts);
  if (facts.blocks && absl::IsUnimplemented(lowered.status()) && HasQuantisedActivations(*graph)) return;
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  std::mt19937 random(kSeed);
  ir::Feeds feeds;
  std::map<int, Tensor> tensors;
  for (size_t n = 0; n < graph->nodes().size(); ++n) {
    const ir::Node& node = graph->nodes()[n];
    if (node.op->kind != ir::OpKind::kLeaf) continue;
    tensors[static_cast<int>(n)] =
        RandomTensor(node.results[0], binding, std::string_view(node.op->name) == "Param", random);
    Tensor& tensor = tensors[static_cast<int>(n)];
    if (const auto given = integers.find(node.attributes.String("name")); given != integers.end()) {
      ASSERT_EQ(tensor.bytes.size(), given->second.size() * sizeof(int32_t)) << given->first;
      std::memcpy(tensor.bytes.data(), given->second.data(), tensor.bytes.size());
      tensor.reference = *ir::RefTensorFromBytes(DType::kI32, tensor.reference.dims, tensor.bytes);
    }
    feeds[node.attributes.String("name")] = tensor.reference;
  }
  const StatusOr<std::vector<ir::RefTensor>> expected = ir::Interpret(*graph, binding, feeds);
  ASSERT_TRUE(expected.ok()) << expected.status();

  std::vector<std::vector<uint8_t>> results, temporaries;
  for (const ir::TensorType& type : region.results) results.push_back(Memory(BufferTypeOf(type, false), binding));
  for (const family::KernelUse& use : lowered->kernels) {
    if (print) std::printf("%s\n", kir::Print(use.kernel).c_str());
    const StatusOr<Binding> bound = kir::BindSymbols(use.kernel, binding);
    ASSERT_TRUE(bound.ok()) << bound.status();
    std::vector<kir::BufferBytes> buffers;
    std::vector<std::vector<uint8_t>*> memory;
    for (size_t p = 0; p < use.operands.size(); ++p) {
      std::vector<uint8_t>* bytes = nullptr;
      switch (use.operands[p].kind) {
        case family::Operand::Kind::kInput: {
          ir::Value value = region.inputs[use.operands[p].index];
          while (ir::IsReshape(*graph, graph->node(value.node))) value = graph->node(value.node).inputs[0];
          bytes = &tensors[value.node].bytes;
          break;
        }
        case family::Operand::Kind::kConstant: FAIL() << "constants are of C functions"; break;
        case family::Operand::Kind::kResult: bytes = &results[use.operands[p].index]; break;
        case family::Operand::Kind::kTemporary:
          temporaries.resize(lowered->temporaries.size());
          bytes = &temporaries[use.operands[p].index];
          if (bytes->empty()) *bytes = Memory(lowered->temporaries[use.operands[p].index], *bound);
          break;
      }
      buffers.emplace_back(*bytes);
    }
    const Status run = kir::Interpret(use.kernel, binding, buffers);
    ASSERT_TRUE(run.ok()) << run << "\n" << kir::Print(use.kernel);
  }
  for (size_t o = 0; o < graph->outputs.size(); ++o) {
    const ir::RefTensor& want = (*expected)[o];
    std::vector<uint8_t> bytes = results[graph->outputs[o].result];
    for (const ir::Donation& donation : graph->donations) {
      if (donation.output != static_cast<int>(o)) continue;
      for (auto& [n, tensor] : tensors) {
        if (graph->node(n).attributes.String("name") == donation.input) bytes = tensor.bytes;
      }
    }
    ir::RefTensor got;
    if (IsBlock(want.dtype)) {
      got.dims = want.dims;
      const int64_t k = want.dims.back(), stride = kir::PlanarRowOf(want.dtype, k).row_bytes;
      for (int64_t i = 0; i < want.elements(); ++i)
        got.data.push_back(kir::DecodePlanar(want.dtype, &bytes[i / k * stride], k, i % k));
    } else {
      got = *ir::RefTensorFromBytes(want.dtype, want.dims, bytes);
    }
    EXPECT_EQ(got.integers, want.integers) << "output " << o << ", seed " << kSeed;
    double largest = 1e-30;
    for (const double value : want.data) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < want.data.size(); ++i) {
      ASSERT_NEAR(got.data[i], want.data[i], rtol * largest)
          << "output " << o << " element " << i << ", seed " << kSeed;
    }
  }
}

enum Forms : unsigned { kCpu = 1, kBlocks = 2, kHalves = 4, kAll = 7 };

// On CPUs, on blocks of threads, and on those that multiply halves.
inline void CheckRegion(std::string_view text, const Binding& binding, double rtol = 2e-5, unsigned forms = kAll,
                        bool print = false, const Integers& integers = {}) {
  family::TargetFacts facts;
  if (forms & kCpu) {
    SCOPED_TRACE("as lowered for CPUs");
    CheckRegionAs(facts, text, binding, rtol, print, integers);
  }
  facts.blocks.emplace();
  facts.blocks->half_products = false;
  if (forms & kBlocks) {
    SCOPED_TRACE("for blocks of threads");
    CheckRegionAs(facts, text, binding, rtol, print, integers);
  }
  facts.blocks->half_products = true;
  if (forms & kHalves) {
    SCOPED_TRACE("for blocks of threads that multiply halves");
    CheckRegionAs(facts, text, binding, std::max(rtol, 2e-3), print, integers);
  }
}

// The one region that the plain ops of `text` fuse into, checked in the same way; composites are expanded.
inline void CheckFused(std::string_view text, const Binding& binding, double rtol = 2e-5, unsigned forms = kAll,
                       const Integers& integers = {}) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<ir::Graph> expanded = opt::ExpandComposites(*graph);
  ASSERT_TRUE(expanded.ok()) << expanded.status();
  const StatusOr<ir::Graph> fused = opt::FuseRegions(*expanded, {.families = Families()});
  ASSERT_TRUE(fused.ok()) << fused.status();
  int regions = 0;
  for (const ir::Node& node : fused->nodes()) regions += !node.bodies.empty();
  ASSERT_EQ(regions, 1) << ir::Print(*fused);
  CheckRegion(ir::Print(*fused), binding, rtol, forms, /*print=*/false, integers);
}

}  // namespace quern::codegen
