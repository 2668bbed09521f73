// quern imatrix: the importance matrix of a model by a text, as llama.cpp's llama-imatrix makes one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/importance.h"

// Adds itself to `app`; Run after parsing.
class ImatrixCommand {
 public:
  explicit ImatrixCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Says on standard error how far it is, then one line. Errors: those of quern::CollectImportance, and of the text.
  quern::Result<void> Run();

 private:
  CLI::App* command_;
  std::string model_, file_, out_ = "imatrix.gguf";
  quern::ImportanceOptions options_;
};
