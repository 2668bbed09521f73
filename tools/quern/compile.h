// quern compile: a model file, or a graph in text form, as a C library.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/compile.h"
#include "text_options.h"

// Adds itself to `app`; Run after parsing.
class CompileCommand {
 public:
  explicit CompileCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // The paths that were written go to standard output. Empty, or what went wrong.
  std::string Run();

 private:
  CLI::App* command_;
  std::string model_;
  quern::Options options_;
  std::string output_ = ".";
  quern::CompileOptions compile_;
  TextArguments text_;
};
