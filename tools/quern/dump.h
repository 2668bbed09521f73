// quern dump: what a model or graph becomes on its way to machine code.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/quern.h"

// Adds itself to `app`; Run after parsing.
class DumpCommand {
 public:
  explicit DumpCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // The text goes to standard output, or where it was asked for. kNone, or what went wrong.
  quern::Error Run();

 private:
  quern::Result<std::string> Text();
  // The form after each pass as a file of the folder: 01-lower.mir, ..., 17-plan.lir.
  quern::Error WriteEach();

  CLI::App* command_;
  std::string model_, output_, each_;
  quern::Options options_;
  quern::DumpOptions dump_;
};
