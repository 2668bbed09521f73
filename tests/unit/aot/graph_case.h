// A random graph as a model to compile ahead of time: its parameters lie in a made-up model file, or in the object.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "aot/model.h"
#include "aot/workspace.h"
#include "codegen/cpu/target.h"
#include "compiler/model.h"
#include "support/environment.h"
#include "support/random_graph.h"
#include "unit/compiler/graph_runner.h"

namespace quern::testing {

inline int64_t RoundUp(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

// 64-byte aligned memory full of a byte that is no number. A workspace for the largest of all sizes may be larger than
// the machine; pages that no run touches cost nothing then.
struct Aligned {
  explicit Aligned(int64_t bytes) : size(std::max<int64_t>(RoundUp(bytes, 64), 64)) {
    constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    data = static_cast<uint8_t*>(IsMapped() ? mmap(nullptr, size, PROT_READ | PROT_WRITE, kPrivate, -1, 0)
                                            : std::aligned_alloc(64, size));
    if (IsMapped() && data == MAP_FAILED) data = nullptr;  // more than a process can address
    if (!IsMapped()) std::memset(data, 0xA5, size);
  }
  ~Aligned() {
    if (data != nullptr) IsMapped() ? static_cast<void>(munmap(data, size)) : std::free(data);
  }
  bool IsMapped() const { return size > int64_t{1} << 30; }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  const int64_t size;
  uint8_t* data;
};

struct GraphCase {
  uint64_t seed = 0;
  RandomGraph random;
  BytesByName bytes;
  bool exact = false;
  CompiledGraph compiled;
  aot::Model model;
  aot::Workspace workspace;
  std::unique_ptr<Aligned> weights;
};

// A model file: something in front, then two thirds of the parameters.
inline void PlaceParams(GraphCase& test, std::mt19937_64& choose) {
  int64_t end = 96;
  std::vector<aot::Param>& params = test.model.params;
  for (const Port& port : test.model.signature.params) {
    const std::vector<uint8_t>& bytes = test.bytes.find(port.name)->second;
    params.push_back({port.name, bytes, -1});
    if (choose() % 3 == 0) continue;
    params.back().file_offset = end;
    end = RoundUp(end + static_cast<int64_t>(bytes.size()), lir::kParamAlign);
  }
  test.weights = std::make_unique<Aligned>(end);
  for (const aot::Param& param : params) {
    if (param.file_offset >= 0)
      std::copy(param.bytes.begin(), param.bytes.end(), test.weights->data + param.file_offset);
  }
  test.model.weights = {"made up", {test.weights->data, static_cast<size_t>(end)}, 96};
}

// The graph `test.random`, its sizes fixed or free, fused or not, planned for the level. `test` stays where it is from
// now on.
inline Status PlanCase(uint64_t seed, const cpu::Target& target, std::mt19937_64& choose, GraphCase& test) {
  test.seed = seed;
  test.bytes = RandomBytes(test.random.graph, test.random.binding, seed);
  QUERN_ASSIGN(compiler::PipelineOptions options, compiler::PipelineOptionsOf({.cpu = target.name}));
  options.exact = test.exact;
  options.fuse = choose() % 4 != 0;
  SymbolRanges guard;
  if (choose() % 3 == 0) {
    for (const auto& [symbol, value] : test.random.binding) guard[symbol] = {value, value};
  }
  QUERN_ASSIGN(test.compiled, PlanGraph(test.random.graph, guard, options));
  test.model.name = absl::StrCat("g", seed);
  test.model.signature = SignatureOf(test.compiled.prepared);
  test.model.levels = {{&target, {{guard, test.compiled.plan}}}};
  PlaceParams(test, choose);
  QUERN_ASSIGN(test.workspace, aot::PlaceWorkspace(test.model));
  return absl::OkStatus();
}

// The graph of `seed`. `counted`: some find sizes.
inline Status PlanRandomCase(uint64_t seed, const cpu::Target& target, std::mt19937_64& choose, bool counted,
                             GraphCase& test) {
  test.random = MakeRandomGraph(seed, {.nodes = static_cast<int>(6 + choose() % 14),
                                       .most_elements = seed % 8 == 0 ? 20000 : 600,
                                       .counted = counted && seed % 3 == 0});
  test.exact = choose() % 2 == 0;
  return PlanCase(seed, target, choose, test);
}

}  // namespace quern::testing
