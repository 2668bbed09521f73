#include "import/model_file.h"

#include <filesystem>

#include "import/gguf.h"
#include "import/hugging_face/model_folder.h"

namespace quern {

const ModelTensor* ModelFile::FindTensor(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

bool ModelFile::AddTensor(ModelTensor tensor) {
  if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) return false;
  tensors_.push_back(std::move(tensor));
  return true;
}

StatusOr<std::span<const uint8_t>> ModelFile::Map(const std::string& path) {
  QUERN_ASSIGN(MappedFile file, MappedFile::Open(path));
  weights_.push_back({path, file.bytes()});  // the bytes keep their address
  files_.push_back(std::move(file));
  return weights_.back().bytes;
}

std::span<const uint8_t> ModelFile::Keep(std::vector<uint8_t> bytes) { return own_.emplace_back(std::move(bytes)); }

StatusOr<std::shared_ptr<const ModelFile>> OpenModelFile(const std::string& path) {
  std::error_code error;
  if (path.ends_with(".json") || path.ends_with(".safetensors") || std::filesystem::is_directory(path, error)) {
    QUERN_ASSIGN(ModelFolder folder, ModelFolder::Open(path));
    return std::make_shared<const ModelFile>(std::move(folder));
  }
  QUERN_ASSIGN(GgufFile file, GgufFile::Open(path));
  return std::make_shared<const ModelFile>(std::move(file));
}

}  // namespace quern
