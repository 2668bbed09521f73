// Whether the steps of a variant are ones: part of Verify (program.h). Internal to it.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "device/program.h"

namespace quern::device {

// Checks that the bodies are a tree, that launches run where they stand, and that nothing reads a loop's buffer before
// the loop's step has said where it lies. `symbols`: what sizes may name. Errors start with `where`.
Status VerifySteps(const std::string& where, const Variant& variant, const std::set<std::string, std::less<>>& symbols);

}  // namespace quern::device
