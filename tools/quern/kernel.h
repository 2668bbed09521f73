// quern kernel: kernels in KIR text, verified, held to the interpreter and timed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "quern/kernel.h"

// Adds itself to `app`; Run after parsing.
class KernelCommand {
 public:
  explicit KernelCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // A few lines a kernel go to standard output. `right`: whether all of them compute what the interpreter does.
  quern::Result<void> Run(bool& right);

 private:
  CLI::App* command_;
  std::string path_;
  std::vector<std::string> sizes_;
  bool untimed_ = false;
  quern::Options options_;
  quern::KernelOptions run_;
};
