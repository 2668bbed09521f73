// A profile as tables for people: kernels and blocks of each section, and where compiling went.
#pragma once

#include <string>

#include "profile/profile.h"

namespace quern::profile {

struct TableOptions {
  int top = 0;         // kernels in a table at most, those of most time; 0: all
  size_t columns = 0;  // characters in a line of a table at most; 0: any number
};
std::string TableText(const Profile& profile, const TableOptions& options);

}  // namespace quern::profile
