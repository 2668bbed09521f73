// quern reduce: a smaller reproduction that fails in the same way.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/check.h"

// Adds itself to `app`; Run after parsing.
class ReduceCommand {
 public:
  explicit ReduceCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Steps go to standard error, the path of the smaller file to standard output. Empty, or what went wrong.
  std::string Run();

 private:
  CLI::App* command_;
  std::string path_;
  quern::ReduceOptions options_;
};
