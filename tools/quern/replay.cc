#include "replay.h"

#include <cstdio>

ReplayCommand::ReplayCommand(CLI::App& app)
    : command_(app.add_subcommand("replay", "run a reproduction again: 0 it passes, 1 it fails, 2 it cannot be run")) {
  command_->add_option("FILE", path_, "a .qir file; its values lie beside it")->required();
  command_->add_option("--cpu", options_.cpu, "level, in place of the file's");
  command_->add_option("--threads", options_.threads, "in place of the file's")->check(CLI::Range(1, 256));
  command_->footer(
      "Examples:\n"
      "  quern replay check-layers.0-ffn-MatMul.qir\n"
      "  quern replay check-layers.0-ffn-MatMul.qir --cpu x86-64-v2");
}

std::string ReplayCommand::Run(bool& passed) {
  quern::Result<quern::Replayed> replayed = quern::Replay(path_, options_);
  if (!replayed.ok()) return replayed.error();
  passed = replayed->passed;
  std::printf("%s\n", replayed->text.c_str());
  return "";
}
