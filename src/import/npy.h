// .npy files of NumPy, versions 1 to 3: one array, in C order and little-endian. The file is not trusted.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "import/tensor_file.h"

namespace quern {

// Errors: InvalidArgument, with the byte where there is one; Unimplemented, for an array in Fortran order, of
// big-endian numbers or of a dtype that Quern has not.
StatusOr<FileTensor> ParseNpy(std::span<const uint8_t> file);
// Version 1. Error: Unimplemented, for bf16, which NumPy has no name for.
StatusOr<std::string> PrintNpy(const FileTensor& tensor);
// What stands before the numbers, a multiple of 64 bytes: of two sizes as they come 128, so that the first can be put
// right when all rows are there. Error: as above.
StatusOr<std::string> NpyHeader(DType dtype, std::span<const int64_t> shape);

}  // namespace quern
