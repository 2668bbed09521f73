// From the tensor of a file, which has its elements in one of six fields, to bytes.
#pragma once

#include <span>

#include "onnx/model_file.h"

namespace quern::onnx {

// `raw`: the bytes of the tensor where `is_raw`; else its elements are in the field of their type. The bytes of the
// result are those of `raw`, or its own. Errors: those of ModelFile::Read.
StatusOr<Data> ReadTensor(const format::Tensor& tensor, std::span<const uint8_t> raw, bool is_raw);

}  // namespace quern::onnx
