#include "file_sampling.h"

#include <cstdio>

#include "model_options.h"

quern::Result<void> TakeFileSampling(const std::string& model,
                                     const std::function<bool(const quern::SamplingNumber&)>& given,
                                     quern::SamplingOptions& options) {
  const quern::Result<quern::SamplingDefaults> defaults = quern::SamplingDefaultsOf(model);
  if (!defaults.ok()) return quern::Result<void>::Failed(defaults.details());
  std::string said;
  for (const auto& [number, value] : defaults->numbers) {
    if (given(*number)) continue;
    number->Set(options, value);
    char text[32];
    std::snprintf(text, sizeof(text), " %g", value);
    const std::string flags = FlagsOf(*number);
    said += " " + flags.substr(0, flags.find(',')) + text;
  }
  if (!said.empty()) std::fprintf(stderr, "sampling by the model's file:%s\n", said.c_str());
  for (const std::string& why : defaults->ignored)
    std::fprintf(stderr, "of the model's file not taken: %s\n", why.c_str());
  return {};
}
