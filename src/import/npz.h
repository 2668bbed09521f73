// .npz files of NumPy: a ZIP archive with NAME.npy for each array, stored or deflated. The file is not trusted.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "import/tensor_file.h"

namespace quern {

// Errors: InvalidArgument, for what is no archive, is damaged or would take more memory than its bytes can stand for;
// those of ParseNpy, with the array's name.
StatusOr<FileTensors> ParseNpz(std::span<const uint8_t> file);
// As numpy.savez writes it, not compressed. Errors: those of PrintNpy, with the array's name.
StatusOr<std::string> PrintNpz(const FileTensors& tensors);

}  // namespace quern
