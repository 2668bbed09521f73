#include "support/described_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "import/safetensors.h"
#include "support/described_model.h"

namespace quern::support {
namespace {

bool ReadTensor(std::istringstream& line, FileTensors& tensors) {
  std::string name, dtype;
  double scale = 0, offset = 0;
  if (!(line >> name >> dtype >> scale >> offset) || dtype != "f32") return false;
  FileTensor tensor;
  uint64_t elements = 1;
  for (int64_t dim = 0; line >> dim; elements *= static_cast<uint64_t>(dim)) tensor.shape.push_back(dim);
  const std::vector<float> values = DescribedWeights(name, elements, scale, offset);
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensors.emplace(name, std::move(tensor)).second;
}

bool ReadLine(const std::string& text, DescribedFolder& folder) {
  std::istringstream line(text);
  std::string kind;
  line >> kind;
  if (kind == "config") return folder.config = text.substr(7), true;
  if (kind == "tensor") return ReadTensor(line, folder.tensors);
  if (kind == "context") return static_cast<bool>(line >> folder.context);
  if (kind == "ids") {
    for (int32_t id = 0; line >> id;) folder.ids.push_back(id);
    return true;
  }
  for (float value = 0; line >> value;) folder.rows.push_back(value);
  return kind == "row";
}

}  // namespace

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
}

void DescribedFolder::Write(const std::string& folder, size_t shards) const {
  WriteText(folder + "/config.json", config);
  if (shards == 1) return WriteText(folder + "/model.safetensors", PrintSafetensors(tensors));
  std::string map;
  std::vector<FileTensors> parts(shards);
  size_t at = 0;
  const auto name = [](size_t shard) { return absl::StrFormat("model-%u.safetensors", shard); };
  for (const auto& [tensor, value] : tensors) {
    const size_t shard = at++ % shards;
    parts[shard].emplace(tensor, value);
    map += absl::StrFormat("%s\"%s\": \"%s\"", map.empty() ? "" : ", ", tensor, name(shard));
  }
  for (size_t i = 0; i < shards; ++i) WriteText(folder + "/" + name(i), PrintSafetensors(parts[i]));
  WriteText(folder + "/model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
}

StatusOr<DescribedFolder> ReadDescribedFolder(const std::string& path) {
  QUERN_ASSIGN(const std::string text, ReadText(path));
  std::istringstream in(text);
  DescribedFolder folder;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (!ReadLine(line, folder)) return absl::InvalidArgumentError(absl::StrFormat("line %d: %s", number, line));
  }
  return folder;
}

std::vector<std::string> DescribedFolders() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(QUERN_GOLDEN_DIR "/hugging_face"))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace quern::support
