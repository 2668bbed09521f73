// A profile as tables for people: kernels and blocks of each section, and where compiling went.
#pragma once

#include <string>

#include "profile/profile.h"

namespace quern::profile {

// `top`: kernels in a table at most, those of most time; 0: all.
std::string TableText(const Profile& profile, int top);

}  // namespace quern::profile
