#include "text_options.h"

#include <charconv>

#include "model_options.h"

TextArguments::TextArguments(CLI::App& verb, bool seed) {
  verb.add_option("--size", sizes_, "of a graph in text form: SYMBOL=NUMBER; may be given again")
      ->allow_extra_args(false);
  if (!seed) return;
  verb.add_option("--values", seed_, "of a graph in text form: the seed of the values that its file does not have")
      ->capture_default_str()
      ->check(WholeNumber<uint64_t>);
}

quern::Result<quern::TextGraph> TextArguments::Open(const std::string& path) const {
  quern::TextOptions options;
  options.seed = seed_;
  for (const std::string& text : sizes_) {
    const size_t equals = text.find('=');
    int64_t size = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + (equals == std::string::npos ? 0 : equals + 1), end, size);
    if (equals == std::string::npos || error != std::errc() || stop != end) {
      quern::Error wrong;
      wrong.code = quern::ErrorCode::kInvalid;
      wrong.message = "--size: \"" + text + "\" is not SYMBOL=NUMBER";
      return quern::Result<quern::TextGraph>::Failed(wrong);
    }
    options.sizes[text.substr(0, equals)] = size;
  }
  return quern::TextGraph::Open(path, options);
}
