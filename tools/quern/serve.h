// quern serve: the program quern-serve, which lies beside this one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "serve_options.h"

// Adds itself to `app`. Run after parsing.
class ServeCommand {
 public:
  explicit ServeCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Becomes the program, which reads what stands behind the verb in `argv` once more. What is wrong where that cannot
  // be.
  std::string Run(char** argv);

 private:
  CLI::App* command_;
  ServeArguments arguments_;
};
