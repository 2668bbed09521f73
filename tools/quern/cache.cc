#include "cache.h"

#include <cstdio>

#include "model_options.h"

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
  gc_->add_option("--bytes", bytes_, "leave at most this many; 50MB: 50 million, 50MiB: 50 times 2^20")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
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
