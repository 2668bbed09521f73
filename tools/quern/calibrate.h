// quern calibrate: the ranges that the values of a graph have in a run.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/qdq.h"
#include "text_options.h"

// Adds itself to `app`; Run after parsing.
class CalibrateCommand {
 public:
  explicit CalibrateCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Errors: those of quern::TextGraph and quern::Calibrator, of files, and of what they hold.
  quern::Result<void> Run() const;

 private:
  CLI::App* command_;
  TextArguments text_;
  std::string graph_, out_;
  bool widen_ = false;
};
