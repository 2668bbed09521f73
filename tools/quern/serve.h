// quern serve: the program quern-serve, which lies beside this one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

// Adds itself to `app`; its arguments are for the program to read. Run after parsing.
class ServeCommand {
 public:
  explicit ServeCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Becomes the program. What is wrong where that cannot be.
  std::string Run();

 private:
  CLI::App* command_;
};
