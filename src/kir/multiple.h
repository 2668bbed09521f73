// Powers of two that divide indices and extents: where rows and runs of neighbours are aligned.
//
//   MultipleOf(16 k + 32, [](const std::string& name) { return int64_t{4}; })   // k a multiple of 4: 32
#pragma once

#include <functional>

#include "kir/kir.h"

namespace quern::kir {

// No larger one is looked for; 0 is a multiple of it.
inline constexpr int64_t kMostMultiple = 1 << 20;

int64_t MultipleOf(int64_t value);
int64_t MultipleOf(const Extent& extent);
// `of_name` gives what divides a name.
int64_t MultipleOf(const ExprRef& expr, const std::function<int64_t(const std::string& name)>& of_name);

}  // namespace quern::kir
