// quern replay: whether what a check found still fails.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/check.h"

// Adds itself to `app`; Run after parsing.
class ReplayCommand {
 public:
  explicit ReplayCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // "ok: ..." or the finding goes to standard output. Empty, or why the file cannot be run.
  std::string Run(bool& passed);

 private:
  CLI::App* command_;
  std::string path_;
  bool brief_ = false;
  quern::ReplayOptions options_;
};
