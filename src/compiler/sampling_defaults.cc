// What a model file says of how to draw from its model: the keys general.sampling.* of GGUF, which llama.cpp reads.
#include <optional>

#include "compiler/public_error.h"
#include "import/gguf.h"
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

}  // namespace

Result<SamplingDefaults> SamplingDefaultsOf(const std::string& path) {
  if (hugging_face::IsFolderPath(path)) return SamplingDefaults();
  const StatusOr<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return Result<SamplingDefaults>::Failed(compiler::ErrorOf(file.status()));
  return DefaultsIn(*file);
}

}  // namespace quern
