// "Did you mean": the name that one which does not exist was most likely meant to be.
//
//   Nearest("Softmaxx", {"Sigmoid", "Softmax", "Softplus"})   "Softmax"
//   Nearest("frobnicate", {"Softmax"})                        ""
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern {

// The one of `known` that the fewest edits (a letter put in, left out, changed, or swapped with the next) make of
// `name`, letters counting as equal to their capitals; the first of several. "" when that takes more than a third of
// the letters, or there is no such name.
std::string Nearest(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace quern
