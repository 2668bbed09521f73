// An ONNX file in memory: its messages, and the bytes of its tensors wherever they lie. Nothing in it is trusted: sizes
// are checked against bytes before either is used, and files beside the model are opened in its folder alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "onnx/format/onnx.pb.h"

namespace quern::onnx {

// A tensor that the file holds: dense, row-major, little-endian. Numbers of 4 bits are a byte each, floats of 8 bits
// are f16.
struct Data {
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;
  std::span<const uint8_t> bytes;
  std::shared_ptr<const std::vector<uint8_t>> owner;  // of bytes that were made; null: the file's own
};

// Largest tensor that is made of a few bytes of the file (4 bits as bytes, numbers as varints).
inline constexpr int64_t kMostElements = int64_t{1} << 31;

// "FLOAT16" of the number of an element type; "type 99" where there is none.
std::string TypeName(int type);
// The dtype that tensors of that element type have in graphs. Error: Unimplemented, with the name of the type.
StatusOr<DType> DTypeOf(int type);

class ModelFile {
 public:
  // Errors: those of MappedFile; InvalidArgument for what is no ONNX file, or nested too deep; Unimplemented for an
  // opset that is not known.
  static StatusOr<std::shared_ptr<const ModelFile>> Open(const std::string& path);
  // The same of bytes, which need not outlive it; `folder` is that of external data, none where it is empty.
  static StatusOr<std::shared_ptr<const ModelFile>> Parse(std::span<const uint8_t> bytes, std::string folder);

  const format::Model& model() const { return model_; }
  // The bytes live as long as the file. Thread-safe. Errors, in a sentence that names the tensor: InvalidArgument,
  // Unimplemented for an element type that Quern has not (strings among them).
  StatusOr<Data> Read(const format::Tensor& tensor) const;

 private:
  StatusOr<std::span<const uint8_t>> External(const format::Tensor& tensor) const;

  format::Model model_;
  std::string folder_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, MappedFile> external_;  // by path below the folder
};

// A tensor in a file by itself (TensorProto), as test data has them. Errors: those of ModelFile::Read.
StatusOr<Data> ParseTensor(std::span<const uint8_t> bytes, std::string* name);
// Whether bytes begin as an ONNX model does: a first field that is its version, or a model without one.
bool LooksLikeModel(std::span<const uint8_t> bytes);

}  // namespace quern::onnx
