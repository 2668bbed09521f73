// A profile as JSON: one object, the source of every other report. docs/profiling.md has its schema; kSchemaVersion
// goes up when a field changes its meaning or goes away.
#pragma once

#include <string>

#include "profile/profile.h"

namespace quern::profile {

inline constexpr int kSchemaVersion = 1;

std::string JsonText(const Profile& profile);

}  // namespace quern::profile
