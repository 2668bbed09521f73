// quern perplexity: how well a model foretells a text, as llama.cpp's llama-perplexity measures it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/perplexity.h"

// Adds itself to `app`; Run after parsing.
class PerplexityCommand {
 public:
  explicit PerplexityCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Says on standard error how far it is; one line, or JSON, on standard output. Errors: those of
  // quern::MeasurePerplexity, and of the text.
  quern::Result<void> Run();

 private:
  CLI::App* command_;
  std::string model_, file_;
  bool json_ = false;
  quern::PerplexityOptions options_;
};
