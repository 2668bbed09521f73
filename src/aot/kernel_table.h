// The kernels of one level, identical ones once, each with a symbol that says what it computes: what perf and gdb show.
#pragma once

#include <string>
#include <vector>

#include "aot/model.h"

namespace quern::aot {

struct KernelTable {
  struct Entry {
    kir::Kernel kernel;
    std::string symbol;  // "layers.0.ffn.matmul.q4_K.SEQ2_8": where it is first used, its family, weights and sizes
    std::string label;   // of its first launch: "layers.0/ffn: Mul"
    int launches = 0;    // over all variants
    const ir::CustomDef* call = nullptr;  // the C function that it is, which the object leaves undefined; or null
  };
  std::vector<Entry> entries;
  std::vector<std::vector<int>> rows;  // by variant and kernel of its plan: index of the entry
};

// `suffix`: what tells the level's symbols from another's; may be empty.
KernelTable TabulateKernels(const Level& level, const std::string& suffix);

// The C functions that kernels of these tables are, each once, by name.
std::vector<const ir::CustomDef*> CallsOf(const std::vector<KernelTable>& tables);

}  // namespace quern::aot
