// A profile as one page that needs nothing else: no network, no other file. docs/profiling.md shows it.
#pragma once

#include <string>

#include "profile/profile.h"

namespace quern::profile {

// The page, with JsonText(profile) inside. Names in it come from files: none can end the data or start a script.
std::string HtmlText(const Profile& profile);

}  // namespace quern::profile
