// .safetensors files: a JSON header and the bytes of named tensors. The file is not trusted.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "import/tensor_file.h"

namespace quern {

// A tensor where it lies in the file.
struct SafetensorsEntry {
  std::string name;
  std::string type_name;       // as the file has it: "BF16"
  std::optional<DType> dtype;  // absent: one that Quern has not
  std::vector<int64_t> shape;
  std::span<const uint8_t> bytes;  // as many as dtype and shape say, where there is a dtype
};
// Every tensor, by name. Error: InvalidArgument, with the tensor where there is one.
StatusOr<std::vector<SafetensorsEntry>> ReadSafetensors(std::span<const uint8_t> file);

// Errors: InvalidArgument, with the tensor where there is one; Unimplemented, for a dtype that Quern has not.
StatusOr<FileTensors> ParseSafetensors(std::span<const uint8_t> file);
// Tensors in the order of their names, data from a multiple of 64 bytes on.
std::string PrintSafetensors(const FileTensors& tensors);

}  // namespace quern
