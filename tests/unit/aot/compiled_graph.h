// A graph that was compiled ahead of time, in a library of this process, and its run.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "aot/support/support.h"
#include "unit/aot/graph_case.h"

namespace quern::testing {

// All chunks, one at a time and last first: any order is right.
inline void RunBackwards(void*, const quern_dispatch* dispatches, int64_t count, void* const* scratch) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t chunk = dispatches[i].chunks; chunk-- > 0;)
      dispatches[i].kernel(dispatches[i].args, scratch[chunk % 2], chunk, chunk + 1);
  }
}

using InitFunction = int32_t(void**, void*, size_t, const void*, size_t, const quern_runner*);

// One parameter for each symbol of the graph: the value of one that a step is given, the address of one that it finds.
template <size_t... I>
int32_t CallWith(void* step, void* self, const void* const* inputs, void* const* outputs,
                 const std::vector<int64_t>& values, std::index_sequence<I...>) {
  if constexpr (sizeof...(I) < 8) {
    if (values.size() > sizeof...(I))
      return CallWith(step, self, inputs, outputs, values, std::make_index_sequence<sizeof...(I) + 1>());
  }
  using Step = int32_t (*)(void*, const void* const*, void* const*, std::decay_t<decltype(values[I])>...);
  return reinterpret_cast<Step>(step)(self, inputs, outputs, values[I]...);
}

inline int32_t CallStep(void* step, void* self, const void* const* inputs, void* const* outputs,
                        const std::vector<int64_t>& values) {
  return CallWith(step, self, inputs, outputs, values, std::make_index_sequence<0>());
}

// What the compiled graph makes of the case: outputs and carried state in the graph's order.
inline StatusOr<std::vector<std::vector<uint8_t>>> RunCompiled(const GraphCase& test, void* library,
                                                               const quern_runner* runner) {
  const auto find = [&](const char* word) { return dlsym(library, absl::StrCat(test.model.name, word).c_str()); };
  auto* const bytes_of = reinterpret_cast<int64_t (*)(int64_t)>(find("_workspace_bytes"));
  auto* const init = reinterpret_cast<InitFunction*>(find("_init"));
  void* const step = find("_step");
  if (bytes_of == nullptr || init == nullptr || step == nullptr) return absl::InternalError("a function is missing");
  Aligned memory(bytes_of(runner == nullptr ? 1 : runner->workers));
  if (memory.data == nullptr) return absl::ResourceExhaustedError("no address space for the largest sizes");
  void* self = nullptr;
  const int32_t made =
      init(&self, memory.data, memory.size, test.weights->data, test.model.weights.bytes.size(), runner);
  if (made != QUERN_OK) return absl::InternalError(absl::StrCat("init gives ", made));
  for (const auto& [name, offset] : test.workspace.states) {
    const std::vector<uint8_t>& from = test.bytes.find(name)->second;
    std::copy(from.begin(), from.end(), memory.data + offset);
  }
  std::vector<const void*> inputs;
  uint8_t nothing = 0;  // what is empty has an address, too
  for (const Port& port : test.model.signature.inputs) {
    const std::vector<uint8_t>& bytes = test.bytes.find(port.name)->second;
    inputs.push_back(bytes.empty() ? &nothing : bytes.data());
  }
  Binding sizes = test.random.binding;
  QUERN_ASSIGN(std::vector<std::vector<uint8_t>> results, RoomForOutputs(test.compiled.prepared, sizes));
  std::vector<void*> outputs;
  for (const Port& port : test.model.signature.outputs)
    outputs.push_back(results[port.output].empty() ? &nothing : results[port.output].data());
  std::vector<int64_t> values;
  for (const auto& [symbol, range] : test.model.signature.symbols) values.push_back(sizes.at(symbol));
  for (const auto& [symbol, most] : test.model.signature.counted)
    values.push_back(reinterpret_cast<int64_t>(&(sizes[symbol] = -1)));
  const int32_t ran = CallStep(step, self, inputs.data(), outputs.data(), values);
  if (ran != QUERN_OK) return absl::InternalError(absl::StrCat("step gives ", ran));
  for (const ir::Donation& donation : test.compiled.prepared.donations) {
    std::copy_n(memory.data + test.workspace.states.at(donation.input), results[donation.output].size(),
                results[donation.output].begin());
  }
  QUERN_RETURN_IF_ERROR(CutToSizes(test.compiled.prepared, sizes, results));
  return results;
}

}  // namespace quern::testing
