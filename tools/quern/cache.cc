#include "cache.h"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

#include "model_options.h"

namespace {

// "50MB": 50 million, "50MiB": 50 times 2^20, "50": bytes; nothing where it is none of these.
std::optional<int64_t> Bytes(const std::string& text) {
  constexpr std::string_view kPrefixes = "KMGT";
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(stop, text.data() + text.size());
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (error != std::errc() || number < 0) return std::nullopt;
  if (unit.ends_with('B')) unit.pop_back();
  const bool binary = unit.size() == 2 && unit[1] == 'I';
  if (unit.empty()) return number;
  const size_t prefix = kPrefixes.find(unit[0]);
  if (prefix == std::string_view::npos || unit.size() > (binary ? 2U : 1U)) return std::nullopt;
  for (size_t p = 0; p <= prefix; ++p) {
    if (__builtin_mul_overflow(number, int64_t{binary ? 1024 : 1000}, &number)) return std::nullopt;
  }
  return number;
}

}  // namespace

CacheCommand::CacheCommand(CLI::App& app)
    : command_(app.add_subcommand("cache", "compiled kernels that are kept for the next start")) {
  list_ = command_->add_subcommand("list", "every entry, most recently used first");
  explain_ = command_->add_subcommand("explain", "for each kernel of a model: hit or miss, and why");
  verify_ = command_->add_subcommand("verify", "compile every entry again and compare the bytes");
  gc_ = command_->add_subcommand("gc", "remove what other builds left, then what was used least recently");
  clear_ = command_->add_subcommand("clear", "remove every entry");
  command_->require_subcommand(1);
  for (CLI::App* verb : {list_, explain_, verify_, gc_, clear_}) {
    verb->add_option("--cache", options_.cache, "the folder; QUERN_CACHE or the user's cache folder when not given");
  }
  AddModelOptions(*explain_, model_, options_);
  AddCpuOption(*explain_, options_);
  AddSpecialiseOption(*explain_, options_);
  const auto set_bytes = [this](const std::string& text) {
    const std::optional<int64_t> bytes = Bytes(text);
    if (!bytes.has_value())
      throw CLI::ValidationError("--bytes", "\"" + text + "\" is not a number of bytes, such as 50MB or 50MiB");
    bytes_ = *bytes;
  };
  gc_->add_option_function<std::string>("--bytes", set_bytes,
                                        "leave at most this many; 50MB: 50 million, 50MiB: 50 times 2^20")
      ->default_str(std::to_string(bytes_));
  command_->footer(
      "Examples:\n"
      "  quern cache list\n"
      "  quern cache explain models/addition.gguf\n"
      "  quern cache gc --bytes 50000000\n"
      "QUERN_CACHE=off turns it off, QUERN_CACHE=FOLDER puts it elsewhere.");
}

std::string CacheCommand::Run() {
  quern::Result<std::string> text = list_->parsed()      ? quern::ListCache(options_)
                                    : explain_->parsed() ? quern::ExplainCache(model_, options_)
                                    : verify_->parsed()  ? quern::VerifyCache(options_)
                                    : gc_->parsed()      ? quern::CollectCache(options_, bytes_)
                                                         : quern::ClearCache(options_);
  if (!text.ok()) return text.error();
  std::fputs(text->c_str(), stdout);
  return "";
}
