// .safetensors files: a JSON header and the bytes of named tensors. The file is not trusted.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "import/tensor_file.h"

namespace quern {

// Errors: InvalidArgument, with the tensor where there is one; Unimplemented, for a dtype that Quern has not.
StatusOr<FileTensors> ParseSafetensors(std::span<const uint8_t> file);
// Tensors in the order of their names, data from a multiple of 64 bytes on.
std::string PrintSafetensors(const FileTensors& tensors);

}  // namespace quern
