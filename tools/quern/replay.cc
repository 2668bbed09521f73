#include "replay.h"

#include <cstdio>

#include "model_options.h"

namespace {

// An error as smaller graphs have it: their sizes and the numbers of their nodes are others.
std::string WithoutNumbers(const std::string& error) {
  std::string text;
  for (const char c : error) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit)
      text += c;
    else if (text.empty() || text.back() != '#')
      text += '#';
  }
  return text;
}

}  // namespace

ReplayCommand::ReplayCommand(CLI::App& app)
    : command_(app.add_subcommand("replay", "run a reproduction again: 0 it passes, 1 it fails, 2 it cannot be run")) {
  command_->add_option("FILE", path_, "a .qir file; its values lie beside it")->required();
  command_->add_option("--cpu", options_.cpu, "level, in place of the file's");
  command_->add_option("--threads", options_.threads, "in place of the file's")->check(Between(1, 256));
  command_->add_flag("--brief", brief_, "a line with the op and the kind of what is found, which smaller files share");
  command_->footer(
      "Examples:\n"
      "  quern replay check-layers.0-ffn-MatMul.qir\n"
      "  quern replay check-layers.0-ffn-MatMul.qir --cpu x86-64-v2");
}

std::string ReplayCommand::Run(bool& passed) {
  quern::Result<quern::Replayed> replayed = quern::Replay(path_, options_);
  if (!replayed.ok()) {
    if (brief_) std::printf("%s\n", WithoutNumbers(replayed.error()).c_str());
    return replayed.error();
  }
  passed = replayed->passed;
  std::printf("%s\n", brief_ && !passed ? replayed->signature.c_str() : replayed->text.c_str());
  return "";
}
