// A folder as Hugging Face's transformers writes it: config.json and .safetensors files, as a model by GGUF's keys and
// names. Weights lie where the files have them; what a GGUF file has in another form is computed where it is small
// (norms, factors of rotation), and where it is not, told (ModelTensor::half_split_heads).
//
// Not trusted: every JSON value is read by checked accessors, shards are files of the folder, every tensor lies inside
// its file and is there once.
#pragma once

#include "import/model_file.h"

namespace quern {

namespace hugging_face {
struct Configured;
}

class ModelFolder : public ModelFile {
 public:
  // A folder, its config.json, or one .safetensors file in it. Errors begin with the path.
  static StatusOr<ModelFolder> Open(const std::string& path);
  // The same of a config.json and one .safetensors file in memory, which outlive the object (fuzzing).
  static StatusOr<ModelFolder> Parse(std::string_view config, std::span<const uint8_t> weights);

 private:
  Status ReadTensors(const hugging_face::Configured& configured);
  void PutFactors(const char* name, const std::vector<float>& factors);
};

namespace hugging_face {

// The folder of a path that names it or one of its files.
std::string FolderOf(const std::string& path);
// Whether it is not a GGUF file that the path names.
bool IsFolderPath(const std::string& path);
// The .safetensors files of a folder: those that model.safetensors.index.json lists, model.safetensors, or the only one
// there is.
StatusOr<std::vector<std::string>> WeightFiles(const std::string& folder);
// Names of the files in a text of model.safetensors.index.json, each once. Error: one that is no file of the folder.
StatusOr<std::vector<std::string>> ShardsOf(std::string_view index);

}  // namespace hugging_face
}  // namespace quern
