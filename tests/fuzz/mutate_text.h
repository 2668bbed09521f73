// Mutations of graphs in text form for libFuzzer: of the graph where the bytes are one, so that most of what is tried
// verifies and goes on; now and then, and where they are none, of the bytes. Included by one source of a program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "ir/graph.h"
#include "support/mutate_graph.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  constexpr int kMostSteps = 3, kBytes = 16;  // of so many mutations one is of bytes
  std::mt19937_64 random(seed);
  if (random() % kBytes == 0) return LLVMFuzzerMutate(data, size, max_size);
  quern::StatusOr<quern::ir::Graph> graph = quern::ir::Parse({reinterpret_cast<const char*>(data), size});
  if (!graph.ok()) return LLVMFuzzerMutate(data, size, max_size);
  const uint64_t steps = 1 + random() % kMostSteps;
  for (uint64_t step = 0; step < steps; ++step) *graph = quern::testing::MutateGraph(*graph, random());
  const std::string text = quern::ir::Print(*graph);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
