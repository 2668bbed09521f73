#include "import/hugging_face/model_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/half.h"
#include "import/hugging_face/config.h"
#include "import/safetensors.h"

namespace quern {

namespace fs = std::filesystem;
using hugging_face::Configured;
using hugging_face::Family;
using hugging_face::Json;

namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

Status At(const std::string& path, const Status& status) {
  return Status(status.code(), absl::StrFormat("%s: %s", path, std::string(status.message())));
}

// f32 of a tensor of floats, plus `added`.
std::vector<uint8_t> AsF32(const ModelTensor& tensor, float added) {
  const int64_t bytes = ScalarBytes(*tensor.dtype);
  std::vector<uint8_t> result(tensor.bytes.size() / static_cast<size_t>(bytes) * sizeof(float));
  for (size_t i = 0; i < result.size() / sizeof(float); ++i) {
    float value = 0;
    uint16_t half = 0;
    if (*tensor.dtype == DType::kF32) {
      std::memcpy(&value, tensor.bytes.data() + i * sizeof value, sizeof value);
    } else {
      std::memcpy(&half, tensor.bytes.data() + i * sizeof half, sizeof half);
      value = *tensor.dtype == DType::kF16 ? HalfToFloat(half) : BFloat16ToFloat(half);
    }
    value += added;
    std::memcpy(result.data() + i * sizeof value, &value, sizeof value);
  }
  return result;
}

bool IsSmallFloat(const ModelTensor& tensor) {
  return tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
}

}  // namespace

namespace hugging_face {

bool IsFolderPath(const std::string& path) {
  std::error_code error;
  return path.ends_with(".json") || path.ends_with(".safetensors") || fs::is_directory(path, error);
}

std::string FolderOf(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

StatusOr<std::vector<std::string>> ShardsOf(std::string_view index) {
  QUERN_ASSIGN(const Json json, ParseJson(index));
  const Json* map = Find(json, "weight_map");
  if (map == nullptr || !map->is_object()) return absl::InvalidArgumentError("weight_map of files expected");
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    const bool plain =
        name.ends_with(".safetensors") && name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
    if (!plain) {
      return absl::InvalidArgumentError(
          absl::StrFormat("weight_map: %s is no .safetensors file of the folder", Shown(file)));
    }
    names.insert(name);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

StatusOr<std::vector<std::string>> WeightFiles(const std::string& folder) {
  std::error_code error;
  const fs::path root(folder);
  if (const fs::path index = root / kIndex; fs::exists(index, error)) {
    QUERN_ASSIGN(const MappedFile file, MappedFile::Open(index.string()));
    StatusOr<std::vector<std::string>> shards =
        ShardsOf({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
    if (!shards.ok()) return At(index.string(), shards.status());
    for (std::string& shard : *shards) shard = (root / shard).string();
    return shards;
  }
  if (const fs::path one = root / "model.safetensors"; fs::exists(one, error)) return std::vector{one.string()};
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors") found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  if (found.size() == 1) return found;
  if (found.empty()) return absl::NotFoundError(absl::StrFormat("%s has no .safetensors file", folder));
  return absl::InvalidArgumentError(
      absl::StrFormat("%s has %u .safetensors files and none of them is model.safetensors: name one, as %s", folder,
                      found.size(), found[0]));
}

}  // namespace hugging_face

StatusOr<ModelFolder> ModelFolder::Open(const std::string& path) {
  const std::string folder = hugging_face::FolderOf(path), config_path = (fs::path(folder) / "config.json").string();
  std::error_code error;
  if (path == folder && !fs::exists(config_path, error)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: not a regular file, nor a folder that has a model's config.json", path));
  }
  QUERN_ASSIGN(const Json config, hugging_face::ReadJson(config_path, hugging_face::kMostConfigBytes));
  ModelFolder model;
  StatusOr<Configured> configured = hugging_face::ReadConfig(config, model);
  if (!configured.ok()) return At(config_path, configured.status());
  const std::string name = fs::path(folder).lexically_normal().filename().string();
  if (!name.empty() && name != ".") model.PutText("general.name", name);
  std::vector<std::string> files = {path};
  if (!path.ends_with(".safetensors")) {
    QUERN_ASSIGN(files, hugging_face::WeightFiles(folder));
  }
  for (const std::string& file : files) QUERN_RETURN_IF_ERROR(model.Map(file).status());
  model.SetFolder(folder);
  if (const Status status = model.ReadTensors(*configured); !status.ok()) return At(folder, status);
  return model;
}

StatusOr<ModelFolder> ModelFolder::Parse(std::string_view text, std::span<const uint8_t> weights) {
  QUERN_ASSIGN(const Json config, hugging_face::ParseJson(text));
  ModelFolder model;
  QUERN_ASSIGN(const Configured configured, hugging_face::ReadConfig(config, model));
  model.Refer(weights);
  QUERN_RETURN_IF_ERROR(model.ReadTensors(configured));
  return model;
}

void ModelFolder::PutFactors(const char* name, const std::vector<float>& factors) {
  if (factors.empty()) return;
  const auto* begin = reinterpret_cast<const uint8_t*>(factors.data());
  AddTensor({.name = name,
             .dims = {static_cast<int64_t>(factors.size())},
             .type_name = "F32",
             .dtype = DType::kF32,
             .bytes = Keep({begin, begin + factors.size() * sizeof(float)})});
}

Status ModelFolder::ReadTensors(const Configured& configured) {
  const Family& family = *configured.family;
  SetKind(weights().size() == 1 ? "a folder of safetensors"
                                : absl::StrFormat("a folder of safetensors in %u files", weights().size()));
  const std::string prefix = family.architecture;
  const int64_t heads = Int(prefix + ".attention.head_count").value_or(0),
                kv_heads = Int(prefix + ".attention.head_count_kv").value_or(heads);
  // Experts, each a tensor, are rows of one.
  struct Stack {
    std::string type_name;
    std::map<int64_t, ModelTensor> parts;
  };
  std::map<std::string, Stack> stacks;
  std::set<std::string> seen;
  for (const Weights& file : weights()) {
    StatusOr<std::vector<SafetensorsEntry>> entries = ReadSafetensors(file.bytes);
    if (!entries.ok()) return file.path.empty() ? entries.status() : At(file.path, entries.status());
    for (SafetensorsEntry& entry : *entries) {
      if (!seen.insert(entry.name).second)
        return absl::InvalidArgumentError(absl::StrFormat("the tensor %s is in two files", entry.name));
      int64_t expert = -1;
      std::string name = GgufName(family, entry.name, expert);
      if (name.empty() || (name == "output.weight" && configured.tied)) continue;
      ModelTensor tensor = {.name = name,
                            .dims = std::move(entry.shape),
                            .type_name = std::move(entry.type_name),
                            .dtype = entry.dtype,
                            .bytes = entry.bytes};
      if (expert >= 0) {
        stacks[name].parts.emplace(expert, std::move(tensor));
        continue;
      }
      // One row is a vector.
      if (name.ends_with("ffn_gate_inp_shexp.weight") && tensor.dims.size() == 2 && tensor.dims[0] == 1)
        tensor.dims.erase(tensor.dims.begin());
      if ((family.traits & hugging_face::kPairsApart) != 0) {
        const std::string_view part = std::string_view(name).substr(0, name.rfind('.'));
        if (part.ends_with(".attn_q")) tensor.half_split_heads = heads;
        if (part.ends_with(".attn_k")) tensor.half_split_heads = kv_heads;
      }
      if ((family.traits & hugging_face::kNormsFromOne) != 0 && name.ends_with("_norm.weight") &&
          IsSmallFloat(tensor)) {
        tensor.bytes = Keep(AsF32(tensor, 1));
        tensor.type_name = "F32";
        tensor.dtype = DType::kF32;
      }
      if (!AddTensor(std::move(tensor)))
        return absl::InvalidArgumentError(absl::StrFormat("two tensors are %s: %s and another", name, entry.name));
    }
  }
  for (auto& [name, stack] : stacks) {
    ModelTensor whole = stack.parts.begin()->second;
    std::vector<uint8_t> bytes;
    for (const auto& [expert, part] : stack.parts) {
      if (part.dims != whole.dims || part.type_name != whole.type_name)
        return absl::InvalidArgumentError(absl::StrFormat("experts of %s differ in type or extents", name));
      bytes.insert(bytes.end(), part.bytes.begin(), part.bytes.end());
    }
    if (stack.parts.rbegin()->first + 1 != static_cast<int64_t>(stack.parts.size()))
      return absl::InvalidArgumentError(absl::StrFormat("an expert of %s is missing", name));
    whole.dims.insert(whole.dims.begin(), static_cast<int64_t>(stack.parts.size()));
    whole.bytes = Keep(std::move(bytes));
    AddTensor(std::move(whole));
  }
  if (configured.untied && (family.traits & hugging_face::kEncoder) == 0 && FindTensor("output.weight") == nullptr)
    return absl::InvalidArgumentError("the tensor lm_head.weight is missing, and tie_word_embeddings is false");
  PutFactors("rope_freqs.weight", configured.rope_freqs);
  PutFactors("rope_factors_long.weight", configured.rope_long);
  PutFactors("rope_factors_short.weight", configured.rope_short);
  return absl::OkStatus();
}

}  // namespace quern
