// Two profiles of the same model or graph beside each other: what became slower or faster.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace quern::profile {

// `before` and `after` are JSON of json.h. Phases are held together by name and guard, kernels by family and label, so
// that both may be of other machines, levels or versions. Lines have at most `columns` characters; 0: any number.
// Errors: InvalidArgument, where a text is no profile or no phase is in both.
StatusOr<std::string> DiffText(std::string_view before, std::string_view after, size_t columns);

}  // namespace quern::profile
