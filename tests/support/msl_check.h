// What of a Metal text a CPU cannot show by running it. Works on tokens, not on a grammar: it is for text in the style
// of codegen/metal.
//
//   - every pointer names its address space: device, constant, thread or threadgroup
//   - a kernel has at most 31 buffers, their indices differ and are below 31
//   - the threadgroup arrays of a kernel are at most 32 KiB together
//   - no 64-bit floats: neither the word double nor a literal without suffix
//   - a kernel has one to 1024 threads; braces close
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace quern {

// The first fault, with its line.
Status CheckMsl(std::string_view text);

// The same text for clang as a compiler of C++ for OpenCL (msl_shim/spaces): every conversion between address spaces,
// every name and type. Errors carry the compiler's output.
Status CompileMslSpaces(const std::string& text);

}  // namespace quern
