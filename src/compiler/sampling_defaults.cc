// What a model file says of how to draw from its model: the keys general.sampling.* of GGUF, which llama.cpp reads, and
// the generation_config.json of a folder.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/public_error.h"
#include "import/gguf.h"
#include "import/hugging_face/json.h"
#include "import/hugging_face/model_folder.h"
#include "quern/quern.h"

namespace quern {
namespace {

constexpr const char* kBegin = "general.sampling.";

std::optional<double> NumberIn(const Metadata& file, const std::string& key, bool whole) {
  if (const StatusOr<int64_t> number = file.Int(key); number.ok()) return static_cast<double>(*number);
  const StatusOr<double> number = file.Float(key);
  return number.ok() && !whole ? std::optional(*number) : std::nullopt;
}

// Mirostat is off there unless this says which version of it.
bool MirostatIsOn(const Metadata& file, std::vector<std::string>& ignored) {
  const std::string key = std::string(kBegin) + "mirostat";
  const std::optional<double> version = NumberIn(file, key, true);
  if (file.Has(key) && version != 0 && version != 2) ignored.push_back(key + " is not 2, the version there is, nor 0");
  return version == 2;
}

SamplingDefaults DefaultsIn(const Metadata& file) {
  SamplingDefaults defaults;
  const bool mirostat = MirostatIsOn(file, defaults.ignored);
  for (const SamplingNumber& number : SamplingNumbers()) {
    const std::string key = std::string(kBegin) + (number.file_key == nullptr ? "" : number.file_key);
    if (!file.Has(key) || (number.file_key == std::string_view("mirostat_tau") && !mirostat)) continue;
    const std::optional<double> value = NumberIn(file, key, number.range.whole);
    if (value && number.range.Holds(*value))
      defaults.numbers.push_back({&number, *value});
    else
      defaults.ignored.push_back(key + " is not " + number.range.Text());
  }
  if (const std::string key = std::string(kBegin) + "sequence"; file.Has(key))
    defaults.ignored.push_back(key + ": the order of steps is Quern's");
  return defaults;
}

// Keys of generation_config.json, and the options that they are.
constexpr std::pair<const char*, std::string_view> kFolderKeys[] = {{"temperature", "temperature"},
                                                                    {"top_k", "top_k"},
                                                                    {"top_p", "top_p"},
                                                                    {"min_p", "min_p"},
                                                                    {"typical_p", "typical_p"},
                                                                    {"repetition_penalty", "repeat_penalty"}};

SamplingDefaults DefaultsIn(const hugging_face::Json& config) {
  SamplingDefaults defaults;
  const hugging_face::Json* const sample = hugging_face::Find(config, "do_sample");
  const bool is_greedy = sample != nullptr && sample->is_boolean() && !sample->get<bool>();
  for (const auto& [key, name] : kFolderKeys) {
    const hugging_face::Json* const given = hugging_face::Find(config, key);
    const bool is_temperature = name == "temperature";
    if (is_greedy ? !is_temperature : given == nullptr) continue;  // which has no use for the others
    const auto number = std::ranges::find(SamplingNumbers(), name, &SamplingNumber::name);
    const double value = is_greedy ? 0 : given->is_number() ? given->get<double>() : std::nan("");
    if (number->range.Holds(value) && (!number->range.whole || value == std::trunc(value)))
      defaults.numbers.push_back({&*number, value});
    else
      defaults.ignored.push_back(absl::StrCat(key, " of generation_config.json is not ", number->range.Text()));
  }
  return defaults;
}

Result<SamplingDefaults> DefaultsOfFolder(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "generation_config.json").string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return SamplingDefaults();
  const StatusOr<hugging_face::Json> config = hugging_face::ReadJson(path, hugging_face::kMostConfigBytes);
  if (!config.ok()) return Result<SamplingDefaults>::Failed(compiler::ErrorOf(config.status()));
  return DefaultsIn(*config);
}

}  // namespace

Result<SamplingDefaults> SamplingDefaultsOf(const std::string& path) {
  if (hugging_face::IsFolderPath(path)) return DefaultsOfFolder(hugging_face::FolderOf(path));
  const StatusOr<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return Result<SamplingDefaults>::Failed(compiler::ErrorOf(file.status()));
  return DefaultsIn(*file);
}

}  // namespace quern
