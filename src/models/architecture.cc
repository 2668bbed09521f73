#include "models/architecture.h"

#include <algorithm>
#include <vector>

namespace quern::models {

#define QUERN_ARCHITECTURE(stem) const Architecture& Architecture_##stem();
#include "model_architectures.inc"
#undef QUERN_ARCHITECTURE

std::span<const Architecture* const> Architectures() {
  static const std::vector<const Architecture*>* const architectures = [] {
    auto* table = new std::vector<const Architecture*>{
#define QUERN_ARCHITECTURE(stem) &Architecture_##stem(),
#include "model_architectures.inc"
#undef QUERN_ARCHITECTURE
    };
    std::sort(table->begin(), table->end(), [](const Architecture* a, const Architecture* b) {
      return std::string_view(a->name) < std::string_view(b->name);
    });
    return table;
  }();
  return *architectures;
}

const Architecture* FindArchitecture(std::string_view name) {
  for (const Architecture* architecture : Architectures()) {
    if (name == architecture->name) return architecture;
  }
  return nullptr;
}

}  // namespace quern::models
