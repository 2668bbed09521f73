// Who makes the code: what tells objects of one Quern and one LLVM from those of another.
#pragma once

#include <string>

namespace quern::jit {

// Hash of Quern's sources between KIR and object files, made by the build: equal sources, equal text.
std::string SourcesIdentity();

// "19.1.7", followed by the build id of the library that runs, where it has one: distributions patch a version without
// changing its number.
std::string LlvmIdentity();

}  // namespace quern::jit
