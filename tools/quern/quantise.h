// quern quantise: a model file in other formats.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/quantise.h"

// Adds itself to `app`; Run after parsing.
class QuantiseCommand {
 public:
  explicit QuantiseCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Says on standard error how far it is, then one line. Errors: those of quern::Quantise.
  quern::Result<void> Run();

 private:
  CLI::App* command_;
  std::string in_, out_;
  quern::QuantiseOptions options_;
  bool list_ = false;
};
