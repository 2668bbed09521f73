// quern plan: what a model or graph will take, without compiling it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "quern/plan.h"

class PlanCommand {
 public:
  explicit PlanCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Prints it.
  quern::Result<void> Run() const;

 private:
  CLI::App* command_;
  std::string model_;
  quern::Options options_;
  std::vector<std::string> sizes_;
  bool json_ = false;
};
