// Files of values, as the command line names them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "import/tensor_file.h"

namespace quern::compiler {

// "FILE.safetensors" or "FILE.npz", all tensors of it; "NAME=FILE.npy", or "NAME=FILE.pb", as ONNX has one. Errors:
// InvalidArgument for anything else; those of the readers, with the path.
StatusOr<FileTensors> ReadValueFile(const std::string& given);
// The same for files to write, of `tensors` by name; `where`: the graph's name, for errors. Errors: kUnknownName,
// Unimplemented (bf16 as .npy), those of WriteFile.
Status WriteValueFile(const std::string& given, const std::vector<std::pair<std::string, FileTensor>>& tensors,
                      const std::string& where);

}  // namespace quern::compiler
