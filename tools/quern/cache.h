// quern cache: the compiled kernels that are kept on disk.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/cache.h"

// Adds itself to `app`; Run after parsing.
class CacheCommand {
 public:
  explicit CacheCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // The report goes to standard output. Empty, or what went wrong.
  std::string Run();

 private:
  CLI::App *command_, *list_, *explain_, *verify_, *gc_, *clear_;
  std::string model_;
  int64_t bytes_ = int64_t{256} << 20;
  quern::Options options_;
};
