#include "text_options.h"

#include <charconv>

#include "model_options.h"

TextArguments::TextArguments(CLI::App& verb, bool run) : fix_sizes_(run) {
  verb.add_option("--size", sizes_, "of a graph: SYMBOL=NUMBER; may be given again")->allow_extra_args(false);
  if (run) {
    verb.add_flag("--fix-sizes,!--symbolic-sizes", fix_sizes_,
                  "of a model in ONNX: it is compiled for the sizes of the run; --symbolic-sizes: for all sizes")
        ->default_str("true");
  } else {
    verb.add_flag("--fix-sizes", fix_sizes_, "of a model in ONNX: its sizes become part of the graph");
  }
  verb.add_option("--in", in_,
                  "of a graph, values of inputs and parameters: NAME=FILE.npy, FILE.npz or FILE.safetensors; "
                  "may be given again")
      ->allow_extra_args(false);
  verb.add_option("--values", seed_, "of a graph: the seed of the values that its file does not have")
      ->capture_default_str()
      ->check(WholeNumber<uint64_t>);
}

quern::Result<std::map<std::string, int64_t>> ParseSizes(const std::vector<std::string>& texts) {
  using Sizes = std::map<std::string, int64_t>;
  Sizes sizes;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    int64_t size = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + (equals == std::string::npos ? 0 : equals + 1), end, size);
    if (equals == std::string::npos || error != std::errc() || stop != end) {
      quern::Error wrong;
      wrong.code = quern::ErrorCode::kInvalid;
      wrong.message = "--size: \"" + text + "\" is not SYMBOL=NUMBER";
      return quern::Result<Sizes>::Failed(wrong);
    }
    sizes[text.substr(0, equals)] = size;
  }
  return sizes;
}

quern::Result<quern::TextGraph> TextArguments::Open(const std::string& path) const {
  quern::Result<std::map<std::string, int64_t>> sizes = ParseSizes(sizes_);
  if (!sizes.ok()) return quern::Result<quern::TextGraph>::Failed(sizes.details());
  return quern::TextGraph::Open(path,
                                {.sizes = *std::move(sizes), .seed = seed_, .values = in_, .fix_sizes = fix_sizes_});
}
