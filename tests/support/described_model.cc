#include "support/described_model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/block_format.h"
#include "base/half.h"
#include "support/gguf_bytes.h"

namespace quern::support {
namespace {

uint64_t Fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

uint64_t SplitMix64(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// NAME DTYPE SCALE OFFSET DIMS.., outermost first.
bool ReadTensor(std::istringstream& line, GgufBytes& bytes) {
  std::string name, dtype;
  double scale = 0, offset = 0;
  if (!(line >> name >> dtype >> scale >> offset)) return false;
  std::vector<uint64_t> dims;
  uint64_t elements = 1;
  for (uint64_t dim = 0; line >> dim; elements *= dim) dims.insert(dims.begin(), dim);
  const uint64_t seed = Fnv1a(name);
  std::vector<uint8_t> data;
  if (const std::optional<DType> known = DTypeFromName(dtype); known && IsBlock(*known)) {
    const BlockFormat& format = FormatOf(*known);
    if (!format.gguf_type) return false;
    data.resize(elements / format.elements * format.bytes);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(SplitMix64(seed + i) >> 56);
    const uint16_t d = FloatToHalf(static_cast<float>(scale));
    for (size_t at = 0; at < data.size(); at += format.bytes) {
      if (*known != DType::kIQ1_M) std::memcpy(&data[at], &d, sizeof d);
      for (size_t part = 0; part < 4 && *known == DType::kIQ1_M; ++part) {
        uint8_t& byte = data[at + 49 + 2 * part];
        byte = static_cast<uint8_t>((byte & 15) | (d >> part * 4 & 15) << 4);
      }
    }
    bytes.AddTensor(name, dims, *format.gguf_type, data);
    return true;
  }
  const std::vector<float> values = DescribedWeights(name, elements, scale, offset);
  if (dtype == "f16") {
    for (const float value : values) {
      const uint16_t half = FloatToHalf(value);
      data.insert(data.end(), {static_cast<uint8_t>(half & 255), static_cast<uint8_t>(half >> 8)});
    }
    bytes.AddTensor(name, dims, 1, data);
    return true;
  }
  data.resize(values.size() * sizeof(float));
  std::memcpy(data.data(), values.data(), data.size());
  bytes.AddTensor(name, dims, 0, data);
  return dtype == "f32";
}

bool ReadLine(std::istringstream& line, DescribedModel& model, GgufBytes& bytes) {
  std::string kind, key, text;
  line >> kind;
  if (kind == "tensor") return ReadTensor(line, bytes);
  if (kind == "context") return static_cast<bool>(line >> model.context);
  if (kind == "ids") {
    for (int32_t id = 0; line >> id;) model.ids.push_back(id);
    return true;
  }
  if (kind == "row" || kind == "exact") {
    for (float value = 0; line >> value;) (kind == "row" ? model.rows : model.exact).push_back(value);
    return true;
  }
  if (kind == "base") {
    if (!(line >> text)) return false;
    model.base = QUERN_GOLDEN_DIR "/architectures/" + text + ".txt";
    return true;
  }
  if (kind == "scale") return static_cast<bool>(line >> model.scale);
  if (!(line >> key >> text)) return false;
  if (key == "general.architecture") model.architecture = text;
  if (kind == "string") {
    bytes.Put(key, std::string_view(text));
  } else if (kind == "uint") {
    bytes.Put(key, static_cast<uint32_t>(std::stoul(text)));
  } else if (kind == "float") {
    bytes.Put(key, std::stof(text));
  } else if (kind == "bool") {
    bytes.Put(key, text == "1");
  } else {
    return false;
  }
  return true;
}

std::vector<std::string> PathsOf(const char* folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::vector<float> DescribedWeights(const std::string& name, uint64_t count, double scale, double offset) {
  std::vector<float> values(count);
  const uint64_t seed = Fnv1a(name);
  for (uint64_t i = 0; i < count; ++i) {
    const double u = static_cast<double>(SplitMix64(seed + i) >> 52) / 2048 - 1;
    values[i] = static_cast<float>(offset + scale * u);
  }
  return values;
}

StatusOr<DescribedModel> ParseDescribedModel(const std::string& text) {
  std::istringstream in(text);
  DescribedModel model;
  GgufBytes bytes;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line);
    if (!ReadLine(words, model, bytes)) return absl::InvalidArgumentError(absl::StrFormat("line %d: %s", number, line));
  }
  model.file = bytes.Build();
  return model;
}

StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(path);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

StatusOr<DescribedModel> ReadDescribedModel(const std::string& path) {
  QUERN_ASSIGN(const std::string text, ReadText(path));
  return ParseDescribedModel(text);
}

std::vector<std::string> DescribedModels() { return PathsOf(QUERN_GOLDEN_DIR "/architectures"); }
std::vector<std::string> DescribedAdapters() { return PathsOf(QUERN_GOLDEN_DIR "/adapters"); }

}  // namespace quern::support
