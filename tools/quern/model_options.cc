#include "model_options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "prompt.h"

namespace {

// FILE or FILE:SCALE; of a name that has such an ending itself, FILE:1 is the file.
quern::LoraAdapter AdapterOf(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return {text};
  double scale = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, scale);
  if (error != std::errc() || stop != end) return {text};
  return {text.substr(0, colon), scale};
}

}  // namespace

void AddModelOptions(CLI::App& verb, std::string& model, quern::Options& options, bool graphs) {
  verb.add_option("MODEL,-m,--model", model,
                  graphs ? "a GGUF file, a folder of safetensors, or a graph in text or binary form or ONNX"
                         : "a GGUF file or a folder of safetensors")
      ->required();
  verb.add_option("-c,--context", options.context, "positions to keep; 0: the model's own length, at most 4096")
      ->check(WholeNumber<int64_t>);
  const auto add_adapter = [&options](const std::vector<std::string>& adapters) {
    options.lora.clear();
    for (const std::string& each : adapters) options.lora.push_back(AdapterOf(each));
  };
  verb.add_option_function<std::vector<std::string>>("--lora", add_adapter,
                                                     "FILE or FILE:SCALE, a LoRA adapter in GGUF and by how much it "
                                                     "counts, 1 when not given; may be given again")
      ->allow_extra_args(false);
  verb.add_flag("--exact", options.exact, "keep activations f32 beside quantised weights");
  verb.add_flag("--invariant", options.invariant, "the same bits however a text is cut into steps");
}

void AddCpuOption(CLI::App& verb, quern::Options& options) {
  verb.add_option("--cpu", options.cpu, "native, x86-64-v2, x86-64-v3 or x86-64-v4; of a device, its own: sm_80")
      ->capture_default_str();
}

void AddSpecialiseOption(CLI::App& verb, quern::Options& options) {
  verb.add_flag("--specialise", options.specialise, "inline the tiles' own code into kernels");
  verb.add_option("--kernels", options.kernels,
                  "native, common or only-native, by op too (native,Attention=common): of ops that have a kernel of "
                  "their own; QUERN_KERNELS when not given");
}

CLI::Option* AddIdsOption(CLI::App& verb, std::vector<int32_t>& ids) {
  const auto parse = [&ids](const std::string& text) {
    ids.clear();
    const char* at = text.data();
    const char* const end = at + text.size();
    while (true) {
      int32_t id = 0;
      const auto [stop, error] = std::from_chars(at, end, id);
      if (error != std::errc() || (stop != end && *stop != ','))
        throw CLI::ValidationError("--tokens-in", "\"" + text + "\" is not a list of ids such as 1,403,407");
      ids.push_back(id);
      if (stop == end) return;
      at = stop + 1;
    }
  };
  return verb.add_option_function<std::string>("--tokens-in", parse, "token ids in place of a prompt: 1,403,407");
}

void AddRunOptions(CLI::App& verb, quern::Options& options) {
  verb.add_option("-t,--threads", options.threads, "0: as many as the process may use")->check(WholeNumber<int>);
  verb.add_option("--cache", options.cache,
                  "folder of compiled kernels, or off; QUERN_CACHE or the user's cache folder when not given");
}

std::string FlagsOf(const quern::SamplingNumber& number) {
  if (number.flags != nullptr) return number.flags;
  std::string flag = "--" + std::string(number.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

quern::Result<void> RefuseOthers(const CLI::App& verb, const std::string& model, bool graph) {
  constexpr std::string_view kOfGraphs[] = {"size", "in", "out", "values", "fix-sizes"};
  constexpr std::string_view kOfModels[] = {"prompt",      "file",
                                            "tokens-in",   "tokens",
                                            "chat",        "system",
                                            "template",    "special",
                                            "no-special",  "escape",
                                            "ids",         "report",
                                            "logits",      "session",
                                            "context",     "lora",
                                            "seed",        "logit-bias",
                                            "dry-breaker", "grammar",
                                            "speculate",   "grammar-file",
                                            "json-schema", "context-shift",
                                            "stop",        "embed-vocabulary"};
  std::vector<std::string> others(std::begin(kOfGraphs), std::end(kOfGraphs));
  if (graph) {
    others.assign(std::begin(kOfModels), std::end(kOfModels));
    for (const quern::SamplingNumber& number : quern::SamplingNumbers()) {
      const std::string flags = FlagsOf(number);
      others.push_back(flags.substr(2, flags.find(',') - 2));
    }
  }
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    if (!option->get_envname().empty() && std::getenv(option->get_envname().c_str()) != nullptr) continue;
    const std::string& name = option->get_lnames().front();
    if (std::find(others.begin(), others.end(), name) == others.end()) continue;
    return quern::Result<void>::Failed(Invalid("--" + name + " is an option of " +
                                               (graph ? "language models, and " : "graphs, and ") + model + " is " +
                                               (graph ? "a graph" : "none")));
  }
  return {};
}

void RequireValues(CLI::App& verb, const std::vector<std::string>& texts) {
  for (CLI::Option* option : verb.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    if (std::find(texts.begin(), texts.end(), option->get_name()) != texts.end()) continue;
    option->check(
        [](const std::string& value) { return value.empty() ? std::string("the value is empty") : std::string(); });
  }
}
