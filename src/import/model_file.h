// ModelFile: a language model as its file, or its folder, has it: metadata by GGUF's keys, tensors by GGUF's names.
// A GGUF file is one (gguf.h), a folder of Hugging Face's another (hugging_face/model_folder.h); who reads a model need
// not know which.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/mapped_file.h"
#include "import/metadata.h"

namespace quern {

struct ModelTensor {
  std::string name;
  std::vector<int64_t> dims;       // outermost first
  std::string type_name;           // ggml's: "Q4_K"
  std::optional<DType> dtype;      // absent: a type that Quern does not read
  std::span<const uint8_t> bytes;  // in a mapping, or in memory of the file's own
  // Above 0: rows are those of so many heads in half-split order, where GGUF files of the architecture have the two
  // that turn together side by side.
  int64_t half_split_heads = 0;
};

// Immutable once made; thread-safe. Move-only.
class ModelFile : public Metadata {
 public:
  ModelFile() = default;
  ModelFile(ModelFile&&) = default;
  ModelFile& operator=(ModelFile&&) = default;

  const std::vector<ModelTensor>& tensors() const { return tensors_; }
  // The tensor called `name`, or null.
  const ModelTensor* FindTensor(std::string_view name) const;
  // What it is, for people: "GGUF v3".
  const std::string& kind() const { return kind_; }
  // Where its vocabulary is, where that is no part of the metadata: the folder; else empty.
  const std::string& folder() const { return folder_; }

  // The files whose bytes tensors lie in.
  struct Weights {
    std::string path;
    std::span<const uint8_t> bytes;
  };
  const std::vector<Weights>& weights() const { return weights_; }

 protected:
  // False: there is one of this name.
  bool AddTensor(ModelTensor tensor);
  // Maps a file for as long as this lives.
  StatusOr<std::span<const uint8_t>> Map(const std::string& path);
  // Bytes that outlive this (tests, fuzzing).
  void Refer(std::span<const uint8_t> bytes) { weights_.push_back({"", bytes}); }
  void SetKind(std::string kind) { kind_ = std::move(kind); }
  void SetFolder(std::string folder) { folder_ = std::move(folder); }
  std::span<const uint8_t> Keep(std::vector<uint8_t> bytes);

 private:
  std::string kind_, folder_;
  std::vector<MappedFile> files_;
  std::vector<Weights> weights_;
  std::deque<std::vector<uint8_t>> own_;
  std::vector<ModelTensor> tensors_;
  std::map<std::string, size_t, std::less<>> tensor_index_;
};

// The model at `path`: a GGUF file, a folder of Hugging Face's, or one of its files (config.json, .safetensors).
// Errors: those of reading it, beginning with the path.
StatusOr<std::shared_ptr<const ModelFile>> OpenModelFile(const std::string& path);

}  // namespace quern
